/* Concat, stack and pad (constant, edge and reflect, as NumPy's pad). Concat is a balanced tree of
   selects by coordinate, so that no operand is copied; padding maps the coordinates of the result
   to coordinates of x. */
#include "ir/index/index_arithmetic.h"
#include "ir/index/index_proof.h"
#include "tensor/ops/axes_and_broadcasting.h"
#include "tensor/ops/computed_sizes.h"
#include "tensor/ops/expressions.h"
#include "tensor/ops/gather.h"
#include "tensor/ops/type_promotion.h"

/* ---- Concatenation ---- */

/** Operands of a concat, each padded to the shape of the result. */
typedef struct concat {
  size_t axis;
  const node **x;      /* at their position in the result, padded elsewhere */
  const node **starts; /* coordinate along the axis at which each operand begins */
} concat;

/** Selects among operands first … last − 1 by coordinate, in a binary tree, so that an element
    costs a logarithmic number of selects. A sum of padded operands would change −0 and NaN. */
static const node *select_operand(builder *b, const concat *c, size_t first, size_t last) {
  if (last - first == 1) return c->x[first];
  size_t middle = first + (last - first) / 2;
  const node *low = select_operand(b, c, first, middle), *high = select_operand(b, c, middle, last);
  sizes s = sizes_of(low);
  const node *at = ex_iota(b, DT_I64, &s, c->axis);
  const node *start = ex_fill(b, ex_size(b, c->starts[middle], DT_I64), &s);
  return ex_where(b, ex_binary(b, OP_LT, at, start), low, high);
}

/** Makes the sizes of all operands those of operand i too; raises if they differ. */
static void agree_on_sizes(builder *b, const concat *c, sizes *all, size_t i) {
  sizes first = sizes_of(c->x[0]), own = sizes_of(c->x[i]);
  if (own.rank != first.rank)
    diag_raise(b->diag, TN_ERR_SHAPE, "operand %zu has shape %s and operand 1 has shape %s", i + 1,
               sizes_text_of_ranks(b, &own), sizes_text_of_ranks(b, &first));
  if (i == 0) *all = first;
  for (size_t k = 0; k < own.rank; k++) {
    if (k == c->axis) continue;
    const node *agreed = size_agreed(b, all->at[k], own.at[k]);
    if (!agreed)
      diag_raise(b->diag, TN_ERR_SHAPE,
                 "operand %zu has shape %s and operand 1 has shape %s; sizes must be equal except "
                 "along axis %zu: %s is not %s",
                 i + 1, sizes_text(b, &own), sizes_text(b, &first), c->axis,
                 size_text(b, own.at[k]), size_text(b, all->at[k]));
    all->at[k] = agreed;
  }
}

value build_concat(builder *b, const value x[], size_t n, int64_t axis) {
  ir *g = b->ir;
  const node *end = ix_const(g, 0);
  sizes all = {0};
  if (!n) diag_raise(b->diag, TN_ERR_ARGUMENT, "the list of operands is empty");
  concat c = {.axis = axis_of(b, axis, x[0].node->rank)};
  dtype t = values_promoted_dtype(b, x, n);
  c.x = arena_alloc(b->arena, n * sizeof *c.x);
  c.starts = arena_alloc(b->arena, n * sizeof *c.starts);
  for (size_t i = 0; i < n; i++) {
    c.x[i] = type_convert(b, x[i], t);
    agree_on_sizes(b, &c, &all, i);
  }
  for (size_t i = 0; i < n; i++) {
    for (size_t k = 0; k < all.rank; k++)
      if (k != c.axis) c.x[i] = shape_agreed(b, c.x[i], k, all.at[k]);
    c.starts[i] = end;
    end = ix_add(g, end, c.x[i]->dims[c.axis]);
  }
  const node *fill = ir_const_int(g, t, 0);
  for (size_t i = 0; i < n; i++) {
    const node *size = c.x[i]->dims[c.axis];
    const node *after = ix_sub(g, end, ix_add(g, c.starts[i], size));
    c.x[i] = shape_pad(b, c.x[i], c.axis, c.starts[i], after, fill);
  }
  return value_of(select_operand(b, &c, 0, n));
}

value build_stack(builder *b, const value x[], size_t n, int64_t axis) {
  if (!n) diag_raise(b->diag, TN_ERR_ARGUMENT, "the list of operands is empty");
  value *rows = arena_alloc(b->arena, n * sizeof *rows);
  size_t at = axis_of(b, axis, x[0].node->rank + 1u);
  dtype t = values_promoted_dtype(b, x, n);
  rank_check(b, x[0].node->rank + 1u);
  for (size_t i = 0; i < n; i++) {
    sizes first = sizes_of(x[0].node), own = sizes_of(x[i].node);
    if (!sizes_equal(&first, &own))
      diag_raise(b->diag, TN_ERR_SHAPE,
                 "operand %zu has shape %s and operand 1 has shape %s; shapes must be equal", i + 1,
                 sizes_text(b, &own), sizes_text(b, &first));
    rows[i] = value_of(shape_unsqueeze(b, type_convert(b, x[i], t), at));
  }
  return build_concat(b, rows, n, (int64_t)at);
}

/* ---- Padding ---- */

/** Raises unless an axis has elements enough for edge or reflect padding. */
static void check_pad_source(builder *b, tn_pad_mode mode, const node *size, const node *pad,
                             size_t axis) {
  const node *most = mode == TN_PAD_REFLECT ? ix_add_const(b->ir, size, -1) : pad;
  if (size_equals(pad, 0)) return;
  if (size->lo >= 1 && ix_prove_le(b->ir, pad, most)) return;
  b->needed = mode == TN_PAD_REFLECT ? ix_sub(b->ir, most, pad) : ix_add_const(b->ir, size, -1);
  diag_raise(b->diag, TN_ERR_SHAPE, "axis %zu, of size %s, is too small for %s padding by %s", axis,
             size_text(b, size), mode == TN_PAD_REFLECT ? "reflect" : "edge", size_text(b, pad));
}

static const node *pad_axis(builder *b, const node *x, size_t axis, tn_pad_mode mode,
                            const node *low, const node *high, const node *fill) {
  if (mode == TN_PAD_CONSTANT) return shape_pad(b, x, axis, low, high, fill);
  const node *size = x->dims[axis];
  check_pad_source(b, mode, size, low, axis);
  check_pad_source(b, mode, size, high, axis);
  if (size_equals(low, 0) && size_equals(high, 0)) return x;
  sizes s = sizes_with(sizes_of(x), axis, ix_add(b->ir, size, ix_add(b->ir, low, high)));
  const node *at = ex_iota(b, DT_I64, &s, axis);
  const node *first = ex_fill(b, ex_size(b, low, DT_I64), &s);
  const node *last = ex_fill(b, ex_size(b, ix_add_const(b->ir, size, -1), DT_I64), &s);
  const node *i = ex_binary(b, OP_SUB, at, first); /* coordinate in x: from −low on */
  if (mode == TN_PAD_EDGE) {
    i = ex_binary(b, OP_MIN, ex_binary(b, OP_MAX, i, ex_int(b, i, 0)), last);
  } else { /* last − |last − |i|| */
    const node *inside = ex_unary(b, OP_ABS, ex_binary(b, OP_SUB, last, ex_unary(b, OP_ABS, i)));
    i = ex_binary(b, OP_SUB, last, inside);
  }
  return node_gather(b, x, axis, i);
}

value build_pad(builder *b, value x, const sizes *low, const sizes *high, tn_pad_mode mode,
                value fill) {
  const node *n = value_typed(b, x).node;
  if (low->rank != n->rank || high->rank != n->rank)
    diag_raise(b->diag, TN_ERR_SHAPE,
               "low has %zu sizes and high has %zu; each must have %u, one for each axis of x",
               low->rank, high->rank, (unsigned)n->rank);
  if (mode != TN_PAD_CONSTANT && mode != TN_PAD_REFLECT && mode != TN_PAD_EDGE)
    diag_raise(b->diag, TN_ERR_ARGUMENT, "the padding mode is %d, which is not one of tn_pad_mode",
               (int)mode);
  const node *scalar = build_cast(b, fill, (dtype)n->dtype).node;
  for (size_t i = 0; i < low->rank; i++)
    n = pad_axis(b, n, i, mode, low->at[i], high->at[i], scalar);
  return value_of(n);
}

/* ---- Public functions ---- */

static value call_concat(builder *b, const value in[], size_t n, const void *options) {
  return build_concat(b, in, n, *(const int *)options);
}

static value call_stack(builder *b, const value in[], size_t n, const void *options) {
  return build_stack(b, in, n, *(const int *)options);
}

tn_tensor *tn_concat(tn_tensor *const x[], size_t n, int axis) {
  return op_call("concat", x, n, 0, call_concat, &axis);
}

tn_tensor *tn_stack(tn_tensor *const x[], size_t n, int axis) {
  return op_call("stack", x, n, 0, call_stack, &axis);
}

typedef struct pad_call {
  tn_shape low, high;
  tn_pad_mode mode;
  double value;
} pad_call;

static value call_pad(builder *b, const value in[], size_t n, const void *options) {
  const pad_call *c = options;
  sizes low = sizes_from(b, c->low, false), high = sizes_from(b, c->high, false);
  (void)n;
  return build_pad(b, in[0], &low, &high, c->mode, build_num(b, c->value));
}

tn_tensor *tn_pad(tn_tensor *x, tn_shape low, tn_shape high, tn_pad_mode mode, double value) {
  return op_call_movement("pad", x, call_pad, &(pad_call){low, high, mode, value});
}
