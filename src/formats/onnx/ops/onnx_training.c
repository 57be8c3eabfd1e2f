/* Optimizers of ONNX's preview of training: Adagrad, Adam and Momentum. A node updates several
   tensors, whose values, gradients and states are lists one after the other. */
#include "formats/onnx/ops/enum_attribute.h"
#include "formats/onnx/ops/onnx_builders.h"
#include "tensor/ops/operators.h"

enum { PARTS_MAX = 4 };

/** The update of a tensor x by its gradient g. */
typedef struct update {
  builder *b;
  value rate, step;      /* scalars: of x's type, and integers */
  value part[PARTS_MAX]; /* x, g and the states; replaced by the new ones, without g */
} update;

static value number(const update *u, double v) { return build_num(u->b, v); }

static value scaled(const update *u, value x, double factor) {
  return build_mul(u->b, x, number(u, factor));
}

static double read(const onnx_call *c, const char *name, float absent) {
  return (double)onnx_float_attribute(c, name, absent);
}

/** The gradient with that of the norm of x. */
static value regular_gradient(const onnx_call *c, const update *u) {
  return build_add(u->b, scaled(u, u->part[0], read(c, "norm_coefficient", 0)), u->part[1]);
}

/** Applies `apply` to each tensor; `n` of parts with the gradient. */
static void update_all(onnx_call *c, size_t n, void (*apply)(onnx_call *c, update *u)) {
  builder *b = onnx_builder(c);
  size_t count = c->n_inputs < 2 ? 0 : (c->n_inputs - 2) / n;
  if (!count || (c->n_inputs - 2) % n || c->n_outputs > count * (n - 1))
    onnx_fail(c, TN_ERR_FORMAT, "the inputs are not a rate, a step and %zu lists of one length", n);
  for (size_t i = 0; i < count; i++) {
    update u = {.b = b, .step = onnx_scalar_input(c, 1)};
    for (size_t k = 0; k < n; k++) u.part[k] = onnx_input(c, 2 + k * count + i);
    for (size_t k = 1; k < n; k++)
      if (u.part[k].node->dtype != u.part[0].node->dtype)
        onnx_fail(c, TN_ERR_DTYPE, "the types of a tensor, its gradient and its states differ");
    u.rate = build_cast(b, onnx_scalar_input(c, 0), (dtype)u.part[0].node->dtype);
    apply(c, &u);
    for (size_t k = 0, to = i; k < n; k++)
      if (k != 1) {
        if (to < c->n_outputs) c->outputs[to] = u.part[k];
        to += count;
      }
  }
}

/** The step as a number of x's type. */
static value step_number(const update *u) {
  return build_cast(u->b, u->step, (dtype)u->part[0].node->dtype);
}

static value is_later_step(const update *u) { return build_gt(u->b, u->step, build_int(u->b, 0)); }

static void apply_adagrad(onnx_call *c, update *u) {
  builder *b = u->b;
  value decay = build_add(b, scaled(u, step_number(u), read(c, "decay_factor", 0)), number(u, 1));
  value g = regular_gradient(c, u), h = build_add(b, u->part[2], build_square(b, g));
  value root = build_add(b, build_sqrt(b, h), number(u, read(c, "epsilon", 1e-6f)));
  value change = build_div(b, build_mul(b, build_div(b, u->rate, decay), g), root);
  u->part[0] = build_sub(b, u->part[0], change);
  u->part[2] = h;
}

void onnx_training_Adagrad(onnx_call *c) { update_all(c, 3, apply_adagrad); }

/** x·factor + y·(1 − factor). */
static value mix(const update *u, value x, value y, double factor) {
  return build_add(u->b, scaled(u, x, factor), scaled(u, y, 1 - factor));
}

/** 1 − baseᵗ for step t. */
static value bias_of(const update *u, double base) {
  return build_sub(u->b, number(u, 1), build_pow(u->b, number(u, base), step_number(u)));
}

static void apply_adam(onnx_call *c, update *u) {
  builder *b = u->b;
  double alpha = read(c, "alpha", 0.9f), beta = read(c, "beta", 0.999f);
  value g = regular_gradient(c, u), v = mix(u, u->part[2], g, alpha),
        h = mix(u, u->part[3], build_square(b, g), beta);
  value root = build_add(b, build_sqrt(b, h), number(u, read(c, "epsilon", 1e-6f)));
  value corrected = build_mul(b, u->rate, build_sqrt(b, bias_of(u, beta)));
  corrected = build_div(b, corrected, bias_of(u, alpha));
  value rate = build_where(b, is_later_step(u), corrected, u->rate);
  value x = build_sub(b, u->part[0], build_mul(b, rate, build_div(b, v, root)));
  u->part[0] = scaled(u, x, 1 - read(c, "norm_coefficient_post", 0));
  u->part[2] = v;
  u->part[3] = h;
}

void onnx_training_Adam(onnx_call *c) { update_all(c, 4, apply_adam); }

static void apply_momentum(onnx_call *c, update *u) {
  static const char *const modes[] = {"standard", "nesterov"};
  builder *b = u->b;
  double alpha = read(c, "alpha", 0);
  value g = regular_gradient(c, u);
  value beta = build_where(b, is_later_step(u), number(u, read(c, "beta", 0)), number(u, 1));
  beta = build_cast(b, beta, (dtype)g.node->dtype);
  value v = build_add(b, scaled(u, u->part[2], alpha), build_mul(b, beta, g));
  value change = ENUM_ATTRIBUTE(c, "mode", modes) ? build_add(b, g, scaled(u, v, alpha)) : v;
  u->part[0] = build_sub(b, u->part[0], build_mul(b, u->rate, change));
  u->part[2] = v;
}

void onnx_training_Momentum(onnx_call *c) { update_all(c, 3, apply_momentum); }
