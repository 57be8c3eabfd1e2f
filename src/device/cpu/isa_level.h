/* Instruction sets: the instructions and vector registers that kernels may use on this processor. A
   target is a level, named as in the x86-64 psABI, and features beyond it: "x86-64-v4+avx512vnni".
 */
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
  bool f16c;          /* converts between f16 and f32 */
  bool (*here)(void); /* true if this processor has the level and the system lets it be used */
} isa_level;

enum { ISA_MOST_FEATURES = 8, ISA_TARGET_BYTES = 128 };

/** Instructions beyond a level. */
typedef struct isa_feature {
  const char *name;   /* "avx512vnni" */
  const char *flag;   /* of the C compiler */
  const char *llvm;   /* LLVM's name of it */
  const char *level;  /* the level that it is used with */
  uint32_t rows;      /* a bit for each TENSOR_ROW, then TENSOR_TILE, that it has */
  bool (*here)(void); /* true if this processor has it */
  bool (*fast)(void); /* true if its rows are faster here than f32: else it is used where it is
                         named alone */
  bool is_assembly;   /* C has the instructions as assembly, which gcc takes without the flag: old
                         versions do not know it */
} isa_feature;

/** A level, and features beyond it. */
typedef struct isa_target {
  const isa_level *level;
  const isa_feature *features[ISA_MOST_FEATURES];
  size_t n_features;
} isa_target;

/** The most that this processor has and `limit` allows: a level, "+" and features that it may have
    beyond it. NULL: no limit but to features that are fast here. A level alone allows no features.
   TN_ERR_ARGUMENT for an unknown name; the message lists the known ones. */
tn_status isa_target_find(const char *limit, isa_target *target, tn_failure *f);

/** The target of a text that isa_target_text wrote. */
isa_target isa_target_parse(const char *text);

/** The level of a name; NULL if there is none. */
const isa_level *isa_level_by_name(const char *name);

/** Writes a target: "x86-64-v4+avx512vnni". */
void isa_target_text(const isa_target *target, char *text, size_t bytes);

/** A bit for each TENSOR_ROW, then for each TENSOR_TILE, that a target has an instruction for. */
uint32_t isa_target_rows(const isa_target *target);

#if defined(__x86_64__)
/** True if this processor has AVX-VNNI. */
bool isa_has_avxvnni(void);
#endif

/** Writes the processor's name and level, for users to read. */
void isa_level_describe(char *text, size_t bytes);

#endif
