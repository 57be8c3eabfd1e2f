/* Reductions that other operators build on: a reduction with its accumulation type, mean and
   variance of norms, and the check of axes that may be empty. */
#ifndef TENON_TENSOR_OPS_REDUCTION_H
#define TENON_TENSOR_OPS_REDUCTION_H

#include "tensor/ops/axes_and_broadcasting.h"

/** Reduction over axes, which become 1 with `keepdims`. Sums and products of f16 and bf16 are
    accumulated in f32. */
const node *node_reduce(builder *b, op o, const node *x, const axis_list *axes, bool keepdims);

/** Mean and variance over axes, of a node in the type to compute in. */
const node *node_mean(builder *b, const node *x, const axis_list *axes, bool keepdims);
const node *node_variance(builder *b, const node *x, const node *mean, const axis_list *axes);

/** x, none of whose axes in the list is empty, so that it has a maximum. Raises TN_ERR_SHAPE if one
    can be; where a run computes its size, the run checks it. */
const node *axes_not_empty(builder *b, const node *x, const axis_list *axes);

#endif
