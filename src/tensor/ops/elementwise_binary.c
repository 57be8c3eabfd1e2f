/* Elementwise operations of two and three operands (TN_BINARY_LIST; where, clip, lerp): types are
   promoted (type_promotion.c), operands broadcast, and the result is expressed by a few primitive
   ops. Floor division and mod follow Python, fmod follows C; powers of integers are by squaring. */
#include "tensor/ops/axes_and_broadcasting.h"
#include "tensor/ops/elementwise.h"
#include "tensor/ops/expressions.h"
#include "tensor/ops/type_promotion.h"

#include <math.h>

/* ---- Arithmetic and comparison ---- */

/* Each TN_BINARY_LIST entry has a function NAME_of over nodes in the type to compute in. */

static bool is_float(const node *n) { return dtype_is_float((dtype)n->dtype); }
static bool is_bool(const node *n) { return n->dtype == DT_BOOL; }
static bool is_signed(const node *n) { return dtype_is_signed((dtype)n->dtype); }

#define IS_OP(name, op)                                                    \
  static const node *name##_of(builder *b, const node *x, const node *y) { \
    return ex_binary(b, op, x, y);                                         \
  }
IS_OP(add, is_bool(x) ? OP_OR : OP_ADD)
IS_OP(sub, OP_SUB)
IS_OP(mul, is_bool(x) ? OP_AND : OP_MUL)
IS_OP(div, OP_DIV)
IS_OP(maximum, OP_MAX)
IS_OP(minimum, OP_MIN)
IS_OP(eq, OP_EQ)
IS_OP(ne, OP_NE)
IS_OP(lt, OP_LT)
IS_OP(le, OP_LE)
IS_OP(bitwise_and, OP_AND)
IS_OP(bitwise_or, OP_OR)
IS_OP(bitwise_xor, OP_XOR)
IS_OP(left_shift, OP_SHL)
IS_OP(right_shift, OP_SHR)
#undef IS_OP

static const node *gt_of(builder *b, const node *x, const node *y) {
  return ex_binary(b, OP_LT, y, x);
}
static const node *ge_of(builder *b, const node *x, const node *y) {
  return ex_binary(b, OP_LE, y, x);
}

/* ---- Remainders and floor division ---- */

static const node *is_zero(builder *b, const node *x) {
  return ex_binary(b, OP_EQ, x, ex_int(b, x, 0));
}

static const node *is_negative(builder *b, const node *x) {
  return ex_binary(b, OP_LT, x, ex_int(b, x, 0));
}

/** The sign bit of an f32 or f64: true below 0, and for −0. */
static const node *sign_bit(builder *b, const node *x) {
  dtype bits = x->dtype == DT_F64 ? DT_I64 : DT_I32;
  return is_negative(b, ir_bitcast(b->ir, x, bits));
}

/** Reduces r by multiples of d. Each r − trunc(r / d) · d is exact by fma, and takes as many bits
    off r as an f64 has. The last quotient may be one too large, as it is rounded: then r is on the
    other side of 0. */
static const node *reduce_by(builder *b, const node *r, const node *d, int steps) {
  for (int i = 0; i < steps; i++) {
    const node *q = ex_unary(b, OP_TRUNC, ex_binary(b, OP_DIV, r, d));
    r = ir_op3(b->ir, OP_FMA, ex_unary(b, OP_NEG, q), d, r);
  }
  return r;
}

/** Reduces an f64. The quotient of two f32 has at most 277 bits before its point, that of two f64
    2098, which exceeds the range of f64. So r is reduced by d · 2^1400 first, then by d · 2^700,
    where these are finite. */
static const node *reduce_by_f64(builder *b, const node *r, const node *d) {
  enum { STEPS = 14 }; /* of 53 bits, for 700 */
  const node *large = ex_binary_num(b, OP_MUL, d, 0x1p700),
             *largest = ex_binary_num(b, OP_MUL, large, 0x1p700);
  const node *by[] = {largest, large};
  for (int i = 0; i < 2; i++) {
    const node *finite = ex_binary_num(b, OP_LT, by[i], INFINITY);
    r = ex_where(b, finite, reduce_by(b, r, by[i], STEPS), r);
  }
  return reduce_by(b, r, d, STEPS);
}

const node *node_fmod(builder *b, const node *x, const node *y) {
  enum { STEPS = 6 }; /* of 53 bits, for 277 */
  dtype t = (dtype)x->dtype;
  const node *wide = ex_cast(b, x, DT_F64), *a = ex_unary(b, OP_ABS, wide);
  const node *d = ex_unary(b, OP_ABS, ex_cast(b, y, DT_F64));
  const node *r = t == DT_F64 ? reduce_by_f64(b, a, d) : reduce_by(b, a, d, STEPS);
  r = ex_where(b, is_negative(b, r), ex_binary(b, OP_ADD, r, d), r);
  r = ex_where(b, ex_binary(b, OP_LT, a, d), a, r); /* also where d is infinite */
  return ex_cast(b, ex_where(b, sign_bit(b, wide), ex_unary(b, OP_NEG, r), r), t);
}

static const node *fmod_of(builder *b, const node *x, const node *y) {
  if (is_float(x)) return node_fmod(b, x, y);
  if (!is_signed(x)) return ex_binary(b, OP_MOD, x, y);
  const node *m = ex_binary(b, OP_MOD, x, y), *zero = ex_int(b, x, 0);
  const node *signs = ex_binary(b, OP_LT, ex_binary(b, OP_XOR, x, y), zero);
  const node *moved = ex_binary(b, OP_AND, signs, ex_binary(b, OP_NE, m, zero));
  return ex_where(b, moved, ex_binary(b, OP_SUB, m, y), m);
}

/** Python's remainder: fmod moved to the side of y. A remainder of 0 has y's sign. */
static const node *mod_float(builder *b, const node *x, const node *y) {
  const node *r = node_fmod(b, x, y), *zero = ex_num(b, r, 0);
  const node *differ = ex_binary(b, OP_NE, is_negative(b, r), is_negative(b, y));
  const node *signed_zero = ex_where(b, is_negative(b, y), ex_num(b, r, -0.0), zero);
  const node *moved = ex_where(b, differ, ex_binary(b, OP_ADD, r, y), r);
  return ex_where(b, ex_binary(b, OP_EQ, r, zero), signed_zero, moved);
}

static const node *mod_of(builder *b, const node *x, const node *y) {
  return is_float(x) ? mod_float(b, x, y) : ex_binary(b, OP_MOD, x, y);
}

/** Of floats: the integer nearest to (x − mod) / y, so that quotient and remainder agree; a
    quotient of 0 has the sign of x / y. Where y is 0, x / y. */
static const node *floordiv_of(builder *b, const node *x, const node *y) {
  if (!is_float(x)) return ex_binary(b, OP_FLOORDIV, x, y);
  dtype t = (dtype)x->dtype;
  const node *a = ex_cast(b, x, DT_F64), *d = ex_cast(b, y, DT_F64);
  const node *m = ex_cast(b, mod_float(b, x, y), DT_F64);
  const node *differ =
      ex_binary(b, OP_AND, ex_binary(b, OP_NE, is_negative(b, a), is_negative(b, d)),
                ex_unary(b, OP_NOT, is_zero(b, a)));
  const node *infinite = ex_binary_num(b, OP_EQ, ex_unary(b, OP_ABS, d), INFINITY);
  const node *finite = ex_binary_num(b, OP_LT, ex_unary(b, OP_ABS, a), INFINITY);
  const node *limit = ex_where(b, differ, ex_num(b, a, -1), ex_num(b, a, 0));
  const node *q = ex_unary(b, OP_ROUND, ex_binary(b, OP_DIV, ex_binary(b, OP_SUB, a, m), d));
  q = ex_where(b, ex_binary(b, OP_AND, infinite, finite), limit, q);
  q = ex_where(b, is_zero(b, q), ex_binary_num(b, OP_MUL, ex_binary(b, OP_DIV, a, d), 0), q);
  q = ex_where(b, is_zero(b, d), ex_binary(b, OP_DIV, a, d), q);
  return ex_cast(b, q, t);
}

/* ---- Powers ---- */

static const node *is_odd(builder *b, const node *x) {
  const node *one = ex_int(b, x, 1);
  return ex_binary(b, OP_EQ, ex_binary(b, OP_AND, x, one), one);
}

/** x^y of integers for y < 0: 1 and −1 have an inverse; of others the power is 0. */
static const node *inverse_power(builder *b, const node *x, const node *y) {
  const node *one = ex_int(b, x, 1), *minus = ex_int(b, x, -1);
  const node *sign = ex_where(b, is_odd(b, y), minus, one);
  const node *other = ex_where(b, ex_binary(b, OP_EQ, x, minus), sign, ex_int(b, x, 0));
  return ex_where(b, ex_binary(b, OP_EQ, x, one), one, other);
}

/** Powers of integers are by squaring, with a select for each bit of the exponent. */
static const node *pow_of(builder *b, const node *x, const node *y) {
  if (is_float(x)) return ex_binary(b, OP_POW, x, y);
  int bits = dtype_bits((dtype)y->dtype) - is_signed(y);
  const node *power = ex_int(b, x, 1), *square = x;
  for (int i = 0; i < bits; i++) {
    const node *bit = is_odd(b, ex_binary(b, OP_SHR, y, ex_int(b, y, i)));
    power = ex_where(b, bit, ex_binary(b, OP_MUL, power, square), power);
    square = ex_binary(b, OP_MUL, square, square);
  }
  return is_signed(y) ? ex_where(b, is_negative(b, y), inverse_power(b, x, y), power) : power;
}

/** The power of an integer with a constant exponent, without selects. */
static const node *power_constant(builder *b, const node *x, uint64_t y) {
  const node *power = ex_int(b, x, 1), *square = x;
  bool is_one = true;
  for (; y; y >>= 1) {
    if (y & 1) power = is_one ? square : ex_binary(b, OP_MUL, power, square);
    is_one = is_one && !(y & 1);
    if (y > 1) square = ex_binary(b, OP_MUL, square, square);
  }
  return power;
}

/* ---- atan2 ---- */

/** The arc tangent of the smaller of |y| and |x| over the larger (1 for two infinities, 0 for two
    zeros), reflected into the octant of y and x. */
static const node *atan2_of(builder *b, const node *y, const node *x) {
  const double pi = 3.14159265358979323846;
  const node *ay = ex_unary(b, OP_ABS, y), *ax = ex_unary(b, OP_ABS, x);
  const node *small = ex_binary(b, OP_MIN, ay, ax), *large = ex_binary(b, OP_MAX, ay, ax);
  const node *ratio = ex_binary(b, OP_DIV, small, large);
  ratio = ex_where(b, ex_binary_num(b, OP_EQ, small, INFINITY), ex_num(b, ax, 1), ratio);
  ratio = ex_where(b, is_zero(b, large), ex_num(b, ax, 0), ratio);
  const node *a = ex_unary(b, OP_ATAN, ratio);
  a = ex_where(b, ex_binary(b, OP_LT, ax, ay), ex_binary(b, OP_SUB, ex_num(b, a, pi / 2), a), a);
  a = ex_where(b, sign_bit(b, x), ex_binary(b, OP_SUB, ex_num(b, a, pi), a), a);
  return ex_where(b, sign_bit(b, y), ex_unary(b, OP_NEG, a), a);
}

/* ---- Logic ---- */

#define IS_LOGICAL(name, op)                                                 \
  static const node *name##_of(builder *b, const node *x, const node *y) {   \
    return ex_binary(b, op, ex_cast(b, x, DT_BOOL), ex_cast(b, y, DT_BOOL)); \
  }
IS_LOGICAL(logical_and, OP_AND)
IS_LOGICAL(logical_or, OP_OR)
IS_LOGICAL(logical_xor, OP_XOR)
#undef IS_LOGICAL

/* ---- Builders and public functions of TN_BINARY_LIST ---- */

typedef const node *(*binary_of)(builder *b, const node *x, const node *y);

static value binary(builder *b, rule r, binary_of of, value x, value y) {
  operands o = operands_promote(b, r, (value[]){x, y}, 2);
  const node *n = NULL;
  if (of == pow_of && y.node->op == OP_CONST && dtype_is_int(o.result.dtype)) {
    int64_t power = (int64_t)scalar_cast(DT_I64, (dtype)y.node->dtype, (uint64_t)node_int(y.node));
    if (power >= 0) n = power_constant(b, o.at[0], (uint64_t)power);
  }
  return operands_result(b, &o, n ? n : of(b, o.at[0], o.at[1]));
}

#define BINARY(name, rule, meaning)                  \
  value build_##name(builder *b, value x, value y) { \
    return binary(b, RULE_##rule, name##_of, x, y);  \
  }
TN_BINARY_LIST(BINARY)
#undef BINARY

typedef struct binary_call {
  value (*build)(builder *b, value x, value y);
} binary_call;

static value call_binary(builder *b, const value in[], size_t n, const void *options) {
  (void)n;
  return ((const binary_call *)options)->build(b, in[0], in[1]);
}

#define BINARY(name, rule, meaning)                                                                \
  tn_tensor *tn_##name(tn_tensor *a, tn_tensor *b) {                                               \
    return op_call(#name, (tn_tensor *[]){a, b}, 2, 0, call_binary, &(binary_call){build_##name}); \
  }
TN_BINARY_LIST(BINARY)
#undef BINARY

/* ---- Three operands ---- */

value build_where(builder *b, value condition, value x, value y) {
  value in[] = {x, y};
  operands o = {.result = promote_operands(b, in, 2)};
  dtype t = o.result.dtype;
  sizes s[] = {sizes_of(condition.node), sizes_of(x.node), sizes_of(y.node)};
  sizes all = sizes_broadcast(b, s, 3);
  const node *c = shape_broadcast(b, build_cast(b, condition, DT_BOOL).node, &all);
  if (!condition.weak && o.result.weak) { /* selected by a tensor, scalars are no constant */
    o.result = (promoted_type){values_promoted_dtype(b, in, 2), WEAK_NO};
    t = o.result.dtype;
  }
  x.node = shape_broadcast(b, type_convert(b, x, t), &all);
  y.node = shape_broadcast(b, type_convert(b, y, t), &all);
  return operands_result(b, &o, ex_where(b, c, x.node, y.node));
}

value build_clip(builder *b, value x, value low, value high) {
  value in[MOST_OPERANDS] = {x};
  size_t n = 1, low_at = 0, high_at = 0; /* 0: no such bound */
  if (low.node) in[low_at = n++] = low;
  if (high.node) in[high_at = n++] = high;
  operands o = operands_promote(b, RULE_NUMBER, in, n);
  const node *y = o.at[0];
  if (low_at) y = ex_binary(b, OP_MAX, y, o.at[low_at]);
  if (high_at) y = ex_binary(b, OP_MIN, y, o.at[high_at]);
  return operands_result(b, &o, y);
}

value build_lerp(builder *b, value x, value y, value weight) {
  operands o = operands_promote(b, RULE_FLOAT, (value[]){x, y, weight}, 3);
  const node *offset = ex_binary(b, OP_MUL, o.at[2], ex_binary(b, OP_SUB, o.at[1], o.at[0]));
  return operands_result(b, &o, ex_binary(b, OP_ADD, o.at[0], offset));
}

typedef struct ternary_call {
  value (*build)(builder *b, value x, value y, value z);
} ternary_call;

static value call_ternary(builder *b, const value in[], size_t n, const void *options) {
  (void)n;
  return ((const ternary_call *)options)->build(b, in[0], in[1], in[2]);
}

tn_tensor *tn_where(tn_tensor *condition, tn_tensor *a, tn_tensor *b) {
  return op_call("where", (tn_tensor *[]){condition, a, b}, 3, 0, call_ternary,
                 &(ternary_call){build_where});
}

enum { OPTIONAL_LOW = 2, OPTIONAL_HIGH = 4 }; /* bits of operands 1 and 2 */

tn_tensor *tn_clip(tn_tensor *x, tn_tensor *low, tn_tensor *high) {
  return op_call("clip", (tn_tensor *[]){x, low, high}, 3, OPTIONAL_LOW | OPTIONAL_HIGH,
                 call_ternary, &(ternary_call){build_clip});
}

tn_tensor *tn_lerp(tn_tensor *a, tn_tensor *b, tn_tensor *weight) {
  return op_call("lerp", (tn_tensor *[]){a, b, weight}, 3, 0, call_ternary,
                 &(ternary_call){build_lerp});
}
