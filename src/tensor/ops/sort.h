/* Sorting of keys along the last axis, for operators that need an order. */
#ifndef TENON_TENSOR_OPS_SORT_H
#define TENON_TENSOR_OPS_SORT_H

#include "tensor/ops/operators.h"

/** Longest axis that is sorted by comparing each element with each. */
enum { SORT_COUNTED_MOST = 64 };

/** The number (i64) of elements along the last axis that come before each element: smaller keys,
   and equal ones of smaller `index`, which may lack leading axes of the keys. */
const node *node_ranks(builder *b, const node *key, const node *index);

/** Of two ways to compute the same tensor, the one for at most `most` elements along an axis, or
   that for more: a run takes one by the axis' size n, and a plan for one size has no other. */
const node *node_pick_by_size(builder *b, const node *n, int64_t most, const node *of_few,
                              const node *of_many);

/** The numbers (i64) 0 … n − 1. */
const node *node_all_indices(builder *b, const node *n);

/** x with an axis and the last one swapped. */
value build_swap_with_last(builder *b, value x, size_t axis);

/** The indices (i64) of keys in a stable order along the last axis. */
const node *node_argsort(builder *b, const node *key);

/** The same where an axis of open size has at least `least` elements, or the result is not used. */
const node *node_argsort_long(builder *b, const node *key, int64_t least);

#endif
