/* Views of a tensor that differ from it along one axis, for passes that rewrite tensor graphs. They
   are chains of movements, which cost nothing. They use scratch memory, which the caller rewinds.
 */
#ifndef TENON_SCHEDULE_CORE_AXIS_VIEWS_H
#define TENON_SCHEDULE_CORE_AXIS_VIEWS_H

#include "ir/core/ir.h"

/** `size` indices of an axis: start, start + step, … */
const node *axis_slice(ir *g, const node *x, size_t axis, int64_t start, const node *size,
                       int64_t step);

/** An axis as `n` axes of the given sizes, whose product is its size; n may be 0 if it is 1. */
const node *axis_reshape(ir *g, const node *x, size_t axis, size_t n, const node *const sizes[]);

/** An axis of size 1 repeated. */
const node *axis_expand(ir *g, const node *x, size_t axis, const node *size);

/** An axis with zeros behind it, so that it has a size. */
const node *axis_extend(ir *g, const node *x, size_t axis, const node *size);

/** The windows of `n` elements along an axis that begin every `stride` elements: (…, D, …) gives
    (…, n, count, …), where element (k, i) is x[i · stride + k]. All windows are inside. */
const node *axis_windows(ir *g, const node *x, size_t axis, int64_t n, int64_t stride,
                         const node *count);

#endif
