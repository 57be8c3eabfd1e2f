/* Concat, stack and pad (constant, edge, reflect). Concat is a balanced tree of choices by
   coordinate; padding maps coordinates to source coordinates. */
#include "ir/index/index_arithmetic.h"
#include "ir/index/index_proof.h"
#include "tensor/ops/op_helpers.h"

/* ---- Concatenation ---- */

/** Selects among operands by coordinate, in a binary tree, so that an element costs few choices.
    Padded operands are not summed: that would change −0 and NaN. */
typedef struct joint {
  size_t axis;
  const node **x;      /* at their position in the result, padded elsewhere */
  const node **starts; /* where they begin */
} joint;

static const node *select_operand(builder *b, const joint *j, size_t first, size_t last) {
  if (last - first == 1) return j->x[first];
  size_t middle = first + (last - first) / 2;
  const node *low = select_operand(b, j, first, middle), *high = select_operand(b, j, middle, last);
  sizes s = sizes_of(low);
  const node *at = ex_iota(b, DT_I64, &s, j->axis);
  const node *start = ex_fill(b, ex_size(b, j->starts[middle], DT_I64), &s);
  return ex_where(b, ex_binary(b, OP_LT, at, start), low, high);
}

/** Raises unless shapes are equal except along one axis. */
static void check_others(builder *b, const node *x, const node *like, size_t axis) {
  sizes one = sizes_of(like), other = sizes_of(x);
  bool fit = x->rank == like->rank;
  for (size_t i = 0; fit && i < x->rank; i++) fit = i == axis || x->dims[i] == like->dims[i];
  if (!fit)
    diag_raise(b->diag, TN_ERR_SHAPE, "shapes %s and %s differ in more than axis %zu",
               sizes_text(b, &one), sizes_text(b, &other), axis);
}

value build_concat(builder *b, const value x[], size_t n, int64_t axis) {
  ir *g = b->ir;
  const node *end = ix_const(g, 0);
  if (!n) diag_raise(b->diag, TN_ERR_ARGUMENT, "there is nothing to put together");
  joint j = {.axis = axis_of(b, axis, x[0].node->rank)};
  dtype t = values_promoted_dtype(x, n);
  j.x = arena_alloc(b->arena, n * sizeof *j.x);
  j.starts = arena_alloc(b->arena, n * sizeof *j.starts);
  for (size_t i = 0; i < n; i++) {
    j.x[i] = type_convert(b, x[i], t);
    j.starts[i] = end;
    check_others(b, j.x[i], j.x[0], j.axis);
    end = ix_add(g, end, j.x[i]->dims[j.axis]);
  }
  const node *fill = ir_const_int(g, t, 0);
  for (size_t i = 0; i < n; i++) {
    const node *size = j.x[i]->dims[j.axis];
    const node *after = ix_sub(g, end, ix_add(g, j.starts[i], size));
    j.x[i] = shape_pad(b, j.x[i], j.axis, j.starts[i], after, fill);
  }
  return value_of(select_operand(b, &j, 0, n));
}

value build_stack(builder *b, const value x[], size_t n, int64_t axis) {
  if (!n) diag_raise(b->diag, TN_ERR_ARGUMENT, "there is nothing to put together");
  value *rows = arena_alloc(b->arena, n * sizeof *rows);
  size_t at = axis_of(b, axis, x[0].node->rank + 1u);
  dtype t = values_promoted_dtype(x, n);
  rank_check(b, x[0].node->rank + 1u);
  for (size_t i = 0; i < n; i++) {
    sizes one = sizes_of(x[0].node), other = sizes_of(x[i].node);
    if (!sizes_equal(&one, &other))
      diag_raise(b->diag, TN_ERR_SHAPE, "shapes %s and %s differ", sizes_text(b, &one),
                 sizes_text(b, &other));
    rows[i] = value_of(shape_unsqueeze(b, type_convert(b, x[i], t), at));
  }
  return build_concat(b, rows, n, (int64_t)at);
}

/* ---- Padding ---- */

/** Coordinates in x (an axis of `size`) of the elements of the padded axis, from −low on. */
static const node *pad_source(builder *b, tn_pad_mode mode, const node *at, const node *low,
                              const node *size) {
  sizes s = sizes_of(at);
  const node *first = ex_fill(b, ex_size(b, low, DT_I64), &s);
  const node *last = ex_fill(b, ex_size(b, ix_add_const(b->ir, size, -1), DT_I64), &s);
  const node *i = ex_binary(b, OP_SUB, at, first);
  if (mode == TN_PAD_EDGE)
    return ex_binary(b, OP_MIN, ex_binary(b, OP_MAX, i, ex_int(b, i, 0)), last);
  const node *inside = ex_unary(b, OP_ABS, ex_binary(b, OP_SUB, last, ex_unary(b, OP_ABS, i)));
  return ex_binary(b, OP_SUB, last, inside); /* last − |last − |i|| */
}

static void check_mirrored(builder *b, tn_pad_mode mode, const node *size, const node *pad,
                           size_t axis) {
  const node *most = mode == TN_PAD_REFLECT ? ix_add_const(b->ir, size, -1) : pad;
  if (size_equals(pad, 0)) return;
  if (size->lo < 1 || !ix_prove_le(b->ir, pad, most))
    diag_raise(b->diag, TN_ERR_SHAPE, "%s elements cannot be taken from axis %zu, of size %s",
               size_text(b, pad), axis, size_text(b, size));
}

static const node *pad_axis(builder *b, const node *x, size_t axis, tn_pad_mode mode,
                            const node *low, const node *high, const node *fill) {
  if (mode == TN_PAD_CONSTANT) return shape_pad(b, x, axis, low, high, fill);
  check_mirrored(b, mode, x->dims[axis], low, axis);
  check_mirrored(b, mode, x->dims[axis], high, axis);
  if (size_equals(low, 0) && size_equals(high, 0)) return x;
  const node *size = ix_add(b->ir, x->dims[axis], ix_add(b->ir, low, high));
  sizes s = sizes_with(sizes_of(x), axis, size);
  const node *at = ex_iota(b, DT_I64, &s, axis);
  return node_gather(b, x, axis, pad_source(b, mode, at, low, x->dims[axis]));
}

value build_pad(builder *b, value x, const sizes *low, const sizes *high, tn_pad_mode mode,
                value fill) {
  const node *n = value_typed(b, x).node;
  if (low->rank != n->rank || high->rank != n->rank)
    diag_raise(b->diag, TN_ERR_SHAPE, "there are %zu and %zu sizes of padding for %u axes",
               low->rank, high->rank, (unsigned)n->rank);
  if (mode != TN_PAD_CONSTANT && mode != TN_PAD_REFLECT && mode != TN_PAD_EDGE)
    diag_raise(b->diag, TN_ERR_ARGUMENT, "%d is no mode of padding", (int)mode);
  const node *with = build_cast(b, fill, (dtype)n->dtype).node;
  for (size_t i = 0; i < low->rank; i++) n = pad_axis(b, n, i, mode, low->at[i], high->at[i], with);
  return value_of(n);
}

/* ---- The public functions ---- */

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
