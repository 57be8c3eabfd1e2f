/* Fast-math flags: the freedoms of float arithmetic (contraction, reassociation, …) that a graph
   grants to rewrite rules and schedules. */
#ifndef TENON_IR_CORE_MATH_MODE_H
#define TENON_IR_CORE_MATH_MODE_H

#include "ir/core/dtype.h"
#include "ir/core/op.h"

/** A set of freedoms. */
typedef enum math_mode {
  MATH_EXACT = 0,
  MATH_CONTRACT = 1, /* a multiply-add may become the fma op, which rounds once */
  MATH_REORDER = 2,  /* the terms of a reduction may be combined in any order */
  MATH_FLUSH = 8,    /* exponentials below twice the least normal number may be 0 */
  MATH_DEFAULT = 11, /* all three */
  MATH_FAST = 15     /* and signed zeros, NaN, infinities and the order of operations are free */
} math_mode;

/** True if the terms of a reduction of type `t` may be combined in another order. Integers always
    may; of floats, sums and products round, and the order decides between zeros of both signs in a
    minimum or maximum. */
static inline bool math_may_reorder(int math, dtype t) {
  return !dtype_is_float(t) || (math & MATH_REORDER);
}

/** The same of a scan by an op. Partial products of floats overflow where those in order do not,
   and an infinity times the 0 before it is NaN; sums may, by what MATH_REORDER allows. */
static inline bool math_may_reorder_scan(int math, op o, dtype t) {
  return math_may_reorder(math, t) && !(dtype_is_float(t) && o == OP_MUL);
}

#endif
