/* The rewrite engine: applies sets of rules to a graph until none fires. */
#ifndef TENON_IR_REWRITE_H
#define TENON_IR_REWRITE_H

#include "ir/ir.h"

/** How far float rules may go, as a set: what the graph's mode allows. */
typedef enum math_mode {
  MATH_EXACT = 0,
  MATH_CONTRACT = 1, /* a multiply-add may become the fma op */
  MATH_SUM = 2,      /* a reduction has no order */
  MATH_DEFAULT = 3,
  MATH_FAST = 7 /* signed zeros, NaN, infinities and order do not matter */
} math_mode;

/** Whether the terms of a reduction of a type may be put together in another order. Floats depend
   on it: sums and products round, and of zeros of both signs an extremum is the last one. */
static inline bool math_may_reorder(int math, dtype t) {
  return !dtype_is_float(t) || (math & MATH_SUM);
}

/** What a rule may ask about the target it lowers for. */
typedef struct rule_target {
  /** Bit set of the ops (enum op) the target has no instruction for. SHL, SHR and CAST here mean
      that it has them for counts in range and floats in the integer's range only. */
  uint64_t lacks[2];
  /** Whether it computes with 16-bit floats; else they are bit patterns and arithmetic is in f32.
   */
  bool f16, bf16;
} rule_target;

typedef struct rewriter {
  ir *ir;
  int math;                  /* math_mode */
  const rule_target *target; /* NULL: nothing is lowered */
  void (*fired)(void *user, const char *rule, const node *before, const node *after); /* or NULL */
  void *user;
  uint64_t fires; /* rules fired so far */
} rewriter;

/** A compiled set of rules: tries the rules for the node's op in order; the replacement of the
    first that matches, or NULL. A replacement has the node's type, lanes and shape. */
typedef const node *(*rule_set)(rewriter *rw, const node *n);

/** Rewrites all that `roots` reach, sources first, each node until no rule of any set fires; what
    a rule makes is rewritten too. Roots are replaced in place; in a counted ir they are held as any
    new node is, until ir_collect. Raises TN_ERR_INTERNAL when a budget of steps in proportion to
    the graph is used up (rules that undo each other). */
void rewrite(rewriter *rw, const rule_set sets[], size_t n_sets, const node *roots[], size_t n);

/** A target that lacks an op, and whether it does. */
static inline void target_lack(rule_target *t, op o) { t->lacks[o / 64] |= UINT64_C(1) << o % 64; }
static inline bool target_lacks(const rule_target *t, op o) {
  return t && (t->lacks[o / 64] >> o % 64 & 1);
}

#endif
