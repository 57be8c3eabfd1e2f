/* Integers that stand for elements in comparisons: they are in the order of the elements. */
#ifndef TENON_TENSOR_OPS_ORDER_KEYS_H
#define TENON_TENSOR_OPS_ORDER_KEYS_H

#include "tensor/ops/operators.h"

/** Signed integers of as many bits as x's type is computed with, in the order of x: equal ones for
    equal elements, or, with `is_exact`, -0 before 0. NaN is the greatest. Reversed if
    `descending`. */
const node *node_order_keys(builder *b, const node *x, bool descending, bool is_exact);

/** The elements of type `t` that exact keys stand for. */
const node *node_of_order_keys(builder *b, const node *key, bool descending, dtype t);

#endif
