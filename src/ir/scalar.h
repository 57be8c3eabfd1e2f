/* What every elementwise op means on one scalar: the definition that the interpreters and constant
   folding share. Scalars are carried as 64 bits (dtype.h). */
#ifndef TENON_IR_SCALAR_H
#define TENON_IR_SCALAR_H

#include "ir/op.h"

/** Which operand of an elementwise op has the type that its meaning depends on. */
static inline unsigned scalar_typed_operand(op o) { return o == OP_WHERE ? 1 : 0; }

/** The result of an elementwise op (all but AFFINE, VECTORIZE, EXTRACT and SPLAT; others give 0).
    `operand` is the type of the typed operand, `result` that of the result. Defined for all bits.

    Integers wrap; division by 0 gives 0 and MIN by −1 wraps, also for CDIV and CMOD. f32 and f64
   are IEEE 754; f16 and bf16 compute in f32 and round once; functions of the C library are computed
   in f64 and rounded once. Index arithmetic is exact: where 64 bits do not hold the result,
    *overflow becomes true (it is never cleared) and the result is 0. */
uint64_t scalar_eval(op o, dtype operand, dtype result, const uint64_t args[], bool *overflow);

/** AFFINE: k[0] + Σ k[i + 1]·args[i], exact as above. */
uint64_t scalar_affine(const int64_t k[], size_t n, const uint64_t args[], bool *overflow);

#endif
