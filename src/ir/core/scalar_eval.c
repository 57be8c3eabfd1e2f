/* Implements the reference evaluator of elementwise ops on one scalar: floats, then integers and
   booleans, then index arithmetic, then conversions. */
#include "ir/core/scalar_eval.h"

#include "ir/core/shape_inference.h"
#include "ir/core/tensor_rows.h"

#include <math.h>
#include <string.h>

/* Floats. */

typedef double (*function)(double);

/** Ops of one operand that are computed by the C library in double and rounded once to the type. */
static const function functions[OP_LIMIT] = {
    [OP_FLOOR] = floor, [OP_CEIL] = ceil,   [OP_TRUNC] = trunc, [OP_ROUND] = nearbyint,
    [OP_EXP] = exp,     [OP_EXP2] = exp2,   [OP_EXPM1] = expm1, [OP_LOG] = log,
    [OP_LOG2] = log2,   [OP_LOG1P] = log1p, [OP_SIN] = sin,     [OP_COS] = cos,
    [OP_TAN] = tan,     [OP_ASIN] = asin,   [OP_ACOS] = acos,   [OP_ATAN] = atan,
    [OP_SINH] = sinh,   [OP_COSH] = cosh,   [OP_TANH] = tanh,   [OP_ASINH] = asinh,
    [OP_ACOSH] = acosh, [OP_ATANH] = atanh, [OP_ERF] = erf,
};

static float in_single(op o, float a, float b, float c) {
  switch (o) {
  case OP_ADD: return a + b;
  case OP_SUB: return a - b;
  case OP_MUL: return a * b;
  case OP_DIV: return a / b;
  case OP_SQRT: return sqrtf(a);
  case OP_FMA: return fmaf(a, b, c);
  default: return 0;
  }
}

static double in_double(op o, double a, double b, double c) {
  switch (o) {
  case OP_ADD: return a + b;
  case OP_SUB: return a - b;
  case OP_MUL: return a * b;
  case OP_DIV: return a / b;
  case OP_SQRT: return sqrt(a);
  case OP_FMA: return fma(a, b, c);
  default: return 0;
  }
}

/** a · b + c rounded to odd, for operands whose product is exact in double; rounding the result
    again equals rounding once (Boldo and Melquiond 2008). */
static double fma_to_odd(double a, double b, double c) {
  double p = a * b, s = p + c, t = s - p, rest = (p - (s - t)) + (c - t);
  uint64_t bits = scalar_from_double(DT_F64, s);
  if (fabs(rest) > 0 && !(bits & 1)) bits += (rest > 0) == (s > 0) ? 1 : -1;
  return scalar_to_double(DT_F64, bits);
}

static uint64_t sign_bit(dtype t) { return UINT64_C(1) << (dtype_bits(t) - 1); }

static uint64_t eval_float(op o, dtype t, const uint64_t args[]) {
  double v[3] = {0};
  for (unsigned i = 0; i < op_facts_of(o)->most && i < 3; i++) v[i] = scalar_to_double(t, args[i]);
  if (functions[o]) return scalar_from_double(t, functions[o](v[0]));
  switch (o) {
  case OP_NEG: return args[0] ^ sign_bit(t);
  case OP_ABS: return args[0] & ~sign_bit(t);
  case OP_MAX: return args[v[0] > v[1] || isnan(v[0]) ? 0 : 1];
  case OP_MIN: return args[v[0] < v[1] || isnan(v[0]) ? 0 : 1];
  case OP_POW: return scalar_from_double(t, pow(v[0], v[1]));
  default: break;
  }
  if (t == DT_F64) return scalar_from_double(t, in_double(o, v[0], v[1], v[2]));
  if (o == OP_FMA && t != DT_F32) return scalar_from_double(t, fma_to_odd(v[0], v[1], v[2]));
  return scalar_from_double(t, in_single(o, (float)v[0], (float)v[1], (float)v[2]));
}

/* Integers and booleans. */

static uint64_t wrap(dtype t, uint64_t bits) { return scalar_cast(t, DT_I64, bits); }

static bool is_negative(dtype t, uint64_t bits) { return dtype_is_signed(t) && (int64_t)bits < 0; }

/** FLOORDIV and MOD: quotient and remainder rounding towards −∞. */
static uint64_t divide_floor(op o, dtype t, uint64_t a, uint64_t b) {
  if (!b) return 0;
  if (!dtype_is_signed(t)) return o == OP_MOD ? a % b : a / b;
  int64_t x = (int64_t)a, y = (int64_t)b;
  return wrap(t, (uint64_t)(o == OP_MOD ? floor_mod(x, y) : floor_div(x, y)));
}

/** CDIV and CMOD: quotient and remainder rounding towards 0. */
static uint64_t divide_c(op o, dtype t, uint64_t a, uint64_t b) {
  if (!b) return 0;
  if (!dtype_is_signed(t)) return o == OP_CMOD ? a % b : a / b;
  int64_t x = (int64_t)a, y = (int64_t)b;
  if (y == -1) return o == OP_CMOD ? 0 : wrap(t, 0 - a);
  return wrap(t, (uint64_t)(o == OP_CMOD ? x % y : x / y));
}

static uint64_t shift(op o, dtype t, uint64_t a, uint64_t count) {
  bool negative = is_negative(t, a);
  if (count >= (uint64_t)dtype_bits(t)) return o == OP_SHR && negative ? UINT64_MAX : 0;
  if (o == OP_SHL) return wrap(t, a << count);
  return negative ? ~(~a >> count) : a >> count;
}

static bool less(dtype t, uint64_t a, uint64_t b) {
  if (dtype_is_float(t)) return scalar_to_double(t, a) < scalar_to_double(t, b);
  return dtype_is_signed(t) || t == DT_INDEX ? (int64_t)a < (int64_t)b : a < b;
}

static bool equal(dtype t, uint64_t a, uint64_t b) {
  return dtype_is_float(t) ? scalar_to_double(t, a) == scalar_to_double(t, b) : a == b;
}

static bool compare(op o, dtype t, uint64_t a, uint64_t b) {
  switch (o) {
  case OP_LT: return less(t, a, b);
  case OP_LE: return less(t, a, b) || equal(t, a, b);
  case OP_EQ: return equal(t, a, b);
  default: return !equal(t, a, b);
  }
}

static uint64_t eval_int(op o, dtype t, const uint64_t args[]) {
  uint64_t a = args[0], b = op_facts_of(o)->most > 1 ? args[1] : 0;
  switch (o) {
  case OP_NEG: return wrap(t, 0 - a);
  case OP_ABS: return is_negative(t, a) ? wrap(t, 0 - a) : a;
  case OP_NOT: return t == DT_BOOL ? !a : wrap(t, ~a);
  case OP_ADD: return wrap(t, a + b);
  case OP_SUB: return wrap(t, a - b);
  case OP_MUL: return wrap(t, a * b);
  case OP_FLOORDIV:
  case OP_MOD: return divide_floor(o, t, a, b);
  case OP_CDIV:
  case OP_CMOD: return divide_c(o, t, a, b);
  case OP_MAX: return less(t, b, a) ? a : b;
  case OP_MIN: return less(t, a, b) ? a : b;
  case OP_AND: return a & b;
  case OP_OR: return a | b;
  case OP_XOR: return a ^ b;
  case OP_SHL:
  case OP_SHR: return shift(o, t, a, b);
  default: return 0;
  }
}

/* Indices. */

static uint64_t eval_index(op o, const uint64_t args[], bool *overflow) {
  int64_t a = (int64_t)args[0], b = (int64_t)args[1], r = 0;
  bool over = false;
  switch (o) {
  case OP_ADD: over = __builtin_add_overflow(a, b, &r); break;
  case OP_SUB: over = __builtin_sub_overflow(a, b, &r); break;
  case OP_MUL: over = __builtin_mul_overflow(a, b, &r); break;
  case OP_FLOORDIV:
    over = a == INT64_MIN && b == -1;
    r = b ? floor_div(a, b) : 0;
    break;
  case OP_MOD: r = b ? floor_mod(a, b) : 0; break;
  case OP_MAX: r = a > b ? a : b; break;
  case OP_MIN: r = a < b ? a : b; break;
  default: break;
  }
  if (over) *overflow = true;
  return over ? 0 : (uint64_t)r;
}

uint64_t scalar_eval_affine(const int64_t k[], size_t n, const uint64_t args[], bool *overflow) {
  int64_t sum = k[0];
  for (size_t i = 0; i < n; i++) {
    int64_t term;
    if (__builtin_mul_overflow(k[i + 1], (int64_t)args[i], &term) ||
        __builtin_add_overflow(sum, term, &sum)) {
      *overflow = true;
      return 0;
    }
  }
  return (uint64_t)sum;
}

static uint64_t cast(dtype to, dtype from, uint64_t bits, bool *overflow) {
  if (to == DT_INDEX && from == DT_U64 && bits > INT64_MAX) {
    *overflow = true;
    return 0;
  }
  return scalar_cast(to, from, bits);
}

static uint64_t bitcast(dtype to, dtype from, uint64_t bits) {
  unsigned char at[8] = {0};
  scalar_store(from, at, bits);
  return scalar_load(to, at);
}

uint64_t scalar_eval(op o, dtype operand, dtype result, const uint64_t args[], bool *overflow) {
  switch (o) {
  case OP_WHERE: return args[args[0] ? 1 : 2];
  case OP_CAST: return cast(result, operand, args[0], overflow);
  case OP_BITCAST: return bitcast(result, operand, args[0]);
  case OP_LT:
  case OP_LE:
  case OP_EQ:
  case OP_NE: return compare(o, operand, args[0], args[1]);
  default: break;
  }
  if (!op_takes(o, operand) || !op_is_elementwise(o)) return 0;
  const tensor_row *row = tensor_row_of(o);
  if (row) return tensor_row_eval(row, args[0], args[1], args[2]);
  switch (dtype_facts_of(operand)->cls) {
  case DC_FLOAT: return eval_float(o, operand, args);
  case DC_INDEX: return op_facts_of(o)->most == 2 ? eval_index(o, args, overflow) : 0;
  default: return eval_int(o, operand, args);
  }
}
