/* Tests the graphs that plans make of kernels on a backend that has them, by the reference backend,
   which runs a graph's works in a random order that its edges allow, and counts what it is asked
   for: results, what is told when launches change, and faults at each function. */
#include "../backend/ref.c"
#include "support/tensor_check.h"

#include <tenon/unstable/queue.h>
#include <tenon/unstable/schedule.h>

enum { N = 6, TRIPS = 5 };

/* The backend without graphs. */
static tn_backend plain;

/* Warnings of the context, and the last one. */
static int warnings;
static char warning[256];

static void take_line(void *user, tn_log_level level, const char *text) {
  (void)user;
  if (level != TN_LOG_WARNING) return;
  warnings++;
  snprintf(warning, sizeof warning, "%s", text);
}

static int set_up(void **state) {
  tn_open_desc desc = TN_OPEN_DESC_INIT;
  plain = ref_backend;
  plain.name = "PLAIN";
  plain.graphs = NULL;
  tn_context *first = tn_open(NULL);
  if (tn_backend_add(first, &ref_backend) || tn_backend_add(first, &plain)) return 1;
  tn_close(first);
  desc.device = "REF";
  desc.logger = (tn_logger){take_line, NULL, NULL};
  *state = tn_open(&desc);
  warnings = 0;
  atomic_store(&ref_makes, 0);
  atomic_store(&ref_sets, 0);
  atomic_store(&ref_runs, 0);
  return !*state;
}

static int tear_down(void **state) {
  atomic_store(&ref_fails_make, false);
  atomic_store(&ref_fails_set, false);
  atomic_store(&ref_fails_run, 0);
  atomic_store(&ref_loses_run, false);
  atomic_store(&ref_is_lost[0], false);
  return tn_close(*state) != TN_OK;
}

/** Three kernels: each takes the sum of all that the one before it computed. */
static tn_tensor *three_sums(tn_context *c, tn_tensor *x) {
  for (int i = 0; i < 3; i++) x = tn_cumsum(tn_add(x, tn_num(c, 1)), 0);
  return x;
}

static void sum_up(float x[], size_t n) {
  for (int i = 0; i < 3; i++)
    for (size_t k = 0; k < n; k++) x[k] += 1 + (k ? x[k - 1] : 0);
}

static tn_binding *bind_sums(tn_context *c, tn_dim n) {
  tn_tensor *y = three_sums(c, tn_input(c, "x", tn_shape(n), TN_F32));
  return bind_compiled(c, &y, 1, NULL);
}

/** Sums of up to N numbers, by one plan for all. */
static tn_binding *bind_open_sums(tn_context *c) {
  tn_plan_desc desc = TN_PLAN_DESC_INIT;
  desc.variants = TN_VARIANTS_ONE;
  tn_tensor *y = three_sums(c, tn_input(c, "x", tn_shape(tn_dim_var(c, "n", 1, N)), TN_F32));
  return bind_compiled(c, &y, 1, &desc);
}

/** Runs on n numbers from `first` on, which later runs may read, and compares the result. */
static void check_run(tn_binding *b, size_t n, float first) {
  static float x[N];
  for (size_t i = 0; i < n; i++) x[i] = first + (float)i;
  check_bound(b, tn_binding_input(b, "x", tn_shape((tn_dim)n), TN_F32, x, n * sizeof *x));
  check_bound(b, tn_binding_run(b));
  sum_up(x, n);
  check_output_floats(b, "0", n, x);
}

/** Describes the only kernels of a run; NULL: they are a graph. */
static const char *why_none(tn_binding *b, size_t *kernels) {
  tn_kernel_run run = TN_KERNEL_RUN_INIT;
  check_bound(b, tn_binding_kernel_run(b, 0, &run));
  assert_int_equal(run.is_graph, !run.why[0]);
  assert_int_equal(tn_binding_kernel_run(b, 1, &run), TN_ERR_ARGUMENT);
  *kernels = run.kernels;
  return run.is_graph ? NULL : run.why;
}

static void check_why(tn_binding *b, const char *why) {
  size_t kernels;
  const char *said = why_none(b, &kernels);
  if (!why) assert_null(said);
  if (why) check_text(said, why);
  assert_true(kernels > 1);
}

static void the_second_run_makes_a_graph(void **state) {
  tn_binding *b = bind_sums(*state, N);
  tn_kernel_run run = TN_KERNEL_RUN_INIT;
  assert_int_equal(tn_binding_kernel_run(b, 0, &run), TN_ERR_ARGUMENT);
  check_run(b, N, 1);
  check_why(b, "it ran once at most");
  assert_int_equal(ref_makes, 0);
  for (int i = 0; i < 4; i++) check_run(b, N, (float)i);
  check_why(b, NULL);
  check_bound(b, tn_binding_kernel_run(b, 0, &run));
  assert_string_equal(run.device, "REF:0");
  assert_int_equal(ref_makes, 1);
  assert_int_equal(ref_runs, 4);
  assert_int_equal(ref_sets, 0); /* nothing changed but data */
}

/** Kernels of an open size get its value with each launch. */
static void changes_are_told(void **state) {
  tn_binding *b = bind_open_sums(*state);
  for (size_t n = 1; n <= N; n++) check_run(b, n, 2);
  size_t sets = ref_sets;
  assert_true(ref_makes && sets);
  check_run(b, N, 3);
  assert_int_equal(ref_sets, sets);
  assert_int_equal(ref_runs, N);
}

/** Memory that is freed may come again under the same handle, so all works are set anew. */
static void works_are_set_after_memory_was_freed(void **state) {
  tn_context *c = *state;
  tn_binding *b = bind_sums(c, N), *other = bind_sums(c, 2 * N);
  float x[2 * N] = {0};
  tn_device *device;
  tn_failure f;
  assert_int_equal(tn_device_open(c, "REF", &device, &f), TN_OK);
  for (int i = 0; i < 3; i++) check_run(b, N, 2);
  assert_int_equal(ref_sets, 0);
  check_bound(other, tn_binding_input(other, "x", tn_shape(2 * N), TN_F32, x, sizeof x));
  check_bound(other, tn_binding_run(other));
  tn_binding_free(other);
  tn_device_trim(device, 0);
  check_run(b, N, 3);
  assert_int_equal(ref_sets, 3);
  check_run(b, N, 4);
  assert_int_equal(ref_sets, 3);
}

static void sum_body(void *user, tn_tensor *index, tn_tensor *const state[], tn_tensor *const x[],
                     tn_tensor *next[], tn_tensor *y[]) {
  (void)index, (void)x, (void)y;
  next[0] = three_sums(user, state[0]);
}

/** The trips of a loop read and write two arrays by turns. */
static void trips_of_loops_are_runs(void **state) {
  tn_context *c = *state;
  tn_scan_desc d = TN_SCAN_DESC_INIT;
  float x[] = {1, 2};
  tn_tensor *in = tn_input(c, "x", tn_shape(2), TN_F32), *out;
  d.body = sum_body;
  d.user = c;
  d.steps = TRIPS;
  tn_scan(c, &d, &in, 1, NULL, 0, &out, 0);
  tn_binding *b = bind_compiled(c, &out, 1, NULL);
  check_bound(b, tn_binding_input(b, "x", tn_shape(2), TN_F32, x, sizeof x));
  check_bound(b, tn_binding_run(b));
  for (int i = 0; i < TRIPS; i++) sum_up(x, 2);
  check_output_floats(b, "0", 2, x);
  check_why(b, NULL);
  assert_int_equal(ref_makes, 1);
  assert_int_equal(ref_runs, TRIPS - 1);
  assert_true(ref_sets >= TRIPS - 2);
}

static void a_graph_that_is_not_made_is_a_list(void **state) {
  tn_binding *b = bind_sums(*state, N);
  atomic_store(&ref_fails_make, true);
  for (int i = 0; i < 3; i++) check_run(b, N, (float)i);
  check_why(b, "REF makes no graph");
  check_text(warning, "3 kernels of REF:0 are no graph: REF makes no graph");
  assert_int_equal(warnings, 1);
  atomic_store(&ref_fails_make, false);
  check_run(b, N, 1);
  assert_int_equal(ref_makes, 0); /* one try */
}

static void a_graph_that_is_not_changed_is_a_list(void **state) {
  tn_binding *b = bind_open_sums(*state);
  for (size_t n = 2; n <= N; n++) check_run(b, n, 2);
  check_why(b, NULL);
  atomic_store(&ref_fails_set, true);
  check_run(b, N - 1, 2);
  check_why(b, "REF sets no work");
  check_text(warning, "3 kernels of REF:0 are no graph: REF sets no work");
  size_t runs = ref_runs;
  check_run(b, N, 2);
  assert_int_equal(ref_runs, runs);
}

/** A run that the backend refuses is done by its kernels, each once, and so are later ones; the
    logger is told once. */
static void a_run_that_is_refused_is_a_list(void **state) {
  tn_binding *b = bind_sums(*state, N);
  check_run(b, N, 2);
  size_t before = ref_works;
  check_run(b, N, 3);
  const size_t works = ref_works - before, runs = ref_runs;
  check_why(b, NULL);
  assert_true(works >= 3 && runs == 1 && !warnings);
  atomic_store(&ref_fails_run, TN_ERR_MEMORY);
  for (int i = 0; i < 3; i++) {
    before = ref_works;
    check_run(b, N, (float)i);
    assert_int_equal(ref_works - before, works);
    check_why(b, "REF runs no graph");
    assert_int_equal(warnings, 1);
    check_text(warning, "3 kernels of REF:0 are no graph: REF runs no graph");
    atomic_store(&ref_fails_run, 0); /* it is not tried again */
  }
  assert_int_equal(ref_runs, runs);
  tn_binding *other = bind_sums(*state, N);
  for (int i = 0; i < 2; i++) check_run(other, N, 4);
  check_why(other, NULL);
  assert_int_equal(warnings, 1);
}

/** A loss that handing a graph over finds is no refusal: nobody knows what began. */
static void a_loss_of_the_device_fails_the_run(void **state) {
  tn_binding *b = bind_sums(*state, N);
  for (int i = 0; i < 2; i++) check_run(b, N, 2);
  atomic_store(&ref_fails_run, TN_ERR_DEVICE);
  assert_int_equal(tn_binding_run(b), TN_ERR_DEVICE);
  check_text(tn_binding_message(b), "REF runs no graph");
  atomic_store(&ref_fails_run, 0);
  assert_int_equal(tn_binding_run(b), TN_ERR_DEVICE);
  assert_int_equal(warnings, 0);
}

/** Works of a graph that the stream has fail the run: they are not run again. */
static void a_loss_in_flight_fails_the_run(void **state) {
  tn_binding *b = bind_sums(*state, N);
  for (int i = 0; i < 2; i++) check_run(b, N, 2);
  assert_int_equal(ref_runs, 1);
  atomic_store(&ref_loses_run, true);
  assert_int_equal(tn_binding_run(b), TN_ERR_DEVICE);
  assert_int_equal(ref_runs, 2); /* the graph was handed over */
  assert_int_equal(warnings, 0);
}

static void profiles_are_of_single_kernels(void **state) {
  tn_binding *b = bind_sums(*state, N);
  check_bound(b, tn_binding_profile(b, true));
  for (int i = 0; i < 3; i++) check_run(b, N, 2);
  tn_kernel_run run = TN_KERNEL_RUN_INIT;
  check_bound(b, tn_binding_kernel_run(b, 0, &run));
  assert_int_equal(run.kernels, 1);
  check_text(run.why, "times of its steps");
  assert_int_equal(ref_makes, 0);
  check_bound(b, tn_binding_profile(b, false));
  for (int i = 0; i < 2; i++) check_run(b, N, 2);
  check_why(b, NULL);
}

/** Steps that are left out are no part of a graph; those that stay are one. */
static void reused_steps_are_left_out(void **state) {
  tn_context *c = *state;
  float x[N] = {1, 2, 3}, z[N] = {4, 5, 6}, sums[2][N];
  tn_tensor *out[] = {three_sums(c, tn_input(c, "x", tn_shape(N), TN_F32)),
                      three_sums(c, tn_input(c, "z", tn_shape(N), TN_F32))};
  tn_binding *b = bind_compiled(c, out, 2, NULL);
  check_bound(b, tn_binding_input(b, "x", tn_shape(N), TN_F32, x, sizeof x));
  check_bound(b, tn_binding_reuse(b, true));
  size_t most = 0, kernels;
  for (int i = 0; i < 4; i++) {
    z[0] = (float)i;
    check_bound(b, tn_binding_input(b, "z", tn_shape(N), TN_F32, z, sizeof z));
    check_bound(b, tn_binding_run(b));
    memcpy(sums[0], x, sizeof x);
    memcpy(sums[1], z, sizeof z);
    sum_up(sums[0], N);
    sum_up(sums[1], N);
    check_output_floats(b, "0", N, sums[0]);
    check_output_floats(b, "1", N, sums[1]);
    const char *why = why_none(b, &kernels);
    if (!i) most = kernels;
    if (i == 3) assert_null(why);
  }
  assert_int_equal(kernels, most / 2);
}

static void every_device_has_its_own(void **state) {
  tn_context *c = *state;
  tn_tensor *x = tn_input(c, "x", tn_shape(N), TN_F32);
  tn_tensor *y = three_sums(c, tn_to(three_sums(c, x), "REF:1")), *z = tn_to(y, "REF:0");
  tn_binding *b = bind_compiled(c, &z, 1, NULL);
  float data[N] = {3, 1}, sums[N];
  check_bound(b, tn_binding_input(b, "x", tn_shape(N), TN_F32, data, sizeof data));
  for (int i = 0; i < 3; i++) {
    data[1] = (float)i;
    check_bound(b, tn_binding_run(b));
    memcpy(sums, data, sizeof data);
    sum_up(sums, N);
    sum_up(sums, N);
    check_output_floats(b, "0", N, sums);
  }
  tn_kernel_run run = TN_KERNEL_RUN_INIT;
  size_t n = 0;
  for (; tn_binding_kernel_run(b, n, &run) == TN_OK; n++) assert_true(run.is_graph);
  assert_int_equal(n, 2);
  assert_string_equal(run.device, "REF:1");
  assert_int_equal(ref_makes, 2);
}

static void other_backends_say_why(void **state) {
  (void)state;
  static const char *const devices[] = {"PLAIN", "CPU"};
  for (int i = 0; i < 2; i++) {
    tn_open_desc desc = TN_OPEN_DESC_INIT;
    desc.device = devices[i];
    tn_context *c = tn_open(&desc);
    tn_binding *b = bind_sums(c, N);
    for (int k = 0; k < 3; k++) check_run(b, N, 1);
    check_why(b, "its backend has no graphs");
    check_ok(c, tn_close(c));
  }
}

/** A second run of the sums on a device of its own, of which one allocation fails; 0: none. */
static tn_status run_twice(counting *memory, size_t fail_at, size_t *calls) {
  float x[N] = {1, 2, 3}, got[N];
  tn_context *c = open_counting(memory, NULL);
  check_ok(c, tn_backend_add(c, &ref_backend));
  tn_tensor *y = three_sums(c, tn_to(tn_input(c, "x", tn_shape(N), TN_F32), "REF"));
  tn_binding *b = bind_compiled(c, &y, 1, NULL);
  check_bound(b, tn_binding_input(b, "x", tn_shape(N), TN_F32, x, sizeof x));
  check_bound(b, tn_binding_run(b));
  size_t before = atomic_load(&memory->calls);
  memory->fail_at = fail_at ? before + fail_at : 0;
  tn_status s = tn_binding_run(b);
  *calls = atomic_load(&memory->calls) - before;
  if (!s) s = tn_binding_read(b, "0", TN_F32, got, sizeof got);
  sum_up(x, N);
  if (!s) assert_memory_equal(got, x, sizeof x);
  check_ok(c, tn_close(c));
  assert_int_equal(atomic_load(&memory->out), 0);
  atomic_store(&ref_is_lost[0], false);
  return s;
}

/** Each allocation of a second run fails once: a graph that lacks memory is a list. What lacks it
   in the device itself loses that. */
static void lack_of_memory_is_told(void **state) {
  (void)state;
  counting memory = {0};
  size_t calls, ignored, n_lists = 0;
  assert_int_equal(run_twice(&memory, 0, &calls), TN_OK);
  assert_int_equal(ref_makes, 1);
  for (size_t i = 1; i <= calls; i++) {
    size_t makes = ref_makes;
    tn_status s = run_twice(&memory, i, &ignored);
    assert_true(s == TN_OK || s == TN_ERR_MEMORY || s == TN_ERR_DEVICE);
    n_lists += !s && ref_makes == makes;
  }
  assert_true(n_lists > 5);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
  const struct CMUnitTest tests[] = {
      TEST(the_second_run_makes_a_graph),
      TEST(changes_are_told),
      TEST(works_are_set_after_memory_was_freed),
      TEST(trips_of_loops_are_runs),
      TEST(a_graph_that_is_not_made_is_a_list),
      TEST(a_graph_that_is_not_changed_is_a_list),
      TEST(a_run_that_is_refused_is_a_list),
      TEST(a_loss_of_the_device_fails_the_run),
      TEST(a_loss_in_flight_fails_the_run),
      TEST(profiles_are_of_single_kernels),
      TEST(reused_steps_are_left_out),
      TEST(every_device_has_its_own),
      TEST(other_backends_say_why),
      TEST(lack_of_memory_is_told),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
