/* Internal header of the ELF loader: the interface to the parts that differ between processors,
   which are relocations, and the stubs by which code reaches functions outside of its object. */
#ifndef TENON_DEVICE_CPU_ELF_MACHINE_H
#define TENON_DEVICE_CPU_ELF_MACHINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** The address that a relocation refers to. */
typedef enum elf_symbol_use {
  ELF_USE_ADDRESS, /* the symbol itself */
  ELF_USE_NEAR,    /* the symbol, or a stub near by that jumps to it if it is outside the object */
  ELF_USE_SLOT,    /* a word near by that holds the symbol's address */
} elf_symbol_use;

typedef struct elf_relocation {
  uint32_t type;
  elf_symbol_use use;
  uint32_t bytes; /* that it changes */
} elf_relocation;

enum { ELF_STUB_BYTES = 16, ELF_SLOT_BYTES = 8 };

typedef struct elf_machine {
  unsigned number; /* e_machine */
  const char *name;
  const elf_relocation *relocation;
  size_t relocations;
  /** Applies a relocation to the bytes at `at`, which will run at address `place`. `value` is the
      symbol's address plus the addend. False if the result does not fit its field. */
  bool (*apply)(uint32_t type, unsigned char *at, uint64_t place, uint64_t value);
  /** Writes ELF_STUB_BYTES bytes of code that jump to an address from anywhere. */
  void (*write_stub)(unsigned char *at, uint64_t to);
} elf_machine;

extern const elf_machine elf_x86_64, elf_aarch64;

#endif
