/* ONNX operators that create tensors from the shape of their input alone: EyeLike, Size. */
#include "formats/onnx/ops/onnx_builders.h"
#include "ir/index/build_tensor.h"
#include "tensor/ops/expressions.h"

void onnx_EyeLike(onnx_call *c) {
  builder *b = onnx_builder(c);
  const node *x = onnx_input(c, 0).node;
  dtype t = onnx_dtype_attribute(c, "dtype", (dtype)x->dtype);
  int64_t k = onnx_int_attribute(c, "k", 0);
  if (x->rank != 2) onnx_fail(c, TN_ERR_SHAPE, "the input has %u dimensions, expected 2", x->rank);
  sizes s = sizes_of(x);
  const node *row = ex_iota(b, DT_I64, &s, 0), *column = ex_iota(b, DT_I64, &s, 1);
  const node *is_diagonal =
      ex_binary(b, OP_EQ, ex_binary(b, OP_ADD, row, ex_int(b, row, k)), column);
  c->outputs[0] = value_of(ir_cast(b->ir, is_diagonal, t));
}

void onnx_Size(onnx_call *c) {
  builder *b = onnx_builder(c);
  c->outputs[0] = value_of(ex_size(b, ir_element_count(b->ir, onnx_input(c, 0).node), DT_I64));
}
