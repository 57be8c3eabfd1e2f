/* Levels of instruction sets: what kernels may use of a processor. */
#ifndef TENON_DEVICE_CPU_LEVEL_H
#define TENON_DEVICE_CPU_LEVEL_H

#include <stdbool.h>
#include <stdint.h>

#include <tenon/unstable/queue.h>

/** The levels are those of the x86-64 psABI; other processors have one of their own. */
typedef struct cpu_level {
  const char *name; /* "x86-64-v3" */
  const char *flag; /* by which a C compiler knows it; NULL: the compiler's own default */
  uint16_t vector_bytes;
  uint16_t registers; /* vectors of that width that it holds */
  bool fma;           /* it multiplies and adds in one instruction */
  bool (*here)(void); /* whether this processor has it, and the system lets it be used */
} cpu_level;

/** The highest level of this processor that is not above the one named `limit` (NULL: no limit).
    TN_ERR_ARGUMENT for a name that is none; the message lists them. */
tn_status cpu_level_find(const char *limit, const cpu_level **level, tn_failure *f);

/** The level of a name that cpu_level_find gave. */
const cpu_level *cpu_level_named(const char *name);

/** Writes the processor's name and level, for people. */
void cpu_level_about(char *text, size_t bytes);

#endif
