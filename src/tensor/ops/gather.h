/* Gathers that other operators build on: elements at computed indices along an axis, and the
   indices themselves. */
#ifndef TENON_TENSOR_OPS_GATHER_H
#define TENON_TENSOR_OPS_GATHER_H

#include "tensor/ops/operators.h"

/** x at `index` (i64, of the result's shape, no negative ones) along an axis, and at the result's
    own coordinates elsewhere. */
const node *node_gather(builder *b, const node *x, size_t axis, const node *index);

/** Indices as i64, negative ones counted from the end of an axis of `size`. */
const node *node_wrap_index(builder *b, value index, const node *size);

/** Coordinate `k` of the positions in the last axis of an index, wrapped likewise, for a result of
    shape s whose first axes the index has. */
const node *node_index_coordinate(builder *b, const node *index, size_t k, const node *size,
                                  const sizes *s);

#endif
