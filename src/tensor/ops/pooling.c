/* Pooling: max, average and sum over sliding windows (sliding_windows.c), global pooling, and the
   indices of maxima. Pads, ceil_mode and count_include_pad are those of ONNX MaxPool-22 and
   AveragePool-22. */
#include "ir/index/index_arithmetic.h"
#include "tensor/context/descriptor.h"
#include "tensor/ops/axes_and_broadcasting.h"
#include "tensor/ops/expressions.h"
#include "tensor/ops/reduction.h"
#include "tensor/ops/sliding_windows.h"
#include "tensor/ops/type_promotion.h"

/** One spatial axis. */
typedef struct pool_axis {
  int64_t kernel, stride, dilation;
  int64_t low;        /* padding before x */
  const node *size;   /* of x */
  const node *high;   /* padding after x, with the overhang of ceil_mode */
  const node *padded; /* size of x with the padding of the descriptor */
  const node *output; /* size of the result: the number of windows */
} pool_axis;

typedef struct pool {
  size_t n;
  pool_axis at[MAX_SPATIAL_AXES];
  bool count_pads;
} pool;

/** Computes the output size: floor or ceil of (size + pads − window) / stride, + 1. The last window
    starts before pad_high. With ceil_mode a window may exceed the padded axis by less than a
    stride: its overhang is padding that does not count. */
static void compute_output_size(builder *b, pool_axis *a, bool ceil_mode) {
  ir *g = b->ir;
  const node *stride = ix_const(g, a->stride), *zero = ix_const(g, 0);
  int64_t window = a->dilation * (a->kernel - 1) + 1;
  a->padded = ix_add_const(g, ix_add(g, a->size, a->high), a->low);
  const node *rest = ix_add_const(g, a->padded, -window);
  window_check_fits(b, window, a->padded, ceil_mode ? ix_add_const(g, rest, a->stride - 1) : rest);
  window_check_fits(b, window, a->padded, ix_add_const(g, a->size, a->low - 1));
  if (!ceil_mode) {
    a->output = ix_add_const(g, ix_floordiv(g, rest, stride), 1);
    return;
  }
  const node *up = ix_floordiv(g, ix_add_const(g, rest, a->stride - 1), stride);
  const node *start = ix_floordiv(g, ix_add_const(g, a->size, a->low - 1), stride);
  a->output = ix_add_const(g, ix_min(g, up, start), 1);
  const node *end = ix_add_const(g, ix_scale(g, a->output, a->stride), window - a->stride);
  a->high = ix_add(g, a->high, ix_max(g, ix_sub(g, end, a->padded), zero));
}

static pool pool_of(builder *b, const node *x, const tn_pool_desc *desc) {
  tn_pool_desc init = TN_POOL_DESC_INIT;
  sizes s = sizes_of(x);
  if (!desc) desc = &init;
  if (s.rank < 3 || s.rank > 2 + MAX_SPATIAL_AXES)
    diag_raise(b->diag, TN_ERR_SHAPE, "x has shape %s; its rank must be 3, 4 or 5",
               sizes_text_of_ranks(b, &s));
  pool p = {.n = s.rank - 2, .count_pads = desc->count_include_pad};
  for (size_t i = 0; i < p.n; i++) {
    pool_axis *a = &p.at[i];
    int64_t kernel = desc->kernel[i], dilation = desc->dilation[i];
    *a = (pool_axis){.kernel = kernel, .dilation = dilation, .low = desc->pad_low[i]};
    a->stride = desc->stride[i] ? desc->stride[i] : kernel;
    window_check(b, "kernel", i, kernel, 1, INT32_MAX);
    window_check(b, "stride", i, a->stride, 1, INT32_MAX);
    window_check(b, "dilation", i, dilation, 1, INT32_MAX);
    window_check(b, "pad_low", i, a->low, 0, dilation * (kernel - 1));
    window_check(b, "pad_high", i, desc->pad_high[i], 0, dilation * (kernel - 1));
    a->high = ix_const(b->ir, desc->pad_high[i]);
    a->size = s.at[2 + i];
    compute_output_size(b, a, desc->ceil_mode);
  }
  return p;
}

/** The windows of x, padded with `fill`: (N, C, O…, K…). */
static const node *pool_windows(builder *b, const pool *p, const node *x, const node *fill) {
  int64_t kernel[MAX_SPATIAL_AXES], stride[MAX_SPATIAL_AXES], dilation[MAX_SPATIAL_AXES];
  const node *output[MAX_SPATIAL_AXES];
  for (size_t i = 0; i < p->n; i++) {
    const pool_axis *a = &p->at[i];
    x = shape_pad(b, x, 2 + i, ix_const(b->ir, a->low), a->high, fill);
    kernel[i] = a->kernel;
    stride[i] = a->stride;
    dilation[i] = a->dilation;
    output[i] = a->output;
  }
  return node_windows(b, x, p->n, kernel, stride, dilation, output);
}

static const node *reduce_windows(builder *b, const pool *p, op o, const node *windows,
                                  bool keepdims) {
  axis_list over = axes_from(2 + p->n, 2 + 2 * p->n);
  return node_reduce(b, o, windows, &over, keepdims);
}

/** The windows of a maximum, padded with the lowest value, which is the maximum of windows of
    padding alone. */
static const node *max_pool_windows(builder *b, const pool *p, const node *x) {
  uint64_t lowest;
  op_identity(OP_MAX, (dtype)x->dtype, &lowest);
  return pool_windows(b, p, x, ir_const_bits(b->ir, (dtype)x->dtype, lowest));
}

value build_max_pool(builder *b, value x, const tn_pool_desc *desc) {
  const node *n = value_typed(b, x).node;
  check_operand_type(b, RULE_NUMBER, (dtype)n->dtype);
  ex_check_computes(b, n);
  pool p = pool_of(b, n, desc);
  return value_of(reduce_windows(b, &p, OP_MAX, max_pool_windows(b, &p, n), false));
}

/** The flat index of each element, in the shape of x: row-major, or column-major in the spatial
    axes (storage_order of ONNX MaxPool). */
static const node *flat_indices(builder *b, const node *x, bool columns) {
  ir *g = b->ir;
  sizes s = sizes_of(x);
  const node *index = NULL, *stride = ix_const(g, 1), *strides[SIZES_MAX_RANK];
  for (size_t i = 0; i < s.rank; i++) {
    size_t axis = columns && i < s.rank - 2 ? 2 + i : s.rank - 1 - i;
    strides[axis] = stride;
    stride = ix_mul(g, stride, s.at[axis]);
  }
  for (size_t i = 0; i < s.rank; i++) {
    const node *by = ex_fill(b, ex_size(b, strides[i], DT_I64), &s);
    const node *offset = ex_binary(b, OP_MUL, ex_iota(b, DT_I64, &s, i), by);
    index = index ? ex_binary(b, OP_ADD, index, offset) : offset;
  }
  return index;
}

value build_max_pool_indices(builder *b, value x, const tn_pool_desc *desc, bool columns) {
  const node *n = value_typed(b, x).node;
  check_operand_type(b, RULE_NUMBER, (dtype)n->dtype);
  ex_check_computes(b, n);
  pool p = pool_of(b, n, desc);
  const node *windows = max_pool_windows(b, &p, n);
  const node *last = ir_const_int(b->ir, DT_I64, INT64_MAX);
  const node *index = pool_windows(b, &p, flat_indices(b, n, columns), last);
  sizes s = sizes_of(windows);
  const node *max = shape_expand(b, reduce_windows(b, &p, OP_MAX, windows, true), &s);
  index = ex_where(b, ex_binary(b, OP_LT, windows, max), ex_int(b, index, INT64_MAX), index);
  return value_of(reduce_windows(b, &p, OP_MIN, index, false));
}

/** Counts the elements of each window o that lie before `bound`: ceil((bound − o·stride) /
    dilation), clamped to 0 … kernel. */
static const node *count_before(builder *b, const pool_axis *a, const sizes *s, size_t axis,
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
  const node *n =
      ex_binary(b, OP_SUB, count_before(b, a, &s, 2 + i, end), count_before(b, a, &s, 2 + i, low));
  if (a->dilation > 1)
    n = ex_binary(b, OP_MAX, n, ex_int(b, n, 1)); /* a window of padding alone averages to 0 */
  return ex_cast(b, n, t);
}

value build_sum_pool(builder *b, value x, const tn_pool_desc *desc) {
  const node *n = value_typed(b, x).node;
  check_operand_type(b, RULE_NUMBER, (dtype)n->dtype);
  ex_check_computes(b, n);
  pool p = pool_of(b, n, desc);
  const node *zero = ir_const_int(b->ir, (dtype)n->dtype, 0);
  return value_of(reduce_windows(b, &p, OP_ADD, pool_windows(b, &p, n, zero), false));
}

value build_avg_pool(builder *b, value x, const tn_pool_desc *desc) {
  float_operand f = float_operand_of(b, x);
  pool p = pool_of(b, f.x, desc);
  const node *zero = ir_const_int(b->ir, (dtype)f.x->dtype, 0);
  const node *y = reduce_windows(b, &p, OP_ADD, pool_windows(b, &p, f.x, zero), false);
  const node *count = count_valid(b, &p, y, 0);
  for (size_t i = 1; i < p.n; i++) count = ex_binary(b, OP_MUL, count, count_valid(b, &p, y, i));
  return value_of(ex_cast(b, ex_binary(b, OP_DIV, y, count), f.result));
}

static tn_axes spatial_axes(builder *b, const node *x) {
  tn_axes axes = {0};
  sizes s = sizes_of(x);
  if (s.rank < 2 || s.rank > TN_MAX_RANK)
    diag_raise(b->diag, TN_ERR_SHAPE, "x has shape %s; it must be (N, C, …)",
               sizes_text_of_ranks(b, &s));
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
  return build_global_max_pool(b, value_of(axes_not_empty(b, in[0].node, &l)));
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
