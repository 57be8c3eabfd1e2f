/* ONNX reductions (ReduceSum, ReduceMax, ReduceLogSumExp, …) by the builders of tensor/ops. Axes
   are an attribute or an input, by version. ArgMax and ArgMin are in onnx_search_and_sort.c,
   cumulative sums in onnx_cumulative.c. */
#include "formats/onnx/ops/axis_arguments.h"
#include "formats/onnx/ops/onnx_builders.h"
#include "ir/index/index_arithmetic.h"
#include "tensor/ops/operators.h"
#include "tensor/ops/type_promotion.h"

typedef value (*reduction)(builder *b, value x, tn_axes axes, bool keepdims);

/** Reduces over the node's axes: without any over all, or, with noop_with_empty_axes, over none. */
static void build_reduction(onnx_call *c, reduction build, int64_t since) {
  value x = onnx_input(c, 0);
  tn_axes axes;
  if (!axes_argument(c, since, &axes) || !axes.count)
    axes = onnx_int_attribute(c, "noop_with_empty_axes", 0) ? TN_NO_AXES : TN_ALL;
  bool is_bool = x.node->dtype == DT_BOOL; /* false < true */
  value v = is_bool ? build_cast(onnx_builder(c), x, DT_U8) : x;
  v = build(onnx_builder(c), v, axes, onnx_int_attribute(c, "keepdims", 1) != 0);
  c->outputs[0] = build_cast(onnx_builder(c), v, (dtype)x.node->dtype);
}

/* Composed reductions. */

/** Casts integers to f64, for functions whose result is truncated afterwards. */
static value cast_to_float(builder *b, value x) {
  return dtype_is_float((dtype)x.node->dtype) ? value_widen(b, x) : build_cast(b, x, DT_F64);
}

static value mean(builder *b, value x, tn_axes axes, bool keepdims) {
  return build_mean(b, cast_to_float(b, x), axes, keepdims);
}

static value l1_norm(builder *b, value x, tn_axes axes, bool keepdims) {
  return build_sum(b, build_abs(b, value_widen(b, x)), axes, keepdims);
}

static value sum_of_squares(builder *b, value x, tn_axes axes, bool keepdims) {
  return build_sum(b, build_square(b, value_widen(b, x)), axes, keepdims);
}

static value l2_norm(builder *b, value x, tn_axes axes, bool keepdims) {
  return build_sqrt(b, sum_of_squares(b, cast_to_float(b, x), axes, keepdims));
}

static value log_sum(builder *b, value x, tn_axes axes, bool keepdims) {
  return build_log(b, build_sum(b, cast_to_float(b, x), axes, keepdims));
}

static value log_sum_exp(builder *b, value x, tn_axes axes, bool keepdims) {
  return build_logsumexp(b, cast_to_float(b, x), axes, keepdims);
}

void onnx_ReduceSum(onnx_call *c) { build_reduction(c, build_sum, 13); }
void onnx_ReduceMax(onnx_call *c) { build_reduction(c, build_max, 18); }
void onnx_ReduceMin(onnx_call *c) { build_reduction(c, build_min, 18); }
void onnx_ReduceProd(onnx_call *c) { build_reduction(c, build_prod, 18); }
void onnx_ReduceMean(onnx_call *c) { build_reduction(c, mean, 18); }
void onnx_ReduceL1(onnx_call *c) { build_reduction(c, l1_norm, 18); }
void onnx_ReduceL2(onnx_call *c) { build_reduction(c, l2_norm, 18); }
void onnx_ReduceSumSquare(onnx_call *c) { build_reduction(c, sum_of_squares, 18); }
void onnx_ReduceLogSum(onnx_call *c) { build_reduction(c, log_sum, 18); }
void onnx_ReduceLogSumExp(onnx_call *c) { build_reduction(c, log_sum_exp, 18); }
