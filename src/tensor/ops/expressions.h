/* Constructors of the graph expressions that operator builders are made of: elementwise ops,
   numbers, coordinates. */
#ifndef TENON_TENSOR_OPS_EXPRESSIONS_H
#define TENON_TENSOR_OPS_EXPRESSIONS_H

#include "tensor/ops/operators.h"

const node *ex_unary(builder *b, op o, const node *x);
const node *ex_binary(builder *b, op o, const node *x, const node *y);
const node *ex_where(builder *b, const node *c, const node *x, const node *y);

/** A number with the type and shape of `like`. */
const node *ex_num(builder *b, const node *like, double v);
const node *ex_int(builder *b, const node *like, int64_t v);
/** An operation with a number. */
const node *ex_binary_num(builder *b, op o, const node *x, double v);
/** The coordinate along an axis of a shape. */
const node *ex_iota(builder *b, dtype t, const sizes *shape, size_t axis);
/** An index as a scalar of a type; and a scalar repeated to a shape. */
const node *ex_size(builder *b, const node *size, dtype t);
const node *ex_fill(builder *b, const node *scalar, const sizes *shape);

#endif
