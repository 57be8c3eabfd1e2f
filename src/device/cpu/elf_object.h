/* Parses a relocatable ELF64 object: reads the headers, sections and symbols, and checks every
   offset and index. Functions raise TN_ERR_FORMAT or TN_ERR_UNSUPPORTED through the arena's
   diag. */
#ifndef TENON_DEVICE_CPU_ELF_OBJECT_H
#define TENON_DEVICE_CPU_ELF_OBJECT_H

#include "base/arena.h"

#include <elf.h>

/** Headers are copies in the arena (the file may be unaligned); contents stay in the file. */
typedef struct elf_object {
  arena *arena;
  const unsigned char *file;
  size_t bytes;
  const Elf64_Shdr *section; /* offset and size lie in the file, or the section holds nothing there;
                                alignments are powers of two */
  size_t sections, symbol_table; /* symbol_table: its section, 0 without one */
  const Elf64_Sym *symbol;       /* names lie in `names` */
  size_t symbols;
  const char *names; /* ends in NUL */
} elf_object;

/** Reads and checks the headers, all sections and all symbols of an object for the processor of
    number `machine` (e_machine) and name `processor`. The object refers to `file`. */
void elf_object_read(elf_object *o, const void *file, size_t bytes, unsigned machine,
                     const char *processor, arena *a);

/** A symbol's name as it stands in the file. */
const char *elf_object_name(const elf_object *o, size_t symbol);

/** The same for messages: printable and short, in the arena. */
const char *elf_object_printable_name(const elf_object *o, size_t symbol);

/** The number of entries of a relocation section (SHT_RELA), checked. */
size_t elf_object_relocations(const elf_object *o, size_t section);

/** Entry i < elf_object_relocations; its symbol is a valid index. */
Elf64_Rela elf_object_relocation(const elf_object *o, size_t section, size_t i);

#endif
