/* Tests the scalar evaluator, which defines the meaning of elementwise ops: every op of the table
   on every type it takes, with edge values, overflow and rounding. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "ir/core/scalar_eval.h"
#include "ir/core/tensor_rows.h"

#include <math.h>
#include <string.h>

static uint64_t eval1(op o, dtype t, uint64_t a) {
  bool overflow = false;
  uint64_t args[3] = {a};
  return scalar_eval(o, t, t, args, &overflow);
}

static uint64_t eval2(op o, dtype t, uint64_t a, uint64_t b) {
  bool overflow = false;
  uint64_t args[3] = {a, b};
  return scalar_eval(o, t, op_facts_of(o)->type == TYPE_COMPARE ? DT_BOOL : t, args, &overflow);
}

static double real1(op o, dtype t, double a) {
  return scalar_to_double(t, eval1(o, t, scalar_from_double(t, a)));
}

static double real2(op o, dtype t, double a, double b) {
  return scalar_to_double(t, eval2(o, t, scalar_from_double(t, a), scalar_from_double(t, b)));
}

static bool same(double a, double b) { return (isnan(a) && isnan(b)) || !memcmp(&a, &b, sizeof a); }

#define assert_same(a, b)                                                      \
  do {                                                                         \
    double got_ = (a), want_ = (b);                                            \
    if (!same(got_, want_)) fail_msg("%s: %.17g, not %.17g", #a, got_, want_); \
  } while (0)

/* Every op by the table: results are defined, canonical and deterministic. */

enum { MOST_EDGES = 32 };

static size_t edges(dtype t, uint64_t into[]) {
  static const double numbers[] = {
      0,    -0.0, 1,      -1,    0.5, 1.5,  -2.5,  3.25,  1e-45, 6e-8,     -1e-41,    65504, 1e30,
      -7e4, 3e38, 5e-324, 1e308, 710, -745, 127.9, 32768, 1e19,  INFINITY, -INFINITY, NAN};
  static const uint64_t patterns[] = {0,
                                      1,
                                      2,
                                      7,
                                      8,
                                      31,
                                      32,
                                      63,
                                      64,
                                      0x7f,
                                      0x80,
                                      0xff,
                                      0x7fff,
                                      0x8000,
                                      0xffff,
                                      0x7fffffff,
                                      0x80000000,
                                      0xffffffff,
                                      0x7fffffffffffffff,
                                      0x8000000000000000,
                                      0xfffffffffffffffe,
                                      0xffffffffffffffff};
  size_t n = 0;
  if (dtype_is_float(t))
    for (; n < sizeof numbers / sizeof *numbers; n++) into[n] = scalar_from_double(t, numbers[n]);
  else if (t == DT_BOOL)
    for (; n < 2; n++) into[n] = n;
  else
    for (; n < sizeof patterns / sizeof *patterns; n++) into[n] = scalar_load(t, &patterns[n]);
  return n;
}

static bool is_canonical(dtype t, uint64_t bits) {
  unsigned char at[8];
  scalar_store(t, at, bits);
  return scalar_load(t, at) == bits;
}

static bool overflows_index(dtype operand, dtype result) {
  return operand == DT_INDEX || result == DT_INDEX;
}

static void check_once(op o, dtype operand, dtype result, const uint64_t args[]) {
  bool overflow = false, again = false;
  uint64_t r = scalar_eval(o, operand, result, args, &overflow);
  if (!is_canonical(result, r) || r != scalar_eval(o, operand, result, args, &again) ||
      overflow != again || (overflow && (r || !overflows_index(operand, result))))
    fail_msg("%s on %s: %llx, %llx, %llx gives %llx", op_name(o), dtype_name(operand),
             (unsigned long long)args[0], (unsigned long long)args[1], (unsigned long long)args[2],
             (unsigned long long)r);
}

static void check_result(op o, dtype operand, dtype result) {
  uint64_t values[MOST_EDGES];
  size_t n = edges(operand, values), arity = op_facts_of(o)->most;
  for (size_t i = 0; i < n; i++)
    for (size_t j = 0; j < (arity > 1 ? n : 1); j++)
      for (size_t k = 0; k < (arity > 2 ? n : 1); k++) {
        uint64_t args[3] = {values[i], values[j], values[k]};
        if (o == OP_WHERE) args[0] = i & 1;
        check_once(o, operand, result, args);
      }
}

static bool may_give(op o, dtype operand, dtype result) {
  if (op_facts_of(o)->type == TYPE_COMPARE) return result == DT_BOOL;
  if (o == OP_BITCAST) return dtype_bytes(result) == dtype_bytes(operand) && op_takes(o, result);
  if (o == OP_CAST) return op_takes(o, result);
  return result == operand;
}

static void test_every_op_is_total(void **state) {
  (void)state;
  size_t pairs = 0;
  for (int o = 0; o < OP_LIMIT; o++) {
    bool lanes = o == OP_VECTORIZE || o == OP_EXTRACT || o == OP_SPLAT;
    if (!op_is_elementwise(o) || o == OP_AFFINE || lanes || tensor_tile_of((op)o)) continue;
    for (int operand = 0; operand < DT_LIMIT; operand++)
      for (int result = 0; result < DT_LIMIT; result++)
        if (op_takes(o, operand) && may_give(o, operand, result)) {
          check_result(o, operand, result);
          pairs++;
        }
  }
  assert_true(pairs > 400);
}

/* True if an op is implemented for the types that it takes. */
static void test_every_op_is_there(void **state) {
  (void)state;
  for (int o = 0; o < OP_LIMIT; o++) {
    bool lanes = o == OP_VECTORIZE || o == OP_EXTRACT || o == OP_SPLAT;
    if (!op_is_elementwise(o) || o == OP_AFFINE || lanes || tensor_tile_of((op)o)) continue;
    for (int t = 0; t < DT_LIMIT; t++) {
      if (!op_takes(o, t)) continue;
      uint64_t values[MOST_EDGES];
      bool some = false;
      size_t n = edges(t, values);
      for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < n; j++) {
          uint64_t args[3] = {values[i], values[j], values[j]};
          bool overflow = false;
          if (o == OP_WHERE) args[0] = 1;
          some |= scalar_eval(o, t, may_give(o, t, t) ? t : DT_BOOL, args, &overflow) != 0;
        }
      if (!some) fail_msg("%s does nothing on %s", op_name(o), dtype_name(t));
    }
  }
}

/* 8-bit integers: all pairs, against arithmetic in a wide type. */

static long wrap8(dtype t, long v) {
  v &= 0xff;
  return t == DT_I8 && v > 127 ? v - 256 : v;
}

static long floored(long a, long b) { return b ? (long)floor((double)a / (double)b) : 0; }
static long truncated(long a, long b) { return b ? (long)trunc((double)a / (double)b) : 0; }

static long shifted(op o, dtype t, long a, long count) {
  bool in = count >= 0 && count < 8;
  if (o == OP_SHL) return in ? wrap8(t, a * (1L << count)) : 0;
  return in ? (long)floor((double)a / (double)(1L << count)) : a < 0 ? -1 : 0;
}

static long integer2(op o, dtype t, long a, long b) {
  switch (o) {
  case OP_ADD: return wrap8(t, a + b);
  case OP_SUB: return wrap8(t, a - b);
  case OP_MUL: return wrap8(t, a * b);
  case OP_FLOORDIV: return wrap8(t, floored(a, b));
  case OP_MOD: return b ? wrap8(t, a - b * floored(a, b)) : 0;
  case OP_CDIV: return wrap8(t, truncated(a, b));
  case OP_CMOD: return b ? wrap8(t, a - b * truncated(a, b)) : 0;
  case OP_MAX: return a > b ? a : b;
  case OP_MIN: return a < b ? a : b;
  case OP_AND: return wrap8(t, a & b);
  case OP_OR: return wrap8(t, a | b);
  case OP_XOR: return wrap8(t, a ^ b);
  case OP_LT: return a < b;
  case OP_LE: return a <= b;
  case OP_EQ: return a == b;
  case OP_NE: return a != b;
  default: return shifted(o, t, a, b);
  }
}

static void test_integers(void **state) {
  (void)state;
  static const op ops[] = {OP_ADD,  OP_SUB, OP_MUL, OP_FLOORDIV, OP_MOD, OP_CDIV,
                           OP_CMOD, OP_MAX, OP_MIN, OP_AND,      OP_OR,  OP_XOR,
                           OP_SHL,  OP_SHR, OP_LT,  OP_LE,       OP_EQ,  OP_NE};
  static const dtype types[] = {DT_I8, DT_U8};
  for (size_t k = 0; k < 2; k++)
    for (long a = dtype_min(types[k]); a <= dtype_max(types[k]); a++) {
      assert_int_equal((long)eval1(OP_NEG, types[k], (uint64_t)a), wrap8(types[k], -a));
      assert_int_equal((long)eval1(OP_ABS, types[k], (uint64_t)a), wrap8(types[k], a < 0 ? -a : a));
      assert_int_equal((long)eval1(OP_NOT, types[k], (uint64_t)a), wrap8(types[k], ~a));
      for (long b = dtype_min(types[k]); b <= dtype_max(types[k]); b++)
        for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) {
          long got = (long)eval2(ops[i], types[k], (uint64_t)a, (uint64_t)b);
          long want = integer2(ops[i], types[k], a, b);
          if (got != want)
            fail_msg("%s on %s: %ld, %ld gives %ld, not %ld", op_name(ops[i]), dtype_name(types[k]),
                     a, b, got, want);
        }
    }
}

static void test_wide_integers(void **state) {
  (void)state;
  uint64_t least = (uint64_t)INT64_MIN, minus = UINT64_MAX;
  assert_true(eval2(OP_FLOORDIV, DT_I64, least, minus) == least);
  assert_true(eval2(OP_CDIV, DT_I64, least, minus) == least);
  assert_true(eval2(OP_MOD, DT_I64, least, minus) == 0 &&
              eval2(OP_CMOD, DT_I64, least, minus) == 0);
  assert_true(eval1(OP_NEG, DT_I64, least) == least && eval1(OP_ABS, DT_I64, least) == least);
  assert_true(eval2(OP_FLOORDIV, DT_I64, (uint64_t)-7, 2) == (uint64_t)-4);
  assert_true(eval2(OP_FLOORDIV, DT_U64, minus, 2) == INT64_MAX);
  assert_true(eval2(OP_LT, DT_U64, minus, 1) == 0 && eval2(OP_LT, DT_I64, minus, 1) == 1);
  assert_true(eval2(OP_MAX, DT_U64, minus, 1) == minus && eval2(OP_MAX, DT_I64, minus, 1) == 1);
  assert_true(eval2(OP_SHL, DT_U64, 3, 63) == least && eval2(OP_SHL, DT_U64, 3, 64) == 0);
  assert_true(eval2(OP_SHR, DT_I64, least, 63) == minus &&
              eval2(OP_SHR, DT_I64, least, 99) == minus);
  assert_true(eval2(OP_SHR, DT_U64, least, 63) == 1);
  assert_true(eval2(OP_ADD, DT_I32, INT32_MAX, 1) == (uint64_t)INT32_MIN);
  assert_true(eval2(OP_MUL, DT_U32, UINT32_MAX, UINT32_MAX) == 1);
}

static void test_booleans(void **state) {
  (void)state;
  for (uint64_t a = 0; a < 2; a++) {
    assert_int_equal(eval1(OP_NOT, DT_BOOL, a), !a);
    for (uint64_t b = 0; b < 2; b++) {
      assert_int_equal(eval2(OP_AND, DT_BOOL, a, b), a && b);
      assert_int_equal(eval2(OP_MIN, DT_BOOL, a, b), a && b);
      assert_int_equal(eval2(OP_OR, DT_BOOL, a, b), a || b);
      assert_int_equal(eval2(OP_MAX, DT_BOOL, a, b), a || b);
      assert_int_equal(eval2(OP_XOR, DT_BOOL, a, b), a != b);
      assert_int_equal(eval2(OP_LT, DT_BOOL, a, b), a < b);
    }
  }
}

/* Floats. */

static const dtype floats[] = {DT_F16, DT_BF16, DT_F32, DT_F64};

static void test_float_edges(void **state) {
  (void)state;
  for (size_t i = 0; i < 4; i++) {
    dtype t = floats[i];
    assert_same(real1(OP_NEG, t, 0), -0.0);
    assert_same(real1(OP_ABS, t, -INFINITY), INFINITY);
    assert_same(real2(OP_ADD, t, -0.0, 0), 0);
    assert_same(real2(OP_SUB, t, INFINITY, INFINITY), NAN);
    assert_same(real2(OP_DIV, t, -1, 0), -INFINITY);
    assert_same(real2(OP_DIV, t, 0, 0), NAN);
    assert_same(real2(OP_MAX, t, NAN, 1), NAN);
    assert_same(real2(OP_MAX, t, 1, NAN), NAN);
    assert_same(real2(OP_MIN, t, NAN, 1), NAN);
    assert_same(real2(OP_MIN, t, 1, NAN), NAN);
    assert_same(real2(OP_MAX, t, -0.0, 0), 0);
    assert_same(real2(OP_MAX, t, 0, -0.0), -0.0);
    assert_same(real1(OP_ROUND, t, 2.5), 2);
    assert_same(real1(OP_ROUND, t, -3.5), -4);
    assert_same(real1(OP_ROUND, t, -0.5), -0.0);
    assert_same(real1(OP_FLOOR, t, -1.5), -2);
    assert_same(real1(OP_CEIL, t, -0.5), -0.0);
    assert_same(real1(OP_TRUNC, t, -1.75), -1);
    assert_same(real1(OP_SQRT, t, -1), NAN);
    assert_same(real1(OP_SQRT, t, -0.0), -0.0);
    assert_same(real1(OP_LOG, t, 0), -INFINITY);
    assert_same(real1(OP_EXP, t, -INFINITY), 0);
    assert_same(real1(OP_EXP2, t, 3), 8);
    assert_same(real1(OP_TANH, t, INFINITY), 1);
    assert_same(real1(OP_ERF, t, -INFINITY), -1);
    assert_same(real2(OP_POW, t, NAN, 0), 1);
    assert_same(real2(OP_POW, t, -8, 3), -512);
  }
}

static void test_float_comparisons(void **state) {
  (void)state;
  for (size_t i = 0; i < 4; i++) {
    dtype t = floats[i];
    uint64_t nan = scalar_from_double(t, NAN), one = scalar_from_double(t, 1);
    uint64_t zero = scalar_from_double(t, 0), minus = scalar_from_double(t, -0.0);
    static const op ordered[] = {OP_LT, OP_LE, OP_EQ};
    for (size_t k = 0; k < 3; k++) {
      assert_false(eval2(ordered[k], t, nan, one));
      assert_false(eval2(ordered[k], t, one, nan));
      assert_false(eval2(ordered[k], t, nan, nan));
    }
    assert_true(eval2(OP_NE, t, nan, nan) && eval2(OP_NE, t, nan, one));
    assert_true(eval2(OP_EQ, t, zero, minus) && !eval2(OP_LT, t, minus, zero));
    assert_true(eval2(OP_LE, t, minus, zero) && eval2(OP_LT, t, zero, one));
  }
}

static void test_f32_is_not_double(void **state) {
  (void)state;
  volatile float big = 16777216, one = 1, third = 1.0f / 3;
  assert_same(real2(OP_ADD, DT_F32, big, one), (double)(float)(big + one));
  assert_same(real2(OP_ADD, DT_F32, 16777216, 1), 16777216);
  assert_same(real2(OP_MUL, DT_F32, third, third), (double)(float)(third * third));
  assert_same(real2(OP_MUL, DT_F32, 3e38, 10), INFINITY);
}

static double fma_of(dtype t, double a, double b, double c) {
  bool overflow = false;
  uint64_t args[] = {scalar_from_double(t, a), scalar_from_double(t, b), scalar_from_double(t, c)};
  return scalar_to_double(t, scalar_eval(OP_FMA, t, t, args, &overflow));
}

static void test_fma_rounds_once(void **state) {
  (void)state;
  double e = 0x1p-13, f = 0x1p-30;
  assert_same(fma_of(DT_F32, 1 + e, 1 - e, -1), -0x1p-26);
  assert_same(fma_of(DT_F32, 0x1p-24 + 0x1p-44, 1 - 0x1p-20, 1 + 0x1p-23), 1 + 0x1p-23);
  assert_same(fma_of(DT_F64, 1 + f, 1 - f, -1), -0x1p-60);
  assert_same(fma_of(DT_F16, 1 + 0x1p-10, 1 - 0x1p-10, -1), -0x1p-20);
  assert_same(fma_of(DT_BF16, 1 + 0x1p-7, 1 - 0x1p-7, -1), -0x1p-14);
  /* a tie in the type, broken by digits that f32 cannot hold */
  assert_same(fma_of(DT_BF16, 0x1.2p+0, 0x1.dp-1, 0x1p-40), 0x1.06p+0);
  assert_same(fma_of(DT_BF16, 0x1.2p+0, 0x1.dp-1, -0x1p-100), 0x1.04p+0);
  assert_same(fma_of(DT_F16, 0x1.08p+0, 0x1.f8p-1, -0x1p-24), 0x1.03cp+0);
}

/* For f16, + − × ÷ √ in f32 with one more rounding are correctly rounded. */
static void test_f16_arithmetic(void **state) {
  (void)state;
  for (uint32_t a = 0; a < 65536; a += 13) {
    double x = scalar_to_double(DT_F16, a);
    if (x >= 0)
      assert_same(real1(OP_SQRT, DT_F16, x),
                  scalar_to_double(DT_F16, scalar_from_double(DT_F16, sqrt(x))));
    for (uint32_t b = 1; b < 65536; b += 257) {
      double y = scalar_to_double(DT_F16, b);
      double sum = scalar_to_double(DT_F16, eval2(OP_ADD, DT_F16, a, b));
      double product = scalar_to_double(DT_F16, eval2(OP_MUL, DT_F16, a, b));
      assert_same(sum, scalar_to_double(DT_F16, scalar_from_double(DT_F16, x + y)));
      assert_same(product, scalar_to_double(DT_F16, scalar_from_double(DT_F16, x * y)));
    }
  }
}

static void test_functions_round_once(void **state) {
  (void)state;
  for (double x = -4; x < 4; x += 0.37) {
    float f = (float)x;
    assert_same(real1(OP_EXP, DT_F32, x), (double)(float)exp(f));
    assert_same(real1(OP_SIN, DT_F32, x), (double)(float)sin(f));
    assert_same(real1(OP_ERF, DT_F32, x), (double)(float)erf(f));
    assert_same(real1(OP_TANH, DT_F64, x), tanh(x));
    assert_same(real1(OP_EXPM1, DT_F64, x), expm1(x));
  }
  static const struct {
    op o;
    double x, y;
  } known[] = {{OP_EXP, 1, 2.718281828459045},     {OP_EXP2, 0.5, 1.4142135623730951},
               {OP_EXPM1, 1, 1.718281828459045},   {OP_LOG, 10, 2.302585092994046},
               {OP_LOG2, 10, 3.321928094887362},   {OP_LOG1P, 1, 0.6931471805599453},
               {OP_SIN, 1, 0.8414709848078965},    {OP_COS, 1, 0.5403023058681398},
               {OP_TAN, 1, 1.5574077246549023},    {OP_ASIN, 0.5, 0.5235987755982989},
               {OP_ACOS, 0.5, 1.0471975511965979}, {OP_ATAN, 1, 0.7853981633974483},
               {OP_SINH, 1, 1.1752011936438014},   {OP_COSH, 1, 1.543080634815244},
               {OP_TANH, 1, 0.7615941559557649},   {OP_ASINH, 1, 0.881373587019543},
               {OP_ACOSH, 2, 1.3169578969248166},  {OP_ATANH, 0.5, 0.5493061443340549},
               {OP_ERF, 1, 0.8427007929497149},    {OP_SQRT, 2, 1.4142135623730951}};
  for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
    double got = real1(known[i].o, DT_F64, known[i].x);
    if (fabs(got - known[i].y) > 4e-16 * fabs(known[i].y))
      fail_msg("%s(%g) = %.17g", op_name(known[i].o), known[i].x, got);
  }
}

/* Indices and casts. */

static bool index_overflows(op o, int64_t a, int64_t b) {
  bool overflow = false;
  uint64_t args[] = {(uint64_t)a, (uint64_t)b};
  scalar_eval(o, DT_INDEX, DT_INDEX, args, &overflow);
  return overflow;
}

static void test_indices(void **state) {
  (void)state;
  assert_true(eval2(OP_FLOORDIV, DT_INDEX, (uint64_t)-7, 2) == (uint64_t)-4);
  assert_true(eval2(OP_MOD, DT_INDEX, (uint64_t)-7, 2) == 1);
  assert_true(eval2(OP_FLOORDIV, DT_INDEX, 7, 0) == 0 && eval2(OP_MOD, DT_INDEX, 7, 0) == 0);
  assert_true(eval2(OP_MIN, DT_INDEX, (uint64_t)-7, 2) == (uint64_t)-7);
  assert_true(eval2(OP_MAX, DT_INDEX, (uint64_t)-7, 2) == 2);
  assert_true(eval2(OP_LT, DT_INDEX, (uint64_t)-7, 2) == 1);
  assert_false(index_overflows(OP_ADD, INT64_MAX, 0));
  assert_true(index_overflows(OP_ADD, INT64_MAX, 1));
  assert_true(index_overflows(OP_SUB, INT64_MIN, 1));
  assert_true(index_overflows(OP_MUL, INT64_C(1) << 32, INT64_C(1) << 31));
  assert_false(index_overflows(OP_MUL, INT64_C(1) << 32, -(INT64_C(1) << 31)));
  assert_true(index_overflows(OP_FLOORDIV, INT64_MIN, -1));
  assert_false(index_overflows(OP_MOD, INT64_MIN, -1));
}

static void test_affine(void **state) {
  (void)state;
  bool overflow = false;
  uint64_t args[] = {5, (uint64_t)-3};
  assert_true(scalar_eval_affine((int64_t[]){7, 2, 10}, 2, args, &overflow) == (uint64_t)-13);
  assert_true(scalar_eval_affine((int64_t[]){7}, 0, NULL, &overflow) == 7);
  assert_false(overflow);
  scalar_eval_affine((int64_t[]){INT64_MAX, 1, 0}, 2, args, &overflow);
  assert_true(overflow);
  overflow = false;
  scalar_eval_affine((int64_t[]){0, INT64_MAX, 0}, 2, args, &overflow);
  assert_true(overflow);
}

static uint64_t convert(op o, dtype from, dtype to, uint64_t bits, bool *overflow) {
  *overflow = false;
  return scalar_eval(o, from, to, &bits, overflow);
}

static void test_casts(void **state) {
  (void)state;
  bool overflow;
  assert_true(convert(OP_CAST, DT_I8, DT_INDEX, (uint64_t)-5, &overflow) == (uint64_t)-5);
  assert_true(convert(OP_CAST, DT_INDEX, DT_U8, 300, &overflow) == 44);
  assert_true(convert(OP_CAST, DT_F32, DT_BOOL, 0x80000000, &overflow) == 0);
  assert_false(overflow);
  convert(OP_CAST, DT_U64, DT_INDEX, UINT64_MAX, &overflow);
  assert_true(overflow);
  assert_true(convert(OP_BITCAST, DT_F32, DT_I32, 0xc0000000, &overflow) == 0xffffffffc0000000);
  assert_true(convert(OP_BITCAST, DT_I32, DT_F32, 0xffffffffc0000000, &overflow) == 0xc0000000);
  assert_true(convert(OP_BITCAST, DT_I64, DT_F64, UINT64_MAX, &overflow) == UINT64_MAX);
  assert_true(convert(OP_BITCAST, DT_U16, DT_F16, 0x3c00, &overflow) == 0x3c00);
}

static void test_where(void **state) {
  (void)state;
  bool overflow = false;
  uint64_t args[] = {1, 10, 20};
  assert_int_equal(scalar_eval(OP_WHERE, DT_I32, DT_I32, args, &overflow), 10);
  args[0] = 0;
  assert_int_equal(scalar_eval(OP_WHERE, DT_I32, DT_I32, args, &overflow), 20);
  assert_int_equal(scalar_typed_operand(OP_WHERE), 1);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_every_op_is_total),
      cmocka_unit_test(test_every_op_is_there),
      cmocka_unit_test(test_integers),
      cmocka_unit_test(test_wide_integers),
      cmocka_unit_test(test_booleans),
      cmocka_unit_test(test_float_edges),
      cmocka_unit_test(test_float_comparisons),
      cmocka_unit_test(test_f32_is_not_double),
      cmocka_unit_test(test_fma_rounds_once),
      cmocka_unit_test(test_f16_arithmetic),
      cmocka_unit_test(test_functions_round_once),
      cmocka_unit_test(test_indices),
      cmocka_unit_test(test_affine),
      cmocka_unit_test(test_casts),
      cmocka_unit_test(test_where),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
