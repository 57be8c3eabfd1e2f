/* ONNX operators whose results have as many elements as a run selects: NonZero and Compress. */
#include "formats/onnx/ops/onnx_builders.h"
#include "ir/index/index_arithmetic.h"
#include "tensor/ops/operators.h"

/** A vector of all elements. */
static value as_vector(builder *b, value x) {
  sizes flat = {.rank = 1};
  return build_reshape(b, x, &flat);
}

/** NonZero: a column of coordinates for each element; a scalar is a vector of one element. */
void onnx_NonZero(onnx_call *c) {
  builder *b = onnx_builder(c);
  value x = onnx_input(c, 0);
  c->outputs[0] = build_transpose(b, build_nonzero(b, x.node->rank ? x : as_vector(b, x)));
}

void onnx_Compress(onnx_call *c) {
  builder *b = onnx_builder(c);
  value x = onnx_input(c, 0);
  bool has_axis = onnx_has_attribute(c, "axis");
  int64_t axis = onnx_int_attribute(c, "axis", 0);
  if (!has_axis) x = as_vector(b, x);
  c->outputs[0] =
      build_compress(b, x, onnx_input(c, 1), (int64_t)onnx_normalise_axis(c, axis, x.node->rank));
}
