/* Elementwise operators. */
#include "formats/onnx/ops.h"
#include "tensor/build.h"

#define UNARY(name, build) \
  void onnx_##name(onnx_call *c) { c->outputs[0] = build(onnx_builder(c), onnx_input(c, 0)); }
#define BINARY(name, build)                                                     \
  void onnx_##name(onnx_call *c) {                                              \
    onnx_same_types(c);                                                         \
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

/** Of integers: the floor, one up where signs differ and something remains. */
static value div_towards_zero(builder *b, value x, value y) {
  value q = build_floordiv(b, x, y), zero = build_int(b, 0);
  if (dtype_get((dtype)x.node->dtype)->cls == DC_UINT) return q;
  value differ = build_ne(b, build_lt(b, x, zero), build_lt(b, y, zero));
  value remains = build_ne(b, build_mod(b, x, y), zero);
  value up = build_add(b, q, build_int(b, 1));
  return build_where(b, build_bitwise_and(b, differ, remains), up, q);
}

void onnx_Div(onnx_call *c) {
  onnx_same_types(c);
  value x = onnx_input(c, 0), y = onnx_input(c, 1);
  bool is_int = dtype_is_int((dtype)x.node->dtype);
  c->outputs[0] = (is_int ? div_towards_zero : build_div)(onnx_builder(c), x, y);
}

void onnx_Max(onnx_call *c) {
  onnx_same_types(c);
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

void onnx_Sum(onnx_call *c) {
  onnx_same_types(c);
  value v = onnx_input(c, 0);
  for (size_t i = 1; i < c->n_inputs; i++) v = build_add(onnx_builder(c), v, onnx_input(c, i));
  c->outputs[0] = v;
}

void onnx_Mean(onnx_call *c) {
  builder *b = onnx_builder(c);
  onnx_Sum(c);
  if (c->n_inputs > 1)
    c->outputs[0] = build_div(b, c->outputs[0], build_num(b, (double)c->n_inputs));
}
