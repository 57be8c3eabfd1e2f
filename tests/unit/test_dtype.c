/* Tests data types: the table's facts and limits, and conversions between them against formulas
   that share nothing with the code. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "ir/core/dtype.h"

#include <math.h>
#include <string.h>

static const dtype all_types[] = {DT_F32,  DT_U8,  DT_I8,  DT_U16, DT_I16, DT_I32,  DT_I64,
                                  DT_BOOL, DT_F16, DT_F64, DT_U32, DT_U64, DT_BF16, DT_INDEX};
enum { N_TYPES = sizeof all_types / sizeof *all_types };
enum { N_STORED = 10 }; /* types of dtypes.def that are stored only */

/* Returns the value of a 16-bit float from its fields. */
static double value16(uint16_t h, int exponent_bits, int mantissa_bits) {
  int bias = (1 << (exponent_bits - 1)) - 1, top = (1 << exponent_bits) - 1;
  int e = (h & 0x7fff) >> mantissa_bits, m = h & ((1 << mantissa_bits) - 1);
  double v = e == top ? (m ? NAN : INFINITY)
             : e      ? ldexp(1 + ldexp(m, -mantissa_bits), e - bias)
                      : ldexp(m, 1 - bias - mantissa_bits);
  return h & 0x8000 ? -v : v;
}

/* Returns the 16-bit float nearest to a value, ties to even, found by search. */
static uint16_t nearest16(long double v, int exponent_bits, int mantissa_bits) {
  uint16_t infinity = (uint16_t)(((1 << exponent_bits) - 1) << mantissa_bits);
  uint16_t sign = signbit(v) ? 0x8000 : 0;
  long double a = fabsl(v), limit = ldexpl(1, 1 << (exponent_bits - 1));
  uint16_t low = 0, high = infinity; /* value(low) ≤ a < value(high), infinity standing for 2^… */
  if (a >= limit) return sign | infinity;
  while (high - low > 1) {
    uint16_t mid = (uint16_t)((low + high) / 2);
    if (value16(mid, exponent_bits, mantissa_bits) <= a)
      low = mid;
    else
      high = mid;
  }
  long double below = value16(low, exponent_bits, mantissa_bits);
  long double above = high == infinity ? limit : value16(high, exponent_bits, mantissa_bits);
  long double down = a - below, up = above - a;
  return sign | (down < up || (down == up && !(low & 1)) ? low : high);
}

static uint64_t bits_of(double v) {
  uint64_t u;
  memcpy(&u, &v, 8);
  return u;
}

static uint32_t bits_of_float(float v) {
  uint32_t u;
  memcpy(&u, &v, 4);
  return u;
}

typedef struct format16 {
  dtype type;
  int exponent_bits, mantissa_bits;
  float (*to)(uint16_t);
  uint16_t (*from)(float);
} format16;

static const format16 formats[] = {{DT_F16, 5, 10, half_to_float, half_from_float},
                                   {DT_BF16, 8, 7, bfloat_to_float, bfloat_from_float}};

/* Converts every 16-bit pattern to f32 and f64, and back. */
static void test_16_bits_widen(void **state) {
  (void)state;
  for (size_t k = 0; k < 2; k++)
    for (uint32_t h = 0; h < 65536; h++) {
      const format16 *f = &formats[k];
      double want = value16((uint16_t)h, f->exponent_bits, f->mantissa_bits);
      float got = f->to((uint16_t)h);
      double wide = scalar_to_double(f->type, h);
      if (isnan(want)) {
        assert_true(isnan(got) && isnan(wide));
        uint16_t back = f->from(got);
        assert_true(isnan(value16(back, f->exponent_bits, f->mantissa_bits)));
        assert_int_equal(back & 0x8000, h & 0x8000);
        continue;
      }
      assert_true(bits_of(want) == bits_of(got) && bits_of(want) == bits_of(wide));
      assert_int_equal(f->from(got), h);
      assert_int_equal(scalar_from_double(f->type, wide), h);
    }
}

static void check_nearest(const format16 *f, double v) {
  uint16_t want = nearest16(v, f->exponent_bits, f->mantissa_bits);
  assert_int_equal(scalar_from_double(f->type, v), want);
  if ((double)(float)v == v) assert_int_equal(f->from((float)v), want);
}

/* Narrows each midpoint between two neighbours, and the floats and doubles next to it. */
static void test_16_bits_narrow(void **state) {
  (void)state;
  for (size_t k = 0; k < 2; k++) {
    const format16 *f = &formats[k];
    uint16_t infinity = (uint16_t)(((1 << f->exponent_bits) - 1) << f->mantissa_bits);
    for (uint32_t h = 0; h < infinity; h++) {
      double low = value16((uint16_t)h, f->exponent_bits, f->mantissa_bits);
      double high = h + 1 == infinity
                        ? ldexp(1, 1 << (f->exponent_bits - 1))
                        : value16((uint16_t)(h + 1), f->exponent_bits, f->mantissa_bits);
      double mid = low + (high - low) / 2;
      double try[] = {mid,
                      nextafter(mid, 0),
                      nextafter(mid, INFINITY),
                      nextafterf((float)mid, 0),
                      nextafterf((float)mid, INFINITY),
                      low + (high - low) / 3};
      for (size_t i = 0; i < sizeof try / sizeof *try; i++) {
        check_nearest(f, try[i]);
        check_nearest(f, -try[i]);
      }
    }
    assert_int_equal(scalar_from_double(f->type, 1e300), infinity);
    assert_int_equal(scalar_from_double(f->type, -1e-320), 0x8000);
  }
}

static uint64_t random_bits(uint64_t *seed) {
  *seed += 0x9E3779B97F4A7C15u;
  uint64_t z = *seed;
  z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
  z = (z ^ z >> 27) * 0x94D049BB133111EBu;
  return z ^ z >> 31;
}

static void test_16_bits_narrow_random(void **state) {
  (void)state;
  uint64_t seed = 1;
  for (size_t k = 0; k < 2; k++)
    for (int i = 0; i < 100000; i++) {
      uint32_t u = (uint32_t)random_bits(&seed);
      float v;
      memcpy(&v, &u, 4);
      if (!isnan(v)) check_nearest(&formats[k], v);
    }
}

/* All casts on edge values, through long double, which holds every value here exactly. */

enum { MOST_EDGES = 64 };

static size_t edges(dtype t, uint64_t into[]) {
  static const double numbers[] = {0,
                                   -0.0,
                                   1,
                                   -1,
                                   0.5,
                                   -0.5,
                                   1.5,
                                   2.5,
                                   -2.5,
                                   126.5,
                                   127,
                                   128,
                                   -128,
                                   -129,
                                   255,
                                   256,
                                   32767.75,
                                   32768,
                                   65504,
                                   65519.99,
                                   65520,
                                   65535,
                                   65536,
                                   1e-8,
                                   6e-8,
                                   2147483647,
                                   2147483648.0,
                                   -2147483648.0,
                                   -2147483649.0,
                                   4294967295.0,
                                   4294967296.0,
                                   1e10,
                                   16777217,
                                   9007199254740993.0,
                                   9223372036854774784.0,
                                   9223372036854775808.0,
                                   -9223372036854775808.0,
                                   18446744073709549568.0,
                                   18446744073709551616.0,
                                   3e38,
                                   1e-45,
                                   5e-324,
                                   1e308,
                                   INFINITY,
                                   -INFINITY,
                                   NAN};
  static const uint64_t patterns[] = {0,
                                      1,
                                      2,
                                      0x7f,
                                      0x80,
                                      0xff,
                                      0x7fff,
                                      0x8000,
                                      0xffff,
                                      0x1000001,
                                      0x7fffffff,
                                      0x80000000,
                                      0xffffffff,
                                      0x20000000000001,
                                      0x40000000000001,
                                      0x7ffffffffffffdff,
                                      0x7ffffffffffffe00,
                                      0x7fffffbfffffffff,
                                      0x7fffffffffffffff,
                                      0x8000000000000000,
                                      0x8000000000000401,
                                      0xfffffffffffffbff,
                                      0xffffff7fffffffff,
                                      0xffffff8000000000,
                                      0xffffffffffffffff};
  size_t n = 0;
  if (dtype_is_float(t)) {
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
      into[n++] = scalar_from_double(t, numbers[i]);
    return n;
  }
  for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++)
    into[n++] = t == DT_BOOL ? patterns[i] & 1 : scalar_load(t, &patterns[i]);
  return n;
}

static bool is_signed(dtype t) { return dtype_is_signed(t) || t == DT_INDEX; }

static long double exact(dtype t, uint64_t bits) {
  float f;
  double d;
  uint32_t u = (uint32_t)bits;
  memcpy(&f, &u, 4);
  memcpy(&d, &bits, 8);
  switch (t) {
  case DT_F16: return value16((uint16_t)bits, 5, 10);
  case DT_BF16: return value16((uint16_t)bits, 8, 7);
  case DT_F32: return f;
  case DT_F64: return d;
  default: return is_signed(t) ? (long double)(int64_t)bits : (long double)bits;
  }
}

/* Returns the 64 bits of an integer within the type's range. */
static uint64_t integer_bits(long double v) { return v < 0 ? 0 - (uint64_t)-v : (uint64_t)v; }

static uint64_t cast_by_value(dtype to, dtype from, uint64_t bits) {
  long double v = exact(from, bits);
  int width = 8 * (int)dtype_bytes(to);
  long double low = is_signed(to) ? -ldexpl(1, width - 1) : 0;
  long double high = ldexpl(1, width - is_signed(to)) - 1;
  switch (to) {
  case DT_BOOL: return v != 0;
  case DT_F16: return isnan(v) ? 0x7e00 : nearest16(v, 5, 10);
  case DT_BF16: return isnan(v) ? 0x7fc0 : nearest16(v, 8, 7);
  case DT_F32: return bits_of_float((float)v);
  case DT_F64: return bits_of((double)v);
  default: break;
  }
  if (isnan(v)) return 0;
  if (dtype_is_float(from)) {
    v = truncl(v);
    return integer_bits(v < low ? low : v > high ? high : v);
  }
  v = fmodl(v, ldexpl(1, width));
  if (v < low) v += ldexpl(1, width);
  if (v > high) v -= ldexpl(1, width);
  return integer_bits(v);
}

static void test_casts(void **state) {
  (void)state;
  for (size_t a = 0; a < N_TYPES; a++)
    for (size_t b = 0; b < N_TYPES; b++) {
      uint64_t from[MOST_EDGES];
      size_t n = edges(all_types[a], from);
      for (size_t i = 0; i < n; i++) {
        uint64_t got = scalar_cast(all_types[b], all_types[a], from[i]);
        uint64_t want = cast_by_value(all_types[b], all_types[a], from[i]);
        bool nan = dtype_is_float(all_types[b]) && isnan(exact(all_types[b], want));
        if (nan ? !isnan(exact(all_types[b], got)) : got != want)
          fail_msg("%s to %s: %llx gives %llx, not %llx", dtype_name(all_types[a]),
                   dtype_name(all_types[b]), (unsigned long long)from[i], (unsigned long long)got,
                   (unsigned long long)want);
      }
    }
}

static void test_casts_of_random_integers(void **state) {
  (void)state;
  static const dtype floats[] = {DT_F16, DT_BF16, DT_F32, DT_F64};
  uint64_t seed = 2;
  for (int i = 0; i < 50000; i++)
    for (size_t k = 0; k < 4; k++) {
      uint64_t u = random_bits(&seed) >> (i % 64);
      assert_true(scalar_cast(floats[k], DT_U64, u) == cast_by_value(floats[k], DT_U64, u));
      assert_true(scalar_cast(floats[k], DT_I64, u) == cast_by_value(floats[k], DT_I64, u));
    }
}

/* Storing and loading preserves a scalar and touches the type's bytes only. */
static void test_load_and_store(void **state) {
  (void)state;
  for (size_t k = 0; k < N_TYPES; k++) {
    uint64_t values[MOST_EDGES];
    size_t n = edges(all_types[k], values), bytes = dtype_bytes(all_types[k]);
    for (size_t i = 0; i < n; i++) {
      unsigned char at[16];
      memset(at, 0xa5, sizeof at);
      scalar_store(all_types[k], at + 1, values[i]);
      assert_true(scalar_load(all_types[k], at + 1) == values[i]);
      assert_int_equal(at[0], 0xa5);
      for (size_t j = bytes + 1; j < sizeof at; j++) assert_int_equal(at[j], 0xa5);
    }
  }
}

static void test_table(void **state) {
  (void)state;
  bool found;
  size_t n = 0;
  for (int i = -1; i <= DT_LIMIT; i++) {
    const dtype_facts *f = dtype_facts_of(i);
    if (!f->name) continue;
    n++;
    assert_int_equal(dtype_from_name(f->name, strlen(f->name), &found), i);
    assert_true(found);
    if (f->cls == DC_FLOAT) assert_int_equal(1 + f->exponent_bits + f->mantissa_bits, 8 * f->bytes);
  }
  assert_int_equal(n, N_TYPES + N_STORED + 1); /* void included */
  dtype_from_name("f3", 2, &found);
  assert_false(found);
}

static void test_limits(void **state) {
  (void)state;
  assert_true(dtype_min(DT_I8) == -128 && dtype_max(DT_I8) == 127);
  assert_true(dtype_min(DT_U8) == 0 && dtype_max(DT_U8) == 255);
  assert_true(dtype_min(DT_I32) == INT32_MIN && dtype_max(DT_I32) == INT32_MAX);
  assert_true(dtype_min(DT_U32) == 0 && dtype_max(DT_U32) == UINT32_MAX);
  assert_true(dtype_min(DT_I64) == INT64_MIN && dtype_max(DT_I64) == INT64_MAX);
  assert_true(dtype_max(DT_U64) == INT64_MAX && dtype_max(DT_BOOL) == 1);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_table),          cmocka_unit_test(test_limits),
      cmocka_unit_test(test_load_and_store), cmocka_unit_test(test_16_bits_widen),
      cmocka_unit_test(test_16_bits_narrow), cmocka_unit_test(test_16_bits_narrow_random),
      cmocka_unit_test(test_casts),          cmocka_unit_test(test_casts_of_random_integers),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
