/* Selections, whose sizes follow from elements: nonzero, compress and masked_select. How many
   elements of a mask are selected before a selected one is its place, and how many are in all is
   their number. An update of an array of that size at these places, which are distinct (SCATTER),
   gives their positions, in time linear in the mask. Blocks of a long mask are counted, and then
   searched, apart from each other. */
#include "tensor/ops/selection.h"

#include "ir/index/build_tensor.h"
#include "ir/index/index_arithmetic.h"
#include "ir/index/index_proof.h"
#include "tensor/ops/axes_and_broadcasting.h"
#include "tensor/ops/expressions.h"

/* Elements of a block, and blocks from which a mask is divided. */
enum { BLOCK = 2000, BLOCKS_LEAST = 8 };

/** A mask, in blocks. */
typedef struct blocks {
  const node *rows; /* the mask as (count, size), filled up with false */
  const node *count, *size;
  const node *starts; /* (count): how many are selected before each block */
  const node *all;    /* how many are selected in all, an ITEM */
} blocks;

static const node *running_sums(builder *b, const node *x, dtype t, size_t axis) {
  return ir_scan(b->ir, OP_ADD, ex_cast(b, x, t), axis);
}

/** How many elements of each row are selected. */
static const node *row_counts(builder *b, const node *rows, dtype t) {
  int64_t axis = 1;
  return ir_reduce(b->ir, ex_cast(b, rows, t), OP_ADD, 1, &axis);
}

static blocks blocks_of(builder *b, const node *mask) {
  ir *g = b->ir;
  const node *n = mask->dims[0], *zero = ix_const(g, 0);
  dtype t = n->hi <= INT32_MAX ? DT_I32 : DT_I64;
  blocks k = {.count = ix_const(g, 1), .size = n};
  if (n->lo >= BLOCKS_LEAST * BLOCK) {
    k.size = ix_const(g, BLOCK);
    k.count = ix_floordiv(g, ix_add_const(g, n, BLOCK - 1), k.size);
  }
  sizes s = {.rank = 2, .at = {k.count, k.size}};
  const node *rest = ix_sub(g, ix_mul(g, k.count, k.size), n);
  mask = shape_pad(b, mask, 0, zero, rest, ir_const_bits(g, DT_BOOL, 0));
  k.rows = shape_reshape(b, mask, &s);
  const node *own = row_counts(b, k.rows, t), *ends = running_sums(b, own, t, 0);
  const node *last = ix_add_const(g, k.count, -1), *one = ix_const(g, 1);
  const node *before = shape_pad(b, ends, 0, one, zero, ir_const_bits(g, t, 0));
  k.starts = shape_slice(b, before, 0, zero, k.count, 1);
  k.all = ir_item(g, ends, &last, 0, n);
  return k;
}

const node *node_selected_positions(builder *b, const node *mask) {
  ir *g = b->ir;
  blocks k = blocks_of(b, mask);
  sizes s = {.rank = 2, .at = {k.count, k.size}}, some = {.rank = 1, .at = {k.all}};
  dtype t = (dtype)k.starts->dtype;
  const node *before = shape_broadcast(b, shape_unsqueeze(b, k.starts, 1), &s);
  const node *place = ex_binary(b, OP_ADD, before, running_sums(b, k.rows, t, 1));
  place = ex_binary(b, OP_SUB, place, ex_int(b, place, 1));
  place = ex_where(b, k.rows, place, ex_int(b, place, -1));
  place = ex_cast(b, place, DT_I64);
  const node *row = ex_iota(b, DT_I64, &s, 0);
  const node *position = ex_binary(b, OP_MUL, row, ex_fill(b, ex_size(b, k.size, DT_I64), &s));
  position = ex_binary(b, OP_ADD, position, ex_iota(b, DT_I64, &s, 1));
  const node *none = ex_fill(b, ir_const_int(g, DT_I64, 0), &some);
  return ir_scatter_distinct(g, none, position, &place, -1);
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
    const node *coordinate = i ? ex_binary(b, OP_MOD, at, size) : at;
    parts[i] = value_of(shape_reshape(b, coordinate, &column));
    if (i) at = ex_binary(b, OP_FLOORDIV, at, size);
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
