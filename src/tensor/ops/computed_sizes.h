/* Sizes that a run computes (ITEMs) where operators need equal ones: what nothing proves is checked
   by the run. */
#ifndef TENON_TENSOR_OPS_COMPUTED_SIZES_H
#define TENON_TENSOR_OPS_COMPUTED_SIZES_H

#include "tensor/ops/operators.h"

/** A filter of topo_sort: true for the nodes that a size consists of. */
bool size_has_part(const node *n, void *unused);

/** True if an ITEM is in a size. Works in `a`. */
bool size_has_item(arena *a, const node *size);

/** True if a run computes a size: an ITEM is in it. */
bool size_is_computed(builder *b, const node *size);

/** A size that a run checks: it is refused unless x and y are equal. */
const node *size_if_equal(builder *b, const node *size, const node *x, const node *y);

/** A size of a shape that a run checks: it is refused unless x has as many elements as the shape.
 */
const node *size_if_fits(builder *b, const node *size, const sizes *shape, const node *x);

/** Sizes that a run checks: refused unless they are at least `least`, or at most `most`. */
const node *size_at_least(builder *b, const node *size, int64_t least);
const node *size_at_most(builder *b, const node *size, const node *most);

/** The size for two axes that must be equally long: x or y if they are known to be equal, else, if
    a run computes one of them, a size that the run checks to be both. NULL: they differ. */
const node *size_agreed(builder *b, const node *x, const node *y);

#endif
