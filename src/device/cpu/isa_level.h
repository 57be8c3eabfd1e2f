/* Instruction set levels: the instructions and vector registers that kernels may use on this
   processor, named as in the x86-64 psABI. */
#ifndef TENON_DEVICE_CPU_ISA_LEVEL_H
#define TENON_DEVICE_CPU_ISA_LEVEL_H

#include <stdbool.h>
#include <stdint.h>

#include <tenon/unstable/queue.h>

/** The levels are those of the x86-64 psABI; other processors have one of their own. */
typedef struct isa_level {
  const char *name;     /* "x86-64-v3" */
  const char *flag;     /* of the C compiler; NULL: its default */
  const char *llvm_cpu; /* LLVM's name of the processor */
  uint16_t vector_bytes;
  uint16_t registers; /* of that width */
  bool fma;           /* has a fused multiply-add */
  bool (*here)(void); /* true if this processor has the level and the system lets it be used */
} isa_level;

/** The highest level of this processor that is not above the one named `limit` (NULL: no limit).
    TN_ERR_ARGUMENT for an unknown name; the message lists the known ones. */
tn_status isa_level_find(const char *limit, const isa_level **level, tn_failure *f);

/** The level of a name; NULL if there is none. */
const isa_level *isa_level_by_name(const char *name);

/** Writes the processor's name and level, for users to read. */
void isa_level_describe(char *text, size_t bytes);

#endif
