/* Applies x86-64 relocations (System V psABI, table 4.9) and writes jump stubs for the ELF
   loader. */
#include "device/cpu/elf_machine.h"

#include <elf.h>
#include <string.h>

/* The other relocations of table 4.9 come from other code models, thread-local storage and the
   dynamic linker. */
static const elf_relocation relocations[] = {
    {R_X86_64_64, ELF_USE_ADDRESS, 8},     {R_X86_64_32, ELF_USE_ADDRESS, 4},
    {R_X86_64_32S, ELF_USE_ADDRESS, 4},    {R_X86_64_PC32, ELF_USE_NEAR, 4},
    {R_X86_64_PLT32, ELF_USE_NEAR, 4},     {R_X86_64_GOTPCREL, ELF_USE_SLOT, 4},
    {R_X86_64_GOTPCRELX, ELF_USE_SLOT, 4}, {R_X86_64_REX_GOTPCRELX, ELF_USE_SLOT, 4},
};

static bool fits_signed(uint64_t v) { return v + 0x80000000u <= 0xffffffffu; }

static bool apply_relocation(uint32_t type, unsigned char *at, uint64_t place, uint64_t value) {
  if (type == R_X86_64_64) {
    memcpy(at, &value, sizeof value);
    return true;
  }
  bool absolute = type == R_X86_64_32 || type == R_X86_64_32S;
  if (!absolute) value -= place;
  uint32_t word = (uint32_t)value;
  memcpy(at, &word, sizeof word);
  return type == R_X86_64_32 ? value <= 0xffffffffu : fits_signed(value);
}

static void write_stub(unsigned char *at, uint64_t to) {
  static const unsigned char code[8] = {0xff, 0x25, 2, 0, 0, 0, 0x0f, 0x0b}; /* jmp *2(%rip); ud2 */
  memcpy(at, code, sizeof code);
  memcpy(at + sizeof code, &to, sizeof to);
}

const elf_machine elf_x86_64 = {EM_X86_64,        "x86-64",
                                relocations,      sizeof relocations / sizeof *relocations,
                                apply_relocation, write_stub};
