/* Elementwise ops and reductions on rows: elements that lie one after the other in memory, at any
   alignment. Results are those of scalar_eval on each element, NaNs' payloads aside; arithmetic in
   the types of C is done by loops over these types, all else by scalar_eval. */
#ifndef TENON_IR_INTERP_ELEMENT_ROWS_H
#define TENON_IR_INTERP_ELEMENT_ROWS_H

#include "ir/core/op.h"

/** An elementwise op, with the types of its operands and of its result. */
typedef struct row_op {
  op o;
  size_t n; /* operands, at most 3 */
  dtype operands[3], result;
} row_op;

/** Computes n elements; *overflow as in scalar_eval. `to` overlaps no operand. */
void row_eval(const row_op *o, const char *const from[], void *to, size_t n, bool *overflow);

/** Combines a state with each element of a row, one after the other, in their type. */
uint64_t row_reduce(op o, dtype t, uint64_t state, const void *row, size_t n);

/** Adds each element of a row of floats to a sum, or multiplies a product by it (OP_MUL), one after
    the other, in long double. */
long double row_reduce_exactly(op o, dtype t, long double state, const void *row, size_t n);

#endif
