/* Short ways to make nodes. Types and lanes are those of the sources, by the op's type rule. These
   make what they are told: no rewriting, but index arithmetic is canonical (index.h). */
#ifndef TENON_IR_BUILD_H
#define TENON_IR_BUILD_H

#include "ir/index.h"
#include "ir/ir.h"

/* Elementwise; operands have equal shapes and lanes. */
const node *ir_op1(ir *g, op o, const node *a);
const node *ir_op2(ir *g, op o, const node *a, const node *b);
const node *ir_op3(ir *g, op o, const node *a, const node *b, const node *c);
const node *ir_cast(ir *g, const node *a, dtype to); /* `a` itself if it has the type */
const node *ir_bitcast(ir *g, const node *a, dtype to);

/* Constants, of rank 0. */
const node *ir_const_bits(ir *g, dtype t, uint64_t bits);
/** A number of any type: converted as by scalar_from_double, or to an integer exactly if it is one.
 */
const node *ir_const(ir *g, dtype t, double value);
const node *ir_const_int(ir *g, dtype t, int64_t value);

/** Any op with sources and integers. */
const node *ir_node(ir *g, op o, dtype t, const node *const src[], size_t n_src,
                    const int64_t ints[], size_t n_int);

/* Tensor graphs. `dims`, `starts`, `lows` are index nodes. */
const node *ir_reshape(ir *g, const node *x, size_t rank, const node *const dims[]);
const node *ir_expand(ir *g, const node *x, const node *const dims[]); /* rank stays */
const node *ir_permute(ir *g, const node *x, const int64_t axes[]);
const node *ir_slice(ir *g, const node *x, const node *const starts[], const node *const sizes[],
                     const int64_t steps[]);
const node *ir_pad(ir *g, const node *x, const node *value, const node *const lows[],
                   const node *const sizes[]);
const node *ir_reduce(ir *g, const node *x, op o, size_t n_axes, const int64_t axes[]);
/** Whether a REDUCE runs along an axis of its operand. */
bool reduce_has_axis(const node *reduce, size_t axis);
const node *ir_gather(ir *g, const node *x, const node *const indices[]); /* one an axis of x */
const node *ir_iota(ir *g, dtype t, size_t rank, const node *const dims[], int64_t axis);
/** A scalar repeated to a shape. */
const node *ir_fill(ir *g, const node *scalar, size_t rank, const node *const dims[]);
/** Whether all dimensions are equal, as index expressions. */
bool ir_same_shape(const node *a, const node *b);
/** The number of elements, an index expression. */
const node *ir_size(ir *g, const node *x);

#endif
