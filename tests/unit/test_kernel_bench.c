/* Tests the measurements of the tuner: results of schedules are compared by the type's tolerance
   (tune/same_results.h), calls of a kernel that changes its operand find it as it was
   (tune/kernel_trial.h), and a kernel's programs are told apart as faster, slower or wrong
   (tune/kernel_bench.h). */
#include "device/memory/span.h"
#include "support/tensor_check.h"
#include "tensor/plan/binding.h"
#include "tune/kernel_bench.h"
#include "tune/same_results.h"

#include <math.h>

enum { N = 4096, ALL_BYTES = 1 << 20, COPIES = ALL_BYTES / (N * sizeof(float)) + 1 };

static void integers_are_equal_exactly(void **state) {
  (void)state;
  const int64_t x[] = {1, 2, INT64_C(1) << 60}, y[] = {1, 2, (INT64_C(1) << 60) + 1};
  const int16_t small[] = {1, 2, 3, 4}, other[] = {1, 2, 3, 5};
  assert_true(same_results(DT_I64, x, x, 3) && same_results(DT_I64, y, x, 2));
  assert_false(same_results(DT_I64, y, x, 3)); /* as f64 they are equal */
  assert_false(same_results(DT_U64, y, x, 3));
  assert_true(same_results(DT_I16, small, other, 3));
  assert_false(same_results(DT_I16, small, other, 4));
  assert_false(same_results(DT_BOOL, (const bool[]){true}, (const bool[]){false}, 1));
  assert_true(same_results(DT_I64, NULL, NULL, 0) && same_results(DT_F32, NULL, NULL, 0));
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

static kernel_trial *open_trial(tn_binding *b, diag *d) {
  kernel_trial *k;
  if (kernel_trial_open(&k, b->execution, 0, ALL_BYTES, d)) fail_msg("%s", d->text);
  return k;
}

static bench_result compare(tn_binding *b, tn_program *incumbent, tn_program *candidate) {
  bench_result r;
  diag d = {0};
  kernel_trial *k = open_trial(b, &d);
  if (kernel_bench_compare(k, incumbent, candidate, &r, &d)) fail_msg("%s", d.text);
  kernel_trial_close(k);
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

/** A launch of a program with other operands fails, which is a verdict; but not if no program of
   the kernel can be run. */
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
  bench_result r;
  diag d = {0};
  kernel_trial *k = open_trial(one, &d);
  assert_int_equal(kernel_bench_compare(k, program_of(b), program_of(b), &r, &d), TN_ERR_INTERNAL);
  check_text(d.text, "reads a buffer of no other");
  assert_int_equal(kernel_bench_compare(k, program_of(one), program_of(b), &r, &d), TN_OK);
  assert_int_equal(r.verdict, BENCH_FAILED);
  kernel_trial_close(k);
}

static void read_copy(const kernel_trial *k, size_t copy, float to[N], diag *d) {
  tn_span span;
  assert_true(kernel_trial_operand(k, copy, 0, &span));
  assert_int_equal(span_read(&span, DT_F32, DT_F32, to, N, d), TN_OK);
}

typedef struct timing {
  kernel_trial *trial;
  trial_program program;
} timing;

static void time_calls(void *arg) {
  timing *t = arg;
  kernel_trial_prepare(t->trial, &t->program, 1);
  assert_true(kernel_trial_agrees(t->trial, &t->program));
  assert_true(kernel_trial_time(t->trial, &t->program, 10 * COPIES) > 0);
  assert_true(kernel_trial_agrees(t->trial, &t->program));
}

/** x = 2 x grows beyond all numbers unless each call begins anew. */
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
  diag d = {0};
  timing t = {open_trial(b, &d), {program_of(b), NULL}};
  assert_int_equal(diag_catch(&d, time_calls, &t), TN_OK);
  static float before[N], after[N];
  tn_span none;
  read_copy(t.trial, COPIES, before, &d);
  for (size_t i = 0; i < COPIES; i++) {
    read_copy(t.trial, i, after, &d);
    for (size_t k = 0; k < N; k++) assert_true(after[k] == 2 * before[k]);
  }
  assert_false(kernel_trial_operand(t.trial, COPIES + 1, 0, &none));
  assert_false(kernel_trial_operand(t.trial, 0, 1, &none));
  kernel_trial_close(t.trial);
  bench_result r = compare(b, program_of(b), program_of(b));
  assert_true(r.verdict == BENCH_SLOWER || r.verdict == BENCH_FASTER); /* by chance */
}

/** Checks that each copy of an operand of a step holds these integers. */
static void check_integers(tn_binding *b, size_t step, size_t operand, const int64_t x[],
                           size_t n) {
  kernel_trial *k;
  diag d = {0};
  static int64_t got[64 * 4096];
  tn_span span;
  if (kernel_trial_open(&k, b->execution, step, ALL_BYTES, &d)) fail_msg("%s", d.text);
  for (size_t copy = 0; kernel_trial_operand(k, copy, operand, &span); copy++) {
    assert_int_equal(span.bytes, n * sizeof *x);
    assert_int_equal(span_read(&span, DT_I64, DT_I64, got, n, &d), TN_OK);
    assert_memory_equal(got, x, n * sizeof *x);
  }
  kernel_trial_close(k);
}

/** Indices are those of a run: of an input, and of a buffer that another step writes, whose memory
    a later step uses again. */
static void integers_have_the_values_of_a_run(void **state) {
  tn_context *c = *state;
  enum { ROWS = 64, EACH = 4096 };
  static int64_t index[ROWS * EACH], sums[ROWS];
  static float x[N];
  for (int64_t i = 0; i < ROWS * EACH; i++) index[i] = i % EACH == i / EACH ? i % 50 : 0;
  for (int64_t i = 0; i < ROWS * EACH; i++) sums[i / EACH] += index[i];
  tn_tensor *table = tn_input(c, "x", tn_shape(N), TN_F32);
  tn_tensor *at = tn_sum(tn_input(c, "i", tn_shape(ROWS, EACH), TN_I64), tn_axes(1), false);
  tn_tensor *rows = tn_reshape(tn_take(table, at, 0), tn_shape(ROWS, 1));
  tn_tensor *out = tn_exp(tn_mul(rows, tn_reshape(rows, tn_shape(1, ROWS))));
  for (int i = 0; i < 4; i++) {
    out = tn_matmul(tn_tanh(out), out);
    if (!i) out = tn_add(out, rows);
  }
  tn_binding *b = bind_compiled(c, &out, 1, NULL);
  check_ok(c, tn_binding_input(b, "x", tn_shape(N), TN_F32, x, sizeof x));
  check_ok(c, tn_binding_input(b, "i", tn_shape(ROWS, EACH), TN_I64, index, sizeof index));
  check_ok(c, tn_binding_run(b));
  const executable *p = b->variant->executable;
  size_t n_inputs = 0, n_others = 0;
  for (size_t step = 0; step < executable_steps(p); step++) {
    for (size_t i = 0; i < p->steps[step].n_buffers; i++) {
      const executable_buffer *of = &p->buffers[p->steps[step].buffers[i]];
      if (of->dtype != DT_I64 || (of->role != BUFFER_ROLE_INPUT && step == of->first)) continue;
      bool is_input = of->role == BUFFER_ROLE_INPUT;
      n_inputs += is_input;
      n_others += !is_input;
      check_integers(b, step, i, is_input ? index : sums, is_input ? ROWS * EACH : ROWS);
    }
  }
  assert_true(n_inputs == 1 && n_others >= 1);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(integers_are_equal_exactly),
      cmocka_unit_test(floats_have_a_tolerance),
      cmocka_unit_test_setup_teardown(programs_are_told_apart, open_context, close_context),
      cmocka_unit_test_setup_teardown(programs_that_do_not_fit_fail, open_context, close_context),
      cmocka_unit_test_setup_teardown(operands_that_are_changed_in_place_are_restored, open_context,
                                      close_context),
      cmocka_unit_test_setup_teardown(integers_have_the_values_of_a_run, open_context,
                                      close_context),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
