/* Tests tn_scan, loops with carried states: results equal those of the steps one by one, the
   kernels are those of one step, loops may nest and have dynamic lengths, and misuse in a body is
   refused. */
#include "runtime/executable.h"
#include "tensor/plan/variant_table.h"

#include "support/tensor_check.h"

#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

enum { MOST = 64, WIDTH = 3 };

/* A state grows by each entry and its index; y is its old value. */

static void add_body(void *user, tn_tensor *index, tn_tensor *const state[], tn_tensor *const x[],
                     tn_tensor *next[], tn_tensor *y[]) {
  (void)user;
  next[0] = tn_add(tn_add(state[0], x[0]), tn_cast(index, TN_F32));
  y[0] = state[0];
}

static void check_added(tn_context *c, int64_t n, bool reverse) {
  float x[MOST][WIDTH], last[WIDTH], before[MOST][WIDTH], sum[WIDTH] = {1, 1, 1};
  float start[WIDTH] = {1, 1, 1};
  tn_scan_desc d = TN_SCAN_DESC_INIT;
  for (int i = 0; i < MOST; i++)
    for (int k = 0; k < WIDTH; k++) x[i][k] = (float)(i * 7 % 5 - k);
  d.body = add_body;
  d.reverse = reverse;
  tn_tensor *xs = tn_from_host(c, tn_shape(n, WIDTH), TN_F32, x, (size_t)n * sizeof *x), *out[2];
  tn_tensor *init = tn_from_host(c, tn_shape(WIDTH), TN_F32, start, sizeof start);
  tn_scan(c, &d, &init, 1, &xs, 1, out, 1);
  check_ok(c, tn_read(out[0], TN_F32, last, sizeof last));
  check_ok(c, tn_read(out[1], TN_F32, before, (size_t)n * sizeof *before));
  for (int64_t t = 0; t < n; t++) {
    int64_t i = reverse ? n - 1 - t : t;
    assert_memory_equal(before[i], sum, sizeof sum);
    for (int k = 0; k < WIDTH; k++) sum[k] += x[i][k] + (float)i;
  }
  assert_memory_equal(last, sum, sizeof sum);
}

static void test_entries(void **state) {
  for (int64_t n = 0; n < 7; n++) {
    check_added(*state, n, false);
    check_added(*state, n, true);
  }
  check_added(*state, MOST, false);
}

/* A state ends the loop. */

typedef struct halving {
  tn_context *c;
  float limit;
  size_t n_ys;
} halving;

/** Halves a state until its sum is below a limit. */
static void halve(void *user, tn_tensor *index, tn_tensor *const state[], tn_tensor *const x[],
                  tn_tensor *next[], tn_tensor *y[]) {
  const halving *h = user;
  (void)x;
  next[0] = tn_mul(state[0], tn_num(h->c, 0.5));
  next[1] = tn_lt(tn_sum(next[0], TN_ALL, false), tn_num(h->c, h->limit));
  if (h->n_ys) y[0] = tn_add(state[0], tn_cast(index, TN_F32));
}

/** The steps that a loop runs, and its results. */
static void check_halved(tn_context *c, float start, float limit, int64_t steps, bool reverse) {
  halving h = {c, limit, 1};
  float x[WIDTH] = {start, start, start}, before[MOST][WIDTH], last[WIDTH], want = start;
  tn_tensor *init[] = {floats(c, WIDTH, x), tn_lt(tn_num(c, 3 * start), tn_num(c, limit))}, *out[3];
  int64_t ran = 0;
  tn_scan_desc d = TN_SCAN_DESC_INIT;
  d.body = halve;
  d.user = &h;
  d.steps = steps;
  d.reverse = reverse;
  d.until = 1;
  tn_scan(c, &d, init, 2, NULL, 0, out, 1);
  for (; ran < steps && 3 * want >= limit; ran++) want /= 2;
  check_ok(c, tn_read(out[0], TN_F32, last, sizeof last));
  for (int k = 0; k < WIDTH; k++) assert_true(last[k] == want);
  check_ok(c, tn_realize(c, (tn_tensor *[]){out[2]}, 1));
  assert_int_equal(tn_type_of(out[2]).shape.size[0], ran);
  if (ran) check_ok(c, tn_read(out[2], TN_F32, before, (size_t)ran * sizeof *before));
  for (int64_t t = 0; t < ran; t++, start /= 2) {
    int64_t index = reverse ? steps - 1 - t : t, at = reverse ? ran - 1 - t : t;
    for (int k = 0; k < WIDTH; k++) assert_true(before[at][k] == start + (float)index);
  }
}

static void test_until(void **state) {
  tn_context *c = *state;
  for (int64_t steps = 0; steps < 6; steps++)
    for (int i = 0; i < 6; i++) check_halved(c, 8, 40 / (float)(1 << i), steps, i % 2);
  halving h = {c, 0.001f, 0}; /* any number of steps */
  float x[WIDTH] = {1, 1, 1}, last[WIDTH];
  tn_tensor *init[] = {floats(c, WIDTH, x), tn_cast(tn_int(c, 0), TN_BOOL)}, *out[2];
  tn_scan_desc d = TN_SCAN_DESC_INIT;
  d.body = halve;
  d.user = &h;
  d.until = 1;
  tn_scan(c, &d, init, 2, NULL, 0, out, 0);
  check_ok(c, tn_read(out[0], TN_F32, last, sizeof last));
  assert_true(last[0] == 1 / 4096.0f);
}

/** In a plan, a size that follows from the number of steps. */
static void test_until_in_plan(void **state) {
  tn_context *c = *state;
  halving h = {c, 3, 1};
  tn_tensor *x = tn_input(c, "x", tn_shape(WIDTH), TN_F32), *out[3];
  tn_tensor *init[] = {x, tn_lt(tn_sum(x, TN_ALL, false), tn_num(c, 3))};
  tn_scan_desc d = TN_SCAN_DESC_INIT;
  d.body = halve;
  d.user = &h;
  d.steps = 20;
  d.until = 1;
  tn_scan(c, &d, init, 2, NULL, 0, out, 1);
  out[1] = tn_sum(out[2], tn_axes(0), false);
  tn_binding *b = bind_compiled(c, out, 3, NULL);
  for (int round = 0; round < 12; round++) {
    float start = (float)(1 << (round * 5 % 9)) / 2, in[WIDTH] = {start, start, start};
    float found[WIDTH], sum = 0, want = start;
    size_t ran = 0;
    for (; 3 * want >= 3; want /= 2) sum += want + (float)ran++;
    check_bound(b, tn_binding_input(b, "x", tn_shape(WIDTH), TN_F32, in, sizeof in));
    check_bound(b, tn_binding_run(b));
    check_bound(b, tn_binding_read(b, "0", TN_F32, found, sizeof found));
    assert_true(found[1] == want);
    check_bound(b, tn_binding_read(b, "1", TN_F32, found, sizeof found));
    assert_true(found[2] == sum);
    assert_int_equal(tn_binding_type(b, "2").shape.size[0], ran);
  }
}

static void test_until_refused(void **state) {
  tn_context *c = *state;
  halving h = {c, 1, 0};
  float x[WIDTH] = {1, 1, 1}, last[WIDTH];
  tn_tensor *init[] = {floats(c, WIDTH, x), tn_cast(tn_int(c, 0), TN_BOOL)}, *out[2];
  const struct {
    int64_t until;
    tn_status status;
    const char *words;
  } cases[] = {{2, TN_ERR_ARGUMENT, "`until` is 2; there are 2 states"},
               {0, TN_ERR_DTYPE, "state 0 ends the loop; it is f32, expected bool"},
               {-1, TN_ERR_ARGUMENT, "the number of steps is unknown"}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    tn_scan_desc d = TN_SCAN_DESC_INIT;
    d.body = halve;
    d.user = &h;
    d.until = cases[i].until;
    tn_scan(c, &d, init, 2, NULL, 0, out, 0);
    assert_int_equal(tn_read(out[0], TN_F32, last, sizeof last), cases[i].status);
    check_text(tn_message(c), cases[i].words);
  }
}

/* States that step at once. */

static void fibonacci_body(void *user, tn_tensor *index, tn_tensor *const state[],
                           tn_tensor *const x[], tn_tensor *next[], tn_tensor *y[]) {
  (void)user, (void)index, (void)x, (void)y;
  next[0] = state[1];
  next[1] = tn_add(state[0], state[1]);
  next[2] = state[2]; /* unchanged */
}

static void test_at_once(void **state) {
  tn_context *c = *state;
  for (int64_t n = 0; n < 12; n++) {
    int64_t got[3], a = 0, b = 1;
    tn_tensor *init[] = {tn_int(c, 0), tn_int(c, 1), tn_int(c, 5)}, *out[3];
    tn_scan_desc d = TN_SCAN_DESC_INIT;
    d.body = fibonacci_body;
    d.steps = n;
    tn_scan(c, &d, init, 3, NULL, 0, out, 0);
    for (int i = 0; i < 3; i++) check_ok(c, tn_read(out[i], TN_I64, &got[i], sizeof got[i]));
    for (int64_t t = 0, sum; t < n; t++, a = b, b = sum) sum = a + b;
    assert_int_equal(got[0], a);
    assert_int_equal(got[1], b);
    assert_int_equal(got[2], 5);
  }
}

/* A recurrent network: one kernel per step and one for all outputs at the end, for any length; the
   gates' inputs are computed before the loop. */

enum { HIDDEN = 5 };

typedef struct recurrent {
  tn_tensor *w;
} recurrent;

static void recurrent_body(void *user, tn_tensor *index, tn_tensor *const state[],
                           tn_tensor *const x[], tn_tensor *next[], tn_tensor *y[]) {
  const recurrent *r = user;
  (void)index;
  next[0] = tn_tanh(tn_add(x[0], tn_matmul(state[0], r->w)));
  y[0] = next[0];
}

static void expect_recurrent(float x[][HIDDEN], float w[HIDDEN][HIDDEN], size_t n,
                             double y[][HIDDEN]) {
  double h[HIDDEN] = {0};
  for (size_t t = 0; t < n; t++) {
    for (int i = 0; i < HIDDEN; i++) {
      double sum = x[t][i];
      for (int k = 0; k < HIDDEN; k++) sum += h[k] * (double)w[k][i];
      y[t][i] = tanh(sum);
    }
    memcpy(h, y[t], sizeof h);
  }
}

static void test_lengths_vary(void **state) {
  tn_context *c = *state;
  static float x[MOST][HIDDEN], w[HIDDEN][HIDDEN], got[MOST][HIDDEN], zero[HIDDEN];
  static double want[MOST][HIDDEN];
  for (int i = 0; i < MOST * HIDDEN; i++) x[i / HIDDEN][i % HIDDEN] = (float)(i * 37 % 19 - 9) / 8;
  for (int i = 0; i < HIDDEN * HIDDEN; i++) w[i / HIDDEN][i % HIDDEN] = (float)(i * 11 % 7 - 3) / 8;
  recurrent r = {tn_from_host(c, tn_shape(HIDDEN, HIDDEN), TN_F32, w, sizeof w)};
  tn_dim n = tn_dim_var(c, "n", 0, MOST);
  tn_tensor *xs = tn_input(c, "x", tn_shape(n, HIDDEN), TN_F32), *out[2];
  tn_tensor *init = tn_from_host(c, tn_shape(1, HIDDEN), TN_F32, zero, sizeof zero);
  tn_tensor *rows = tn_reshape(xs, tn_shape(n, 1, HIDDEN));
  tn_scan_desc d = TN_SCAN_DESC_INIT;
  d.body = recurrent_body;
  d.user = &r;
  tn_scan(c, &d, &init, 1, &rows, 1, out, 1);
  tn_plan *plan;
  tn_binding *b;
  tn_plan_desc at_once = TN_PLAN_DESC_INIT;
  at_once.variants = TN_VARIANTS_ONE;
  check_ok(c, tn_plan_compile(c, &out[1], 1, &at_once, &plan));
  assert_int_equal(executable_kernels(plan->variants->at[0]->executable), 1);
  assert_int_equal(executable_steps(plan->variants->at[0]->executable), 2);
  check_ok(c, tn_plan_bind(plan, &b));
  for (size_t length = 0; length <= MOST; length = 2 * length + 1) {
    check_ok(c, tn_binding_input(b, "x", tn_shape((tn_dim)length, HIDDEN), TN_F32, x,
                                 length * sizeof *x));
    if (tn_binding_run(b) != TN_OK) fail_msg("%s", tn_binding_message(b));
    assert_int_equal(tn_binding_read(b, "0", TN_F32, got, length * sizeof *got), TN_OK);
    expect_recurrent(x, w, length, want);
    for (size_t t = 0; t < length; t++)
      for (size_t i = 0; i < HIDDEN; i++)
        if (!(fabs((double)got[t][i] - want[t][i]) < 1e-5))
          fail_msg("step %zu of %zu: element %zu is %g, not %g", t, length, i, (double)got[t][i],
                   want[t][i]);
  }
}

static void counting_body(void *user, tn_tensor *index, tn_tensor *const state[],
                          tn_tensor *const x[], tn_tensor *next[], tn_tensor *y[]) {
  (void)user, (void)x, (void)y;
  next[0] = tn_add(state[0], tn_mul(state[0], tn_cast(index, TN_F32)));
}

static void nested_counting_body(void *user, tn_tensor *index, tn_tensor *const state[],
                                 tn_tensor *const x[], tn_tensor *next[], tn_tensor *y[]) {
  tn_scan_desc d = TN_SCAN_DESC_INIT;
  (void)index, (void)x, (void)y;
  d.body = counting_body;
  d.steps = 4;
  tn_scan(user, &d, state, 1, NULL, 0, next, 0);
}

/** A step is one kernel, whatever the length and place of its inner loops. */
static void test_one_kernel(void **state) {
  tn_context *c = *state;
  tn_tensor *init = floats(c, FLOATS(1, 2)), *out[3];
  float got[2], want[3] = {1, 1, 1};
  tn_scan_desc d = TN_SCAN_DESC_INIT;
  d.body = counting_body;
  for (int i = 0; i < 2; i++) {
    d.steps = 3 + 2 * i;
    tn_scan(c, &d, &init, 1, NULL, 0, &out[i], 0);
    for (int t = 0; t < d.steps; t++) want[i] += want[i] * (float)t;
  }
  d.body = nested_counting_body;
  d.user = c;
  d.steps = 2;
  tn_scan(c, &d, &init, 1, NULL, 0, &out[2], 0);
  for (int t = 0; t < 8; t++) want[2] += want[2] * (float)(t % 4);
  tn_plan *plan;
  tn_binding *b;
  check_ok(c, tn_plan_compile(c, out, 2, NULL, &plan));
  assert_int_equal(executable_kernels(plan->variants->at[0]->executable), 1);
  check_ok(c, tn_plan_compile(c, out, 3, NULL, &plan));
  assert_int_equal(executable_kernels(plan->variants->at[0]->executable),
                   2); /* one more copies in the outer loop */
  check_ok(c, tn_plan_bind(plan, &b));
  check_ok(c, tn_binding_run(b));
  static const char *const names[] = {"0", "1", "2"};
  for (int i = 0; i < 3; i++) {
    check_ok(c, tn_binding_read(b, names[i], TN_F32, got, sizeof got));
    assert_true(got[0] == want[i] && got[1] == 2 * want[i]);
  }
}

/** Loop-invariant parts are computed once, before the loop. */
static void closed_body(void *user, tn_tensor *index, tn_tensor *const state[],
                        tn_tensor *const x[], tn_tensor *next[], tn_tensor *y[]) {
  tn_tensor *w = user;
  (void)index, (void)x, (void)y;
  next[0] = tn_add(state[0], tn_exp(tn_matmul(w, w)));
}

static void test_computed_before(void **state) {
  tn_context *c = *state;
  static const float zero[4];
  tn_tensor *w = tn_input(c, "w", tn_shape(2, 2), TN_F32), *out;
  tn_tensor *init = tn_from_host(c, tn_shape(2, 2), TN_F32, zero, sizeof zero);
  tn_scan_desc d = TN_SCAN_DESC_INIT;
  d.body = closed_body;
  d.user = w;
  d.steps = 100;
  tn_scan(c, &d, &init, 1, NULL, 0, &out, 0);
  tn_plan *plan;
  tn_binding *b;
  check_ok(c, tn_plan_compile(c, &out, 1, NULL, &plan));
  check_ok(c, tn_plan_bind(plan, &b));
  double operations[3] = {0};
  uint64_t times[3] = {0};
  float in[4] = {0, 1, 0, 0}, got[4];
  assert_int_equal(tn_binding_input(b, "w", tn_shape(2, 2), TN_F32, in, sizeof in), TN_OK);
  for (int i = 0; i < 2; i++) assert_int_equal(tn_binding_run(b), TN_OK);
  tn_step step = TN_STEP_INIT;
  for (size_t i = 0; i < 3; i++) {
    assert_int_equal(tn_binding_step(b, i, &step), TN_OK);
    operations[i] = step.operations;
    times[i] = step.times;
    assert_int_equal(step.steps, i == 1);
    assert_int_equal(step.kernel < 0, i == 1);
  }
  assert_int_equal(tn_binding_step(b, 3, &step), TN_ERR_ARGUMENT);
  assert_true(times[0] == 1 && times[1] == 1 && times[2] == 100);
  assert_true(operations[2] == 400 && operations[0] > 16);
  assert_int_equal(tn_binding_read(b, "0", TN_F32, got, sizeof got), TN_OK);
  for (int i = 0; i < 4; i++) assert_true(fabsf(got[i] - 100) < 1e-3f);
}

/* Nested loops: a table of products, and a row that depends on both indices. */

static void inner_body(void *user, tn_tensor *index, tn_tensor *const state[], tn_tensor *const x[],
                       tn_tensor *next[], tn_tensor *y[]) {
  tn_tensor *outer = user;
  (void)x;
  next[0] = tn_add(state[0], tn_mul(outer, index));
  y[0] = state[0];
}

static void outer_body(void *user, tn_tensor *index, tn_tensor *const state[], tn_tensor *const x[],
                       tn_tensor *next[], tn_tensor *y[]) {
  tn_context *c = user;
  tn_scan_desc d = TN_SCAN_DESC_INIT;
  tn_tensor *out[2];
  (void)x;
  d.body = inner_body;
  d.user = index;
  d.steps = 4;
  tn_scan(c, &d, state, 1, NULL, 0, out, 1);
  next[0] = out[0];
  y[0] = out[1];
}

static void test_nested(void **state) {
  tn_context *c = *state;
  int64_t rows[3][4], last, sum = 0;
  tn_tensor *init = tn_int(c, 0), *out[2];
  tn_scan_desc d = TN_SCAN_DESC_INIT;
  d.body = outer_body;
  d.user = c;
  d.steps = 3;
  tn_scan(c, &d, &init, 1, NULL, 0, out, 1);
  check_ok(c, tn_read(out[1], TN_I64, rows, sizeof rows));
  check_ok(c, tn_read(out[0], TN_I64, &last, sizeof last));
  for (int i = 0; i < 3; i++)
    for (int k = 0; k < 4; k++) {
      assert_int_equal(rows[i][k], sum);
      sum += i * k;
    }
  assert_int_equal(last, sum);
}

/* A body reads a state of the context with its contents at that time. */

static void reading_body(void *user, tn_tensor *index, tn_tensor *const state[],
                         tn_tensor *const x[], tn_tensor *next[], tn_tensor *y[]) {
  (void)index, (void)x, (void)y;
  next[0] = tn_add(state[0], user);
}

static void test_reads_state(void **state) {
  tn_context *c = *state;
  tn_tensor *s = tn_state(floats(c, FLOATS(1, 2))), *init = floats(c, FLOATS(0, 0)), *out;
  tn_scan_desc d = TN_SCAN_DESC_INIT;
  d.body = reading_body;
  d.user = s;
  d.steps = 3;
  tn_scan(c, &d, &init, 1, NULL, 0, &out, 0);
  tn_assign(s, floats(c, FLOATS(10, 20)));
  check_floats(c, out, FLOATS(3, 6));
  check_floats(c, s, FLOATS(10, 20));
}

/* Refused bodies. */

typedef struct bad {
  tn_context *c;
  tn_tensor *kept, *cell;
  int how;
} bad;

static tn_status no_host(void *user, tn_call *call) {
  (void)user, (void)call;
  return TN_OK;
}

enum { BAD_DTYPE, BAD_SHAPE, BAD_NULL, BAD_ASSIGN, BAD_HOST, BAD_READ, BADS };

static void bad_body(void *user, tn_tensor *index, tn_tensor *const state[], tn_tensor *const x[],
                     tn_tensor *next[], tn_tensor *y[]) {
  bad *b = user;
  tn_custom_desc host = TN_CUSTOM_DESC_INIT;
  const tn_type type = {TN_F32, tn_shape(2)};
  float got[2];
  (void)x, (void)y;
  host.run = no_host;
  next[0] = state[0];
  b->kept = tn_neg(state[0]);
  switch (b->how) {
  case BAD_DTYPE: next[0] = tn_cast(state[0], TN_F64); break;
  case BAD_SHAPE: next[0] = tn_reshape(state[0], tn_shape(2, 1)); break;
  case BAD_NULL: next[0] = NULL; break;
  case BAD_ASSIGN: next[0] = tn_add(tn_assign(b->cell, state[0]), index); break;
  case BAD_HOST: tn_custom(b->c, &host, state, 1, &type, next, 1); break;
  case BAD_READ: assert_int_equal(tn_read(b->kept, TN_F32, got, sizeof got), TN_ERR_ARGUMENT);
  }
}

static void test_refusals(void **state) {
  static const struct {
    tn_status status;
    const char *text;
  } want[BADS] = {{TN_ERR_DTYPE, "state 0 of a loop has type f32; its next value has f64"},
                  {TN_ERR_SHAPE, "state 0 of a loop has shape 2; its next value has 2x1"},
                  {TN_ERR_ARGUMENT, "the body left next[0] unset"},
                  {TN_ERR_ARGUMENT, "in the body of a loop: make it a state of the loop"},
                  {TN_ERR_UNSUPPORTED, "a host function cannot run in the body of a loop"},
                  {TN_OK, ""}};
  tn_context *c = *state;
  float got[2];
  for (int how = 0; how < BADS; how++) {
    tn_tensor *init = floats(c, FLOATS(1, 2)), *out;
    bad b = {.c = c, .cell = tn_state(floats(c, FLOATS(1, 2))), .how = how};
    tn_scan_desc d = TN_SCAN_DESC_INIT;
    d.body = bad_body;
    d.user = &b;
    d.steps = 2;
    tn_scan(c, &d, &init, 1, NULL, 0, &out, 0);
    assert_int_equal(tn_read(out, TN_F32, got, sizeof got), want[how].status);
    if (want[how].status != TN_OK) check_text(tn_message(c), want[how].text);
    check_floats(c, b.cell, FLOATS(1, 2));
    assert_int_equal(tn_read(b.kept, TN_F32, got, sizeof got), TN_ERR_ARGUMENT);
    check_text(tn_message(c), "depends on the steps of a loop");
  }
}

static void unsetting_body(void *user, tn_tensor *index, tn_tensor *const state[],
                           tn_tensor *const x[], tn_tensor *next[], tn_tensor *y[]) {
  const int *how = user;
  (void)x;
  next[0] = *how == 2 ? tn_add(state[0], tn_reshape(state[0], tn_shape(1, 2, 5))) : state[0];
  if (*how == 1) next[1] = state[1];
  if (*how != 1) y[0] = index;
}

/** A missing result is reported by its name in tn_scan; an invalid result takes precedence. */
static void test_unset(void **state) {
  static const char *const want[] = {"next[1] unset: set it to what state 1 becomes",
                                     "the body left y[0] unset", "reshape"};
  tn_context *c = *state;
  for (int how = 0; how < 3; how++) {
    tn_tensor *const init[] = {floats(c, FLOATS(1, 2)), floats(c, FLOATS(3))};
    tn_tensor *out[3];
    tn_scan_desc d = TN_SCAN_DESC_INIT;
    d.body = unsetting_body;
    d.user = &how;
    d.steps = 2;
    tn_scan(c, &d, init, 2, NULL, 0, out, 1);
    float got[2];
    assert_int_not_equal(tn_read(out[0], TN_F32, got, sizeof got), TN_OK);
    check_text(tn_message(c), want[how]);
  }
}

/** The body may overwrite the array that the states came from. */
static void losing_body(void *user, tn_tensor *index, tn_tensor *const state[],
                        tn_tensor *const x[], tn_tensor *next[], tn_tensor *y[]) {
  (void)index, (void)state, (void)x, (void)next, (void)y;
  memset(user, 0xa5, sizeof(tn_tensor *));
}

static void test_lost_states(void **state) {
  tn_context *c = *state;
  tn_tensor *init[] = {floats(c, FLOATS(1, 2))}, *out[1];
  tn_scan_desc d = TN_SCAN_DESC_INIT;
  d.body = losing_body;
  d.user = init;
  d.steps = 2;
  tn_scan(c, &d, init, 1, NULL, 0, out, 0);
  float got[2];
  assert_int_equal(tn_read(out[0], TN_F32, got, sizeof got), TN_ERR_ARGUMENT);
  check_text(tn_message(c), "the body left next[0] unset");
}

/* Bodies that use the context. */

typedef struct changing {
  tn_context *c;
  tn_tensor *init;
  int how;
} changing;

static void releasing_body(void *user, tn_tensor *index, tn_tensor *const state[],
                           tn_tensor *const x[], tn_tensor *next[], tn_tensor *y[]) {
  changing *k = user;
  (void)index, (void)x, (void)y;
  tn_release(k->init);
  next[0] = tn_add(state[0], state[0]);
}

/** A loop starts from its init values even if their handles are released. */
static void test_released_init(void **state) {
  changing k = {.c = *state};
  tn_tensor *out;
  tn_scan_desc d = TN_SCAN_DESC_INIT;
  k.init = tn_own(floats(k.c, FLOATS(1, 2)));
  d.body = releasing_body;
  d.user = &k;
  d.steps = 2;
  tn_scan(k.c, &d, &k.init, 1, NULL, 0, &out, 0);
  check_floats(k.c, out, FLOATS(4, 8));
}

static void closing_body(void *user, tn_tensor *index, tn_tensor *const state[],
                         tn_tensor *const x[], tn_tensor *next[], tn_tensor *y[]) {
  (void)index, (void)x, (void)y;
  assert_int_equal(tn_close(user), TN_ERR_BUSY);
  next[0] = tn_add(state[0], state[0]);
}

/** `out` may be the array of inits. */
static void test_in_place_of_inits(void **state) {
  tn_context *c = *state;
  tn_tensor *all = floats(c, FLOATS(1, 2));
  tn_scan_desc d = TN_SCAN_DESC_INIT;
  d.body = closing_body;
  d.user = c;
  d.steps = 2;
  tn_scan(c, &d, &all, 1, NULL, 0, &all, 0);
  check_floats(c, all, FLOATS(4, 8));
}

static void scoping_body(void *user, tn_tensor *index, tn_tensor *const state[],
                         tn_tensor *const x[], tn_tensor *next[], tn_tensor *y[]) {
  changing *k = user;
  (void)index, (void)x, (void)y;
  for (int i = 0; i < k->how; i++) tn_scope_begin(k->c);
  for (int i = 0; i > k->how; i--) assert_int_equal(tn_scope_end(k->c), TN_ERR_ARGUMENT);
  next[0] = tn_add(state[0], state[0]);
}

/** A body may end only scopes that it began. */
static void test_scopes_of_a_body(void **state) {
  for (int how = -2; how <= 2; how++) {
    changing k = {.c = *state, .how = how};
    float got[2];
    tn_scan_desc d = TN_SCAN_DESC_INIT;
    d.body = scoping_body;
    d.user = &k;
    d.steps = 2;
    tn_scope_begin(k.c);
    tn_tensor *outside = floats(k.c, FLOATS(1, 2)), *out;
    tn_scan(k.c, &d, &outside, 1, NULL, 0, &out, 0);
    assert_int_equal(tn_read(out, TN_F32, got, sizeof got), how > 0 ? TN_ERR_ARGUMENT : TN_OK);
    if (how > 0) check_text(tn_message(k.c), "left a scope open");
    check_floats(k.c, outside, FLOATS(1, 2));
    assert_int_equal(tn_scope_end(k.c), how ? TN_ERR_ARGUMENT : TN_OK);
    assert_int_equal(tn_scope_end(k.c), TN_ERR_ARGUMENT);
    check_text(tn_message(k.c), "no scope is open");
  }
}

static void keeping_body(void *user, tn_tensor *index, tn_tensor *const state[],
                         tn_tensor *const x[], tn_tensor *next[], tn_tensor *y[]) {
  tn_tensor **kept = user;
  (void)index, (void)x, (void)y;
  *kept = next[0] = tn_add(state[0], state[0]);
}

/** Tensors that outlive a scope in a body are computed at its end, except those of the loop. */
static void test_scope_with_a_leaked_tensor(void **state) {
  tn_context *c = *state;
  tn_tensor *kept, *out;
  float got[2];
  tn_scope_begin(c);
  tn_tensor *init = floats(c, FLOATS(1, 2));
  tn_scan_desc d = TN_SCAN_DESC_INIT;
  d.body = keeping_body;
  d.user = &kept;
  d.steps = 2;
  tn_scan(c, &d, &init, 1, NULL, 0, &out, 0);
  tn_keep(out);
  tn_keep(kept);
  check_ok(c, tn_scope_end(c));
  check_floats(c, out, FLOATS(4, 8));
  assert_int_equal(tn_read(kept, TN_F32, got, sizeof got), TN_ERR_ARGUMENT);
  check_text(tn_message(c), "depends on the steps of a loop");
}

/* Another thread uses the context when the body ends. */

typedef struct meeting {
  tn_context *c;
  atomic_int inside;
  pthread_t thread;
} meeting;

static bool dawdle(void *user, const char *what, uint64_t done, uint64_t total) {
  meeting *m = user;
  (void)what, (void)done, (void)total;
  if (!atomic_exchange(&m->inside, 1)) nanosleep(&(struct timespec){0, 100000000}, NULL);
  return true;
}

static void *use_context(void *user) {
  meeting *m = user;
  check_floats(m->c, tn_neg(floats(m->c, FLOATS(5))), FLOATS(-5));
  return NULL;
}

static void meeting_body(void *user, tn_tensor *index, tn_tensor *const state[],
                         tn_tensor *const x[], tn_tensor *next[], tn_tensor *y[]) {
  meeting *m = user;
  (void)index, (void)x, (void)y;
  next[0] = tn_add(state[0], state[0]);
  assert_int_equal(pthread_create(&m->thread, NULL, use_context, m), 0);
  while (!atomic_load(&m->inside)) sched_yield();
}

static void test_context_taken_meanwhile(void **state) {
  (void)state;
  meeting m = {.c = NULL};
  tn_open_desc o = TN_OPEN_DESC_INIT;
  o.progress = (tn_progress){dawdle, &m, NULL};
  m.c = tn_open(&o);
  tn_tensor *init = floats(m.c, FLOATS(1, 2)), *out;
  tn_scan_desc d = TN_SCAN_DESC_INIT;
  d.body = meeting_body;
  d.user = &m;
  d.steps = 2;
  tn_scan(m.c, &d, &init, 1, NULL, 0, &out, 0);
  pthread_join(m.thread, NULL);
  check_floats(m.c, out, FLOATS(4, 8));
  check_ok(m.c, tn_close(m.c));
}

static void check_scan_refused(tn_context *c, const tn_scan_desc *d, size_t n_states, tn_tensor *xs,
                               tn_status status, const char *text) {
  float got[2];
  tn_tensor *init = floats(c, FLOATS(1, 2)), *out = NULL;
  tn_scan(c, d, &init, n_states, &xs, xs != NULL, &out, 1 - n_states);
  assert_int_equal(tn_read(out, TN_F32, got, sizeof got), status);
  check_text(tn_message(c), text);
}

static void test_closing_in_a_body(void **state) {
  tn_context *c = *state;
  tn_tensor *init = floats(c, FLOATS(1, 2)), *out;
  tn_scan_desc d = TN_SCAN_DESC_INIT;
  d.body = closing_body;
  d.user = c;
  d.steps = 2;
  tn_scan(c, &d, &init, 1, NULL, 0, &out, 0);
  check_floats(c, out, FLOATS(4, 8));
}

static void test_arguments(void **state) {
  tn_context *c = *state;
  bad b = {.c = c};
  tn_scan_desc d = TN_SCAN_DESC_INIT;
  check_scan_refused(c, &d, 1, NULL, TN_ERR_ARGUMENT, "the body is NULL");
  check_scan_refused(c, NULL, 1, NULL, TN_ERR_ARGUMENT, "the body is NULL");
  d.body = bad_body;
  d.user = &b;
  check_scan_refused(c, &d, 1, NULL, TN_ERR_ARGUMENT, "set `steps`");
  check_scan_refused(c, &d, 1, tn_num(c, 1), TN_ERR_SHAPE, "xs[0] is a scalar");
  d.steps = 3;
  check_scan_refused(c, &d, 1, floats(c, FLOATS(1, 2)), TN_ERR_SHAPE, "xs[0] has 2 entries");
  d.steps = -2;
  check_scan_refused(c, &d, 1, NULL, TN_ERR_SHAPE, "a loop has -2 steps, which is negative");
  d.size = 8;
  check_scan_refused(c, &d, 1, NULL, TN_ERR_ARGUMENT, "tn_scan_desc.size");
  tn_scan(NULL, &d, NULL, 0, NULL, 0, NULL, 0);
}

static void deep_body(void *user, tn_tensor *index, tn_tensor *const state[], tn_tensor *const x[],
                      tn_tensor *next[], tn_tensor *y[]) {
  bad *b = user;
  tn_scan_desc d = TN_SCAN_DESC_INIT;
  (void)x, (void)y;
  d.body = deep_body;
  d.user = b;
  d.steps = 2;
  if (b->how-- > 0)
    tn_scan(b->c, &d, state, 1, NULL, 0, next, 0);
  else
    next[0] = tn_add(state[0], index);
}

static void test_depth(void **state) {
  for (int deep = 0; deep < 10; deep++) {
    bad b = {.c = *state, .how = deep};
    tn_tensor *init = tn_int(b.c, 0), *out;
    tn_scan_desc d = TN_SCAN_DESC_INIT;
    int64_t got;
    d.body = deep_body;
    d.user = &b;
    d.steps = 2;
    tn_scan(b.c, &d, &init, 1, NULL, 0, &out, 0);
    tn_status s = tn_read(out, TN_I64, &got, sizeof got);
    assert_int_equal(s, deep < 8 ? TN_OK : TN_ERR_UNSUPPORTED);
    if (deep < 8)
      assert_int_equal(got, 1 << deep);
    else
      check_text(tn_message(b.c), "nested deeper than 8");
  }
}

/* Memory that runs out. */

static void test_memory(void **state) {
  (void)state;
  for (size_t fail_at = 0, calls = 1; fail_at <= calls; fail_at += 1 + fail_at / 40) {
    counting n = {.fail_at = fail_at};
    tn_context *c = open_counting(&n, "NULL");
    float x[3] = {1, 2, 3}, got[3];
    tn_tensor *xs = floats(c, 3, x), *init = tn_cast(tn_num(c, 1), TN_F32), *out[2] = {NULL, NULL};
    tn_scan_desc d = TN_SCAN_DESC_INIT;
    d.body = add_body;
    if (c) tn_scan(c, &d, &init, 1, &xs, 1, out, 1);
    tn_status status = c ? tn_read(out[1], TN_F32, got, sizeof got) : TN_ERR_MEMORY;
    if (c && out[1] && status != TN_OK) assert_int_equal(status, TN_ERR_MEMORY);
    if (!fail_at) assert_int_equal(status, TN_OK);
    if (!fail_at) calls = n.calls;
    tn_close(c);
    assert_int_equal(n.out, 0);
  }
}

int main(void) {
  static const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(test_entries, open_context, close_context),
      cmocka_unit_test_setup_teardown(test_until, open_context, close_context),
      cmocka_unit_test_setup_teardown(test_until_in_plan, open_context, close_context),
      cmocka_unit_test_setup_teardown(test_until_refused, open_context, close_context),
      cmocka_unit_test_setup_teardown(test_at_once, open_context, close_context),
      cmocka_unit_test_setup_teardown(test_lengths_vary, open_context, close_context),
      cmocka_unit_test_setup_teardown(test_one_kernel, open_context, close_context),
      cmocka_unit_test_setup_teardown(test_computed_before, open_context, close_context),
      cmocka_unit_test_setup_teardown(test_nested, open_context, close_context),
      cmocka_unit_test_setup_teardown(test_reads_state, open_context, close_context),
      cmocka_unit_test_setup_teardown(test_refusals, open_context, close_context),
      cmocka_unit_test_setup_teardown(test_unset, open_context, close_context),
      cmocka_unit_test_setup_teardown(test_lost_states, open_context, close_context),
      cmocka_unit_test_setup_teardown(test_closing_in_a_body, open_context, close_context),
      cmocka_unit_test_setup_teardown(test_released_init, open_context, close_context),
      cmocka_unit_test_setup_teardown(test_in_place_of_inits, open_context, close_context),
      cmocka_unit_test_setup_teardown(test_scopes_of_a_body, open_context, close_context),
      cmocka_unit_test_setup_teardown(test_scope_with_a_leaked_tensor, open_context, close_context),
      cmocka_unit_test(test_context_taken_meanwhile),
      cmocka_unit_test_setup_teardown(test_arguments, open_context, close_context),
      cmocka_unit_test_setup_teardown(test_depth, open_context, close_context),
      cmocka_unit_test(test_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
