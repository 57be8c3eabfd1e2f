/* Activations, and dropout. */
#include "formats/onnx/ops.h"
#include "tensor/ops_common.h"

#define UNARY(name, build) \
  void onnx_##name(onnx_call *c) { c->outputs[0] = build(onnx_builder(c), onnx_input(c, 0)); }

UNARY(Relu, build_relu)
UNARY(Sigmoid, build_sigmoid)
UNARY(Softplus, build_softplus)
UNARY(Softsign, build_softsign)
UNARY(Mish, build_mish)
UNARY(HardSwish, build_hardswish)

static double alpha(const onnx_call *c, float otherwise) {
  return (double)onnx_float(c, "alpha", otherwise);
}

void onnx_LeakyRelu(onnx_call *c) {
  c->outputs[0] = build_leaky_relu(onnx_builder(c), onnx_input(c, 0), alpha(c, 0.01f));
}

void onnx_Elu(onnx_call *c) {
  c->outputs[0] = build_elu(onnx_builder(c), onnx_input(c, 0), alpha(c, 1));
}

void onnx_Celu(onnx_call *c) {
  c->outputs[0] = build_celu(onnx_builder(c), onnx_input(c, 0), alpha(c, 1));
}

void onnx_Selu(onnx_call *c) {
  builder *b = onnx_builder(c);
  bool old = c->version < 6;
  value y = build_elu(b, onnx_input(c, 0), alpha(c, old ? 1.6732f : 1.67326319f));
  double gamma = (double)onnx_float(c, "gamma", old ? 1.0507f : 1.05070102f);
  c->outputs[0] = build_mul(b, y, build_num(b, gamma));
}

void onnx_ThresholdedRelu(onnx_call *c) {
  builder *b = onnx_builder(c);
  value x = onnx_input(c, 0), is_above = build_gt(b, x, build_num(b, alpha(c, 1)));
  c->outputs[0] = build_where(b, is_above, x, build_int(b, 0));
}

void onnx_HardSigmoid(onnx_call *c) {
  builder *b = onnx_builder(c);
  value y = build_mul(b, onnx_input(c, 0), build_num(b, alpha(c, 0.2f)));
  y = build_add(b, y, build_num(b, (double)onnx_float(c, "beta", 0.5f)));
  c->outputs[0] = build_clip(b, y, build_int(b, 0), build_int(b, 1));
}

/** Before version 7 one slope a channel is a vector. */
void onnx_PRelu(onnx_call *c) {
  builder *b = onnx_builder(c);
  onnx_same_types(c);
  value x = onnx_input(c, 0), slope = onnx_input(c, 1);
  sizes s = sizes_of(x.node), own = sizes_of(slope.node);
  if (c->version < 7 && own.rank == 1 && s.rank > 1 && !size_is(own.at[0], 1)) {
    for (size_t i = 2; i < s.rank; i++) own = sizes_insert(b, own, i - 1, ix_const(b->ir, 1));
    slope = build_reshape(b, slope, &own);
  }
  value scaled = build_mul(b, x, build_expand(b, slope, &s));
  c->outputs[0] = build_where(b, build_lt(b, x, build_int(b, 0)), scaled, x);
}

/** A bound: an attribute before version 11, then an input; either may be left out. */
static value bound(onnx_call *c, const char *name, size_t input) {
  if (c->version >= 11) return onnx_has(c, input) ? onnx_scalar(c, input) : (value){0};
  if (!onnx_has_attribute(c, name)) return (value){0};
  return build_num(onnx_builder(c), (double)onnx_float(c, name, 0));
}

void onnx_Clip(onnx_call *c) {
  onnx_same_types(c);
  c->outputs[0] =
      build_clip(onnx_builder(c), onnx_input(c, 0), bound(c, "min", 1), bound(c, "max", 2));
}

/** Only of inference: a training_mode that is set, or computed, is refused. */
void onnx_Dropout(onnx_call *c) {
  builder *b = onnx_builder(c);
  value x = onnx_input(c, 0);
  if (onnx_has(c, 2) && !node_is_bits(onnx_scalar(c, 2).node, 0))
    onnx_fail(c, TN_ERR_UNSUPPORTED, "training_mode is %s",
              node_is_const(onnx_scalar(c, 2).node)
                  ? "set, and only inference is supported: export the model for inference"
                  : "known only when the model runs: make it an initializer that is false");
  sizes s = sizes_of(x.node);
  c->outputs[0] = x;
  if (c->version >= 10 && onnx_wants(c, 1)) c->outputs[1] = build_full(b, &s, DT_BOOL, 1);
}
