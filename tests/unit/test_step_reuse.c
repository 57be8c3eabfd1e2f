/* Tests bindings that leave out steps whose operands did not change (tn_binding_reuse): which steps
   run, and that results are the same bits as without, over random plans, inputs and orders, with
   states, host functions, loops, carried outputs and sizes that vary. */
#include "support/tensor_check.h"

#include <tenon/profile.h>

enum { N = 24, M = 16 };

static uint64_t next_random(uint64_t *seed) {
  *seed = *seed * 6364136223846793005u + 1442695040888963407u;
  return *seed >> 33;
}

static void fill(uint64_t *seed, float *x, size_t n) {
  for (size_t i = 0; i < n; i++) x[i] = (float)(next_random(seed) % 2001) / 1000 - 1;
}

static int calls;

static tn_status count_call(void *user, tn_call *call) {
  (void)user;
  tn_array from = tn_call_in(call, 0), to = tn_call_out(call, 0);
  memcpy(to.data, from.data, N * sizeof(float));
  calls++;
  return TN_OK;
}

static tn_tensor *through_host(tn_context *c, tn_tensor *x) {
  tn_tensor *out;
  tn_custom_desc desc = TN_CUSTOM_DESC_INIT;
  tn_type type = {TN_F32, tn_shape(N)};
  desc.run = count_call;
  tn_custom(c, &desc, &x, 1, &type, &out, 1);
  return out;
}

/** Executions of the steps in the last run. */
static size_t steps_run(tn_binding *b, size_t *all) {
  tn_step s = TN_STEP_INIT;
  size_t n = 0;
  *all = 0;
  for (size_t i = 0; tn_binding_step(b, i, &s) == TN_OK; i++, ++*all) n += s.times != 0;
  return n;
}

static void set(tn_binding *b, const char *name, const float *x) {
  check_bound(b, tn_binding_input(b, name, tn_shape(N, M), TN_F32, x, N * M * sizeof *x));
}

/** Sums of rows, which no kernel shares, so that each is a step. */
static tn_tensor *rows(tn_tensor *x) {
  return tn_softmax(tn_sum(tn_mul(x, x), tn_axes(1), false), 0);
}

static void only_what_changed_runs(void **state) {
  tn_context *c = *state;
  static float x[N * M], y[N * M], got[N], want[N];
  uint64_t seed = 1;
  size_t all, first;
  fill(&seed, x, N * M);
  fill(&seed, y, N * M);
  tn_tensor *out[] = {rows(tn_input(c, "x", tn_shape(N, M), TN_F32)),
                      rows(tn_input(c, "y", tn_shape(N, M), TN_F32))};
  tn_binding *b = bind_compiled(c, out, 2, NULL), *plain = bind_compiled(c, out, 2, NULL);
  check_bound(b, tn_binding_reuse(b, true));
  set(b, "x", x);
  set(b, "y", y);
  check_bound(b, tn_binding_run(b));
  first = steps_run(b, &all);
  assert_int_equal(first, all);
  check_bound(b, tn_binding_run(b)); /* nothing was set */
  assert_int_equal(steps_run(b, &all), 0);
  y[7] = 5;
  set(b, "y", y);
  check_bound(b, tn_binding_run(b));
  first = steps_run(b, &all);
  assert_true(first > 0 && first < all);
  set(plain, "x", x);
  set(plain, "y", y);
  check_bound(plain, tn_binding_run(plain));
  for (int i = 0; i < 2; i++) {
    check_bound(b, tn_binding_read(b, i ? "1" : "0", TN_F32, got, sizeof got));
    check_bound(plain, tn_binding_read(plain, i ? "1" : "0", TN_F32, want, sizeof want));
    assert_memory_equal(got, want, sizeof got);
  }
  check_bound(b, tn_binding_reuse(b, false));
  check_bound(b, tn_binding_run(b));
  first = steps_run(b, &all);
  assert_int_equal(first, all);
  assert_int_equal(tn_binding_reuse(NULL, true), TN_ERR_ARGUMENT);
}

static void host_functions_are_always_called(void **state) {
  tn_context *c = *state;
  static float x[N * M];
  size_t all;
  tn_tensor *out = tn_softmax(through_host(c, rows(tn_input(c, "x", tn_shape(N, M), TN_F32))), 0);
  tn_binding *b = bind_compiled(c, &out, 1, NULL);
  check_bound(b, tn_binding_reuse(b, true));
  set(b, "x", x);
  calls = 0;
  for (int i = 0; i < 3; i++) check_bound(b, tn_binding_run(b));
  assert_int_equal(calls, 3);
  size_t n = steps_run(b, &all);
  assert_true(n >= 2 && n < all); /* the function and what reads its result */
}

/** An output is written into an input's memory, and profiled times leave out what did not run. */
static void inputs_that_outputs_overwrite_change(void **state) {
  tn_context *c = *state;
  static float x[N * M], want[N * M];
  tn_tensor *out = tn_add(tn_input(c, "x", tn_shape(N, M), TN_F32), tn_num(c, 1));
  tn_binding *b = bind_compiled(c, &out, 1, NULL);
  check_bound(b, tn_binding_reuse(b, true));
  check_bound(b, tn_binding_profile(b, true));
  set(b, "x", x);
  check_bound(b, tn_binding_output(b, "0", TN_F32, x, sizeof x));
  for (int i = 0; i < 4; i++) check_bound(b, tn_binding_run(b));
  for (int i = 0; i < N * M; i++) want[i] = 4;
  assert_memory_equal(x, want, sizeof x);
}

/* Random plans. */

enum { INPUTS = 4, VALUES = 14, OUTPUTS = 3, RUNS = 12 };

static void add_up(void *user, tn_tensor *index, tn_tensor *const state[], tn_tensor *const x[],
                   tn_tensor *next[], tn_tensor *y[]) {
  (void)index, (void)x, (void)y;
  next[0] = tn_mul(tn_add(state[0], state[1]), tn_num(user, 0.5));
  next[1] = state[1];
}

static tn_tensor *looped(tn_context *c, tn_tensor *a, tn_tensor *b) {
  tn_tensor *init[] = {a, b}, *out[2];
  tn_scan_desc d = TN_SCAN_DESC_INIT;
  d.body = add_up;
  d.user = c;
  d.steps = 3;
  tn_scan(c, &d, init, 2, NULL, 0, out, 0);
  return out[0];
}

static tn_tensor *random_value(tn_context *c, uint64_t *seed, tn_tensor *const have[], size_t n,
                               tn_tensor *held) {
  tn_tensor *a = have[next_random(seed) % n], *b = have[next_random(seed) % n];
  switch (next_random(seed) % 9) {
  case 0: return tn_add(a, b);
  case 1: return tn_matmul(a, tn_permute(b, tn_axes(1, 0)));
  case 2: return tn_softmax(a, 1);
  case 3: return tn_sub(a, tn_sum(b, tn_axes(0), true));
  case 4:
    return tn_concat((tn_tensor *[]){tn_slice(a, 0, 0, N / 2, 1), tn_slice(b, 0, N / 2, N, 1)}, 2,
                     0);
  case 5: return looped(c, a, b);
  case 6: return tn_mul(a, held);
  case 7: return tn_maximum(tn_cumsum(a, 0), b);
  default: return tn_permute(tn_softmax(tn_permute(a, tn_axes(1, 0)), 0), tn_axes(1, 0));
  }
}

/** Makes a plan of a seed; equal seeds make equal plans, with states of their own. */
static tn_binding *random_plan(tn_context *c, uint64_t seed, tn_tensor **held) {
  static const char *const names[] = {"a", "b", "c", "d"};
  tn_tensor *have[INPUTS + VALUES], *out[OUTPUTS];
  size_t n = 0;
  *held = tn_state(tn_full(c, tn_shape(N, N), TN_F32, 0.5));
  for (; n < INPUTS; n++) have[n] = tn_input(c, names[n], tn_shape(N, N), TN_F32);
  for (; n < INPUTS + VALUES; n++) have[n] = random_value(c, &seed, have, n, *held);
  for (size_t i = 0; i < OUTPUTS; i++) out[i] = have[n - 1 - i * (next_random(&seed) % 3 + 1)];
  tn_scope_begin(c);
  if (next_random(&seed) % 3 == 0) tn_assign(*held, tn_mul(out[0], tn_num(c, 0.25)));
  tn_binding *b = bind_compiled(c, out, OUTPUTS, NULL);
  check_ok(c, tn_scope_end(c));
  return b;
}

static void set_random(tn_binding *b, const char *name, bool has_other_type, const float *x,
                       const double *wide) {
  const void *data = has_other_type ? (const void *)wide : x;
  size_t bytes = N * N * (has_other_type ? sizeof *wide : sizeof *x);
  tn_dtype t = has_other_type ? TN_F64 : TN_F32;
  if (tn_binding_find(b, TN_PORT_INPUT, name) >= 0) /* something reads it */
    check_bound(b, tn_binding_input(b, name, tn_shape(N, N), t, data, bytes));
}

static void compare(tn_binding *a, tn_binding *b, uint64_t seed, int run) {
  static float got[N * N], want[N * N];
  static const char *const names[] = {"0", "1", "2"};
  for (int i = 0; i < OUTPUTS; i++) {
    check_bound(a, tn_binding_read(a, names[i], TN_F32, got, sizeof got));
    check_bound(b, tn_binding_read(b, names[i], TN_F32, want, sizeof want));
    if (memcmp(got, want, sizeof got))
      fail_msg("output %d of run %d differs, seed %llu", i, run, (unsigned long long)seed);
  }
}

static void results_are_those_of_all_steps(void **state) {
  tn_context *c = *state;
  static const char *const names[] = {"a", "b", "c", "d"};
  static float x[INPUTS][N * N];
  static double wide[INPUTS][N * N];
  size_t all, left_out = 0;
  for (uint64_t plan = 0; plan < 12; plan++) {
    tn_tensor *held[2];
    uint64_t seed = plan * 7919 + 3;
    tn_binding *b = random_plan(c, seed, &held[0]), *plain = random_plan(c, seed, &held[1]);
    check_bound(b, tn_binding_reuse(b, true));
    for (int run = 0; run < RUNS; run++) {
      for (int i = 0; i < INPUTS; i++) {
        if (run && next_random(&seed) % 2) continue;
        bool has_other_type = next_random(&seed) % 4 == 0;
        fill(&seed, x[i], N * N);
        for (int k = 0; k < N * N; k++) wide[i][k] = x[i][k];
        set_random(b, names[i], has_other_type, x[i], wide[i]);
        set_random(plain, names[i], has_other_type, x[i], wide[i]);
      }
      if (next_random(&seed) % 4 == 0)
        for (int i = 0; i < 2; i++) check_ok(c, tn_write(held[i], TN_F32, x[0], sizeof x[0]));
      check_bound(b, tn_binding_run(b));
      check_bound(plain, tn_binding_run(plain));
      compare(b, plain, plan, run);
      size_t n = steps_run(b, &all);
      left_out += all - n;
    }
    tn_binding_free(b);
    tn_binding_free(plain);
  }
  assert_true(left_out > 50);
}

/** Sizes that vary, and an output that is the next run's input. */
static void variants_and_carried_outputs_change(void **state) {
  tn_context *c = *state;
  static float x[N * M], h[M], got[2][M];
  uint64_t seed = 5;
  tn_dim n = tn_dim_var(c, "n", 1, N);
  tn_tensor *before = tn_input(c, "h", tn_shape(M), TN_F32);
  tn_tensor *sum =
      tn_sum(tn_softmax(tn_input(c, "x", tn_shape(n, M), TN_F32), 1), tn_axes(0), false);
  tn_tensor *out = tn_add(tn_mul(before, tn_num(c, 0.5)), tn_softmax(sum, 0));
  tn_binding *b[] = {bind_compiled(c, &out, 1, NULL), bind_compiled(c, &out, 1, NULL)};
  check_bound(b[0], tn_binding_reuse(b[0], true));
  fill(&seed, x, N * M);
  for (int i = 0; i < 2; i++) {
    check_bound(b[i], tn_binding_input(b[i], "h", tn_shape(M), TN_F32, h, sizeof h));
    check_bound(b[i], tn_binding_carry(b[i], "0", "h"));
  }
  for (int run = 0; run < 20; run++) {
    int64_t k = run % 5 < 3 ? N : 1 + run;
    for (int i = 0; i < 2; i++) {
      if (run % 5 != 1)
        check_bound(b[i], tn_binding_input(b[i], "x", tn_shape(k, M), TN_F32, x,
                                           (size_t)k * M * sizeof *x));
      check_bound(b[i], tn_binding_run(b[i]));
      check_bound(b[i], tn_binding_read(b[i], "0", TN_F32, got[i], sizeof got[i]));
    }
    assert_memory_equal(got[0], got[1], sizeof got[0]);
  }
}

/** A size changes what a step computes whose operands and arrays it leaves as they are, even where
    memory was asked for in between. */
static void sizes_change_without_arrays(void **state) {
  tn_context *c = *state;
  static float x[N], w[M], got[2][M];
  tn_dim n = tn_dim_var(c, "n", 1, N);
  tn_tensor *sum = tn_sum(tn_arange(c, 0, n, 1, TN_F32), TN_ALL, false);
  tn_tensor *out[] = {tn_softmax(tn_mul(tn_input(c, "w", tn_shape(M), TN_F32), sum), 0),
                      tn_sum(tn_input(c, "x", tn_shape(n), TN_F32), TN_ALL, false)};
  tn_memory m = TN_MEMORY_INIT;
  tn_binding *b[] = {bind_compiled(c, out, 2, NULL), bind_compiled(c, out, 2, NULL)};
  check_bound(b[0], tn_binding_reuse(b[0], true));
  for (int i = 0; i < M; i++) w[i] = (float)i / 1000;
  for (int i = 0; i < 2; i++) {
    check_bound(b[i], tn_binding_input(b[i], "w", tn_shape(M), TN_F32, w, sizeof w));
    check_bound(b[i], tn_binding_output(b[i], "0", TN_F32, got[i], sizeof got[i]));
  }
  for (int64_t k = 2; k < N; k += 3) {
    for (int i = 0; i < 2; i++) {
      check_bound(b[i], tn_binding_input(b[i], "x", tn_shape(k), TN_F32, x, (size_t)k * sizeof *x));
      if (!i) check_bound(b[i], tn_binding_memory(b[i], &m));
      check_bound(b[i], tn_binding_run(b[i]));
    }
    assert_memory_equal(got[0], got[1], sizeof got[0]);
  }
}

#define WITH(test) cmocka_unit_test_setup_teardown(test, open_context, close_context)

int main(void) {
  const struct CMUnitTest tests[] = {
      WITH(only_what_changed_runs),
      WITH(host_functions_are_always_called),
      WITH(inputs_that_outputs_overwrite_change),
      WITH(results_are_those_of_all_steps),
      WITH(variants_and_carried_outputs_change),
      WITH(sizes_change_without_arrays),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
