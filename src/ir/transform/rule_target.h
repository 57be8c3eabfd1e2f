/* Target features that lowering rules read: the ops for which the target has no instruction, and
   whether it computes in 16-bit floats, or converts them. */
#ifndef TENON_IR_TRANSFORM_RULE_TARGET_H
#define TENON_IR_TRANSFORM_RULE_TARGET_H

#include "ir/core/op.h"

typedef struct rule_target {
  /** Bit set of the ops that the target has no instruction for. A target that has SHL, SHR and CAST
      has them for counts below the width and for floats in the integer's range only. */
  uint64_t lacks[2];
  /** Arithmetic in f16 or bf16; without it they are bit patterns and arithmetic is in f32. */
  bool f16, bf16;
  /** Casts between f16 and f32 alone, where there is no arithmetic in f16. */
  bool f16_casts;
} rule_target;

/** Adds an op to those that the target lacks. */
static inline void rule_target_add_missing_op(rule_target *t, op o) {
  t->lacks[o / 64] |= UINT64_C(1) << o % 64;
}

/** True if there is a target and it lacks the op. */
static inline bool rule_target_lacks_op(const rule_target *t, op o) {
  return t && (t->lacks[o / 64] >> o % 64 & 1);
}

/** Lists the names of the ops that a target lacks, in the order of the ops, up to NULL. */
static inline void rule_target_list_missing_ops(const rule_target *t, const char *names[]) {
  size_t n = 0;
  for (op o = 0; o < OP_LIMIT; o++)
    if (rule_target_lacks_op(t, o)) names[n++] = op_name(o);
  names[n] = NULL;
}

#endif
