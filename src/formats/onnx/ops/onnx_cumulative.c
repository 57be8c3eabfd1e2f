/* ONNX cumulative operators (prefix sums and products along an axis): CumSum and CumProd, with
   their attributes exclusive and reverse. */
#include "formats/onnx/ops/onnx_builders.h"
#include "ir/index/index_arithmetic.h"
#include "tensor/ops/operators.h"

/** Shifts an axis by one element and inserts `start` first, for exclusive scans. */
static value shift_axis(builder *b, value x, size_t axis, int64_t start) {
  const node *zero = ix_const(b->ir, 0), *size = x.node->dims[axis];
  sizes low = {.rank = x.node->rank}, high;
  for (size_t i = 0; i < low.rank; i++) low.at[i] = zero;
  high = low;
  low.at[axis] = ix_const(b->ir, 1);
  x = build_pad(b, x, &low, &high, TN_PAD_CONSTANT, build_int(b, start));
  return build_slice(b, x, (int64_t)axis, zero, size, 1);
}

/** Scans along one axis; `reverse` flips the axis before and after. */
static void build_scan(onnx_call *c, value (*build)(builder *b, value x, int64_t axis),
                       int64_t start) {
  builder *b = onnx_builder(c);
  value x = onnx_input(c, 0);
  size_t n;
  const int64_t *axes = onnx_static_ints(c, 1, &n);
  if (n != 1) onnx_fail(c, TN_ERR_SHAPE, "input 'axis' has %zu elements, expected 1", n);
  size_t axis = onnx_normalise_axis(c, axes[0], x.node->rank);
  tn_axes along = {.count = 1, .axis = {(int32_t)axis}};
  bool reverse = onnx_int_attribute(c, "reverse", 0) != 0;
  value v = reverse ? build_flip(b, x, along) : x;
  if (onnx_int_attribute(c, "exclusive", 0)) v = shift_axis(b, v, axis, start);
  v = build(b, v, (int64_t)axis);
  if (reverse) v = build_flip(b, v, along);
  c->outputs[0] = build_cast(b, v, (dtype)x.node->dtype);
}

void onnx_CumSum(onnx_call *c) { build_scan(c, build_cumsum, 0); }
void onnx_CumProd(onnx_call *c) { build_scan(c, build_cumprod, 1); }
