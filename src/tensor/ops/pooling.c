/* Pooling: max, average and sum over sliding windows, global pooling, and indices of maxima.
   Follows ONNX for pads, ceil_mode and count_include_pad. */
#include "ir/index/index_arithmetic.h"
#include "tensor/context/descriptor.h"
#include "tensor/ops/op_helpers.h"

/** One spatial axis. */
typedef struct pool_axis {
  int64_t kernel, stride, dilation, low;
  const node *size;   /* of x */
  const node *high;   /* padding after it, including the overhang of ceil_mode */
  const node *padded; /* size and the pads asked for */
  const node *places;
} pool_axis;

typedef struct pool {
  size_t n;
  pool_axis at[MAX_SPATIAL_AXES];
  bool count_pads;
} pool;

static pool_axis read_axis(builder *b, const tn_pool_desc *d, size_t i) {
  pool_axis a = {.kernel = d->kernel[i], .dilation = d->dilation[i], .low = d->pad_low[i]};
  a.stride = d->stride[i] ? d->stride[i] : a.kernel;
  window_check(b, "kernel", i, a.kernel, 1, INT32_MAX);
  window_check(b, "stride", i, a.stride, 1, INT32_MAX);
  window_check(b, "dilation", i, a.dilation, 1, INT32_MAX);
  window_check(b, "pad_low", i, a.low, 0, a.dilation * (a.kernel - 1));
  window_check(b, "pad_high", i, d->pad_high[i], 0, a.dilation * (a.kernel - 1));
  a.high = ix_const(b->ir, d->pad_high[i]);
  return a;
}

/** floor or ceil of (size + pads − window) / stride, + 1. The last window starts before pad_high.
    With ceil_mode one that is larger than the padded axis is one window all the same, where it
    lacks less than a stride: what it hangs over is pads that do not count (ONNX MaxPool-22). */
static void count_places(builder *b, pool_axis *a, bool ceil_mode) {
  ir *g = b->ir;
  const node *stride = ix_const(g, a->stride), *zero = ix_const(g, 0);
  int64_t window = a->dilation * (a->kernel - 1) + 1;
  a->padded = ix_add_const(g, ix_add(g, a->size, a->high), a->low);
  const node *rest = ix_add_const(g, a->padded, -window);
  window_check_fits(b, window, a->padded, ceil_mode ? ix_add_const(g, rest, a->stride - 1) : rest);
  window_check_fits(b, window, a->padded, ix_add_const(g, a->size, a->low - 1));
  if (!ceil_mode) {
    a->places = ix_add_const(g, ix_floordiv(g, rest, stride), 1);
    return;
  }
  const node *up = ix_floordiv(g, ix_add_const(g, rest, a->stride - 1), stride);
  const node *start = ix_floordiv(g, ix_add_const(g, a->size, a->low - 1), stride);
  a->places = ix_add_const(g, ix_min(g, up, start), 1);
  const node *end = ix_add_const(g, ix_scale(g, a->places, a->stride), window - a->stride);
  a->high = ix_add(g, a->high, ix_max(g, ix_sub(g, end, a->padded), zero));
}

static pool pool_of(builder *b, const node *x, const tn_pool_desc *desc) {
  tn_pool_desc init = TN_POOL_DESC_INIT;
  sizes s = sizes_of(x);
  if (!desc) desc = &init;
  if (s.rank < 3 || s.rank > 2 + MAX_SPATIAL_AXES)
    diag_raise(b->diag, TN_ERR_SHAPE, "x has shape %s, not rank 3, 4 or 5", sizes_text(b, &s));
  pool p = {.n = s.rank - 2, .count_pads = desc->count_include_pad};
  for (size_t i = 0; i < p.n; i++) {
    p.at[i] = read_axis(b, desc, i);
    p.at[i].size = s.at[2 + i];
    count_places(b, &p.at[i], desc->ceil_mode);
  }
  return p;
}

/** The windows of x, padded with `fill`: (N, C, O…, K…). */
static const node *windows(builder *b, const pool *p, const node *x, const node *fill) {
  int64_t kernel[MAX_SPATIAL_AXES], stride[MAX_SPATIAL_AXES], dilation[MAX_SPATIAL_AXES];
  const node *places[MAX_SPATIAL_AXES];
  for (size_t i = 0; i < p->n; i++) {
    const pool_axis *a = &p->at[i];
    x = shape_pad(b, x, 2 + i, ix_const(b->ir, a->low), a->high, fill);
    kernel[i] = a->kernel;
    stride[i] = a->stride;
    dilation[i] = a->dilation;
    places[i] = a->places;
  }
  return node_windows(b, x, p->n, kernel, stride, dilation, places);
}

static const node *reduced(builder *b, const pool *p, op o, const node *windows, bool keepdims) {
  axis_list over = axes_from(2 + p->n, 2 + 2 * p->n);
  return ex_reduce(b, o, windows, &over, keepdims);
}

/** Windows for a maximum: padding has the lowest value, and wins only in windows of padding alone.
 */
static const node *windows_for_max(builder *b, const pool *p, const node *x) {
  uint64_t least;
  op_identity(OP_MAX, (dtype)x->dtype, &least);
  return windows(b, p, x, ir_const_bits(b->ir, (dtype)x->dtype, least));
}

value build_max_pool(builder *b, value x, const tn_pool_desc *desc) {
  const node *n = value_typed(b, x).node;
  check_operand_type(b, RULE_NUMBER, (dtype)n->dtype);
  pool p = pool_of(b, n, desc);
  return value_of(reduced(b, &p, OP_MAX, windows_for_max(b, &p, n), false));
}

/** The flat index of each element, in the shape of x. */
static const node *element_numbers(builder *b, const node *x, bool columns) {
  ir *g = b->ir;
  sizes s = sizes_of(x);
  const node *all = NULL, *step = ix_const(g, 1), *steps[SIZES_MAX_RANK];
  for (size_t i = 0; i < s.rank; i++) {
    size_t axis = columns && i < s.rank - 2 ? 2 + i : s.rank - 1 - i;
    steps[axis] = step;
    step = ix_mul(g, step, s.at[axis]);
  }
  for (size_t i = 0; i < s.rank; i++) {
    const node *by = ex_fill(b, ex_size(b, steps[i], DT_I64), &s);
    const node *n = ex_binary(b, OP_MUL, ex_iota(b, DT_I64, &s, i), by);
    all = all ? ex_binary(b, OP_ADD, all, n) : n;
  }
  return all;
}

value build_max_pool_indices(builder *b, value x, const tn_pool_desc *desc, bool columns) {
  const node *n = value_typed(b, x).node;
  check_operand_type(b, RULE_NUMBER, (dtype)n->dtype);
  pool p = pool_of(b, n, desc);
  const node *of = windows_for_max(b, &p, n), *last = ir_const_int(b->ir, DT_I64, INT64_MAX);
  const node *at = windows(b, &p, element_numbers(b, n, columns), last);
  sizes s = sizes_of(of);
  const node *most = shape_expand(b, reduced(b, &p, OP_MAX, of, true), &s);
  at = ex_where(b, ex_binary(b, OP_LT, of, most), ex_int(b, at, INT64_MAX), at);
  return value_of(reduced(b, &p, OP_MIN, at, false));
}

/** ceil((bound − o·stride) / dilation) in 0 … kernel, of each place: the first element of a window
    that is not before `bound`. */
static const node *elements_before(builder *b, const pool_axis *a, const sizes *s, size_t axis,
                                   const node *bound) {
  const node *o = ex_iota(b, DT_I64, s, axis);
  const node *end = ex_size(b, ix_add_const(b->ir, bound, a->dilation - 1), DT_I64);
  const node *rest =
      ex_binary(b, OP_SUB, ex_fill(b, end, s), ex_binary(b, OP_MUL, o, ex_int(b, o, a->stride)));
  const node *n = ex_binary(b, OP_FLOORDIV, rest, ex_int(b, rest, a->dilation));
  return ex_binary(b, OP_MIN, ex_binary(b, OP_MAX, n, ex_int(b, n, 0)), ex_int(b, n, a->kernel));
}

/** Counts the valid elements of each window along one axis, in the shape of the result. */
static const node *count_valid(builder *b, const pool *p, const node *y, size_t i) {
  const pool_axis *a = &p->at[i];
  const node *zero = ix_const(b->ir, 0), *low = p->count_pads ? zero : ix_const(b->ir, a->low);
  const node *end = p->count_pads ? a->padded : ix_add_const(b->ir, a->size, a->low);
  const node *reached = ix_add(b->ir, ix_add_const(b->ir, a->size, a->low), a->high);
  dtype t = (dtype)y->dtype;
  sizes s = sizes_of(y);
  if (size_equals(low, 0) && end == reached) return ex_int(b, y, a->kernel);
  const node *n = ex_binary(b, OP_SUB, elements_before(b, a, &s, 2 + i, end),
                            elements_before(b, a, &s, 2 + i, low));
  if (a->dilation > 1)
    n = ex_binary(b, OP_MAX, n, ex_int(b, n, 1)); /* of pads alone: their sum, 0 */
  return ir_cast(b->ir, n, t);
}

value build_sum_pool(builder *b, value x, const tn_pool_desc *desc) {
  const node *n = value_typed(b, x).node;
  check_operand_type(b, RULE_NUMBER, (dtype)n->dtype);
  pool p = pool_of(b, n, desc);
  const node *zero = ir_const_int(b->ir, (dtype)n->dtype, 0);
  return value_of(reduced(b, &p, OP_ADD, windows(b, &p, n, zero), false));
}

value build_avg_pool(builder *b, value x, const tn_pool_desc *desc) {
  floating f = floating_operand(b, x);
  pool p = pool_of(b, f.x, desc);
  const node *zero = ir_const_int(b->ir, (dtype)f.x->dtype, 0);
  const node *y = reduced(b, &p, OP_ADD, windows(b, &p, f.x, zero), false);
  const node *count = count_valid(b, &p, y, 0);
  for (size_t i = 1; i < p.n; i++) count = ex_binary(b, OP_MUL, count, count_valid(b, &p, y, i));
  return value_of(ir_cast(b->ir, ex_binary(b, OP_DIV, y, count), f.result));
}

static tn_axes spatial_axes(builder *b, const node *x) {
  tn_axes axes = {0};
  sizes s = sizes_of(x);
  if (s.rank < 2 || s.rank > TN_MAX_RANK)
    diag_raise(b->diag, TN_ERR_SHAPE, "x is (N, C, …), and not of shape %s", sizes_text(b, &s));
  for (size_t i = 2; i < s.rank; i++) axes.axis[axes.count++] = (int32_t)i;
  return axes;
}

value build_global_max_pool(builder *b, value x) {
  return build_max(b, x, spatial_axes(b, x.node), true);
}

value build_global_avg_pool(builder *b, value x) {
  return build_mean(b, x, spatial_axes(b, x.node), true);
}

/* ---- Public functions ---- */

typedef struct pool_call {
  value (*build)(builder *b, value x, const tn_pool_desc *desc);
  const tn_pool_desc *desc;
} pool_call;

static value call_pool(builder *b, const value in[], size_t n, const void *options) {
  const pool_call *c = options;
  tn_pool_desc d = TN_POOL_DESC_INIT;
  (void)n;
  if (descriptor_read(b->diag, &d, c->desc, sizeof d, "tn_pool_desc") != TN_OK)
    diag_rethrow(b->diag);
  return c->build(b, in[0], &d);
}

tn_tensor *tn_max_pool(tn_tensor *x, const tn_pool_desc *desc) {
  return op_call("max_pool", &x, 1, 0, call_pool, &(pool_call){build_max_pool, desc});
}

tn_tensor *tn_avg_pool(tn_tensor *x, const tn_pool_desc *desc) {
  return op_call("avg_pool", &x, 1, 0, call_pool, &(pool_call){build_avg_pool, desc});
}

static value call_global_max(builder *b, const value in[], size_t n, const void *options) {
  (void)n;
  (void)options;
  axis_list l = axes_of(b, spatial_axes(b, in[0].node), in[0].node->rank);
  axes_check_not_empty(b, in[0].node, &l);
  return build_global_max_pool(b, in[0]);
}

static value call_global_avg(builder *b, const value in[], size_t n, const void *options) {
  (void)n;
  (void)options;
  return build_global_avg_pool(b, in[0]);
}

tn_tensor *tn_global_max_pool(tn_tensor *x) {
  return op_call("global_max_pool", &x, 1, 0, call_global_max, NULL);
}

tn_tensor *tn_global_avg_pool(tn_tensor *x) {
  return op_call("global_avg_pool", &x, 1, 0, call_global_avg, NULL);
}
