/* Selections, whose sizes follow from elements: nonzero, compress and masked_select. The running
   sum of a mask is the place of each selected element, its last element their number. An update of
   an array of that size at these places (SCATTER) gives their positions, in time linear in the
   mask. */
#include "tensor/ops/selection.h"

#include "ir/index/build_tensor.h"
#include "ir/index/index_arithmetic.h"
#include "ir/index/index_proof.h"
#include "tensor/ops/axes_and_broadcasting.h"
#include "tensor/ops/expressions.h"

const node *node_selected_positions(builder *b, const node *mask) {
  ir *g = b->ir;
  const node *length = mask->dims[0], *last = ix_add_const(g, length, -1);
  const node *sums = build_cumsum(b, value_of(ex_cast(b, mask, DT_I64)), 0).node;
  const node *place =
      ex_where(b, mask, ex_binary(b, OP_SUB, sums, ex_int(b, sums, 1)), ex_int(b, sums, -1));
  sizes all = sizes_of(mask), some = {.rank = 1, .at = {ir_item(g, sums, &last, 0, length)}};
  const node *none = ex_fill(b, ir_const_int(g, DT_I64, 0), &some);
  return ir_scatter(g, none, ex_iota(b, DT_I64, &all, 0), &place, -1);
}

static const node *flatten(builder *b, const node *x) {
  sizes flat = {.rank = 1, .at = {ir_element_count(b->ir, x)}};
  return shape_reshape(b, x, &flat);
}

static const node *mask_of(builder *b, value v) {
  const node *n = value_typed(b, v).node;
  if (n->dtype != DT_BOOL)
    diag_raise(b->diag, TN_ERR_DTYPE, "the condition has type %s; it must be a bool",
               dtype_name((dtype)n->dtype));
  return n;
}

value build_nonzero(builder *b, value x) {
  const node *n = value_typed(b, x).node;
  if (dtype_is_storage((dtype)n->dtype)) n = storage_widen(b, n);
  const node *mask = n->dtype == DT_BOOL ? n : ex_binary(b, OP_NE, n, ex_int(b, n, 0));
  const node *at = node_selected_positions(b, flatten(b, mask));
  sizes column = {.rank = 2, .at = {at->dims[0], ix_const(b->ir, 1)}}, s = sizes_of(at);
  value parts[SIZES_MAX_RANK];
  for (size_t i = n->rank; i-- > 0;) {
    const node *size = ex_fill(b, ex_size(b, n->dims[i], DT_I64), &s);
    parts[i] = value_of(shape_reshape(b, ex_binary(b, OP_MOD, at, size), &column));
    at = ex_binary(b, OP_FLOORDIV, at, size);
  }
  if (n->rank) return build_concat(b, parts, n->rank, 1);
  column.at[1] = ix_const(b->ir, 0);
  return value_of(ex_fill(b, ir_const_int(b->ir, DT_I64, 0), &column));
}

value build_compress(builder *b, value x, value condition, int64_t axis) {
  const node *n = value_typed(b, x).node, *mask = mask_of(b, condition);
  size_t at = axis_of(b, axis, n->rank);
  if (mask->rank != 1 || !ix_prove_le(b->ir, mask->dims[0], n->dims[at])) {
    sizes s = sizes_of(mask), whole = sizes_of(n);
    diag_raise(
        b->diag, TN_ERR_SHAPE,
        "the condition has shape %s and x has shape %s; it must have rank 1 and be no longer "
        "than axis %zu",
        sizes_text(b, &s), sizes_text(b, &whole), at);
  }
  return build_take(b, value_of(n), value_of(node_selected_positions(b, mask)), (int64_t)at);
}

value build_masked_select(builder *b, value x, value mask) {
  const node *both[] = {value_typed(b, x).node, mask_of(b, mask)};
  const sizes s[] = {sizes_of(both[0]), sizes_of(both[1])};
  sizes all = sizes_broadcast(b, s, 2);
  for (size_t i = 0; i < 2; i++) both[i] = flatten(b, shape_broadcast(b, both[i], &all));
  return build_compress(b, value_of(both[0]), value_of(both[1]), 0);
}

/* ---- Public functions ---- */

static value call_nonzero(builder *b, const value in[], size_t n, const void *options) {
  (void)n, (void)options;
  return build_nonzero(b, in[0]);
}

tn_tensor *tn_nonzero(tn_tensor *x) { return op_call("nonzero", &x, 1, 0, call_nonzero, NULL); }

static value call_compress(builder *b, const value in[], size_t n, const void *options) {
  (void)n;
  return build_compress(b, in[0], in[1], *(const int *)options);
}

tn_tensor *tn_compress(tn_tensor *x, tn_tensor *condition, int axis) {
  return op_call("compress", (tn_tensor *[]){x, condition}, 2, 0, call_compress, &axis);
}

static value call_masked_select(builder *b, const value in[], size_t n, const void *options) {
  (void)n, (void)options;
  return build_masked_select(b, in[0], in[1]);
}

tn_tensor *tn_masked_select(tn_tensor *x, tn_tensor *mask) {
  return op_call("masked_select", (tn_tensor *[]){x, mask}, 2, 0, call_masked_select, NULL);
}
