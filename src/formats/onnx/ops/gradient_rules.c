/* The table of the derivatives of ONNX operators, a row each. A rule gives gradients in the shape
   of the result; gradient_sum_to undoes the broadcasting of operands. */
#include "formats/onnx/ops/gradient_rules.h"

#include "formats/onnx/ops/axis_arguments.h"
#include "formats/onnx/ops/gradient_layers.h"
#include "ir/index/index_arithmetic.h"
#include "tensor/ops/axes_and_broadcasting.h"
#include "tensor/ops/expressions.h"
#include "tensor/ops/operators.h"
#include "tensor/ops/type_promotion.h"

#include <string.h>

static builder *of(const gradient_call *g) { return onnx_builder(g->c); }
static value x_of(const gradient_call *g, size_t i) { return onnx_input(g->c, i); }
static value times(const gradient_call *g, value factor) { return build_mul(of(g), g->dy, factor); }

value gradient_sum_to(builder *b, value d, const sizes *to) {
  sizes s = sizes_of(d.node);
  tn_axes axes = TN_NO_AXES;
  size_t more = s.rank - to->rank;
  for (size_t i = 0; i < s.rank; i++) {
    bool is_broadcast = i < more || (size_equals(to->at[i - more], 1) && !size_equals(s.at[i], 1));
    if (is_broadcast) axes.axis[axes.count++] = (int32_t)i;
  }
  return axes.count ? build_reshape(b, build_sum(b, d, axes, true), to) : d;
}

/* Arithmetic. */

static void pass_on(gradient_call *g) {
  for (size_t i = 0; i < g->c->n_inputs; i++) g->dx[i] = g->dy;
}

static void of_mean(gradient_call *g) {
  value d = build_div(of(g), g->dy, build_num(of(g), (double)g->c->n_inputs));
  for (size_t i = 0; i < g->c->n_inputs; i++) g->dx[i] = d;
}

static void of_sub(gradient_call *g) {
  g->dx[0] = g->dy;
  g->dx[1] = build_neg(of(g), g->dy);
}

static void of_mul(gradient_call *g) {
  g->dx[0] = times(g, x_of(g, 1));
  g->dx[1] = times(g, x_of(g, 0));
}

/** −y/b, which is −a/b². */
static void of_div(gradient_call *g) {
  builder *b = of(g);
  g->dx[0] = build_div(b, g->dy, x_of(g, 1));
  g->dx[1] = build_neg(b, build_mul(b, g->dx[0], g->y));
}

/** b·a^(b − 1) and y·log a: 0 for b = 0, and for a = 0 unless b is negative. */
static void of_pow(gradient_call *g) {
  builder *b = of(g);
  value a = x_of(g, 0), e = x_of(g, 1), none = build_num(b, 0);
  dtype t = (dtype)a.node->dtype;
  if (e.node->dtype != t) e = build_cast(b, e, t);
  value slope = build_mul(b, e, build_pow(b, a, build_sub(b, e, build_num(b, 1))));
  g->dx[0] = times(g, build_where(b, build_eq(b, e, none), none, slope));
  if (onnx_input(g->c, 1).node->dtype != t) return;
  value is_none = build_logical_and(b, build_eq(b, a, none), build_ge(b, e, none));
  slope = build_mul(b, g->y, build_log(b, a));
  g->dx[1] = times(g, build_where(b, is_none, none, slope));
}

/* Functions of one operand. */

static void of_neg(gradient_call *g) { g->dx[0] = build_neg(of(g), g->dy); }
static void of_abs(gradient_call *g) { g->dx[0] = times(g, build_sign(of(g), x_of(g, 0))); }
static void of_exp(gradient_call *g) { g->dx[0] = times(g, g->y); }
static void of_log(gradient_call *g) { g->dx[0] = build_div(of(g), g->dy, x_of(g, 0)); }
static void of_sin(gradient_call *g) { g->dx[0] = times(g, build_cos(of(g), x_of(g, 0))); }

static void of_cos(gradient_call *g) {
  g->dx[0] = build_neg(of(g), times(g, build_sin(of(g), x_of(g, 0))));
}

static void of_sqrt(gradient_call *g) {
  builder *b = of(g);
  g->dx[0] = build_div(b, g->dy, build_mul(b, g->y, build_num(b, 2)));
}

static void of_reciprocal(gradient_call *g) {
  builder *b = of(g);
  g->dx[0] = build_neg(b, times(g, build_square(b, g->y)));
}

static void of_relu(gradient_call *g) {
  builder *b = of(g);
  value none = build_num(b, 0);
  g->dx[0] = build_where(b, build_gt(b, x_of(g, 0), none), g->dy, none);
}

static void of_sigmoid(gradient_call *g) {
  builder *b = of(g);
  value rest = build_sub(b, build_num(b, 1), g->y);
  g->dx[0] = times(g, build_mul(b, g->y, rest));
}

static void of_tanh(gradient_call *g) {
  builder *b = of(g);
  g->dx[0] = times(g, build_sub(b, build_num(b, 1), build_square(b, g->y)));
}

static void of_softplus(gradient_call *g) { g->dx[0] = times(g, build_sigmoid(of(g), x_of(g, 0))); }

/* Shapes. */

static void of_reshape(gradient_call *g) {
  sizes s = sizes_of(x_of(g, 0).node);
  g->dx[0] = build_reshape(of(g), g->dy, &s);
}

static void of_transpose(gradient_call *g) {
  const onnx_ints *perm = onnx_ints_attribute(g->c, "perm");
  if (!perm) {
    g->dx[0] = build_transpose(of(g), g->dy);
    return;
  }
  tn_axes axes = axes_from_list(g->c, perm->at, perm->n), back = axes;
  size_t rank = (size_t)axes.count;
  for (size_t i = 0; i < rank; i++)
    back.axis[onnx_normalise_axis(g->c, axes.axis[i], rank)] = (int32_t)i;
  g->dx[0] = build_permute(of(g), g->dy, back);
}

static void of_expand(gradient_call *g) { g->dx[0] = g->dy; }

/* Reductions: axes are an attribute below a version, as in onnx_reduction.c. */

static axis_list reduced_axes(const gradient_call *g, size_t rank, int64_t since) {
  tn_axes axes;
  if (!axes_argument(g->c, since, &axes) || !axes.count)
    axes = onnx_int_attribute(g->c, "noop_with_empty_axes", 0) ? TN_NO_AXES : TN_ALL;
  return axes_of(of(g), axes, rank);
}

/** The gradient of a sum, along each axis that was summed. */
static void spread(gradient_call *g, int64_t since) {
  sizes s = sizes_of(x_of(g, 0).node), kept = s;
  axis_list axes = reduced_axes(g, s.rank, since);
  for (size_t i = 0; i < s.rank; i++)
    if (axis_is_in(&axes, i)) kept.at[i] = ix_const(of(g)->ir, 1);
  g->dx[0] = build_expand(of(g), build_reshape(of(g), g->dy, &kept), &s);
}

static void of_sum(gradient_call *g) { spread(g, 13); }

/** Spread, over the count of the elements of a mean, which a narrow type may not hold. */
static void of_reduce_mean(gradient_call *g) {
  builder *b = of(g);
  sizes s = sizes_of(x_of(g, 0).node);
  axis_list axes = reduced_axes(g, s.rank, 18);
  const node *count = ix_const(b->ir, 1);
  for (size_t i = 0; i < axes.n; i++) count = ix_mul(b->ir, count, s.at[axes.at[i]]);
  spread(g, 18);
  value d = value_widen(b, g->dx[0]);
  g->dx[0] = build_div(b, d, value_of(ex_size(b, count, (dtype)d.node->dtype)));
}

/* The table. */

static const struct {
  const char *op;
  gradient_rule rule;
} rules[] = {
    {"Abs", of_abs},
    {"Add", pass_on},
    {"Conv", gradient_of_conv},
    {"Cos", of_cos},
    {"Div", of_div},
    {"Exp", of_exp},
    {"Expand", of_expand},
    {"Flatten", of_reshape},
    {"Gather", gradient_of_gather},
    {"Gemm", gradient_of_gemm},
    {"Identity", pass_on},
    {"Log", of_log},
    {"LogSoftmax", gradient_of_log_softmax},
    {"MatMul", gradient_of_matmul},
    {"Mean", of_mean},
    {"Mul", of_mul},
    {"Neg", of_neg},
    {"Pow", of_pow},
    {"Reciprocal", of_reciprocal},
    {"ReduceMean", of_reduce_mean},
    {"ReduceSum", of_sum},
    {"Relu", of_relu},
    {"Reshape", of_reshape},
    {"Sigmoid", of_sigmoid},
    {"Sin", of_sin},
    {"Softmax", gradient_of_softmax},
    {"Softplus", of_softplus},
    {"Sqrt", of_sqrt},
    {"Squeeze", of_reshape},
    {"Sub", of_sub},
    {"Sum", pass_on},
    {"Tanh", of_tanh},
    {"Transpose", of_transpose},
    {"Unsqueeze", of_reshape},
};

gradient_rule gradient_rule_of(const onnx_node *n) {
  bool is_own = !*n->domain || !strcmp(n->domain, "ai.onnx");
  for (size_t i = 0; i < sizeof rules / sizeof *rules && is_own; i++)
    if (!strcmp(rules[i].op, n->op_type)) return rules[i].rule;
  return NULL;
}
