/* Writing by index tensors (scatter_elements, scatter_nd) without data-dependent stores: each
   element of the result reduces over the updates whose index equals its position. */
#include "ir/index/index_arithmetic.h"
#include "ir/index/index_proof.h"
#include "tensor/ops/op_helpers.h"

/** The neutral element of a reduction. */
static const node *neutral_element(builder *b, op o, const node *like) {
  uint64_t bits = 0;
  sizes s = sizes_of(like);
  op_identity(o, (dtype)like->dtype, &bits);
  return ex_fill(b, ir_const_bits(b->ir, (dtype)like->dtype, bits), &s);
}

/** True if index j equals position i: index (…, J, …) gives (…, I, J, …). */
static const node *match_positions(builder *b, const node *index, size_t axis, const node *places) {
  sizes s = sizes_insert(b, sizes_of(index), axis, places);
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
  const node *last = ex_reduce(b, OP_MAX, ex_where(b, hit, j, ex_int(b, j, -1)), &over, false);
  last = shape_broadcast(b, last, &all);
  const node *is_new = ex_binary(b, OP_LE, ex_int(b, last, 0), last);
  return ex_where(b, is_new, node_gather(b, updates, axis, last), x);
}

/** Reduces the updates with x, in the type that sums and products are computed in. */
static const node *reduce_updates(builder *b, op o, const node *x, const node *index,
                                  const node *updates, size_t axis) {
  dtype t = (dtype)x->dtype;
  updates = ir_cast(b->ir, updates, accumulation_type(t));
  const node *hit = match_positions(b, index, axis, x->dims[axis]);
  sizes s = sizes_insert(b, sizes_of(updates), axis, x->dims[axis]);
  axis_list over = axes_from(axis + 1, axis + 2);
  updates = shape_expand(b, shape_unsqueeze(b, updates, axis), &s);
  updates = ex_where(b, shape_expand(b, hit, &s), updates, neutral_element(b, o, updates));
  const node *all = ex_reduce(b, o, updates, &over, false);
  return ir_cast(b->ir, ex_binary(b, o, ir_cast(b->ir, x, accumulation_type(t)), all), t);
}

/** x (…, I, …), index (…, J, …) or 1 where all have the same, updates (…, J, …). */
static value scattered(builder *b, op o, const node *x, const node *index, const node *updates,
                       size_t axis) {
  return value_of(o == OP_SET ? select_last_update(b, x, index, updates, axis)
                              : reduce_updates(b, o, x, index, updates, axis));
}

/** One more axis of another size: all that is added names no place. */
static const node *as_wide_as(builder *b, const node *n, const sizes *s, size_t axis,
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
    diag_raise(b->diag, TN_ERR_SHAPE, "updates have shape %s, where %s belongs", sizes_text(b, &s),
               sizes_text(b, wanted));
}

value build_scatter_elements(builder *b, value x, value index, value updates, int64_t axis, op o) {
  const node *n = value_typed(b, x).node, *u = value_typed(b, updates).node;
  size_t at = axis_of(b, axis, n->rank);
  const node *i = node_wrap_index(b, index, n->dims[at]);
  sizes s = sizes_of(n), one = sizes_of(i);
  bool fit = i->rank == n->rank;
  for (size_t k = 0; fit && k < n->rank; k++)
    fit = k == at || ix_prove_le(b->ir, i->dims[k], n->dims[k]);
  if (!fit)
    diag_raise(b->diag, TN_ERR_SHAPE, "an index of shape %s does not fit into %s",
               sizes_text(b, &one), sizes_text(b, &s));
  check_updates(b, u, &one);
  i = as_wide_as(b, i, &s, at, -1);
  return scattered(b, o, n, i, as_wide_as(b, u, &s, at, 0), at);
}

/** Row-major positions in the first axes of x that the last axis of the index names; −1 outside. */
static const node *linear_positions(builder *b, const node *x, const node *index, size_t depth) {
  sizes s = sizes_remove(sizes_of(index), index->rank - 1u);
  const node *place = ex_fill(b, ir_const_int(b->ir, DT_I64, 0), &s);
  const node *fits = ex_fill(b, ir_const_bits(b->ir, DT_BOOL, 1), &s), *none = ex_int(b, place, -1);
  for (size_t k = 0; k < depth; k++) {
    const node *i = node_index_coordinate(b, index, k, x->dims[k], &s);
    const node *size = ex_fill(b, ex_size(b, x->dims[k], DT_I64), &s);
    const node *is_in =
        ex_binary(b, OP_AND, ex_binary(b, OP_LT, none, i), ex_binary(b, OP_LT, i, size));
    fits = ex_binary(b, OP_AND, fits, is_in);
    place = ex_binary(b, OP_ADD, ex_binary(b, OP_MUL, place, size), i);
  }
  return ex_where(b, fits, place, none);
}

static const node *product_of(builder *b, const sizes *s, size_t first, size_t last) {
  const node *p = ix_const(b->ir, 1);
  for (size_t i = first; i < last; i++) p = ix_mul(b->ir, p, s->at[i]);
  return p;
}

/** scatter_nd as a scatter over (positions, rest) of x and (indices, rest) of the updates. */
value build_scatter_nd(builder *b, value x, value index, value updates, op o) {
  const node *n = value_typed(b, x).node, *u = value_typed(b, updates).node;
  const node *i = value_typed(b, index).node;
  const node *k = i->rank ? i->dims[i->rank - 1] : NULL, *one = ix_const(b->ir, 1);
  if (!k || !node_is_const(k) || node_int(k) > n->rank)
    diag_raise(b->diag, TN_ERR_SHAPE, "the last axis of the index is no place in %u axes", n->rank);
  size_t depth = (size_t)node_int(k), lead = i->rank - 1u;
  sizes s = sizes_of(n), wanted = sizes_remove(sizes_of(i), lead);
  const node *count = product_of(b, &wanted, 0, lead);
  for (size_t at = depth; at < s.rank; at++)
    wanted = sizes_insert(b, wanted, wanted.rank, s.at[at]);
  check_updates(b, u, &wanted);
  const node *rest = product_of(b, &s, depth, s.rank);
  sizes of_x = {.rank = 2, .at = {product_of(b, &s, 0, depth), rest}};
  sizes of_updates = {.rank = 2, .at = {count, rest}}, of_index = {.rank = 2, .at = {count, one}};
  const node *places = shape_reshape(b, linear_positions(b, n, i, depth), &of_index);
  value y =
      scattered(b, o, shape_reshape(b, n, &of_x), places, shape_reshape(b, u, &of_updates), 0);
  return build_reshape(b, y, &s);
}
