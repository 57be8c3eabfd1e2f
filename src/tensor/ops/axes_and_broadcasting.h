/* Axes and shapes of operators: normalises axes, broadcasts shapes as NumPy does, and builds
   movement nodes along single axes. */
#ifndef TENON_TENSOR_OPS_AXES_AND_BROADCASTING_H
#define TENON_TENSOR_OPS_AXES_AND_BROADCASTING_H

#include "tensor/ops/operators.h"

/** Normalises an axis to 0 … rank − 1; TN_ERR_SHAPE if there is none. */
size_t axis_of(builder *b, int64_t axis, size_t rank);

/** Axes in the order listed, and as a bit set. */
typedef struct axis_list {
  size_t n;
  int64_t at[SIZES_MAX_RANK];
  uint32_t set;
} axis_list;
axis_list axes_of(builder *b, tn_axes axes, size_t rank);
axis_list axes_from(size_t first, size_t last); /* first … last − 1 */
bool axis_is_in(const axis_list *l, size_t axis);

/** Raises TN_ERR_SHAPE if tensors cannot have this many axes. */
void rank_check(builder *b, size_t rank);

/** True if a size is this number. */
bool size_equals(const node *n, int64_t value);

/** The shape to which several broadcast, as in NumPy; TN_ERR_SHAPE if they do not. */
sizes sizes_broadcast(builder *b, const sizes s[], size_t n);

/** True if shapes are provably equal. */
bool sizes_equal(const sizes *a, const sizes *b);

/** Raises TN_ERR_SHAPE: names shapes that do not broadcast, or one of which two sizes must be
    equal, and the unequal sizes. */
_Noreturn void sizes_refuse_mismatch(builder *b, const sizes s[], size_t n, const node *one,
                                     const node *other);

/** A shape with one size replaced, inserted before an axis (TN_ERR_SHAPE beyond SIZES_MAX_RANK), or
    removed. */
sizes sizes_with(sizes s, size_t axis, const node *size);
sizes sizes_insert(builder *b, sizes s, size_t axis, const node *size);
sizes sizes_remove(sizes s, size_t axis);

/** Movement nodes; no node is made if nothing changes. */
const node *shape_reshape(builder *b, const node *x, const sizes *to);
const node *shape_expand(builder *b, const node *x, const sizes *to); /* equal ranks */
const node *shape_broadcast(builder *b, const node *x, const sizes *to);
/** An axis with the size that size_agreed gives for its own and another one. */
const node *shape_agreed(builder *b, const node *x, size_t axis, const node *size);
const node *shape_unsqueeze(builder *b, const node *x, size_t axis); /* an axis of size 1 */
const node *shape_permute(builder *b, const node *x, const int64_t axes[]);
/** Elements start, start + step, …, `size` of them, along one axis. */
const node *shape_slice(builder *b, const node *x, size_t axis, const node *start, const node *size,
                        int64_t step);
/** Pads one axis by `low` elements before and `high` after it; negative numbers crop. */
const node *shape_pad(builder *b, const node *x, size_t axis, const node *low, const node *high,
                      const node *fill);

#endif
