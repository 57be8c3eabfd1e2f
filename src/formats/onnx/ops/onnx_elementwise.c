/* ONNX elementwise operators, mapped to the builders of tensor/ops: directly, or, where ONNX
   defines another meaning for some types or versions (Div, Mod, Pow, …), with the difference made
   here. */
#include "formats/onnx/ops/onnx_builders.h"
#include "ir/index/index_arithmetic.h"
#include "tensor/ops/axes_and_broadcasting.h"
#include "tensor/ops/operators.h"

#include <math.h>
#include <string.h>

#define UNARY(name, build) \
  void onnx_##name(onnx_call *c) { c->outputs[0] = build(onnx_builder(c), onnx_input(c, 0)); }
/** Before version 7 broadcasting is asked for: the second operand's axes are the first's from
   `axis` on, or its last ones. */
static value second_operand(onnx_call *c) {
  builder *b = onnx_builder(c);
  value x = onnx_input(c, 0), y = onnx_input(c, 1);
  if (c->version >= 7) return y;
  sizes s = sizes_of(x.node), t = sizes_of(y.node);
  if (!onnx_int_attribute(c, "broadcast", 0)) {
    if (!sizes_equal(&s, &t))
      onnx_fail(c, TN_ERR_SHAPE, "the shapes are %s and %s, and broadcast is not set",
                sizes_text(b, &s), sizes_text(b, &t));
    return y;
  }
  if (!onnx_has_attribute(c, "axis")) return y;
  int64_t first = onnx_int_attribute(c, "axis", 0);
  size_t axis = first == (int64_t)s.rank ? s.rank : onnx_normalise_axis(c, first, s.rank);
  if (axis + t.rank > s.rank)
    onnx_fail(c, TN_ERR_SHAPE, "shape %s does not fit in %s from axis %zu on", sizes_text(b, &t),
              sizes_text(b, &s), axis);
  while (axis + t.rank < s.rank) t.at[t.rank++] = ix_const(b->ir, 1);
  return build_reshape(b, y, &t);
}

#define BINARY(name, build)                                                      \
  void onnx_##name(onnx_call *c) {                                               \
    onnx_require_same_types(c);                                                  \
    c->outputs[0] = build(onnx_builder(c), onnx_input(c, 0), second_operand(c)); \
  }

UNARY(Abs, build_abs)
UNARY(Neg, build_neg)
UNARY(Sign, build_sign)
UNARY(Floor, build_floor)
UNARY(Ceil, build_ceil)
UNARY(Round, build_round)
UNARY(Sqrt, build_sqrt)
UNARY(Reciprocal, build_reciprocal)
UNARY(Exp, build_exp)
UNARY(Log, build_log)
UNARY(Sin, build_sin)
UNARY(Cos, build_cos)
UNARY(Tan, build_tan)
UNARY(Asin, build_asin)
UNARY(Acos, build_acos)
UNARY(Atan, build_atan)
UNARY(Sinh, build_sinh)
UNARY(Cosh, build_cosh)
UNARY(Tanh, build_tanh)
UNARY(Asinh, build_asinh)
UNARY(Acosh, build_acosh)
UNARY(Atanh, build_atanh)
UNARY(Erf, build_erf)
UNARY(IsNaN, build_isnan)
UNARY(Not, build_logical_not)
UNARY(BitwiseNot, build_bitwise_not)
BINARY(Add, build_add)
BINARY(Sub, build_sub)
BINARY(Mul, build_mul)
BINARY(Equal, build_eq)
BINARY(Greater, build_gt)
BINARY(GreaterOrEqual, build_ge)
BINARY(Less, build_lt)
BINARY(LessOrEqual, build_le)
BINARY(And, build_logical_and)
BINARY(Or, build_logical_or)
BINARY(Xor, build_logical_xor)
BINARY(BitwiseAnd, build_bitwise_and)
BINARY(BitwiseOr, build_bitwise_or)
BINARY(BitwiseXor, build_bitwise_xor)

/** Truncating integer division: the floor, plus one if the signs differ and the remainder is not 0.
 */
static value truncating_div(builder *b, value x, value y) {
  value q = build_floordiv(b, x, y), zero = build_int(b, 0);
  if (dtype_facts_of((dtype)x.node->dtype)->cls == DC_UINT) return q;
  value signs_differ = build_ne(b, build_lt(b, x, zero), build_lt(b, y, zero));
  value has_remainder = build_ne(b, build_mod(b, x, y), zero);
  value ceiling = build_add(b, q, build_int(b, 1));
  return build_where(b, build_bitwise_and(b, signs_differ, has_remainder), ceiling, q);
}

void onnx_Div(onnx_call *c) {
  onnx_require_same_types(c);
  value x = onnx_input(c, 0), y = second_operand(c);
  bool is_int = dtype_is_int((dtype)x.node->dtype);
  c->outputs[0] = (is_int ? truncating_div : build_div)(onnx_builder(c), x, y);
}

/** Pow: the result has the type of the base. */
void onnx_Pow(onnx_call *c) {
  builder *b = onnx_builder(c);
  value x = onnx_input(c, 0), y = second_operand(c);
  dtype t = (dtype)x.node->dtype, exponent = (dtype)y.node->dtype;
  if (c->version < 12) onnx_require_same_types(c);
  bool in_f64 = dtype_is_int(t) && dtype_is_float(exponent);
  value base = in_f64 ? build_cast(b, x, DT_F64) : x;
  c->outputs[0] = build_cast(b, build_pow(b, base, y), t);
}

void onnx_Mod(onnx_call *c) {
  onnx_require_same_types(c);
  value x = onnx_input(c, 0), y = onnx_input(c, 1);
  bool is_fmod = onnx_int_attribute(c, "fmod", 0) != 0;
  if (c->version < 28 && !is_fmod && dtype_is_float((dtype)x.node->dtype))
    onnx_fail(c, TN_ERR_DTYPE, "attribute 'fmod' must be 1 for floating-point operands");
  c->outputs[0] = (is_fmod ? build_fmod : build_mod)(onnx_builder(c), x, y);
}

void onnx_BitShift(onnx_call *c) {
  onnx_require_same_types(c);
  const char *direction = onnx_string_attribute(c, "direction", "");
  bool left = !strcmp(direction, "LEFT");
  if (!left && strcmp(direction, "RIGHT"))
    onnx_fail(c, TN_ERR_FORMAT, "direction is '%.50s', not LEFT or RIGHT", direction);
  c->outputs[0] = (left ? build_left_shift : build_right_shift)(onnx_builder(c), onnx_input(c, 0),
                                                                onnx_input(c, 1));
}

static void fold_inputs(onnx_call *c, value (*build)(builder *b, value x, value y)) {
  onnx_require_same_types(c);
  value v = onnx_input(c, 0);
  for (size_t i = 1; i < c->n_inputs; i++) v = build(onnx_builder(c), v, onnx_input(c, i));
  c->outputs[0] = v;
}

void onnx_Max(onnx_call *c) { fold_inputs(c, build_maximum); }
void onnx_Min(onnx_call *c) { fold_inputs(c, build_minimum); }
void onnx_Sum(onnx_call *c) { fold_inputs(c, build_add); }

void onnx_Where(onnx_call *c) {
  value condition = onnx_input(c, 0), x = onnx_input(c, 1), y = onnx_input(c, 2);
  if (x.node->dtype != y.node->dtype)
    onnx_fail(c, TN_ERR_DTYPE, "inputs 1 and 2 have different types, %s and %s",
              dtype_name((dtype)x.node->dtype), dtype_name((dtype)y.node->dtype));
  c->outputs[0] = build_where(onnx_builder(c), condition, x, y);
}

void onnx_IsInf(onnx_call *c) {
  builder *b = onnx_builder(c);
  value x = onnx_input(c, 0);
  value is_positive = build_eq(b, x, build_num(b, INFINITY)),
        is_negative = build_eq(b, x, build_num(b, -INFINITY));
  bool positive = onnx_int_attribute(c, "detect_positive", 1) != 0,
       negative = onnx_int_attribute(c, "detect_negative", 1) != 0;
  sizes s = sizes_of(x.node);
  if (positive && negative)
    c->outputs[0] = build_logical_or(b, is_positive, is_negative);
  else
    c->outputs[0] = positive ? is_positive : negative ? is_negative : build_full(b, &s, DT_BOOL, 0);
}

void onnx_Gelu(onnx_call *c) {
  const char *approximation = onnx_string_attribute(c, "approximate", "none");
  bool uses_tanh = !strcmp(approximation, "tanh");
  if (!uses_tanh && strcmp(approximation, "none"))
    onnx_fail(c, TN_ERR_FORMAT, "approximate is '%.50s', not none or tanh", approximation);
  c->outputs[0] = (uses_tanh ? build_gelu_tanh : build_gelu)(onnx_builder(c), onnx_input(c, 0));
}

void onnx_Mean(onnx_call *c) {
  builder *b = onnx_builder(c);
  onnx_Sum(c);
  if (c->n_inputs > 1)
    c->outputs[0] = build_div(b, c->outputs[0], build_num(b, (double)c->n_inputs));
}
