/* Implements the loader of compiled kernels. Sections are laid out in one anonymous mapping, code
   first, with stubs for calls of functions outside and slots for addresses; relocations are
   applied; then code becomes executable and constants read-only. No page is ever both writable and
   executable. */
#include "device/cpu/elf_loader.h"

#include "base/memory_limit.h"
#include "device/cpu/elf_machine.h"
#include "device/cpu/elf_object.h"
#include "device/cpu/kernel_imports.h"
#include "device/cpu/mapping_limit.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#if defined(__x86_64__)
static const elf_machine *const host = &elf_x86_64;
#elif defined(__aarch64__)
static const elf_machine *const host = &elf_aarch64;
#else
static const elf_machine *const host = NULL;
#endif

/* The mapping: code and stubs, then constants and slots, then data; each part in pages of its own.
   Below 1 GiB every 32-bit displacement inside it fits. */
enum { PART_CODE, PART_CONSTANTS, PART_DATA, PARTS, NO_PART };
enum { LARGEST_MAPPING = 1 << 30 };

typedef struct elf_name {
  const char *text;
  void *address;
} elf_name;

struct elf_image {
  const mem *mem;
  void *map;
  size_t map_bytes, block_bytes; /* of the mapping; and of this struct with its names */
  size_t names;
  elf_name name[];
};

/** An object on its way into memory. */
typedef struct loading {
  const void *file;
  size_t bytes;
  const mem *mem;
  diag *diag;
  arena arena;
  elf_object object;
  size_t page;
  int *part;             /* of each section */
  uint64_t *at;          /* offset of each section in the mapping */
  uint32_t *stub, *slot; /* of each symbol, counted from 1; 0: none needed */
  uint32_t stubs, slots;
  uint64_t stub_at, slot_at, part_at[PARTS + 1]; /* offsets */
  unsigned char *map;
  elf_image *code;
} loading;

_Noreturn static void raise_malformed(const loading *l, const char *fault) {
  diag_raise(l->diag, TN_ERR_FORMAT, "malformed kernel object: %s", fault);
}

_Noreturn static void raise_unsupported(const loading *l, const char *what) {
  diag_raise(l->diag, TN_ERR_UNSUPPORTED, "the kernel object has %s, which is not supported", what);
}

/* Sections. */

static bool runs_at_start(const Elf64_Shdr *s) {
  return s->sh_type == SHT_INIT_ARRAY || s->sh_type == SHT_FINI_ARRAY ||
         s->sh_type == SHT_PREINIT_ARRAY;
}

static int part_of(const loading *l, const Elf64_Shdr *s) {
  if (!(s->sh_flags & SHF_ALLOC) || s->sh_type == SHT_NULL || s->sh_type == SHT_NOTE)
    return NO_PART;
  if (runs_at_start(s)) {
    if (!kernel_imports_accept_sanitizer()) raise_unsupported(l, "constructors or destructors");
    return NO_PART;
  }
  if (s->sh_flags & SHF_TLS) raise_unsupported(l, "thread-local data");
  if (s->sh_flags & SHF_COMPRESSED) raise_unsupported(l, "compressed sections");
  if (s->sh_type != SHT_PROGBITS && s->sh_type != SHT_NOBITS && s->sh_type != SHT_X86_64_UNWIND)
    raise_unsupported(l, "a section of an unknown type");
  if (s->sh_addralign > l->page) raise_unsupported(l, "data aligned to more than a page");
  bool writable = s->sh_flags & SHF_WRITE, code = s->sh_flags & SHF_EXECINSTR;
  if (writable && code) raise_unsupported(l, "writable code");
  return code ? PART_CODE : writable ? PART_DATA : PART_CONSTANTS;
}

static void sort_sections(loading *l) {
  size_t n = l->object.sections;
  l->part = arena_calloc(&l->arena, n, sizeof *l->part);
  l->at = arena_calloc(&l->arena, n, sizeof *l->at);
  for (size_t i = 0; i < n; i++) l->part[i] = part_of(l, &l->object.section[i]);
}

/* Relocations: a first pass counts stubs and slots, a second applies them. */

static const elf_relocation *find_relocation(uint32_t type) {
  for (size_t i = 0; i < host->relocations; i++)
    if (host->relocation[i].type == type) return &host->relocation[i];
  return NULL;
}

typedef void relocation_visitor(loading *l, const elf_relocation *kind, const Elf64_Rela *r,
                                size_t target);

static void visit_relocation(loading *l, const Elf64_Rela *r, size_t target,
                             relocation_visitor *each) {
  uint32_t type = ELF64_R_TYPE(r->r_info);
  const Elf64_Shdr *s = &l->object.section[target];
  if (!type) return;
  const elf_relocation *kind = find_relocation(type);
  if (!kind)
    diag_raise(l->diag, TN_ERR_UNSUPPORTED,
               "relocation %u of symbol %s in the kernel object is not supported on %s", type,
               elf_object_printable_name(&l->object, ELF64_R_SYM(r->r_info)), host->name);
  if (s->sh_type == SHT_NOBITS || r->r_offset > s->sh_size ||
      kind->bytes > s->sh_size - r->r_offset)
    raise_malformed(l, "a relocation outside its section");
  each(l, kind, r, target);
}

static void visit_relocations(loading *l, relocation_visitor *each) {
  const elf_object *o = &l->object;
  for (size_t i = 0; i < o->sections; i++) {
    const Elf64_Shdr *s = &o->section[i];
    if (s->sh_type != SHT_RELA && s->sh_type != SHT_REL) continue;
    if (s->sh_info >= o->sections) raise_malformed(l, "relocations of a missing section");
    if (l->part[s->sh_info] == NO_PART) continue;
    if (s->sh_type == SHT_REL) raise_unsupported(l, "relocations without addends");
    size_t n = elf_object_relocations(o, i);
    for (size_t k = 0; k < n; k++) {
      Elf64_Rela r = elf_object_relocation(o, i, k);
      visit_relocation(l, &r, s->sh_info, each);
    }
  }
}

static bool is_undefined(const loading *l, size_t symbol) {
  return l->object.symbol[symbol].st_shndx == SHN_UNDEF;
}

static void count_relocation(loading *l, const elf_relocation *kind, const Elf64_Rela *r,
                             size_t target) {
  (void)target;
  size_t symbol = ELF64_R_SYM(r->r_info);
  if (kind->use == ELF_USE_SLOT && !l->slot[symbol]) l->slot[symbol] = ++l->slots;
  if (kind->use == ELF_USE_NEAR && is_undefined(l, symbol) && !l->stub[symbol])
    l->stub[symbol] = ++l->stubs;
}

static void count_stubs_and_slots(loading *l) {
  l->stub = arena_calloc(&l->arena, l->object.symbols, sizeof *l->stub);
  l->slot = arena_calloc(&l->arena, l->object.symbols, sizeof *l->slot);
  visit_relocations(l, count_relocation);
}

/* The layout of the mapping. */

static uint64_t append_range(const loading *l, uint64_t *end, uint64_t bytes, uint64_t align) {
  uint64_t at = (*end + align - 1) / align * align;
  if (at > LARGEST_MAPPING || bytes > LARGEST_MAPPING - at)
    diag_raise(l->diag, TN_ERR_UNSUPPORTED, "the kernel object is larger than 1 GiB");
  *end = at + bytes;
  return at;
}

static void lay_out(loading *l) {
  uint64_t end = 0;
  for (int part = 0; part < PARTS; part++) {
    l->part_at[part] = append_range(l, &end, 0, l->page);
    for (size_t i = 0; i < l->object.sections; i++) {
      const Elf64_Shdr *s = &l->object.section[i];
      if (l->part[i] == part)
        l->at[i] = append_range(l, &end, s->sh_size, s->sh_addralign + !s->sh_addralign);
    }
    if (part == PART_CODE)
      l->stub_at = append_range(l, &end, (uint64_t)l->stubs * ELF_STUB_BYTES, ELF_STUB_BYTES);
    if (part == PART_CONSTANTS)
      l->slot_at = append_range(l, &end, (uint64_t)l->slots * ELF_SLOT_BYTES, ELF_SLOT_BYTES);
  }
  l->part_at[PARTS] = append_range(l, &end, 0, l->page);
  if (!end) raise_malformed(l, "no code");
}

_Noreturn static void raise_no_memory(const loading *l) {
  char why[512];
  mapping_limit_explain(why, sizeof why);
  diag_raise(l->diag, TN_ERR_MEMORY, "out of memory (%zu bytes for code of kernels): %s",
             (size_t)l->part_at[PARTS], why);
}

static void map_sections(loading *l) {
  size_t bytes = l->part_at[PARTS];
  void *map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (map == MAP_FAILED) raise_no_memory(l);
  l->map = map;
  for (size_t i = 0; i < l->object.sections; i++) {
    const Elf64_Shdr *s = &l->object.section[i];
    if (l->part[i] != NO_PART && s->sh_type != SHT_NOBITS && s->sh_size)
      memcpy(l->map + l->at[i], l->object.file + s->sh_offset, s->sh_size);
  }
}

/* Addresses. */

static uint64_t import_address(const loading *l, size_t symbol) {
  uint64_t address = kernel_import_address(elf_object_name(&l->object, symbol));
  if (address) return address;
  diag_raise(l->diag, TN_ERR_UNSUPPORTED,
             "the kernel object uses %s, which is not a function that kernels may call",
             elf_object_printable_name(&l->object, symbol));
}

static uint64_t symbol_address(const loading *l, size_t symbol) {
  const Elf64_Sym *s = &l->object.symbol[symbol];
  if (ELF64_ST_TYPE(s->st_info) == STT_TLS) raise_unsupported(l, "thread-local data");
  if (ELF64_ST_TYPE(s->st_info) == STT_GNU_IFUNC) raise_unsupported(l, "indirect functions");
  if (s->st_shndx == SHN_COMMON) raise_unsupported(l, "common symbols (use -fno-common)");
  if (s->st_shndx == SHN_UNDEF) return import_address(l, symbol);
  if (s->st_shndx == SHN_ABS) return s->st_value;
  if (s->st_shndx >= l->object.sections || l->part[s->st_shndx] == NO_PART)
    raise_malformed(l, "a symbol in a section that is not loaded");
  if (s->st_value > l->object.section[s->st_shndx].sh_size)
    raise_malformed(l, "a symbol outside its section");
  return (uintptr_t)l->map + l->at[s->st_shndx] + s->st_value;
}

static void write_stubs_and_slots(loading *l) {
  for (size_t i = 0; i < l->object.symbols; i++) {
    if (l->stub[i])
      host->write_stub(l->map + l->stub_at + (uint64_t)(l->stub[i] - 1) * ELF_STUB_BYTES,
                       symbol_address(l, i));
    if (!l->slot[i]) continue;
    uint64_t address = symbol_address(l, i);
    memcpy(l->map + l->slot_at + (uint64_t)(l->slot[i] - 1) * ELF_SLOT_BYTES, &address,
           sizeof address);
  }
}

static uint64_t relocation_address(const loading *l, elf_symbol_use use, size_t symbol) {
  if (use == ELF_USE_SLOT)
    return (uintptr_t)l->map + l->slot_at + (uint64_t)(l->slot[symbol] - 1) * ELF_SLOT_BYTES;
  if (use == ELF_USE_NEAR && l->stub[symbol])
    return (uintptr_t)l->map + l->stub_at + (uint64_t)(l->stub[symbol] - 1) * ELF_STUB_BYTES;
  return symbol_address(l, symbol);
}

static void apply_relocation(loading *l, const elf_relocation *kind, const Elf64_Rela *r,
                             size_t target) {
  size_t symbol = ELF64_R_SYM(r->r_info);
  unsigned char *at = l->map + l->at[target] + r->r_offset;
  uint64_t value = relocation_address(l, kind->use, symbol) + (uint64_t)r->r_addend;
  if (!host->apply(kind->type, at, (uintptr_t)at, value))
    diag_raise(l->diag, TN_ERR_UNSUPPORTED,
               "relocation %u of symbol %s does not reach its target (compile with -fPIC)",
               kind->type, elf_object_printable_name(&l->object, symbol));
}

/* The names that the object defines. */

static bool is_exported(const loading *l, size_t symbol) {
  const Elf64_Sym *s = &l->object.symbol[symbol];
  int bind = ELF64_ST_BIND(s->st_info), type = ELF64_ST_TYPE(s->st_info);
  return (bind == STB_GLOBAL || bind == STB_WEAK) &&
         (type == STT_FUNC || type == STT_OBJECT || type == STT_NOTYPE) && s->st_shndx &&
         s->st_shndx < l->object.sections && l->part[s->st_shndx] != NO_PART;
}

static void copy_names(loading *l) {
  const elf_object *o = &l->object;
  size_t names = 0, text = 0;
  for (size_t i = 0; i < o->symbols; i++) {
    if (!is_exported(l, i)) continue;
    names++;
    text += strlen(elf_object_name(o, i)) + 1;
  }
  size_t bytes = sizeof *l->code + names * sizeof *l->code->name + text;
  l->code = mem_alloc(l->mem, bytes);
  char none[MEMORY_LIMIT_TEXT_BYTES];
  if (!l->code)
    diag_raise(l->diag, TN_ERR_MEMORY, "%s", memory_limit_exhausted_text(l->mem, bytes, none));
  *l->code = (elf_image){.mem = l->mem, .block_bytes = bytes};
  char *to = (char *)(l->code->name + names);
  for (size_t i = 0; i < o->symbols; i++) {
    if (!is_exported(l, i)) continue;
    uint64_t address = symbol_address(l, i);
    l->code->name[l->code->names++] = (elf_name){to, (void *)(uintptr_t)address};
    const char *name = elf_object_name(o, i);
    to = (char *)memcpy(to, name, strlen(name) + 1) + strlen(name) + 1;
  }
}

/* Protection. */

static void protect_part(loading *l, int part, int how) {
  size_t bytes = l->part_at[part + 1] - l->part_at[part];
  if (!bytes || !mprotect(l->map + l->part_at[part], bytes, how)) return;
  if (errno == ENOMEM) raise_no_memory(l);
  diag_raise(l->diag, TN_ERR_DEVICE, "cannot make the memory of a kernel %s: %s",
             part == PART_CODE ? "executable" : "read-only", strerror(errno));
}

static void protect_parts(loading *l) {
  protect_part(l, PART_CODE, PROT_READ | PROT_EXEC);
  protect_part(l, PART_CONSTANTS, PROT_READ);
#ifndef __x86_64__
  __builtin___clear_cache((char *)l->map, (char *)l->map + l->part_at[PART_CONSTANTS]);
#endif
}

static void load_object(void *arg) {
  loading *l = arg;
  elf_object_read(&l->object, l->file, l->bytes, host->number, host->name, &l->arena);
  sort_sections(l);
  count_stubs_and_slots(l);
  lay_out(l);
  map_sections(l);
  write_stubs_and_slots(l);
  visit_relocations(l, apply_relocation);
  copy_names(l);
  protect_parts(l);
}

tn_status elf_load(elf_image **out, const void *object, size_t bytes, const mem *m, diag *d) {
  *out = NULL;
  if (!host)
    return diag_set(d, TN_ERR_UNSUPPORTED, "kernel objects cannot be loaded on this processor");
  loading l = {
      .file = object, .bytes = bytes, .mem = m, .diag = d, .page = (size_t)sysconf(_SC_PAGESIZE)};
  arena_init(&l.arena, m, d);
  tn_status s = diag_catch(d, load_object, &l);
  size_t map_bytes = l.part_at[PARTS];
  if (s == TN_OK) {
    l.code->map = l.map;
    l.code->map_bytes = map_bytes;
    *out = l.code;
  } else {
    if (l.code) mem_free(m, l.code, l.code->block_bytes);
    if (l.map) munmap(l.map, map_bytes);
  }
  arena_free(&l.arena);
  return s;
}

void *elf_symbol(const elf_image *code, const char *name) {
  for (size_t i = 0; i < code->names; i++)
    if (!strcmp(code->name[i].text, name)) return code->name[i].address;
  return NULL;
}

void elf_free(elf_image *code) {
  if (!code) return;
  munmap(code->map, code->map_bytes);
  mem_free(code->mem, code, code->block_bytes);
}
