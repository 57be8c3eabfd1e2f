/* Parses relocatable ELF64 objects. Headers are copied, as the file may be unaligned, after their
   bounds are checked. */
#include "device/cpu/elf_object.h"

#include <stdbool.h>
#include <string.h>

enum { LONGEST_NAME = 1023 };

_Noreturn static void raise_malformed(const elf_object *o, const char *fault) {
  diag_raise(o->arena->diag, TN_ERR_FORMAT, "malformed kernel object: %s", fault);
}

static bool is_in_file(const elf_object *o, uint64_t offset, uint64_t bytes) {
  return offset <= o->bytes && bytes <= o->bytes - offset;
}

static Elf64_Ehdr read_header(const elf_object *o, unsigned machine, const char *processor) {
  Elf64_Ehdr h;
  if (o->bytes < sizeof h) raise_malformed(o, "shorter than an ELF header");
  memcpy(&h, o->file, sizeof h);
  if (memcmp(h.e_ident, ELFMAG, SELFMAG)) raise_malformed(o, "not an ELF file");
  if (h.e_ident[EI_CLASS] != ELFCLASS64 || h.e_ident[EI_DATA] != ELFDATA2LSB)
    diag_raise(o->arena->diag, TN_ERR_UNSUPPORTED, "the kernel object is not 64-bit little-endian");
  if (h.e_machine != machine)
    diag_raise(o->arena->diag, TN_ERR_UNSUPPORTED,
               "the kernel object is for ELF machine %d, but this processor is %s (%u)",
               h.e_machine, processor, machine);
  if (h.e_ident[EI_VERSION] != EV_CURRENT || h.e_version != EV_CURRENT)
    raise_malformed(o, "unknown ELF version");
  if (h.e_type != ET_REL) raise_malformed(o, "not a relocatable object");
  return h;
}

static void read_sections(elf_object *o, const Elf64_Ehdr *h) {
  if (!h->e_shnum || h->e_shnum >= SHN_LORESERVE) raise_malformed(o, "no sections");
  if (h->e_shentsize != sizeof *o->section) raise_malformed(o, "section headers of the wrong size");
  size_t bytes = h->e_shnum * sizeof *o->section;
  if (!is_in_file(o, h->e_shoff, bytes)) raise_malformed(o, "section headers outside the file");
  o->section = arena_copy(o->arena, o->file + h->e_shoff, bytes);
  o->sections = h->e_shnum;
  for (const Elf64_Shdr *s = o->section; s < o->section + o->sections; s++) {
    bool in_file = s->sh_type != SHT_NULL && s->sh_type != SHT_NOBITS;
    if (in_file && !is_in_file(o, s->sh_offset, s->sh_size))
      raise_malformed(o, "a section outside the file");
    if (s->sh_addralign & (s->sh_addralign - 1))
      raise_malformed(o, "a section with a bad alignment");
  }
}

static void find_symbol_table(elf_object *o) {
  for (size_t i = 1; i < o->sections; i++) {
    if (o->section[i].sh_type != SHT_SYMTAB) continue;
    if (o->symbol_table) raise_malformed(o, "two symbol tables");
    o->symbol_table = i;
  }
}

static void read_names(elf_object *o, size_t section, size_t *bytes) {
  if (!section || section >= o->sections || o->section[section].sh_type != SHT_STRTAB)
    raise_malformed(o, "symbols without names");
  *bytes = o->section[section].sh_size;
  o->names = (const char *)o->file + o->section[section].sh_offset;
  if (!*bytes || o->names[*bytes - 1]) raise_malformed(o, "symbol names without a terminating NUL");
}

static void read_symbols(elf_object *o) {
  find_symbol_table(o);
  if (!o->symbol_table) return;
  const Elf64_Shdr *table = &o->section[o->symbol_table];
  size_t name_bytes;
  read_names(o, table->sh_link, &name_bytes);
  if (table->sh_entsize != sizeof *o->symbol || table->sh_size % sizeof *o->symbol)
    raise_malformed(o, "symbols of the wrong size");
  o->symbol = arena_copy(o->arena, o->file + table->sh_offset, table->sh_size);
  o->symbols = table->sh_size / sizeof *o->symbol;
  for (const Elf64_Sym *s = o->symbol; s < o->symbol + o->symbols; s++) {
    if (s->st_name >= name_bytes) raise_malformed(o, "a symbol name outside the string table");
    if (s->st_shndx >= o->sections && s->st_shndx < SHN_LORESERVE)
      raise_malformed(o, "a symbol in a missing section");
  }
}

void elf_object_read(elf_object *o, const void *file, size_t bytes, unsigned machine,
                     const char *processor, arena *a) {
  *o = (elf_object){.arena = a, .file = file, .bytes = bytes};
  Elf64_Ehdr h = read_header(o, machine, processor);
  read_sections(o, &h);
  read_symbols(o);
}

const char *elf_object_name(const elf_object *o, size_t symbol) {
  return o->names + o->symbol[symbol].st_name;
}

const char *elf_object_printable_name(const elf_object *o, size_t symbol) {
  char *text = arena_printf(o->arena, "%.100s", elf_object_name(o, symbol));
  for (char *at = text; *at; at++)
    if (*at < ' ' || *at > '~') *at = '?';
  return *text ? text : "(no name)";
}

size_t elf_object_relocations(const elf_object *o, size_t section) {
  const Elf64_Shdr *s = &o->section[section];
  if (s->sh_link != o->symbol_table || !o->symbol_table)
    raise_malformed(o, "relocations without symbols");
  if (s->sh_entsize != sizeof(Elf64_Rela) || s->sh_size % sizeof(Elf64_Rela))
    raise_malformed(o, "relocations of the wrong size");
  return s->sh_size / sizeof(Elf64_Rela);
}

Elf64_Rela elf_object_relocation(const elf_object *o, size_t section, size_t i) {
  Elf64_Rela r;
  memcpy(&r, o->file + o->section[section].sh_offset + i * sizeof r, sizeof r);
  if (ELF64_R_SYM(r.r_info) >= o->symbols) raise_malformed(o, "a relocation of a missing symbol");
  return r;
}
