/* Elementwise operators. */
#include "formats/onnx/ops.h"
#include "tensor/build.h"

#define UNARY(name, build) \
  void onnx_##name(onnx_call *c) { c->outputs[0] = build(onnx_builder(c), onnx_input(c, 0)); }
#define BINARY(name, build)                                                     \
  void onnx_##name(onnx_call *c) {                                              \
    c->outputs[0] = build(onnx_builder(c), onnx_input(c, 0), onnx_input(c, 1)); \
  }

UNARY(Exp, build_exp)
UNARY(Tanh, build_tanh)
UNARY(Sqrt, build_sqrt)
UNARY(Reciprocal, build_reciprocal)
BINARY(Add, build_add)
BINARY(Sub, build_sub)
BINARY(Mul, build_mul)
BINARY(Equal, build_eq)

/** Integers are divided towards zero. */
void onnx_Div(onnx_call *c) {
  builder *b = onnx_builder(c);
  value x = onnx_input(c, 0), y = onnx_input(c, 1);
  if (!dtype_is_int((dtype)x.node->dtype))
    c->outputs[0] = build_div(b, x, y);
  else
    c->outputs[0] = build_floordiv(b, build_sub(b, x, build_fmod(b, x, y)), y);
}

void onnx_Max(onnx_call *c) {
  value v = onnx_input(c, 0);
  for (size_t i = 1; i < c->n_inputs; i++) v = build_maximum(onnx_builder(c), v, onnx_input(c, i));
  c->outputs[0] = v;
}

void onnx_Cast(onnx_call *c) {
  int64_t to = onnx_int(c, "to", 0);
  if (to < 0 || to >= DT_VOID || !dtype_is_data((dtype)to))
    onnx_fail(c, TN_ERR_UNSUPPORTED, "a cast to type %s",
              to > 0 && to < DT_VOID && onnx_dtype_name((int)to) ? onnx_dtype_name((int)to) : "?");
  c->outputs[0] = build_cast(onnx_builder(c), onnx_input(c, 0), (dtype)to);
}
