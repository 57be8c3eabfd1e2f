/* Evaluates elementwise ops on one scalar. This is the reference semantics, which constant folding,
   the interpreters and the tests of rules share. Scalars are carried as 64 bits (dtype.h). */
#ifndef TENON_IR_CORE_SCALAR_EVAL_H
#define TENON_IR_CORE_SCALAR_EVAL_H

#include "ir/core/op.h"

/** Position of the operand whose type selects the semantics of an elementwise op. */
static inline unsigned scalar_typed_operand(op o) { return o == OP_WHERE ? 1 : 0; }

/** Evaluates an elementwise op other than AFFINE, VECTORIZE, EXTRACT and SPLAT; all others give 0.
    `operand` is the type of scalar_typed_operand, `result` the type of the result. Total: defined
   for all bits.

    Integers wrap; division by 0 gives 0 and MIN by −1 wraps, also for CDIV and CMOD. f32 and f64
    are IEEE 754; f16 and bf16 compute in f32 and round once; functions of the C library are
   computed in f64 and rounded once. Index arithmetic is exact: a result beyond 64 bits sets
   *overflow, which is never cleared, and gives 0. */
uint64_t scalar_eval(op o, dtype operand, dtype result, const uint64_t args[], bool *overflow);

/** Evaluates AFFINE: k[0] + Σ k[i + 1]·args[i], exact as index arithmetic is above. */
uint64_t scalar_eval_affine(const int64_t k[], size_t n, const uint64_t args[], bool *overflow);

#endif
