/* Tests the comparison of two sets of values (tenon check): tolerances by type, NaN, infinities,
   cancelled sums, flushed numbers, integers, and no elements. */
#include "cli/data/compare_values.h"
#include "support/tensor_check.h"

#include <math.h>

static diag d;
static arena a;

static int set_up(void **state) {
  (void)state;
  arena_init(&a, &mem_system, &d);
  return 0;
}

static int tear_down(void **state) {
  (void)state;
  arena_free(&a);
  return 0;
}

static value_difference compare(size_t n, const float computed[], const float expected[]) {
  return compare_values(&a, TN_F32, computed, expected, n, value_tolerance(TN_F32));
}

static void equal_values_do_not_differ(void **state) {
  (void)state;
  const float x[] = {1, -2, 0, NAN, INFINITY, -INFINITY};
  value_difference r = compare(6, x, x);
  assert_true(!r.beyond && r.first == SIZE_MAX && r.largest == 0 && r.relative == 0);
  assert_true(r.elements == 6 && r.nans == 1 && r.expected_nans == 1 && r.infinities == 2);
  r = compare(0, NULL, NULL);
  assert_true(!r.elements && !r.beyond);
}

static void small_differences_are_within_the_tolerance(void **state) {
  (void)state;
  const float expected[] = {1, 2, 3, 4};
  value_difference r = compare(4, (const float[]){1.0005f, 2, 3, 4}, expected);
  assert_true(!r.beyond && r.relative > 0 && fabs(r.largest - 0.0005) < 1e-6);
  r = compare(4, (const float[]){1, 2, 3.1f, 4.2f}, expected);
  assert_int_equal(r.beyond, 2);
  assert_int_equal(r.first, 2);
  assert_true(fabs(r.largest - 0.2) < 1e-6);
}

static void cancelled_sums_are_measured_by_their_neighbours(void **state) {
  (void)state;
  const float expected[] = {1e-7f, 1, -1, 2};
  assert_int_equal(compare(4, (const float[]){3e-7f, 1, -1, 2}, expected).beyond, 0);
  assert_int_equal(compare(4, (const float[]){0.01f, 1, -1, 2}, expected).beyond, 1);
}

static void a_few_huge_elements_hide_nothing(void **state) {
  (void)state;
  const float expected[] = {-3e38f, -3e38f, 1, 2, 3, 1};
  assert_int_equal(compare(6, (const float[]){-3e38f, -3e38f, 1, 2, 3.5f, 1}, expected).beyond, 1);
}

static void elements_of_zeros_alone_must_be_zero(void **state) {
  (void)state;
  const float expected[] = {0, 0, -0.0f};
  assert_int_equal(compare(3, (const float[]){0, -0.0f, 0}, expected).beyond, 0);
  value_difference r = compare(3, (const float[]){0, 1e-20f, 0}, expected);
  assert_int_equal(r.beyond, 1);
  assert_true(isinf(r.relative));
  assert_int_equal(compare(3, (const float[]){0, 1e-38f, 0}, expected).beyond, 0); /* flushed */
}

static void not_a_number_matches_itself_alone(void **state) {
  (void)state;
  const float expected[] = {NAN, 1, INFINITY, INFINITY, 2};
  value_difference r = compare(5, (const float[]){1, NAN, -INFINITY, 3e38f, INFINITY}, expected);
  assert_int_equal(r.beyond, 5);
  assert_int_equal(r.first, 0);
  assert_true(r.nans == 1 && r.expected_nans == 1 && r.infinities == 2);
  assert_true(r.expected_infinities == 2 && r.largest == 0);
  union {
    uint32_t bits;
    float value;
  } other = {.bits = 0xffc00001};
  assert_int_equal(compare(1, &other.value, expected).beyond, 0);
}

static void integers_must_be_equal(void **state) {
  (void)state;
  const int64_t x[] = {1, 2, (INT64_C(1) << 60) + 1}, y[] = {1, 5, INT64_C(1) << 60};
  value_difference r = compare_values(&a, TN_I64, x, y, 3, value_tolerance(TN_I64));
  assert_true(r.beyond == 2 && r.first == 1 && r.largest == 3);
  const uint8_t p[] = {0, 1}, q[] = {1, 1};
  assert_int_equal(compare_values(&a, TN_BOOL, p, q, 2, value_tolerance(TN_BOOL)).beyond, 1);
  assert_int_equal(compare_values(&a, TN_U8, p, q, 2, 1).beyond, 1);
}

static void tolerances_follow_the_type(void **state) {
  (void)state;
  static const tn_dtype types[] = {TN_F64, TN_F32, TN_F16, TN_BF16, TN_F8E4M3FN};
  double last = 0;
  for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
    unsigned char computed[8], expected[8];
    double t = value_tolerance(types[i]);
    assert_true(t > last);
    last = t;
    tn_element_set(types[i], expected, 1);
    tn_element_set(types[i], computed, 1 + t);
    assert_int_equal(compare_values(&a, types[i], computed, expected, 1, t).beyond, 0);
    tn_element_set(types[i], computed, 1 + 4 * t);
    assert_int_equal(compare_values(&a, types[i], computed, expected, 1, t).beyond, 1);
  }
}

/** The typical magnitude is the element that a quarter of all are smaller than, in any order. */
static void typical_magnitudes_do_not_depend_on_order(void **state) {
  (void)state;
  enum { N = 1000 };
  float expected[N], computed[N];
  for (size_t shift = 0; shift < 3; shift++) {
    for (size_t i = 0; i < N; i++) expected[i] = (float)(1 + (i * 7 + shift * 333) % N);
    memcpy(computed, expected, sizeof computed);
    computed[17] += 1;
    double r = compare(N, computed, expected).relative;
    assert_true(fabs(r - 1 / (expected[17] + 251.0)) < 1e-9);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(equal_values_do_not_differ),
      cmocka_unit_test(small_differences_are_within_the_tolerance),
      cmocka_unit_test(cancelled_sums_are_measured_by_their_neighbours),
      cmocka_unit_test(a_few_huge_elements_hide_nothing),
      cmocka_unit_test(elements_of_zeros_alone_must_be_zero),
      cmocka_unit_test(not_a_number_matches_itself_alone),
      cmocka_unit_test(integers_must_be_equal),
      cmocka_unit_test(tolerances_follow_the_type),
      cmocka_unit_test(typical_magnitudes_do_not_depend_on_order),
  };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
