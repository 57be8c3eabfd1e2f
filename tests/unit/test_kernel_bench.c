/* Tests the measurements of the tuner: results of schedules are compared by the type's tolerance
   (tune/same_results.h), and a kernel's programs are told apart as faster, slower or wrong
   (tune/kernel_bench.h), also where the kernel changes its operand in place. */
#include "support/tensor_check.h"
#include "tensor/plan/binding.h"
#include "tune/kernel_bench.h"
#include "tune/same_results.h"

#include <math.h>

enum { N = 4096 };

static void integers_are_equal_exactly(void **state) {
  (void)state;
  const double x[] = {1, 2, 1e9}, y[] = {1, 2, 1e9 + 1};
  assert_true(same_results(DT_I64, x, x, 3));
  assert_false(same_results(DT_I64, y, x, 3));
  assert_false(same_results(DT_BOOL, (const double[]){1}, (const double[]){0}, 1));
  assert_true(same_results(DT_F32, y, x, 0));
}

static void floats_have_a_tolerance(void **state) {
  (void)state;
  double x[] = {100, -100, 50, 1e-9}, y[] = {100.05, -100.05, 50, 0.05};
  assert_true(same_results(DT_F32, y, x, 4)); /* an element near 0 by the deviation of all */
  assert_false(same_results(DT_F64, y, x, 4));
  y[2] = 50.5;
  assert_false(same_results(DT_F32, y, x, 4));
  assert_true(same_results(DT_F16, y, x, 4));
  x[0] = y[0] = NAN;
  x[1] = y[1] = INFINITY;
  y[2] = x[2];
  y[3] = x[3];
  assert_true(same_results(DT_F32, y, x, 4));
  y[1] = -INFINITY;
  assert_false(same_results(DT_F32, y, x, 4));
  y[1] = 1e30;
  assert_false(same_results(DT_F32, y, x, 4));
  y[1] = INFINITY;
  y[0] = 0;
  assert_false(same_results(DT_F32, y, x, 4));
}

/** A binding of a plan of one kernel, after a run. */
static tn_binding *run_plan(tn_context *c, tn_tensor *out) {
  static float x[N];
  tn_plan *plan;
  tn_binding *b;
  check_ok(c, tn_plan_compile(c, &out, 1, NULL, &plan));
  check_ok(c, tn_plan_bind(plan, &b));
  check_ok(c, tn_binding_input(b, "x", tn_shape(N), TN_F32, x, sizeof x));
  check_ok(c, tn_binding_run(b));
  return b;
}

static tn_program *program_of(const tn_binding *b) { return b->variant->executable->programs[0]; }

static bench_result compare(tn_binding *b, tn_program *incumbent, tn_program *candidate) {
  kernel_bench *k;
  bench_result r;
  diag d = {0};
  if (kernel_bench_open(&k, b->execution, 0, 1 << 20, &d)) fail_msg("%s", d.text);
  if (kernel_bench_compare(k, incumbent, candidate, &r, &d)) fail_msg("%s", d.text);
  kernel_bench_close(k);
  return r;
}

static void programs_are_told_apart(void **state) {
  tn_context *c = *state;
  tn_tensor *x = tn_input(c, "x", tn_shape(N), TN_F32), *slow = x;
  for (int i = 0; i < 6; i++) slow = tn_sin(tn_mul(slow, tn_num(c, 1.0)));
  slow = tn_add(tn_mul(slow, tn_num(c, 1e-9)), x);
  tn_binding *fast = run_plan(c, tn_add(tn_mul(x, tn_num(c, 1e-9)), x)),
             *long_one = run_plan(c, slow), *wrong = run_plan(c, tn_neg(x));
  assert_int_equal(executable_kernels(long_one->variant->executable), 1);
  bench_result r = compare(fast, program_of(fast), program_of(long_one));
  assert_int_equal(r.verdict, BENCH_SLOWER);
  assert_true(r.candidate_ns > r.incumbent_ns && r.incumbent_ns > 0);
  r = compare(fast, program_of(long_one), program_of(fast));
  assert_int_equal(r.verdict, BENCH_FASTER);
  assert_true(r.candidate_ns < r.incumbent_ns && r.candidate_ns > 0);
  r = compare(fast, program_of(fast), program_of(wrong));
  assert_int_equal(r.verdict, BENCH_WRONG);
  assert_true(r.candidate_ns == 0);
}

/** A launch of a program with other operands fails, which is a verdict. */
static void programs_that_do_not_fit_fail(void **state) {
  tn_context *c = *state;
  tn_tensor *x = tn_input(c, "x", tn_shape(N), TN_F32),
            *two = tn_input(c, "y", tn_shape(N), TN_F32);
  static float y[N];
  tn_tensor *out = tn_sub(x, two);
  tn_plan *plan;
  tn_binding *b, *one = run_plan(c, tn_neg(x));
  check_ok(c, tn_plan_compile(c, &out, 1, NULL, &plan));
  check_ok(c, tn_plan_bind(plan, &b));
  check_ok(c, tn_binding_input(b, "x", tn_shape(N), TN_F32, y, sizeof y));
  check_ok(c, tn_binding_input(b, "y", tn_shape(N), TN_F32, y, sizeof y));
  check_ok(c, tn_binding_run(b));
  assert_int_equal(compare(one, program_of(one), program_of(b)).verdict, BENCH_FAILED);
}

/** x = 2 x grows beyond all numbers unless each measurement begins anew. */
static void operands_that_are_changed_in_place_are_restored(void **state) {
  tn_context *c = *state;
  static float x[N];
  tn_tensor *s = tn_state(tn_from_host(c, tn_shape(N), TN_F32, x, sizeof x));
  tn_assign(s, tn_mul(s, tn_num(c, 2)));
  tn_plan *plan;
  tn_binding *b;
  check_ok(c, tn_plan_compile(c, &s, 1, NULL, &plan));
  check_ok(c, tn_plan_bind(plan, &b));
  check_ok(c, tn_binding_run(b));
  assert_int_equal(program_of(b)->facts.n_globals, 1); /* the operand and the result */
  const bench_result r = compare(b, program_of(b), program_of(b));
  assert_true(r.verdict == BENCH_SLOWER || r.verdict == BENCH_FASTER); /* by chance */
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(integers_are_equal_exactly),
      cmocka_unit_test(floats_have_a_tolerance),
      cmocka_unit_test_setup_teardown(programs_are_told_apart, open_context, close_context),
      cmocka_unit_test_setup_teardown(programs_that_do_not_fit_fail, open_context, close_context),
      cmocka_unit_test_setup_teardown(operands_that_are_changed_in_place_are_restored, open_context,
                                      close_context),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
