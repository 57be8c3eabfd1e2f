/* Tests storage types: the conversions of scalars against values and searches that share nothing
   with them; then, against those, the expressions that graphs convert by, for every rounding in the
   interpreter, and for each pair of renderer and compiler through the public interface. */
#include "ir/index/index_arithmetic.h"
#include "ir/interp/interp.h"
#include "support/tensor_check.h"
#include "tensor/ops/expressions.h"

#include <math.h>

/** The values of a type of floats without sign, from 0 up: those of patterns 0 … most. */
typedef struct format {
  dtype type;
  int exponent_bits, mantissa_bits, bias, most;
  int sign;     /* 0: none */
  int infinity; /* pattern; 0: none */
  int nan;      /* pattern; 0: none */
} format;

static const format formats[] = {
    {DT_F8E4M3FN, 4, 3, 7, 0x7e, 0x80, 0, 0x7f},   {DT_F8E4M3FNUZ, 4, 3, 8, 0x7f, 0x80, 0, 0x80},
    {DT_F8E5M2, 5, 2, 15, 0x7b, 0x80, 0x7c, 0x7e}, {DT_F8E5M2FNUZ, 5, 2, 16, 0x7f, 0x80, 0, 0x80},
    {DT_F4E2M1, 2, 1, 1, 0x7, 0x8, 0, 0},
};
enum { FORMATS = sizeof formats / sizeof *formats };
static const dtype integers[] = {DT_U4, DT_I4, DT_U2, DT_I2};
static const dtype stored[] = {DT_F8E4M3FN, DT_F8E4M3FNUZ, DT_F8E5M2, DT_F8E5M2FNUZ, DT_U4,
                               DT_I4,       DT_F4E2M1,     DT_F8E8M0, DT_U2,         DT_I2};
enum { INTEGERS = sizeof integers / sizeof *integers, STORED = sizeof stored / sizeof *stored };

static double size_of_pattern(const format *f, int pattern) {
  int exponent = pattern >> f->mantissa_bits, rest = pattern & ((1 << f->mantissa_bits) - 1);
  double unit = pow(2, (exponent ? exponent : 1) - f->bias - f->mantissa_bits);
  return unit * (exponent ? rest + (1 << f->mantissa_bits) : rest);
}

static double value_of_pattern(const format *f, int bits) {
  bits &= 2 * f->sign - 1;
  int pattern = bits & (f->sign - 1);
  if (f->nan == f->sign && bits == f->sign) return NAN;
  double size = f->infinity && pattern == f->infinity ? INFINITY
                : pattern > f->most                   ? NAN
                                                      : size_of_pattern(f, pattern);
  return bits & f->sign ? -size : size;
}

/** The pattern nearest to a value, ties to even, found by comparing with each one. */
static int nearest(const format *f, double v, bool saturates) {
  bool no_zero = f->nan == f->sign;
  int sign = signbit(v) ? f->sign : 0, best = 0;
  double size = fabs(v), beyond = size_of_pattern(f, f->most + 1);
  if (isnan(v)) return f->nan ? (no_zero ? f->nan : sign | f->nan) : f->sign;
  for (int p = 1; p <= f->most + 1; p++) {
    double middle =
        (size_of_pattern(f, p - 1) + (p > f->most ? beyond : size_of_pattern(f, p))) / 2;
    if (size > middle || (size == middle && !(p & 1))) best = p;
  }
  if (best > f->most && (saturates || !f->nan)) return sign | f->most;
  if (best > f->most) return no_zero ? f->nan : sign | (f->infinity ? f->infinity : f->nan);
  return no_zero && !best ? 0 : sign | best;
}

static double scale_value(int bits) { return bits == 0xff ? NAN : pow(2, bits - 127); }

static int scale_pattern(double v, storage_rounding how) {
  if (isnan(v) || v < 0) return 0xff;
  if (v < scale_value(0)) return how.saturates ? 0 : 0xff;
  int p = 0;
  while (p < 2000 && pow(2, p - 127) < v) p++; /* up */
  bool down = how.direction == STORAGE_DOWN && pow(2, p - 127) != v;
  bool nearer = how.direction == STORAGE_NEAREST && v < pow(2, p - 127) * 0.75;
  if (isinf(v)) return how.saturates ? 0xfe : 0xff;
  if (down || nearer) p--;
  return p > 0xfe ? how.saturates ? 0xfe : 0xff : p;
}

static int integer_value(dtype t, int bits) {
  bool is_signed = t == DT_I4 || t == DT_I2;
  int count = t == DT_U4 || t == DT_I4 ? 16 : 4, v = bits % count;
  return is_signed && v >= count / 2 ? v - count : v;
}

static int integer_pattern(dtype t, double v) {
  bool is_signed = t == DT_I4 || t == DT_I2;
  int count = t == DT_U4 || t == DT_I4 ? 16 : 4, least = is_signed ? -count / 2 : 0;
  if (isnan(v)) return 0;
  int k = v <= least ? least : v >= least + count - 1 ? least + count - 1 : (int)v;
  return (k + count) % count;
}

static int expected(dtype t, double v, storage_rounding how) {
  for (size_t i = 0; i < FORMATS; i++)
    if (formats[i].type == t) return nearest(&formats[i], v, how.saturates);
  return t == DT_F8E8M0 ? scale_pattern(v, how) : integer_pattern(t, v);
}

static double expected_value(dtype t, int bits) {
  for (size_t i = 0; i < FORMATS; i++)
    if (formats[i].type == t) return value_of_pattern(&formats[i], bits);
  return t == DT_F8E8M0 ? scale_value(bits) : integer_value(t, bits);
}

/* Numbers to convert: each value, the midpoints and the numbers next to them, and random ones. */

enum { MOST = 1 << 14 };
typedef struct numbers {
  size_t n;
  double at[MOST];
  float f32[MOST];
} numbers;

static void add_number(numbers *k, double v) {
  if (k->n + 6 > MOST) return;
  const double near[] = {v, nextafter(v, INFINITY), nextafter(v, -INFINITY)};
  for (size_t i = 0; i < 3; i++) k->at[k->n++] = near[i], k->at[k->n++] = -near[i];
}

static void make_numbers(numbers *k) {
  uint64_t state = 5;
  k->n = 0;
  const double special[] = {0,       NAN,  INFINITY, 0x1p-149, 0x1p-1074, 3.5e38, 0x1.fffffep127,
                            0x1p128, 1e300};
  for (size_t i = 0; i < sizeof special / sizeof *special; i++) add_number(k, special[i]);
  for (size_t i = 0; i < FORMATS; i++)
    for (int p = 0; p <= formats[i].most + 1; p++) {
      double a = size_of_pattern(&formats[i], p), b = size_of_pattern(&formats[i], p + 1);
      add_number(k, a);
      add_number(k, (a + b) / 2);
    }
  for (int p = 0; p < 0xff; p++) {
    add_number(k, pow(2, p - 127));
    add_number(k, 1.5 * pow(2, p - 127));
  }
  while (k->n + 6 < MOST) {
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    uint32_t bits = (uint32_t)(state >> 32);
    float f;
    memcpy(&f, &bits, sizeof f);
    if (state >> 31 & 1) f = (float)((double)(int32_t)bits * 0x1p-26);
    k->at[k->n++] = (double)f;
  }
  for (size_t i = 0; i < k->n; i++) k->f32[i] = (float)k->at[i];
}

static const storage_rounding ways[] = {{true, STORAGE_UP},      {true, STORAGE_DOWN},
                                        {true, STORAGE_NEAREST}, {false, STORAGE_UP},
                                        {false, STORAGE_DOWN},   {false, STORAGE_NEAREST}};
enum { WAYS = sizeof ways / sizeof *ways };

static bool same(double a, double b) { return isnan(a) ? isnan(b) : !memcmp(&a, &b, sizeof a); }

static void test_scalars(void **state) {
  static numbers k;
  (void)state;
  make_numbers(&k);
  for (size_t t = 0; t < STORED; t++) {
    for (int bits = 0; bits < 256; bits++) {
      double want = expected_value(stored[t], bits),
             got = scalar_to_double(stored[t], (uint64_t)bits);
      if (!same(want, got))
        fail_msg("%s %#x is %a, not %a", dtype_name(stored[t]), bits, got, want);
    }
    for (size_t w = 0; w < WAYS; w++)
      for (size_t i = 0; i < k.n; i++) {
        int want = expected(stored[t], k.at[i], ways[w]);
        uint64_t got = storage_from_double(stored[t], k.at[i], ways[w]);
        if (got != (uint64_t)want)
          fail_msg("%a to %s, way %zu, is %#x, not %#x", k.at[i], dtype_name(stored[t]), w,
                   (unsigned)got, (unsigned)want);
      }
  }
}

static void test_integers(void **state) {
  (void)state;
  for (size_t t = 0; t < INTEGERS; t++)
    for (int v = -300; v < 300; v++) {
      uint64_t got = scalar_cast(integers[t], DT_I16, (uint64_t)(int64_t)v);
      int count = 1 << dtype_value_bits(integers[t]);
      assert_int_equal(got, ((v % count) + count) % count);
    }
}

/* Expressions, interpreted. */

typedef struct world {
  diag d;
  arena a;
  ir *g;
  builder b;
} world;

/** Interprets a cast of `n` elements. */
static const void *interpret(world *w, dtype from, const void *data, size_t n, dtype to,
                             storage_rounding how) {
  int64_t slot = 0;
  const node *size = ix_const(w->g, (int64_t)n);
  const node *x = ir_node(w->g, OP_PARAM, from, &size, 1, &slot, 1);
  const node *root = ex_cast_by(&w->b, x, to, how);
  interp_array in = {.data = (void *)data, .dtype = from, .rank = 1, .dims = {(int64_t)n}};
  interp_array out;
  in.bytes = n * dtype_bytes(from);
  interp_env env = {.params = &in, .n_params = 1};
  if (interp_tensor(&env, &root, 1, &out, &w->a) != TN_OK) diag_rethrow(&w->d);
  return out.data;
}

static void check_narrow(world *w, dtype from, const void *data, size_t n, dtype to,
                         storage_rounding how) {
  const uint8_t *got = interpret(w, from, data, n, to, how);
  for (size_t i = 0; i < n; i++) {
    uint64_t bits = scalar_load(from, (const char *)data + i * dtype_bytes(from));
    uint64_t want = dtype_has_floats(from) && dtype_has_floats(to)
                        ? storage_from_double(to, scalar_to_double(from, bits), how)
                        : scalar_cast(to, from, bits);
    if (got[i] != want)
      fail_msg("%s %#llx to %s is %#x, not %#x", dtype_name(from), (unsigned long long)bits,
               dtype_name(to), got[i], (unsigned)want);
  }
}

static void convert_by_graphs(void *arg) {
  static numbers k;
  static uint16_t halves[1 << 16];
  static int64_t longs[MOST];
  world *w = arg;
  uint8_t all[256];
  make_numbers(&k);
  for (int i = 0; i < 256; i++) all[i] = (uint8_t)i;
  for (int i = 0; i < 1 << 16; i++) halves[i] = (uint16_t)i;
  for (size_t i = 0; i < MOST; i++) {
    uint64_t r = (i + 1) * UINT64_C(0x9e3779b97f4a7c15);
    int shift = (int)(i * 7 % 64);
    longs[i] = (int64_t)(i % 3 ? r >> shift : (UINT64_C(3) << shift) + i % 5 - 2);
  }
  for (size_t t = 0; t < STORED; t++) {
    dtype to = stored[t];
    const float *f = interpret(w, to, all, 256, DT_F32, ways[0]);
    for (int i = 0; i < 256; i++)
      if (!same((double)f[i], expected_value(to, i)))
        fail_msg("%s %#x is %a", dtype_name(to), (unsigned)i, (double)f[i]);
    for (size_t v = 0; v < WAYS; v++) {
      check_narrow(w, DT_F32, k.f32, k.n, to, ways[v]);
      check_narrow(w, DT_F64, k.at, k.n, to, ways[v]);
    }
    for (size_t s = 0; s < STORED; s++)
      if (s != t) check_narrow(w, stored[s], all, 256, to, ways[0]);
    check_narrow(w, DT_F16, halves, 1 << 16, to, ways[0]);
    check_narrow(w, DT_BF16, halves, 1 << 16, to, ways[0]);
    static const dtype whole[] = {DT_I64, DT_U64, DT_I32, DT_U32, DT_I16, DT_U16, DT_I8, DT_U8};
    for (size_t s = 0; s < sizeof whole / sizeof *whole; s++)
      check_narrow(w, whole[s], longs, MOST, to, ways[0]);
  }
}

static void test_expressions(void **state) {
  world w = {0};
  (void)state;
  arena_init(&w.a, &mem_system, &w.d);
  w.g = ir_new(&mem_system, &w.d, false);
  w.b = (builder){.ir = w.g, .arena = &w.a, .diag = &w.d};
  if (diag_catch(&w.d, convert_by_graphs, &w) != TN_OK) fail_msg("%s", w.d.text);
  ir_free(w.g);
  arena_free(&w.a);
}

/* The public interface. */

static void check_pair(const char *pair) {
  static numbers k;
  static uint8_t got[MOST];
  static float wide[256];
  uint8_t all[256];
  tn_open_desc d = TN_OPEN_DESC_INIT;
  d.pair = pair;
  d.cache_dir = "off";
  tn_context *tn = tn_open(&d);
  float one;
  if (tn_read(tn_add(tn_num(tn, 1), tn_num(tn, 2)), TN_F32, &one, sizeof one) != TN_OK) {
    tn_close(tn);
    return;
  }
  make_numbers(&k);
  for (int i = 0; i < 256; i++) all[i] = (uint8_t)i;
  for (size_t t = 0; t < STORED; t++) {
    tn_dtype type = (tn_dtype)stored[t];
    tn_tensor *x = tn_from_host(tn, tn_shape((int64_t)k.n), TN_F32, k.f32, k.n * sizeof(float));
    check_ok(tn, tn_read(tn_cast(x, type), type, got, k.n));
    for (size_t i = 0; i < k.n; i++)
      if (got[i] != expected(stored[t], (double)k.f32[i], ways[0]))
        fail_msg("%a to %s is %#x", (double)k.f32[i], tn_dtype_name(type), got[i]);
    x = tn_cast(tn_from_host(tn, tn_shape(256), type, all, 256), TN_F32);
    check_ok(tn, tn_read(x, TN_F32, wide, sizeof wide));
    for (int i = 0; i < 256; i++) assert_true(same((double)wide[i], expected_value(stored[t], i)));
    x = tn_cast(tn_from_host(tn, tn_shape((int64_t)k.n), TN_F64, k.at, k.n * sizeof(double)), type);
    check_ok(tn, tn_read(x, type, got, k.n));
    for (size_t i = 0; i < k.n; i++)
      assert_int_equal(got[i], expected(stored[t], k.at[i], ways[0]));
  }
  check_ok(tn, tn_close(tn));
}

static void test_renderers(void **state) {
  (void)state;
  check_pair("c/cc");
  check_pair("llvm/llvm");
}

static void test_facts(void **state) {
  (void)state;
  assert_int_equal(tn_dtype_kind_of(TN_F8E8M0), TN_KIND_FLOAT);
  assert_int_equal(tn_dtype_kind_of(TN_I4), TN_KIND_SIGNED);
  assert_int_equal(tn_dtype_kind_of(TN_U2), TN_KIND_UNSIGNED);
  assert_int_equal(tn_promote(TN_F8E5M2, TN_F8E5M2), TN_F8E5M2);
  assert_int_equal(tn_promote(TN_F8E5M2, TN_F32), TN_UNDEFINED);
  assert_int_equal(tn_promote(TN_BOOL, TN_I4), TN_UNDEFINED);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_scalars),     cmocka_unit_test(test_integers),
      cmocka_unit_test(test_expressions), cmocka_unit_test(test_renderers),
      cmocka_unit_test(test_facts),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
