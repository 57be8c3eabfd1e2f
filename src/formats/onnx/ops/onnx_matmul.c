/* ONNX MatMul and Gemm, by the matrix product of tensor/ops. */
#include "formats/onnx/ops/onnx_builders.h"
#include "tensor/ops/operators.h"

void onnx_MatMul(onnx_call *c) {
  onnx_require_same_types(c);
  c->outputs[0] = build_matmul(onnx_builder(c), onnx_input(c, 0), onnx_input(c, 1));
}

/** Multiplies x by a float attribute unless that is 1. */
static value scale_by_attribute(onnx_call *c, value x, const char *name) {
  builder *b = onnx_builder(c);
  float scale = onnx_float_attribute(c, name, 1);
  if (scale == 1) return x;
  if (!dtype_is_int((dtype)x.node->dtype)) return build_mul(b, x, build_num(b, scale));
  if (scale != (float)(int32_t)scale)
    onnx_fail(c, TN_ERR_UNSUPPORTED, "%s is %g, which is not supported for integer operands", name,
              (double)scale);
  return build_mul(b, x, build_int(b, (int32_t)scale));
}

/** Reads a matrix, transposed if the attribute says so. */
static value read_matrix(onnx_call *c, size_t input, const char *attribute) {
  value x = onnx_input(c, input);
  if (x.node->rank != 2)
    onnx_fail(c, TN_ERR_SHAPE, "input '%.200s' has %u dimensions, expected 2",
              c->node->inputs.at[input], x.node->rank);
  return onnx_int_attribute(c, attribute, 0) ? build_transpose(onnx_builder(c), x) : x;
}

void onnx_Gemm(onnx_call *c) {
  builder *b = onnx_builder(c);
  onnx_require_same_types(c);
  value x = read_matrix(c, 0, "transA"), w = read_matrix(c, 1, "transB");
  value y = build_matmul(b, x, w);
  sizes s = sizes_of(y.node);
  y = scale_by_attribute(c, y, "alpha");
  if (onnx_has_input(c, 2))
    y = build_add(b, y, build_expand(b, scale_by_attribute(c, onnx_input(c, 2), "beta"), &s));
  c->outputs[0] = y;
}
