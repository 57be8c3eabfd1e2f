/* Tests run profiles: the steps, bytes, memory and times that a binding reports of its last run. */
#include "support/tensor_check.h"

#include "base/thread.h"

#include <tenon/profile.h>
#include <tenon/unstable/queue.h>

enum { N = 48, K = 32, SLEEP = 3000000 };

static tn_status sleep_a_while(void *user, tn_call *call) {
  (void)user;
  tn_array from = tn_call_in(call, 0), to = tn_call_out(call, 0);
  memcpy(to.data, from.data, N * sizeof(float));
  for (int64_t end = clock_now_ns() + SLEEP; clock_now_ns() < end;) thread_spin_hint();
  return TN_OK;
}

/** Compiles sums of columns, passed through a host function, and their doubles. */
static tn_binding *bind(tn_context *c) {
  tn_dim n = tn_dim_var(c, "n", 1, 1000);
  tn_tensor *x = tn_input(c, "x", tn_shape(n, N), TN_F32), *out, *passed;
  tn_tensor *sum = tn_sum(tn_mul(x, x), tn_axes(0), false);
  tn_custom_desc desc = TN_CUSTOM_DESC_INIT;
  desc.name = "sleep";
  desc.run = sleep_a_while;
  tn_type type = {TN_F32, tn_shape(N)};
  tn_custom(c, &desc, &sum, 1, &type, &passed, 1);
  out = tn_add(passed, passed);
  return bind_compiled(c, &out, 1, NULL);
}

static float data[N * K];

static void run(tn_binding *b, int64_t k) {
  tn_binding_input(b, "x", tn_shape(k, N), TN_F32, data, (size_t)(N * k) * sizeof *data);
  check_bound(b, tn_binding_run(b));
}

static tn_step step_at(tn_binding *b, size_t i) {
  tn_step s = TN_STEP_INIT;
  check_bound(b, tn_binding_step(b, i, &s));
  return s;
}

static void steps_tell_what_they_do(void **state) {
  tn_binding *b = bind(*state);
  tn_step none = TN_STEP_INIT;
  assert_int_equal(tn_binding_step(b, 0, &none), TN_ERR_ARGUMENT); /* there is no variant yet */
  tn_binding_input(b, "x", tn_shape(K, N), TN_F32, data, sizeof data);
  check_bound(b, tn_binding_prepare(b));
  assert_true(step_at(b, 0).operations == 0); /* before a run */
  run(b, K);
  tn_step first = step_at(b, 0), host = step_at(b, 1), last = step_at(b, 2);
  assert_non_null(strstr(first.name, "reduce add"));
  assert_true(first.operations == 2 * N * K);
  assert_true(first.bytes == (N * K + N) * sizeof(float));
  assert_int_equal(host.kernel, -1);
  assert_true(host.operations == 0 && host.bytes == 2 * N * sizeof(float));
  assert_true(last.operations == N && last.bytes == 2 * N * sizeof(float));
  assert_true(first.kernel >= 0 && last.kernel >= 0 && first.kernel != last.kernel);
  assert_int_equal(first.begin, 0);
  assert_int_equal(last.end, 0); /* not profiled */
  run(b, 1);
  assert_true(step_at(b, 0).operations == 2 * N);
}

/** Steps describe the last run, not inputs set since, even after tn_binding_memory. */
static void steps_are_those_of_the_last_run(void **state) {
  tn_binding *b = bind(*state);
  tn_memory m = TN_MEMORY_INIT;
  tn_binding_input(b, "x", tn_shape(K, N), TN_F32, data, sizeof data);
  check_bound(b, tn_binding_memory(b, &m));
  assert_true(step_at(b, 0).operations == 0);
  for (int64_t k = 1; k <= K; k *= 2) {
    run(b, k);
    tn_binding_input(b, "x", tn_shape(K + 1 - k, N), TN_F32, data, sizeof data / K * (K + 1 - k));
    assert_true(step_at(b, 0).operations == 2 * N * k);
    check_bound(b, tn_binding_memory(b, &m));
    assert_true(step_at(b, 0).operations == 2 * N * k);
    assert_true(step_at(b, 1).bytes == 2 * N * sizeof(float));
  }
}

/** Results are the last run's, even after tn_binding_memory with other inputs. */
static void results_are_those_of_the_last_run(void **state) {
  tn_context *c = *state;
  tn_dim n = tn_dim_var(c, "n", 1, K);
  tn_tensor *out = tn_add(tn_input(c, "x", tn_shape(n, N), TN_F32), tn_num(c, 1));
  tn_memory m = TN_MEMORY_INIT;
  static float got[N * K];
  tn_binding *b = bind_compiled(c, &out, 1, NULL);
  run(b, K);
  run(b, 2);
  tn_binding_input(b, "x", tn_shape(3, N), TN_F32, data, 3 * N * sizeof *data);
  check_bound(b, tn_binding_memory(b, &m));
  assert_int_equal(m.outputs, 3 * N * sizeof(float));
  assert_int_equal(tn_binding_type(b, "0").shape.size[0], 2);
  check_bound(b, tn_binding_read(b, "0", TN_F32, got, 2 * N * sizeof *got));
  assert_int_equal(tn_binding_read(b, "0", TN_F32, got, 3 * N * sizeof *got), TN_ERR_ARGUMENT);
}

/** Sums over all steps of the last run. */
static tn_step all_steps(tn_binding *b) {
  tn_step s = TN_STEP_INIT, all = TN_STEP_INIT;
  for (size_t i = 0; tn_binding_step(b, i, &s) == TN_OK; i++) {
    all.operations += s.operations;
    all.bytes += s.bytes;
    all.times += s.times;
  }
  return all;
}

/** Counts follow from sizes that the run computed, as the trips of a loop. */
static void computed_sizes_count(void **state) {
  tn_context *c = *state;
  tn_tensor *x = tn_input(c, "x", tn_shape(N), TN_F32);
  tn_tensor *n = tn_sum(tn_cast(tn_gt(x, tn_num(c, 0)), TN_I64), TN_ALL, false);
  tn_tensor *out = tn_exp(tn_arange(c, 0, tn_dim_item(n, 0, N), 1, TN_F32));
  tn_binding *b = bind_compiled(c, &out, 1, NULL);
  tn_step before = TN_STEP_INIT;
  for (size_t k = 0; k <= N; k += N / 2) {
    float in[N];
    for (size_t i = 0; i < N; i++) in[i] = i < k;
    check_bound(b, tn_binding_input(b, "x", tn_shape(N), TN_F32, in, sizeof in));
    check_bound(b, tn_binding_run(b));
    tn_step now = all_steps(b);
    if (k) assert_true(now.operations >= before.operations + N / 2);
    if (k) assert_true(now.bytes == before.bytes + N / 2 * sizeof(float));
    before = now;
  }
}

static void then_call(void *user, tn_tensor *out[]) { out[0] = ((tn_tensor **)user)[0]; }
static void else_take(void *user, tn_tensor *out[]) { out[0] = ((tn_tensor **)user)[1]; }

/** Steps of the side of a branch that is not taken are left out. */
static void skipped_steps_do_not_count(void **state) {
  tn_context *c = *state;
  tn_tensor *x = tn_input(c, "x", tn_shape(N), TN_F32), *sides[2] = {NULL, x}, *out;
  tn_custom_desc desc = TN_CUSTOM_DESC_INIT;
  desc.run = sleep_a_while;
  tn_type type = {TN_F32, tn_shape(N)};
  tn_custom(c, &desc, &x, 1, &type, &sides[0], 1);
  const tn_cond_desc d = {sizeof d, then_call, else_take, sides};
  tn_cond(c, tn_gt(tn_sum(x, TN_ALL, false), tn_num(c, 0)), &d, &out, 1);
  tn_binding *b = bind_compiled(c, &out, 1, NULL);
  for (int k = 0; k < 4; k++) {
    float in[N] = {k % 2 ? 1 : -1};
    check_bound(b, tn_binding_input(b, "x", tn_shape(N), TN_F32, in, sizeof in));
    check_bound(b, tn_binding_run(b));
    tn_step s = TN_STEP_INIT;
    size_t host = 0;
    while (step_at(b, host).kernel >= 0) host++;
    s = step_at(b, host);
    assert_int_equal(s.times, k % 2);
    assert_true(s.bytes == (k % 2 ? 2 * N * sizeof(float) : 0));
  }
}

/** Adds three rows to a large array in place: of it, these count. */
static void bytes_of_updates_are_those_of_the_rows(void **state) {
  tn_context *c = *state;
  enum { ROWS = 3 };
  static float rows[ROWS * N];
  const int64_t at[ROWS] = {5, 1, 5};
  tn_tensor *x = tn_input(c, "x", tn_shape(ROWS, N), TN_F32);
  tn_tensor *i = tn_input(c, "i", tn_shape(ROWS, 1), TN_I64);
  tn_tensor *to = tn_full(c, tn_shape(K, N), TN_F32, 2);
  tn_tensor *out = tn_scatter_nd(to, i, x, TN_REDUCTION_ADD);
  tn_binding *b = bind_compiled(c, &out, 1, NULL);
  check_bound(b, tn_binding_input(b, "x", tn_shape(ROWS, N), TN_F32, rows, sizeof rows));
  check_bound(b, tn_binding_input(b, "i", tn_shape(ROWS, 1), TN_I64, at, sizeof at));
  check_bound(b, tn_binding_run(b));
  assert_true(step_at(b, 0).bytes == K * N * sizeof(float));
  assert_true(step_at(b, 1).bytes == sizeof at + 3 * sizeof rows); /* rows, and old and new sums */
}

/** Reads a part of a large array: only that counts. */
static void bytes_are_those_that_are_read(void **state) {
  tn_context *c = *state;
  tn_tensor *x = tn_input(c, "x", tn_shape(K, N), TN_F32);
  tn_tensor *part = tn_slice(x, 0, 3, 5, 1), *out = tn_add(part, tn_num(c, 1));
  tn_binding *b = bind_compiled(c, &out, 1, NULL);
  run(b, K);
  assert_true(step_at(b, 0).bytes == 2 * 2 * N * sizeof(float));
}

static void memory_is_known_before_runs(void **state) {
  tn_binding *b = bind(*state);
  tn_memory m = TN_MEMORY_INIT;
  assert_int_equal(tn_binding_memory(b, &m), TN_ERR_ARGUMENT);
  assert_non_null(strstr(tn_binding_message(b), "inputs without a value: x"));
  for (int64_t k = K; k > 0; k /= 4) {
    tn_binding_input(b, "x", tn_shape(k, N), TN_F32, data, (size_t)(N * k) * sizeof *data);
    check_bound(b, tn_binding_memory(b, &m));
    assert_int_equal(m.inputs, N * k * 4);
    assert_int_equal(m.outputs, N * 4);
    assert_int_equal(m.values + m.states, 0);
    assert_int_equal(m.scratch, 2 * N * 4); /* the sums, and the host function's copy */
    check_bound(b, tn_binding_run(b));
  }
  m.size = 8;
  assert_int_equal(tn_binding_memory(b, &m), TN_ERR_ARGUMENT);
  assert_int_equal(tn_binding_memory(b, NULL), TN_ERR_ARGUMENT);
  assert_int_equal(tn_binding_memory(NULL, &m), TN_ERR_ARGUMENT);
}

/** Arrays whose sizes a run computes are numbered and not counted, before and after runs. */
static void computed_sizes_are_not_counted(void **state) {
  tn_context *c = *state;
  tn_tensor *x = tn_input(c, "x", tn_shape(N), TN_F32), *found = tn_nonzero(x);
  tn_tensor *out[] = {found, tn_add(x, tn_num(c, 1)), tn_sum(tn_softmax(found, 0), TN_ALL, false)};
  tn_memory m = TN_MEMORY_INIT;
  tn_binding *b = bind_compiled(c, out, 3, NULL), *plain = bind_compiled(c, out + 1, 1, NULL);
  for (int round = 0; round < 2; round++) {
    tn_binding_input(b, "x", tn_shape(N), TN_F32, data, N * sizeof *data);
    check_bound(b, tn_binding_memory(b, &m));
    assert_true(m.uncounted >= 1);
    assert_int_equal(m.inputs, N * sizeof(float));
    assert_int_equal(m.outputs, N * sizeof(float) + sizeof(float));
    check_bound(b, tn_binding_run(b));
  }
  tn_binding_input(plain, "x", tn_shape(N), TN_F32, data, N * sizeof *data);
  check_bound(plain, tn_binding_memory(plain, &m));
  assert_int_equal(m.uncounted, 0);
}

static void weights_and_states_count(void **state) {
  tn_context *c = *state;
  tn_tensor *w = tn_from_host(c, tn_shape(N, K), TN_F32, data, sizeof data);
  tn_tensor *s = tn_state(tn_from_host(c, tn_shape(K), TN_F32, data, K * sizeof *data));
  tn_tensor *out = tn_sum(tn_mul(w, s), tn_axes(1), false);
  check_ok(c, tn_realize(c, &s, 1));
  tn_memory m = TN_MEMORY_INIT;
  tn_binding *b = bind_compiled(c, &out, 1, NULL);
  check_bound(b, tn_binding_memory(b, &m));
  assert_int_equal(m.values, sizeof data);
  assert_int_equal(m.states, K * 4);
  assert_int_equal(m.outputs, N * 4);
  assert_int_equal(m.scratch, 0);
}

static void profiled_runs_tell_when(void **state) {
  tn_binding *b = bind(*state);
  run(b, K);
  for (int again = 0; again < 3; again++) {
    check_bound(b, tn_binding_profile(b, true));
    check_bound(b, tn_binding_profile(b, true));
    run(b, K - again);
    tn_step first = step_at(b, 0), host = step_at(b, 1), last = step_at(b, 2);
    assert_int_equal(first.begin, 0);
    assert_true(first.begin <= first.end && first.end <= host.begin);
    assert_true(host.end - host.begin >= SLEEP);
    assert_true(host.end <= last.begin && last.begin <= last.end);
    check_bound(b, tn_binding_profile(b, false));
    assert_int_equal(step_at(b, 2).end, 0);
    run(b, K);
    assert_int_equal(step_at(b, 2).end, 0);
  }
}

static void failed_runs_tell_nothing(void **state) {
  tn_binding *b = bind(*state);
  check_bound(b, tn_binding_profile(b, true));
  run(b, K);
  assert_true(step_at(b, 2).end > 0);
  tn_binding_input(b, "none", TN_SCALAR, TN_F32, data, sizeof *data);
  assert_int_equal(tn_binding_run(b), TN_ERR_ARGUMENT);
  assert_int_equal(step_at(b, 2).end, 0);
  run(b, K);
  assert_true(step_at(b, 2).end > 0);
}

static void what_is_not_there_is_refused(void **state) {
  tn_binding *b = bind(*state);
  tn_step s = TN_STEP_INIT;
  s.name = "kept";
  assert_int_equal(tn_binding_step(b, 3, &s), TN_ERR_ARGUMENT);
  assert_string_equal(s.name, "kept");
  assert_string_equal(tn_binding_message(b), "");
  assert_int_equal(tn_binding_step(b, 0, NULL), TN_ERR_ARGUMENT);
  assert_int_equal(tn_binding_step(NULL, 0, &s), TN_ERR_ARGUMENT);
  assert_int_equal(tn_binding_profile(NULL, true), TN_ERR_ARGUMENT);
  s.size = 8;
  assert_int_equal(tn_binding_step(b, 0, &s), TN_ERR_ARGUMENT);
}

static void plans_without_steps_have_none(void **state) {
  tn_context *c = *state;
  tn_tensor *x = tn_input(c, "x", tn_shape(0, 4), TN_F32), *out = tn_add(x, x);
  tn_binding *b = bind_compiled(c, &out, 1, NULL);
  check_bound(b, tn_binding_profile(b, true));
  tn_binding_input(b, "x", tn_shape(0, 4), TN_F32, NULL, 0);
  check_bound(b, tn_binding_run(b));
  tn_step s = TN_STEP_INIT;
  for (size_t i = 0; tn_binding_step(b, i, &s) == TN_OK; i++)
    assert_true(s.operations == 0 && s.bytes == 0);
}

/* Traces. */

enum { MOST_SPANS = 64 };

typedef struct spans {
  tn_trace_span at[MOST_SPANS];
  char names[MOST_SPANS][64];
  size_t n;
  int destroyed;
} spans;

static void add_span(void *user, const tn_trace_span *span) {
  spans *s = user;
  assert_true(s->n < MOST_SPANS && span->size == sizeof *span);
  snprintf(s->names[s->n], sizeof *s->names, "%s", span->name);
  assert_string_equal(span->device, "CPU:0");
  s->at[s->n++] = *span;
}

static void end_spans(void *user) { ((spans *)user)->destroyed++; }

static tn_context *open_traced(spans *s) {
  tn_open_desc desc = TN_OPEN_DESC_INIT;
  *s = (spans){0};
  desc.tracer = (tn_tracer){add_span, s, end_spans};
  return tn_open(&desc);
}

/** Spans of a run: its steps in order, and copies of what the device cannot use as it is. */
static void runs_are_traced(void **state) {
  (void)state;
  static spans s;
  static double wide[N * K], got[N];
  tn_context *c = open_traced(&s);
  tn_binding *b = bind(c);
  int64_t begin = clock_now_ns();
  run(b, K);
  int64_t end = clock_now_ns();
  assert_int_equal(s.n, 3);
  for (size_t i = 0; i < s.n; i++) {
    assert_int_equal(s.at[i].step, i);
    assert_string_equal(s.names[i], step_at(b, i).name);
    assert_true(s.at[i].begin >= (i ? s.at[i - 1].end : begin));
    assert_true(s.at[i].end >= s.at[i].begin && s.at[i].end <= end);
  }
  assert_true(s.at[1].end - s.at[1].begin >= SLEEP);
  tn_binding_input(b, "x", tn_shape(K, N), TN_F64, wide, sizeof wide);
  tn_binding_output(b, "0", TN_F64, got, sizeof got);
  check_bound(b, tn_binding_run(b));
  assert_int_equal(s.n, 8);
  assert_string_equal(s.names[3], "copy of input x");
  assert_string_equal(s.names[7], "copy of output 0");
  assert_int_equal(s.at[3].step, -1);
  assert_true(s.at[3].end <= s.at[4].begin && s.at[6].end <= s.at[7].begin);
  tn_close(c);
  assert_int_equal(s.destroyed, 1);
}

static void double_state(void *user, tn_tensor *index, tn_tensor *const state[],
                         tn_tensor *const x[], tn_tensor *next[], tn_tensor *y[]) {
  (void)user, (void)index, (void)x, (void)y;
  next[0] = tn_add(state[0], state[0]);
}

/** A realised loop: a span for each trip of its step, then its own, which encloses them. */
static void loops_are_traced_by_trip(void **state) {
  (void)state;
  enum { TRIPS = 4 };
  static spans s;
  float got[N];
  tn_context *c = open_traced(&s);
  tn_scan_desc d = TN_SCAN_DESC_INIT;
  d.body = double_state;
  d.steps = TRIPS;
  tn_tensor *init = tn_from_host(c, tn_shape(N), TN_F32, data, sizeof got), *out;
  tn_scan(c, &d, &init, 1, NULL, 0, &out, 0);
  check_ok(c, tn_read(out, TN_F32, got, sizeof got));
  size_t trips = 0, loops = 0;
  for (size_t i = 0; i < s.n; i++) {
    bool is_loop = !strcmp(s.at[i].queue, "host");
    trips += !is_loop && s.at[i].step == 1;
    loops += is_loop;
    if (is_loop) assert_true(trips == TRIPS && s.at[i].begin <= s.at[0].begin);
  }
  assert_int_equal(trips, TRIPS);
  assert_int_equal(loops, 1);
  tn_close(c);
}

#define WITH(test) cmocka_unit_test_setup_teardown(test, open_context, close_context)

int main(void) {
  const struct CMUnitTest tests[] = {
      WITH(steps_tell_what_they_do),
      WITH(steps_are_those_of_the_last_run),
      WITH(results_are_those_of_the_last_run),
      WITH(profiled_runs_tell_when),
      WITH(failed_runs_tell_nothing),
      WITH(what_is_not_there_is_refused),
      WITH(plans_without_steps_have_none),
      WITH(computed_sizes_count),
      WITH(skipped_steps_do_not_count),
      WITH(bytes_are_those_that_are_read),
      WITH(bytes_of_updates_are_those_of_the_rows),
      WITH(memory_is_known_before_runs),
      WITH(computed_sizes_are_not_counted),
      WITH(weights_and_states_count),
      cmocka_unit_test(runs_are_traced),
      cmocka_unit_test(loops_are_traced_by_trip),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
