/* Elementwise operations that other operators build on (elementwise_unary.c,
   elementwise_binary.c). */
#ifndef TENON_TENSOR_OPS_ELEMENTWISE_H
#define TENON_TENSOR_OPS_ELEMENTWISE_H

#include "tensor/ops/operators.h"

/** min(max(x, 0), 6), over a node in the type to compute in. */
const node *node_relu6(builder *b, const node *x);

/** Remainders of floats as C's fmod, computed in f64. */
const node *node_fmod(builder *b, const node *x, const node *y);

#endif
