/* Applies AArch64 relocations ("ELF for the Arm 64-bit Architecture") and writes jump stubs for the
   ELF loader, with little-endian instructions. */
#include "device/cpu/elf_machine.h"

#include <elf.h>
#include <string.h>

/* Relocations of section 5.7 that the small code model needs. */
static const elf_relocation relocations[] = {
    {R_AARCH64_ABS64, ELF_USE_ADDRESS, 8},
    {R_AARCH64_PREL32, ELF_USE_ADDRESS, 4},
    {R_AARCH64_ADR_PREL_PG_HI21, ELF_USE_NEAR, 4},
    {R_AARCH64_ADD_ABS_LO12_NC, ELF_USE_NEAR, 4},
    {R_AARCH64_LDST8_ABS_LO12_NC, ELF_USE_ADDRESS, 4},
    {R_AARCH64_LDST16_ABS_LO12_NC, ELF_USE_ADDRESS, 4},
    {R_AARCH64_LDST32_ABS_LO12_NC, ELF_USE_ADDRESS, 4},
    {R_AARCH64_LDST64_ABS_LO12_NC, ELF_USE_ADDRESS, 4},
    {R_AARCH64_LDST128_ABS_LO12_NC, ELF_USE_ADDRESS, 4},
    {R_AARCH64_CALL26, ELF_USE_NEAR, 4},
    {R_AARCH64_JUMP26, ELF_USE_NEAR, 4},
    {R_AARCH64_ADR_GOT_PAGE, ELF_USE_SLOT, 4},
    {R_AARCH64_LD64_GOT_LO12_NC, ELF_USE_SLOT, 4},
};

static bool fits_signed(uint64_t v, unsigned bits) {
  return v + ((uint64_t)1 << (bits - 1)) < (uint64_t)1 << bits;
}

/** Writes `bits` bits of a field into the instruction at `at`, from bit `from` up. */
static void write_bits(unsigned char *at, unsigned from, unsigned bits, uint64_t field) {
  uint32_t word, mask = (uint32_t)(((uint64_t)1 << bits) - 1) << from;
  memcpy(&word, at, sizeof word);
  word = (word & ~mask) | ((uint32_t)field << from & mask);
  memcpy(at, &word, sizeof word);
}

static bool apply_branch(unsigned char *at, uint64_t distance) {
  write_bits(at, 0, 26, distance >> 2);
  return !(distance & 3) && fits_signed(distance, 28);
}

static bool apply_page(unsigned char *at, uint64_t place, uint64_t value) {
  uint64_t pages = (value & ~(uint64_t)4095) - (place & ~(uint64_t)4095);
  write_bits(at, 29, 2, pages >> 12);
  write_bits(at, 5, 19, pages >> 14);
  return fits_signed(pages, 33);
}

/** The low 12 bits of an address, in units of an access of 2^scale bytes. */
static bool apply_low(unsigned char *at, uint64_t value, unsigned scale) {
  write_bits(at, 10, 12, (value & 4095) >> scale);
  return !(value & (((uint64_t)1 << scale) - 1));
}

static bool apply_relocation(uint32_t type, unsigned char *at, uint64_t place, uint64_t value) {
  uint64_t distance = value - place;
  switch (type) {
  case R_AARCH64_ABS64: memcpy(at, &value, sizeof value); return true;
  case R_AARCH64_PREL32: write_bits(at, 0, 32, distance); return fits_signed(distance, 32);
  case R_AARCH64_CALL26:
  case R_AARCH64_JUMP26: return apply_branch(at, distance);
  case R_AARCH64_ADR_PREL_PG_HI21:
  case R_AARCH64_ADR_GOT_PAGE: return apply_page(at, place, value);
  case R_AARCH64_ADD_ABS_LO12_NC:
  case R_AARCH64_LDST8_ABS_LO12_NC: return apply_low(at, value, 0);
  case R_AARCH64_LDST16_ABS_LO12_NC: return apply_low(at, value, 1);
  case R_AARCH64_LDST32_ABS_LO12_NC: return apply_low(at, value, 2);
  case R_AARCH64_LDST64_ABS_LO12_NC:
  case R_AARCH64_LD64_GOT_LO12_NC: return apply_low(at, value, 3);
  default: return apply_low(at, value, 4);
  }
}

static void write_stub(unsigned char *at, uint64_t to) {
  static const uint32_t code[2] = {0x58000050, 0xd61f0200}; /* ldr x16, .+8; br x16 */
  memcpy(at, code, sizeof code);
  memcpy(at + sizeof code, &to, sizeof to);
}

const elf_machine elf_aarch64 = {EM_AARCH64,       "AArch64",
                                 relocations,      sizeof relocations / sizeof *relocations,
                                 apply_relocation, write_stub};
