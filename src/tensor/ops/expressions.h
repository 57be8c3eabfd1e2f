/* Constructors of the graph expressions that operator builders are made of: elementwise ops,
   numbers, coordinates. */
#ifndef TENON_TENSOR_OPS_EXPRESSIONS_H
#define TENON_TENSOR_OPS_EXPRESSIONS_H

#include "tensor/ops/operators.h"

const node *ex_unary(builder *b, op o, const node *x);
const node *ex_binary(builder *b, op o, const node *x, const node *y);
const node *ex_where(builder *b, const node *c, const node *x, const node *y);

/** Raises TN_ERR_DTYPE for a storage type, which no op computes with. */
void ex_check_computes(builder *b, const node *x);

/** A value in another type. Storage types are converted in `how`'s way. */
const node *ex_cast(builder *b, const node *n, dtype to);
const node *ex_cast_by(builder *b, const node *n, dtype to, storage_rounding how);

/** The type in which values of a storage type are computed with: f32, i8 or u8. A value converted
   to it; and a value of another type that is no storage type, in the storage type `t`. */
dtype storage_compute_type(dtype t);
const node *storage_widen(builder *b, const node *n);
const node *storage_narrow(builder *b, const node *x, dtype t, storage_rounding how);

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
