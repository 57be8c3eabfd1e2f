/* ONNX Gather, GatherElements and GatherND: reads by index tensors, by the gathers of tensor/ops.
 */
#include "formats/onnx/ops/onnx_builders.h"
#include "tensor/ops/operators.h"

void onnx_Gather(onnx_call *c) {
  value x = onnx_input(c, 0), index = onnx_input(c, 1);
  c->outputs[0] = build_take(onnx_builder(c), x, index, onnx_int_attribute(c, "axis", 0));
}

void onnx_GatherElements(onnx_call *c) {
  value x = onnx_input(c, 0), index = onnx_input(c, 1);
  c->outputs[0] =
      build_gather_elements(onnx_builder(c), x, index, onnx_int_attribute(c, "axis", 0));
}

void onnx_GatherND(onnx_call *c) {
  int64_t batch = onnx_int_attribute(c, "batch_dims", 0);
  if (batch < 0 || batch > SIZES_MAX_RANK)
    onnx_fail(c, TN_ERR_SHAPE, "batch_dims is %lld, not in 0 … %d", (long long)batch,
              SIZES_MAX_RANK);
  c->outputs[0] =
      build_gather_nd(onnx_builder(c), onnx_input(c, 0), onnx_input(c, 1), (size_t)batch);
}
