/* Tests products of small types through the public interface against sums computed here: for each
   pair of renderer and compiler, and for targets with and without the features that have
   instructions for them; and the limits that name features. */
#include "support/tensor_check.h"

#include "device/cpu/isa_level.h"

#include <math.h>

typedef struct rng {
  uint64_t at;
} rng;

static uint32_t next(rng *r) {
  r->at = r->at * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
  return (uint32_t)(r->at >> 32);
}

static const char *const pairs[] = {"c/cc", "llvm/llvm"};
static const char *const limits[] = {"x86-64-v3",
                                     "x86-64-v3+avxvnni",
                                     "x86-64-v4",
                                     "x86-64-v4+avx512vnni+avx512bf16",
                                     "x86-64-v4+avx512bf16+amxint8+amxbf16",
                                     NULL};

static tn_context *open_target(const char *pair, const char *cpu) {
  tn_open_desc d = TN_OPEN_DESC_INIT;
  d.pair = pair;
  d.cpu = cpu;
  d.cache_dir = "off";
  d.threads = 2;
  return tn_open(&d);
}

/** Element i of an array, as a number. */
static double number(tn_dtype t, const void *data, size_t i) {
  switch (t) {
  case TN_U8: return ((const uint8_t *)data)[i];
  case TN_I8: return ((const int8_t *)data)[i];
  case TN_I16: return ((const int16_t *)data)[i];
  default: {
    uint32_t bits = (uint32_t)((const uint16_t *)data)[i] << 16;
    float f;
    memcpy(&f, &bits, sizeof f);
    return (double)f;
  }
  }
}

/** Fills an array: of bf16 with quarters, else with any elements, of which many are extremes. */
static void fill(tn_dtype t, void *data, size_t n, rng *r) {
  static const uint16_t extremes[] = {0, 0x7f7f, 0x8080, 0xffff, 0x7fff, 0x8000, 1, 0x8001};
  for (size_t i = 0; i < n; i++) {
    uint32_t any = next(r);
    uint16_t bits = any % 3 ? (uint16_t)(any >> 8) : extremes[any >> 28 & 7];
    float quarter = (float)((int)(any >> 8 & 31) - 16) / 4;
    uint32_t wide;
    memcpy(&wide, &quarter, sizeof wide);
    if (t == TN_U8 || t == TN_I8)
      ((uint8_t *)data)[i] = (uint8_t)bits;
    else
      ((uint16_t *)data)[i] = t == TN_BF16 ? (uint16_t)(wide >> 16) : bits;
  }
}

enum { MOST = 1 << 15 };

static void check_product(tn_context *tn, tn_dtype x, tn_dtype y, int m, int n, int k,
                          bool is_transposed) {
  static uint16_t a[MOST], b[MOST];
  static int32_t out[MOST];
  static float floats[MOST];
  rng r = {(uint64_t)(m * 7 + n * 5 + k)};
  bool is_float = x == TN_BF16;
  size_t element = x == TN_U8 || x == TN_I8 ? 1 : 2;
  fill(x, a, (size_t)(m * k), &r);
  fill(y, b, (size_t)(k * n), &r);
  tn_tensor *left = tn_from_host(tn, tn_shape(m, k), x, a, (size_t)(m * k) * element);
  tn_tensor *right = is_transposed
                         ? tn_from_host(tn, tn_shape(n, k), y, b, (size_t)(k * n) * element)
                         : tn_from_host(tn, tn_shape(k, n), y, b, (size_t)(k * n) * element);
  if (is_transposed) right = tn_swapaxes(right, 0, 1);
  tn_tensor *p = tn_matmul_as(left, right, is_float ? TN_F32 : TN_I32);
  check_ok(tn, is_float ? tn_read(p, TN_F32, floats, (size_t)(m * n) * sizeof *floats)
                        : tn_read(p, TN_I32, out, (size_t)(m * n) * sizeof *out));
  for (int i = 0; i < m; i++)
    for (int j = 0; j < n; j++) {
      double sum = 0; /* exact: below 2^53 */
      for (int q = 0; q < k; q++)
        sum += number(x, a, (size_t)(i * k + q)) *
               number(y, b, (size_t)(is_transposed ? j * k + q : q * n + j));
      if (is_float)
        assert_true((double)floats[i * n + j] == sum); /* sixteenths below 2^20 */
      else
        assert_int_equal(out[i * n + j], (int32_t)(uint32_t)(int64_t)sum);
    }
}

static void check_target(const char *pair, const char *limit) {
  static const tn_dtype types[][2] = {{TN_U8, TN_I8}, {TN_I8, TN_U8},   {TN_I8, TN_I8},
                                      {TN_U8, TN_U8}, {TN_I16, TN_I16}, {TN_BF16, TN_BF16}};
  static const int sizes[][3] = {{3, 15, 17}, {17, 63, 15}, {70, 64, 130}, {33, 65, 260}};
  tn_context *tn = open_target(pair, limit);
  for (size_t t = 0; t < sizeof types / sizeof *types; t++)
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
      check_product(tn, types[t][0], types[t][1], sizes[s][0], sizes[s][1], sizes[s][2], s & 1);
  check_ok(tn, tn_close(tn));
}

static bool is_present(const char *pair) {
  tn_context *tn = open_target(pair, NULL);
  float one;
  bool there = tn_read(tn_add(tn_num(tn, 1), tn_num(tn, 2)), TN_F32, &one, sizeof one) == TN_OK;
  tn_close(tn);
  return there;
}

static void test_products_of_targets(void **state) {
  (void)state;
  for (size_t p = 0; p < 2; p++)
    for (size_t i = 0; i < sizeof limits / sizeof *limits && is_present(pairs[p]); i++)
      if (!limits[i] || isa_level_by_name("x86-64")) check_target(pairs[p], limits[i]);
}

static void test_types_of_results(void **state) {
  tn_context *tn = *state;
  const uint8_t x[] = {250, 255};
  float f[1];
  uint8_t u[1];
  int64_t i[1];
  tn_tensor *a = tn_from_host(tn, tn_shape(1, 2), TN_U8, x, 2), *b = tn_swapaxes(a, 0, 1);
  check_ok(tn, tn_read(tn_matmul_as(a, b, TN_F32), TN_F32, f, sizeof f));
  check_ok(tn, tn_read(tn_matmul_as(a, b, TN_U8), TN_U8, u, sizeof u));
  check_ok(tn, tn_read(tn_matmul_as(a, b, TN_I64), TN_I64, i, sizeof i));
  assert_true(f[0] == 127525.0f && u[0] == (uint8_t)127525 && i[0] == 127525);
  assert_int_equal(tn_read(tn_matmul_as(a, b, TN_BOOL), TN_U8, u, sizeof u), TN_ERR_DTYPE);
  assert_int_equal(tn_read(tn_matmul_as(a, b, (tn_dtype)99), TN_U8, u, sizeof u), TN_ERR_DTYPE);
}

/* Targets. */

static void test_limits(void **state) {
  (void)state;
  isa_target t;
  tn_failure f;
  char text[ISA_TARGET_BYTES];
  if (!isa_level_by_name("x86-64-v4")) skip();
  for (size_t i = 0; i + 1 < sizeof limits / sizeof *limits; i++) {
    assert_int_equal(isa_target_find(limits[i], &t, NULL), TN_OK);
    isa_target_text(&t, text, sizeof text);
    assert_true(!strncmp(text, limits[i], strlen(text)) || strcmp(t.level->name, limits[i]));
    isa_target again = isa_target_parse(text);
    assert_ptr_equal(again.level, t.level);
    assert_int_equal(again.n_features, t.n_features);
  }
  assert_int_equal(isa_target_find("x86-64-v4", &t, NULL), TN_OK);
  assert_int_equal(t.n_features, 0);
  /* a feature of another level is left out, and none is named twice */
  assert_int_equal(isa_target_find("x86-64-v3+avx512vnni", &t, NULL), TN_OK);
  assert_int_equal(t.n_features, 0);
  t = isa_target_parse("x86-64-v4+avx512vnni+avx512vnni");
  assert_int_equal(t.n_features, 1);
  assert_int_equal(isa_target_find("x86-64-v4+amx", &t, &f), TN_ERR_ARGUMENT);
  assert_non_null(strstr(f.text, "+avx512vnni"));
  assert_int_equal(isa_target_find("x86-64-v4+", &t, &f), TN_ERR_ARGUMENT);
}

/** Kernels that a context with a limit compiles for a sum, with a folder as its disk cache. */
static uint64_t compiled_for(const char *folder, const char *limit) {
  tn_open_desc d = TN_OPEN_DESC_INIT;
  tn_kernel_cache_info before = TN_KERNEL_CACHE_INFO_INIT, after = TN_KERNEL_CACHE_INFO_INIT;
  float sum[2];
  d.cpu = limit;
  d.cache_dir = folder;
  d.environment = false;
  tn_context *tn = tn_open(&d);
  check_ok(tn, tn_kernel_cache_get(tn, &before));
  tn_tensor *one = tn_from_host(tn, tn_shape(2), TN_F32, (float[]){1, 2}, 2 * sizeof(float));
  check_ok(tn, tn_read(tn_add(one, tn_num(tn, 3)), TN_F32, sum, sizeof sum));
  check_ok(tn, tn_kernel_cache_get(tn, &after));
  check_ok(tn, tn_close(tn));
  return after.compiled - before.compiled;
}

/** A processor that has fewer features finds no kernel that was compiled for more. */
static void test_kernels_of_other_features(void **state) {
  static const char all[] = "x86-64-v4+avx512vnni";
  char folder[] = "/tmp/tenon-XXXXXX", command[64];
  isa_target t;
  (void)state;
  if (!isa_level_by_name("x86-64-v4") || isa_target_find(all, &t, NULL) || !t.n_features) skip();
  assert_non_null(mkdtemp(folder));
  assert_int_equal(compiled_for(folder, all), 1);
  assert_int_equal(compiled_for(folder, "x86-64-v4"), 1);
  assert_int_equal(compiled_for(folder, all), 0);
  snprintf(command, sizeof command, "rm -rf '%s'", folder);
  assert_int_equal(system(command), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_products_of_targets),
      cmocka_unit_test_setup_teardown(test_types_of_results, open_context, close_context),
      cmocka_unit_test(test_limits),
      cmocka_unit_test(test_kernels_of_other_features),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
