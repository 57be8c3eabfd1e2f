/* Declares the constants of the machine model, MACHINE_NAME for each row of target/machine.def:
   integers as enumerators, other values as doubles; of a size three, its plausible range and its
   default; of a level of instruction sets its vectors, registers, and whether it has FMA and
   conversions of f16. */
#ifndef TENON_TARGET_MACHINE_H
#define TENON_TARGET_MACHINE_H

#include <stdbool.h>
#include <stdint.h>

enum {
#define MACHINE_INTEGER(name, value, unit, meaning, source) MACHINE_##name = value,
#define MACHINE_ISA(name, vector_bytes, registers, fma, f16c, meaning, source)          \
  MACHINE_##name##_VECTOR_BYTES = vector_bytes, MACHINE_##name##_REGISTERS = registers, \
  MACHINE_##name##_FMA = fma, MACHINE_##name##_F16C = f16c,
#include "target/machine.def"
};

#define MACHINE_REAL(name, value, unit, meaning, source) static const double MACHINE_##name = value;
#define MACHINE_SIZE(name, least, most, usual, unit, meaning, source)                 \
  static const uint64_t MACHINE_##name##_LEAST = least, MACHINE_##name##_MOST = most, \
                        MACHINE_##name##_DEFAULT = usual;
#include "target/machine.def"

#endif
