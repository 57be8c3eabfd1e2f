/* Builds scalar and elementwise nodes, whose type and lanes follow from the operands by the op's
   type rule. A builder makes the node as given and rewrites nothing; ir/index/index_arithmetic.h
   builds canonical index arithmetic, ir/index/build_tensor.h tensor ops. */
#ifndef TENON_IR_CORE_BUILD_H
#define TENON_IR_CORE_BUILD_H

#include "ir/core/ir.h"

/* Elementwise; operands have equal shapes and lanes. */
const node *ir_op1(ir *g, op o, const node *a);
const node *ir_op2(ir *g, op o, const node *a, const node *b);
const node *ir_op3(ir *g, op o, const node *a, const node *b, const node *c);
const node *ir_cast(ir *g, const node *a, dtype to); /* `a` itself if it has the type */
const node *ir_bitcast(ir *g, const node *a, dtype to);

/* Constants, of rank 0. */
const node *ir_const_bits(ir *g, dtype t, uint64_t bits);
/** Constants of any type, converted by scalar_from_double and by wrapping from i64. */
const node *ir_const(ir *g, dtype t, double value);
const node *ir_const_int(ir *g, dtype t, int64_t value);

/** Any op with sources and integers. */
const node *ir_node(ir *g, op o, dtype t, const node *const src[], size_t n_src,
                    const int64_t ints[], size_t n_int);

/** True if a REDUCE reduces an axis of its operand. */
bool reduce_has_axis(const node *reduce, size_t axis);

/** True if the ranks and all dimensions are equal, dimensions as index expressions. */
bool ir_same_shape(const node *a, const node *b);

#endif
