/* Products of matrices. */
#include "formats/onnx/ops.h"
#include "tensor/ops_common.h"

void onnx_MatMul(onnx_call *c) {
  onnx_same_types(c);
  c->outputs[0] = build_matmul(onnx_builder(c), onnx_input(c, 0), onnx_input(c, 1));
}

/** x times an attribute, which is left out where it is 1. */
static value scaled(onnx_call *c, value x, const char *name) {
  builder *b = onnx_builder(c);
  float by = onnx_float(c, name, 1);
  if (by == 1) return x;
  if (!dtype_is_int((dtype)x.node->dtype)) return build_mul(b, x, build_num(b, by));
  if (by != (float)(int32_t)by)
    onnx_fail(c, TN_ERR_UNSUPPORTED, "%s is %g, which is not supported of integers", name,
              (double)by);
  return build_mul(b, x, build_int(b, (int32_t)by));
}

static value matrix(onnx_call *c, size_t input, const char *transposed) {
  value x = onnx_input(c, input);
  if (x.node->rank != 2)
    onnx_fail(c, TN_ERR_SHAPE, "input '%.200s' has %u dimensions, where 2 belong",
              c->node->inputs.at[input], x.node->rank);
  return onnx_int(c, transposed, 0) ? build_transpose(onnx_builder(c), x) : x;
}

void onnx_Gemm(onnx_call *c) {
  builder *b = onnx_builder(c);
  onnx_same_types(c);
  value x = matrix(c, 0, "transA"), w = matrix(c, 1, "transB");
  value y = build_matmul(b, x, w);
  sizes s = sizes_of(y.node);
  y = scaled(c, y, "alpha");
  if (onnx_has(c, 2)) y = build_add(b, y, build_expand(b, scaled(c, onnx_input(c, 2), "beta"), &s));
  c->outputs[0] = y;
}

/* Of small integers. */

/** An operand in i32, less its zero point: one, or one a row of the first operand. */
static value from_zero(onnx_call *c, size_t input, bool by_row) {
  builder *b = onnx_builder(c);
  value x = build_cast(b, onnx_input(c, input), DT_I32);
  if (!onnx_has(c, input + 2)) return x;
  value zero = build_cast(b, onnx_input(c, input + 2), DT_I32);
  bool is_list = zero.node->rank == 1 && !node_is_bits(zero.node->dims[0], 1);
  if (is_list && by_row) zero = build_unsqueeze(b, zero, (tn_axes){.count = 1, .axis = {1}});
  return build_sub(b, x, zero);
}

void onnx_MatMulInteger(onnx_call *c) {
  c->outputs[0] = build_matmul(onnx_builder(c), from_zero(c, 0, true), from_zero(c, 1, false));
}
