/* ONNX activation functions, by the builders of tensor/ops. */
#include "formats/onnx/ops/onnx_builders.h"
#include "ir/index/index_arithmetic.h"
#include "tensor/ops/axes_and_broadcasting.h"

#include <float.h>

#define UNARY(name, build) \
  void onnx_##name(onnx_call *c) { c->outputs[0] = build(onnx_builder(c), onnx_input(c, 0)); }

UNARY(Relu, build_relu)
UNARY(Sigmoid, build_sigmoid)
UNARY(Softplus, build_softplus)
UNARY(Softsign, build_softsign)
UNARY(Mish, build_mish)
UNARY(HardSwish, build_hardswish)

static double read_alpha(const onnx_call *c, float default_value) {
  return (double)onnx_float_attribute(c, "alpha", default_value);
}

void onnx_LeakyRelu(onnx_call *c) {
  c->outputs[0] = build_leaky_relu(onnx_builder(c), onnx_input(c, 0), read_alpha(c, 0.01f));
}

void onnx_Elu(onnx_call *c) {
  c->outputs[0] = build_elu(onnx_builder(c), onnx_input(c, 0), read_alpha(c, 1));
}

void onnx_Celu(onnx_call *c) {
  c->outputs[0] = build_celu(onnx_builder(c), onnx_input(c, 0), read_alpha(c, 1));
}

void onnx_Selu(onnx_call *c) {
  builder *b = onnx_builder(c);
  bool old = c->version < 6;
  value y = build_elu(b, onnx_input(c, 0), read_alpha(c, old ? 1.6732f : 1.67326319f));
  double gamma = (double)onnx_float_attribute(c, "gamma", old ? 1.0507f : 1.05070102f);
  c->outputs[0] = build_mul(b, y, build_num(b, gamma));
}

void onnx_ThresholdedRelu(onnx_call *c) {
  builder *b = onnx_builder(c);
  value x = onnx_input(c, 0), is_above = build_gt(b, x, build_num(b, read_alpha(c, 1)));
  c->outputs[0] = build_where(b, is_above, x, build_int(b, 0));
}

static value build_swish(onnx_call *c) {
  builder *b = onnx_builder(c);
  value x = onnx_input(c, 0), scaled = build_mul(b, x, build_num(b, read_alpha(c, 1)));
  return build_mul(b, x, build_sigmoid(b, scaled));
}

void onnx_Swish(onnx_call *c) { c->outputs[0] = build_swish(c); }

void onnx_SwiGLU(onnx_call *c) {
  onnx_require_same_types(c);
  c->outputs[0] = build_mul(onnx_builder(c), build_swish(c), onnx_input(c, 1));
}

void onnx_Shrink(onnx_call *c) {
  builder *b = onnx_builder(c);
  value x = onnx_input(c, 0);
  dtype t = (dtype)x.node->dtype;
  value lambda = build_num(b, (double)onnx_float_attribute(c, "lambd", 0.5f)),
        bias = build_num(b, (double)onnx_float_attribute(c, "bias", 0));
  value is_low = build_lt(b, x, build_neg(b, lambda)), is_high = build_lt(b, lambda, x);
  value y = build_where(b, is_high, build_sub(b, x, bias), build_int(b, 0));
  c->outputs[0] = build_cast(b, build_where(b, is_low, build_add(b, x, bias), y), t);
}

void onnx_HardSigmoid(onnx_call *c) {
  builder *b = onnx_builder(c);
  value y = build_mul(b, onnx_input(c, 0), build_num(b, read_alpha(c, 0.2f)));
  y = build_add(b, y, build_num(b, (double)onnx_float_attribute(c, "beta", 0.5f)));
  c->outputs[0] = build_clip(b, y, build_int(b, 0), build_int(b, 1));
}

/** Broadcasts the slope to x; before version 7 a vector has one slope for each channel. */
void onnx_PRelu(onnx_call *c) {
  builder *b = onnx_builder(c);
  onnx_require_same_types(c);
  value x = onnx_input(c, 0), slope = onnx_input(c, 1);
  sizes s = sizes_of(x.node), t = sizes_of(slope.node);
  if (c->version < 7 && t.rank == 1 && s.rank > 1 && !size_equals(t.at[0], 1)) {
    for (size_t i = 2; i < s.rank; i++) t = sizes_insert(b, t, i - 1, ix_const(b->ir, 1));
    slope = build_reshape(b, slope, &t);
  }
  value scaled = build_mul(b, x, build_expand(b, slope, &s));
  c->outputs[0] = build_where(b, build_lt(b, x, build_int(b, 0)), scaled, x);
}

/** Reads a bound of Clip: an attribute before version 11, an input from then on; optional. In
    version 6 alone it has a default, the last finite number of f32. */
static value clip_bound(onnx_call *c, const char *name, size_t input, float usual) {
  if (c->version >= 11) return onnx_has_input(c, input) ? onnx_scalar_input(c, input) : (value){0};
  if (c->version < 6 && !onnx_has_attribute(c, name)) return (value){0};
  return build_num(onnx_builder(c), (double)onnx_float_attribute(c, name, usual));
}

void onnx_Clip(onnx_call *c) {
  onnx_require_same_types(c);
  c->outputs[0] = build_clip(onnx_builder(c), onnx_input(c, 0), clip_bound(c, "min", 1, -FLT_MAX),
                             clip_bound(c, "max", 2, FLT_MAX));
}
