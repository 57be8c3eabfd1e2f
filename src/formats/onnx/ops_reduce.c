/* Reductions. */
#include "formats/onnx/axes.h"
#include "formats/onnx/ops.h"
#include "tensor/build.h"

typedef value (*reduction)(builder *b, value x, tn_axes axes, bool keepdims);

/** No axes, or an empty list: all of them, or none where the node says so. */
static void reduce(onnx_call *c, reduction build, int64_t since) {
  value x = onnx_input(c, 0);
  tn_axes axes;
  if (!axes_given(c, since, &axes) || !axes.count)
    axes = onnx_int(c, "noop_with_empty_axes", 0) ? TN_NO_AXES : TN_ALL;
  bool is_bool = x.node->dtype == DT_BOOL; /* false < true */
  value v = is_bool ? build_cast(onnx_builder(c), x, DT_U8) : x;
  v = build(onnx_builder(c), v, axes, onnx_int(c, "keepdims", 1) != 0);
  c->outputs[0] = build_cast(onnx_builder(c), v, (dtype)x.node->dtype);
}

/* What is no plain reduction is computed in f32 of smaller floats, as sums are. */

static value wide(builder *b, value x) {
  dtype t = (dtype)x.node->dtype;
  return t == DT_F16 || t == DT_BF16 ? build_cast(b, x, DT_F32) : x;
}

/** Of integers a floating function is one of f64, cut off after the point. */
static value floating_of(builder *b, value x) {
  return dtype_is_float((dtype)x.node->dtype) ? wide(b, x) : build_cast(b, x, DT_F64);
}

static value mean(builder *b, value x, tn_axes axes, bool keepdims) {
  return build_mean(b, floating_of(b, x), axes, keepdims);
}

static value sum_of_magnitudes(builder *b, value x, tn_axes axes, bool keepdims) {
  return build_sum(b, build_abs(b, wide(b, x)), axes, keepdims);
}

static value sum_of_squares(builder *b, value x, tn_axes axes, bool keepdims) {
  return build_sum(b, build_square(b, wide(b, x)), axes, keepdims);
}

static value norm(builder *b, value x, tn_axes axes, bool keepdims) {
  return build_sqrt(b, sum_of_squares(b, floating_of(b, x), axes, keepdims));
}

static value log_of_sum(builder *b, value x, tn_axes axes, bool keepdims) {
  return build_log(b, build_sum(b, floating_of(b, x), axes, keepdims));
}

static value log_of_sum_of_powers(builder *b, value x, tn_axes axes, bool keepdims) {
  return build_logsumexp(b, floating_of(b, x), axes, keepdims);
}

void onnx_ReduceSum(onnx_call *c) { reduce(c, build_sum, 13); }
void onnx_ReduceMax(onnx_call *c) { reduce(c, build_max, 18); }
void onnx_ReduceMin(onnx_call *c) { reduce(c, build_min, 18); }
void onnx_ReduceProd(onnx_call *c) { reduce(c, build_prod, 18); }
void onnx_ReduceMean(onnx_call *c) { reduce(c, mean, 18); }
void onnx_ReduceL1(onnx_call *c) { reduce(c, sum_of_magnitudes, 18); }
void onnx_ReduceL2(onnx_call *c) { reduce(c, norm, 18); }
void onnx_ReduceSumSquare(onnx_call *c) { reduce(c, sum_of_squares, 18); }
void onnx_ReduceLogSum(onnx_call *c) { reduce(c, log_of_sum, 18); }
void onnx_ReduceLogSumExp(onnx_call *c) { reduce(c, log_of_sum_of_powers, 18); }

/* Where an extreme is. */

typedef value (*arg_builder)(builder *b, value x, int64_t axis, bool keepdims);

static void arg_extreme(onnx_call *c, arg_builder build) {
  builder *b = onnx_builder(c);
  value x = onnx_input(c, 0);
  size_t axis = onnx_axis(c, onnx_int(c, "axis", 0), x.node->rank);
  bool keepdims = onnx_int(c, "keepdims", 1) != 0, last = onnx_int(c, "select_last_index", 0) != 0;
  const node *size = x.node->dims[axis];
  if (size->hi < 1)
    onnx_fail(c, TN_ERR_SHAPE, "axis %zu is empty: there is nothing to choose from", axis);
  if (last) x = build_flip(b, x, (tn_axes){.count = 1, .axis = {(int32_t)axis}});
  value at = build(b, x, (int64_t)axis, keepdims);
  value end = value_of(ir_cast(b->ir, ix_add_const(b->ir, size, -1), DT_I64));
  c->outputs[0] = last ? build_sub(b, end, at) : at;
}

void onnx_ArgMax(onnx_call *c) { arg_extreme(c, build_argmax); }
void onnx_ArgMin(onnx_call *c) { arg_extreme(c, build_argmin); }

/* Running reductions. */

/** One place on along an axis, with `start` first: what is before each element. */
static value shifted(builder *b, value x, size_t axis, int64_t start) {
  const node *zero = ix_const(b->ir, 0), *size = x.node->dims[axis];
  sizes low = {.rank = x.node->rank}, high;
  for (size_t i = 0; i < low.rank; i++) low.at[i] = zero;
  high = low;
  low.at[axis] = ix_const(b->ir, 1);
  x = build_pad(b, x, &low, &high, TN_PAD_CONSTANT, build_int(b, start));
  return build_slice(b, x, (int64_t)axis, zero, size, 1);
}

static void running(onnx_call *c, value (*build)(builder *b, value x, int64_t axis),
                    int64_t start) {
  builder *b = onnx_builder(c);
  value x = onnx_input(c, 0);
  size_t n;
  const int64_t *axes = onnx_numbers(c, 1, &n);
  if (n != 1) onnx_fail(c, TN_ERR_SHAPE, "it names %zu axes, where one belongs", n);
  size_t axis = onnx_axis(c, axes[0], x.node->rank);
  tn_axes along = {.count = 1, .axis = {(int32_t)axis}};
  bool reverse = onnx_int(c, "reverse", 0) != 0;
  value v = reverse ? build_flip(b, x, along) : x;
  if (onnx_int(c, "exclusive", 0)) v = shifted(b, v, axis, start);
  v = build(b, v, (int64_t)axis);
  if (reverse) v = build_flip(b, v, along);
  c->outputs[0] = build_cast(b, v, (dtype)x.node->dtype);
}

void onnx_CumSum(onnx_call *c) { running(c, build_cumsum, 0); }
void onnx_CumProd(onnx_call *c) { running(c, build_cumprod, 1); }
