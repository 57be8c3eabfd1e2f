/* Elementwise operations of one operand (TN_UNARY_LIST, activations, casts), expressed by a few
   primitive ops in the type to compute in (f32 for f16 and bf16). Activations have the formulas and
   the constants of PyTorch and ONNX. */
#include "ir/index/build_tensor.h"
#include "tensor/context/symbolic_dims.h"
#include "tensor/ops/elementwise.h"
#include "tensor/ops/expressions.h"
#include "tensor/ops/type_promotion.h"

#include <math.h>

/* ---- Arithmetic ---- */

/* Each TN_UNARY_LIST entry has a function NAME_of over nodes in the type to compute in. */

#define IS_OP(name, op) \
  static const node *name##_of(builder *b, const node *x) { return ex_unary(b, op, x); }
IS_OP(neg, OP_NEG)
IS_OP(abs, OP_ABS)
IS_OP(sqrt, OP_SQRT)
IS_OP(exp, OP_EXP)
IS_OP(exp2, OP_EXP2)
IS_OP(expm1, OP_EXPM1)
IS_OP(log, OP_LOG)
IS_OP(log2, OP_LOG2)
IS_OP(log1p, OP_LOG1P)
IS_OP(sin, OP_SIN)
IS_OP(cos, OP_COS)
IS_OP(tan, OP_TAN)
IS_OP(asin, OP_ASIN)
IS_OP(acos, OP_ACOS)
IS_OP(atan, OP_ATAN)
IS_OP(sinh, OP_SINH)
IS_OP(cosh, OP_COSH)
IS_OP(tanh, OP_TANH)
IS_OP(asinh, OP_ASINH)
IS_OP(acosh, OP_ACOSH)
IS_OP(atanh, OP_ATANH)
IS_OP(erf, OP_ERF)
IS_OP(bitwise_not, OP_NOT)
#undef IS_OP

#define IS_ROUNDING(name, op)                                        \
  static const node *name##_of(builder *b, const node *x) {          \
    return dtype_is_float((dtype)x->dtype) ? ex_unary(b, op, x) : x; \
  }
IS_ROUNDING(floor, OP_FLOOR)
IS_ROUNDING(ceil, OP_CEIL)
IS_ROUNDING(round, OP_ROUND)
IS_ROUNDING(trunc, OP_TRUNC)
#undef IS_ROUNDING

/** sign(±0) = 0 and sign(NaN) = NaN: x + 0 gives both. */
static const node *sign_of(builder *b, const node *x) {
  const node *zero = ex_int(b, x, 0), *y = zero;
  if (dtype_is_float((dtype)x->dtype)) y = ex_binary(b, OP_ADD, x, zero);
  y = ex_where(b, ex_binary(b, OP_LT, x, zero), ex_int(b, x, -1), y);
  return ex_where(b, ex_binary(b, OP_LT, zero, x), ex_int(b, x, 1), y);
}

static const node *square_of(builder *b, const node *x) { return ex_binary(b, OP_MUL, x, x); }

static const node *reciprocal_of(builder *b, const node *x) {
  return ex_binary(b, OP_DIV, ex_num(b, x, 1), x);
}

static const node *rsqrt_of(builder *b, const node *x) { return reciprocal_of(b, sqrt_of(b, x)); }

/* ---- Activations ---- */

static const node *relu_of(builder *b, const node *x) { return ex_binary_num(b, OP_MAX, x, 0); }

const node *node_relu6(builder *b, const node *x) {
  return ex_binary_num(b, OP_MIN, relu_of(b, x), 6);
}

static const node *relu6_of(builder *b, const node *x) { return node_relu6(b, x); }

static const node *sigmoid_of(builder *b, const node *x) {
  return reciprocal_of(b, ex_binary_num(b, OP_ADD, exp_of(b, neg_of(b, x)), 1));
}

static const node *silu_of(builder *b, const node *x) {
  return ex_binary(b, OP_MUL, x, sigmoid_of(b, x));
}

/** x · (1 + y) / 2: GELU with y = erf(x / √2), or tanh of an approximation. */
static const node *gelu_gate(builder *b, const node *x, const node *y) {
  return ex_binary(b, OP_MUL, ex_binary_num(b, OP_MUL, x, 0.5), ex_binary_num(b, OP_ADD, y, 1));
}

static const node *gelu_of(builder *b, const node *x) {
  return gelu_gate(b, x, erf_of(b, ex_binary_num(b, OP_MUL, x, sqrt(0.5))));
}

static const node *gelu_tanh_of(builder *b, const node *x) {
  const node *cube = ex_binary(b, OP_MUL, square_of(b, x), x);
  const node *inner = ex_binary(b, OP_ADD, x, ex_binary_num(b, OP_MUL, cube, 0.044715));
  return gelu_gate(b, x, tanh_of(b, ex_binary_num(b, OP_MUL, inner, 0.79788456080286535588)));
}

/** max(x, 0) + log(1 + e^−|x|): no exponential overflows. */
static const node *softplus_of(builder *b, const node *x) {
  return ex_binary(b, OP_ADD, relu_of(b, x), log1p_of(b, exp_of(b, neg_of(b, abs_of(b, x)))));
}

static const node *softsign_of(builder *b, const node *x) {
  return ex_binary(b, OP_DIV, x, ex_binary_num(b, OP_ADD, abs_of(b, x), 1));
}

static const node *mish_of(builder *b, const node *x) {
  return ex_binary(b, OP_MUL, x, tanh_of(b, softplus_of(b, x)));
}

static const node *hardsigmoid_of(builder *b, const node *x) {
  return ex_binary_num(b, OP_DIV, node_relu6(b, ex_binary_num(b, OP_ADD, x, 3)), 6);
}

static const node *hardswish_of(builder *b, const node *x) {
  return ex_binary(b, OP_MUL, x, hardsigmoid_of(b, x));
}

/** x > 0 ? x : below */
static const node *if_positive(builder *b, const node *x, const node *below) {
  return ex_where(b, ex_binary(b, OP_LT, ex_num(b, x, 0), x), x, below);
}

static const node *selu_of(builder *b, const node *x) {
  const double scale = 1.0507009873554804934, alpha = 1.6732632423543772848;
  const node *below = ex_binary_num(b, OP_MUL, expm1_of(b, x), alpha);
  return ex_binary_num(b, OP_MUL, if_positive(b, x, below), scale);
}

/* ---- Predicates ---- */

static const node *bool_fill(builder *b, const node *like, bool v) {
  return ir_fill(b->ir, ir_const_bits(b->ir, DT_BOOL, v), like->rank, like->dims);
}

static const node *isnan_of(builder *b, const node *x) {
  return dtype_is_float((dtype)x->dtype) ? ex_binary(b, OP_NE, x, x) : bool_fill(b, x, false);
}

static const node *isinf_of(builder *b, const node *x) {
  if (!dtype_is_float((dtype)x->dtype)) return bool_fill(b, x, false);
  return ex_binary_num(b, OP_EQ, abs_of(b, x), INFINITY);
}

static const node *isfinite_of(builder *b, const node *x) {
  if (!dtype_is_float((dtype)x->dtype)) return bool_fill(b, x, true);
  return ex_binary_num(b, OP_LT, abs_of(b, x), INFINITY);
}

static const node *logical_not_of(builder *b, const node *x) {
  return ex_unary(b, OP_NOT, ex_cast(b, x, DT_BOOL));
}

/* ---- Builders and public functions of TN_UNARY_LIST ---- */

typedef const node *(*unary_of)(builder *b, const node *x);

static value unary(builder *b, rule r, unary_of of, value x) {
  operands o = operands_promote(b, r, &x, 1);
  return operands_result(b, &o, of(b, o.at[0]));
}

#define UNARY(name, rule, meaning) \
  value build_##name(builder *b, value x) { return unary(b, RULE_##rule, name##_of, x); }
TN_UNARY_LIST(UNARY)
#undef UNARY

typedef struct unary_call {
  value (*build)(builder *b, value x);
} unary_call;

static value call_unary(builder *b, const value in[], size_t n, const void *options) {
  (void)n;
  return ((const unary_call *)options)->build(b, in[0]);
}

#define UNARY(name, rule, meaning)                                            \
  tn_tensor *tn_##name(tn_tensor *x) {                                        \
    return op_call(#name, &x, 1, 0, call_unary, &(unary_call){build_##name}); \
  }
TN_UNARY_LIST(UNARY)
#undef UNARY

/* ---- Activations with a parameter ---- */

value build_elu(builder *b, value x, double alpha) {
  operands o = operands_promote(b, RULE_FLOAT, &x, 1);
  const node *below = ex_binary_num(b, OP_MUL, expm1_of(b, o.at[0]), alpha);
  return operands_result(b, &o, if_positive(b, o.at[0], below));
}

value build_celu(builder *b, value x, double alpha) {
  if (alpha == 0) diag_raise(b->diag, TN_ERR_ARGUMENT, "alpha is 0; x is divided by it");
  operands o = operands_promote(b, RULE_FLOAT, &x, 1);
  const node *below = expm1_of(b, ex_binary_num(b, OP_DIV, o.at[0], alpha));
  return operands_result(b, &o, if_positive(b, o.at[0], ex_binary_num(b, OP_MUL, below, alpha)));
}

value build_leaky_relu(builder *b, value x, double slope) {
  operands o = operands_promote(b, RULE_FLOAT, &x, 1);
  return operands_result(b, &o, if_positive(b, o.at[0], ex_binary_num(b, OP_MUL, o.at[0], slope)));
}

typedef struct parameter_call {
  value (*build)(builder *b, value x, double parameter);
  double parameter;
} parameter_call;

static value call_parameter(builder *b, const value in[], size_t n, const void *options) {
  const parameter_call *c = options;
  (void)n;
  return c->build(b, in[0], c->parameter);
}

tn_tensor *tn_elu(tn_tensor *x, double alpha) {
  return op_call("elu", &x, 1, 0, call_parameter, &(parameter_call){build_elu, alpha});
}

tn_tensor *tn_celu(tn_tensor *x, double alpha) {
  return op_call("celu", &x, 1, 0, call_parameter, &(parameter_call){build_celu, alpha});
}

tn_tensor *tn_leaky_relu(tn_tensor *x, double slope) {
  return op_call("leaky_relu", &x, 1, 0, call_parameter,
                 &(parameter_call){build_leaky_relu, slope});
}

/* ---- Conversions ---- */

value build_cast_by(builder *b, value x, dtype to, storage_rounding how) {
  return value_of(ex_cast_by(b, value_typed(b, x).node, to, how));
}

value build_cast(builder *b, value x, dtype to) {
  if (!x.weak) return value_of(ex_cast(b, x.node, to));
  uint64_t bits = scalar_cast(to, (dtype)x.node->dtype, (uint64_t)node_int(x.node));
  return value_of(ir_const_bits(b->ir, to, bits));
}

static int bitcast_bits(dtype t) {
  return dtype_is_storage(t) ? dtype_value_bits(t) : 8 * (int)dtype_bytes(t);
}

value build_bitcast(builder *b, value x, dtype to) {
  x = value_typed(b, x);
  dtype from = (dtype)x.node->dtype;
  if (dtype_bytes(from) == dtype_bytes(to) && bitcast_bits(from) != bitcast_bits(to))
    diag_raise(b->diag, TN_ERR_DTYPE, "%s has %d bits and %s has %d: sizes must be equal",
               dtype_name(from), bitcast_bits(from), dtype_name(to), bitcast_bits(to));
  if (dtype_bytes(from) != dtype_bytes(to))
    diag_raise(b->diag, TN_ERR_DTYPE, "%s has %zu bytes and %s has %zu: sizes must be equal",
               dtype_name(from), dtype_bytes(from), dtype_name(to), dtype_bytes(to));
  bool is_bool = from == DT_BOOL || to == DT_BOOL;
  if (is_bool && dtype_is_storage(from))
    return value_of(ex_cast(b, ir_bitcast(b->ir, x.node, DT_U8), to));
  if (is_bool && dtype_is_storage(to))
    return value_of(ir_bitcast(b->ir, ir_cast(b->ir, x.node, DT_U8), to));
  return value_of(is_bool ? ex_cast(b, x.node, to) : ir_bitcast(b->ir, x.node, to));
}

static value call_cast(builder *b, const value in[], size_t n, const void *options) {
  (void)n;
  return build_cast(b, in[0], dims_check_dtype(b, *(const tn_dtype *)options));
}

static value call_bitcast(builder *b, const value in[], size_t n, const void *options) {
  (void)n;
  return build_bitcast(b, in[0], dims_check_dtype(b, *(const tn_dtype *)options));
}

tn_tensor *tn_cast(tn_tensor *x, tn_dtype dtype) {
  return op_call("cast", &x, 1, 0, call_cast, &dtype);
}

tn_tensor *tn_bitcast(tn_tensor *x, tn_dtype dtype) {
  return op_call("bitcast", &x, 1, 0, call_bitcast, &dtype);
}
