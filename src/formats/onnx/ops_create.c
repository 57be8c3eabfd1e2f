/* Operators that make tensors of sizes and numbers alone. */
#include "formats/onnx/ops.h"
#include "tensor/ops_common.h"

void onnx_EyeLike(onnx_call *c) {
  builder *b = onnx_builder(c);
  const node *x = onnx_input(c, 0).node;
  dtype t = onnx_data_type(c, "dtype", (dtype)x->dtype);
  int64_t k = onnx_int(c, "k", 0);
  if (x->rank != 2)
    onnx_fail(c, TN_ERR_SHAPE, "the input has %u dimensions, where 2 belong", x->rank);
  sizes s = sizes_of(x);
  const node *row = ex_iota(b, DT_I64, &s, 0), *column = ex_iota(b, DT_I64, &s, 1);
  const node *on = ex2(b, OP_EQ, ex2(b, OP_ADD, row, ex_int(b, row, k)), column);
  c->outputs[0] = value_of(ir_cast(b->ir, on, t));
}

void onnx_Size(onnx_call *c) {
  builder *b = onnx_builder(c);
  c->outputs[0] = value_of(ex_size(b, ir_size(b->ir, onnx_input(c, 0).node), DT_I64));
}
