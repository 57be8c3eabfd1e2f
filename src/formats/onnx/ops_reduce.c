/* Reductions. */
#include "formats/onnx/axes.h"
#include "formats/onnx/ops.h"
#include "tensor/build.h"

typedef value (*reduction)(builder *b, value x, tn_axes axes, bool keepdims);

/** No axes, or an empty list: all of them, or none where the node says so. */
static void reduce(onnx_call *c, reduction build, int64_t since) {
  value x = onnx_input(c, 0);
  tn_axes axes;
  bool given = axes_given(c, since, &axes) && axes.count > 0;
  if (!given && onnx_int(c, "noop_with_empty_axes", 0)) {
    c->outputs[0] = x;
    return;
  }
  bool is_bool = x.node->dtype == DT_BOOL; /* false < true */
  value v = is_bool ? build_cast(onnx_builder(c), x, DT_U8) : x;
  v = build(onnx_builder(c), v, given ? axes : TN_ALL, onnx_int(c, "keepdims", 1) != 0);
  c->outputs[0] = build_cast(onnx_builder(c), v, (dtype)x.node->dtype);
}

void onnx_ReduceSum(onnx_call *c) { reduce(c, build_sum, 13); }
void onnx_ReduceMax(onnx_call *c) { reduce(c, build_max, 18); }
