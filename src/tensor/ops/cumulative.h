/* Running results along an axis, for operators that build on them. */
#ifndef TENON_TENSOR_OPS_CUMULATIVE_H
#define TENON_TENSOR_OPS_CUMULATIVE_H

#include "tensor/ops/operators.h"

/** The running results of an op along an axis, in x's type. */
const node *node_cumulative(builder *b, op o, const node *x, size_t axis);

#endif
