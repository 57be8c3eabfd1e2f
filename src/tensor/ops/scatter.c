/* Writing by index tensors (ONNX ScatterElements and ScatterND) without data-dependent stores:
   each element of the result reduces over the updates whose index equals its position. Costs
   (axis size × updates) comparisons. */
#include "ir/index/index_arithmetic.h"
#include "ir/index/index_proof.h"
#include "tensor/ops/axes_and_broadcasting.h"
#include "tensor/ops/expressions.h"
#include "tensor/ops/gather.h"
#include "tensor/ops/reduction.h"
#include "tensor/ops/type_promotion.h"

/** Compares each index with each of `size` positions: index (…, J, …) gives (…, I, J, …), true
    where index j equals position i. */
static const node *match_positions(builder *b, const node *index, size_t axis, const node *size) {
  sizes s = sizes_insert(b, sizes_of(index), axis, size);
  rank_check(b, s.rank);
  index = shape_expand(b, shape_unsqueeze(b, index, axis), &s);
  return ex_binary(b, OP_EQ, index, ex_iota(b, DT_I64, &s, axis));
}

/** Keeps the last update at each position. */
static const node *select_last_update(builder *b, const node *x, const node *index,
                                      const node *updates, size_t axis) {
  const node *hit = match_positions(b, index, axis, x->dims[axis]);
  sizes s = sizes_of(hit), all = sizes_of(x);
  axis_list over = axes_from(axis + 1, axis + 2);
  const node *j = ex_iota(b, DT_I64, &s, axis + 1);
  const node *last = node_reduce(b, OP_MAX, ex_where(b, hit, j, ex_int(b, j, -1)), &over, false);
  last = shape_broadcast(b, last, &all);
  const node *is_new = ex_binary(b, OP_LE, ex_int(b, last, 0), last);
  return ex_where(b, is_new, node_gather(b, updates, axis, last), x);
}

/** Reduces the updates with x, in the type that sums and products are computed in. */
static const node *reduce_updates(builder *b, op o, const node *x, const node *index,
                                  const node *updates, size_t axis) {
  dtype t = (dtype)x->dtype;
  updates = ex_cast(b, updates, accumulation_type(t));
  const node *hit = match_positions(b, index, axis, x->dims[axis]);
  sizes s = sizes_insert(b, sizes_of(updates), axis, x->dims[axis]);
  axis_list over = axes_from(axis + 1, axis + 2);
  updates = shape_expand(b, shape_unsqueeze(b, updates, axis), &s);
  uint64_t identity = 0;
  op_identity(o, (dtype)updates->dtype, &identity);
  const node *neutral = ex_fill(b, ir_const_bits(b->ir, (dtype)updates->dtype, identity), &s);
  updates = ex_where(b, shape_expand(b, hit, &s), updates, neutral);
  const node *all = node_reduce(b, o, updates, &over, false);
  return ex_cast(b, ex_binary(b, o, ex_cast(b, x, accumulation_type(t)), all), t);
}

/** Scatters along one axis: x (…, I, …), updates (…, J, …), and index (…, J, …), whose other sizes
    may be 1. */
static value scatter_axis(builder *b, op o, const node *x, const node *index, const node *updates,
                          size_t axis) {
  return value_of(o == OP_SET ? select_last_update(b, x, index, updates, axis)
                              : reduce_updates(b, o, x, index, updates, axis));
}

/** Pads all axes but one to the sizes of x. */
static const node *pad_other_axes(builder *b, const node *n, const sizes *s, size_t axis,
                                  int64_t fill) {
  const node *none = ix_const(b->ir, 0), *value = ir_const_int(b->ir, (dtype)n->dtype, fill);
  for (size_t i = 0; i < s->rank; i++)
    if (i != axis && n->dims[i] != s->at[i])
      n = shape_pad(b, n, i, none, ix_sub(b->ir, s->at[i], n->dims[i]), value);
  return n;
}

static void check_updates(builder *b, const node *updates, const sizes *wanted) {
  sizes s = sizes_of(updates);
  if (!sizes_equal(&s, wanted))
    diag_raise(b->diag, TN_ERR_SHAPE, "updates have shape %s; it must be %s", sizes_text(b, &s),
               sizes_text(b, wanted));
}

value build_scatter_elements(builder *b, value x, value index, value updates, int64_t axis, op o) {
  const node *n = value_typed(b, x).node, *u = value_typed(b, updates).node;
  size_t at = axis_of(b, axis, n->rank);
  const node *i = node_wrap_index(b, index, n->dims[at]);
  sizes s = sizes_of(n), index_shape = sizes_of(i);
  bool is_inside = i->rank == n->rank;
  for (size_t k = 0; is_inside && k < n->rank; k++)
    is_inside = k == at || ix_prove_le(b->ir, i->dims[k], n->dims[k]);
  if (!is_inside)
    diag_raise(
        b->diag, TN_ERR_SHAPE,
        "the index has shape %s and x has shape %s; their ranks must be equal, and no size of "
        "the index larger, except along axis %zu",
        sizes_text(b, &index_shape), sizes_text(b, &s), at);
  check_updates(b, u, &index_shape);
  i = pad_other_axes(b, i, &s, at, -1); /* −1 matches no position */
  return scatter_axis(b, o, n, i, pad_other_axes(b, u, &s, at, 0), at);
}

/** Row-major positions in the first axes of x that the last axis of the index names; −1 outside. */
static const node *linear_positions(builder *b, const node *x, const node *index, size_t depth) {
  sizes s = sizes_remove(sizes_of(index), index->rank - 1u);
  const node *position = ex_fill(b, ir_const_int(b->ir, DT_I64, 0), &s);
  const node *is_inside = ex_fill(b, ir_const_bits(b->ir, DT_BOOL, 1), &s);
  const node *none = ex_int(b, position, -1);
  for (size_t k = 0; k < depth; k++) {
    const node *i = node_index_coordinate(b, index, k, x->dims[k], &s);
    const node *size = ex_fill(b, ex_size(b, x->dims[k], DT_I64), &s);
    const node *in_range =
        ex_binary(b, OP_AND, ex_binary(b, OP_LT, none, i), ex_binary(b, OP_LT, i, size));
    is_inside = ex_binary(b, OP_AND, is_inside, in_range);
    position = ex_binary(b, OP_ADD, ex_binary(b, OP_MUL, position, size), i);
  }
  return ex_where(b, is_inside, position, none);
}

/** The number of elements in axes first … last − 1. */
static const node *count_elements(builder *b, const sizes *s, size_t first, size_t last) {
  const node *n = ix_const(b->ir, 1);
  for (size_t i = first; i < last; i++) n = ix_mul(b->ir, n, s->at[i]);
  return n;
}

/** Scatters along the first axis of x (positions, rest) and of the updates (indices, rest). */
value build_scatter_nd(builder *b, value x, value index, value updates, op o) {
  const node *n = value_typed(b, x).node, *u = value_typed(b, updates).node;
  const node *i = value_typed(b, index).node;
  const node *k = i->rank ? i->dims[i->rank - 1] : NULL, *one = ix_const(b->ir, 1);
  if (!k || !node_is_const(k) || node_int(k) > n->rank)
    diag_raise(b->diag, TN_ERR_SHAPE,
               "the last axis of the index must have a coordinate for each of at most %u axes of x",
               (unsigned)n->rank);
  size_t depth = (size_t)node_int(k), lead = i->rank - 1u;
  sizes s = sizes_of(n), wanted = sizes_remove(sizes_of(i), lead);
  const node *count = count_elements(b, &wanted, 0, lead);
  for (size_t at = depth; at < s.rank; at++)
    wanted = sizes_insert(b, wanted, wanted.rank, s.at[at]);
  check_updates(b, u, &wanted);
  const node *rest = count_elements(b, &s, depth, s.rank);
  sizes of_x = {.rank = 2, .at = {count_elements(b, &s, 0, depth), rest}};
  sizes of_updates = {.rank = 2, .at = {count, rest}}, of_index = {.rank = 2, .at = {count, one}};
  const node *positions = shape_reshape(b, linear_positions(b, n, i, depth), &of_index);
  value y = scatter_axis(b, o, shape_reshape(b, n, &of_x), positions,
                         shape_reshape(b, u, &of_updates), 0);
  return build_reshape(b, y, &s);
}
