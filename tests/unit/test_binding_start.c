/* Tests asynchronous runs of bindings (tn_binding_start): the signals that they wait for and set,
   their order, cancellation, failures, and what is refused while a run is pending. */
#include "support/tensor_check.h"

#include <pthread.h>
#include <sched.h>
#include <tenon/unstable/queue.h>

typedef struct setting {
  tn_context *c;
  tn_device *device;
  tn_signal *after, *done;
} setting;

static int open_one(void **state) {
  static setting s;
  s = (setting){.c = tn_open(NULL)};
  *state = &s;
  tn_failure f;
  return !s.c || tn_device_open(s.c, NULL, &s.device, &f) ||
         tn_signal_open(s.device, 0, &s.after, &f) || tn_signal_open(s.device, 0, &s.done, &f);
}

static int close_one(void **state) {
  setting *s = *state;
  tn_signal_free(s->after);
  tn_signal_free(s->done);
  return (int)tn_close(s->c);
}

/** Makes a binding of y = x + 1 for one number. */
static tn_binding *increment(tn_context *c) {
  tn_tensor *y = tn_add(tn_input(c, "x", tn_shape(1), TN_F32), tn_num(c, 1));
  return bind_compiled(c, &y, 1, NULL);
}

static tn_status give(tn_binding *b, const float *x) {
  return tn_binding_input(b, "x", tn_shape(1), TN_F32, x, sizeof *x);
}

static void check_done(const setting *s, uint64_t value) {
  tn_failure f;
  if (tn_signal_wait(s->done, value, -1, &f)) fail_msg("%s", f.text);
}

static void check_output(tn_binding *b, float expected) {
  float y;
  check_bound(b, tn_binding_read(b, "0", TN_F32, &y, sizeof y));
  assert_true(y == expected);
}

static void a_run_waits_and_signals(void **state) {
  const setting *s = *state;
  tn_binding *b = increment(s->c);
  float x = 1, y = 0;
  give(b, &x);
  for (uint64_t k = 1; k <= 20; k++) {
    check_bound(b, tn_binding_start(b, s->after, k, s->done, 10 * k));
    assert_int_equal(tn_signal_get(s->done), 10 * (k - 1));
    assert_int_equal(tn_binding_start(b, NULL, 0, NULL, 0), TN_ERR_BUSY);
    assert_int_equal(tn_binding_run(b), TN_ERR_BUSY);
    assert_int_equal(give(b, &y), TN_ERR_BUSY);
    assert_int_equal(tn_binding_output(b, "0", TN_F32, &y, 4), TN_ERR_BUSY);
    assert_int_equal(tn_binding_carry(b, "0", "x"), TN_ERR_BUSY);
    assert_int_equal(tn_binding_read(b, "0", TN_F32, &y, 4), TN_ERR_BUSY);
    assert_int_equal(tn_binding_type(b, "0").dtype, TN_UNDEFINED);
    assert_int_equal(tn_close(s->c), TN_ERR_BUSY);
    x = (float)k; /* borrowed: read when the run begins */
    tn_signal_set(s->after, k);
    check_done(s, 10 * k);
    check_output(b, x + 1);
    assert_int_equal(tn_binding_type(b, "0").dtype, TN_F32);
  }
  check_bound(b, tn_binding_run(b));
  check_output(b, x + 1);
}

/** Waits for a run without a signal by polling: calls are refused until it is over. */
static tn_status settled(tn_binding *b, float *y) {
  tn_status s;
  while ((s = tn_binding_read(b, "0", TN_F32, y, sizeof *y)) == TN_ERR_BUSY) sched_yield();
  return s;
}

static void signals_may_be_absent(void **state) {
  const setting *s = *state;
  tn_binding *b = increment(s->c);
  const float x = 4;
  float y;
  give(b, &x);
  check_bound(b, tn_binding_start(b, NULL, 0, NULL, 0));
  check_bound(b, settled(b, &y));
  assert_true(y == 5);
  assert_int_equal(tn_binding_start(NULL, NULL, 0, NULL, 0), TN_ERR_ARGUMENT);
}

static void check_failed(const setting *s, uint64_t value, tn_status status, const char *text) {
  tn_failure f;
  assert_int_equal(tn_signal_wait(s->done, value, -1, &f), status);
  check_text(f.text, text);
}

static void failures_are_told_once(void **state) {
  const setting *s = *state;
  tn_binding *b = increment(s->c);
  const float x = 4;
  float y;
  static const char none[] = "inputs without a value: x";
  check_bound(b, tn_binding_start(b, NULL, 0, s->done, 1));
  check_failed(s, 1, TN_ERR_ARGUMENT, none);
  assert_int_equal(settled(b, &y), TN_ERR_ARGUMENT);
  check_text(tn_binding_message(b), none);
  assert_int_equal(tn_binding_read(b, "0", TN_F32, &y, 4), TN_ERR_ARGUMENT);
  check_text(tn_binding_message(b), "output 0 has no value");
  tn_signal_set(s->done, 2);
  check_bound(b, tn_binding_start(b, s->after, 1, s->done, 3));
  tn_signal_fail(s->after, 1, TN_ERR_IO, "no disk");
  check_failed(s, 3, TN_ERR_IO, "no disk");
  give(b, &x);
  assert_int_equal(tn_binding_run(b), TN_ERR_IO);
  check_text(tn_binding_message(b), "no disk");
  check_bound(b, tn_binding_run(b));
  check_output(b, 5);
  tn_signal_set(s->done, 4);
  assert_int_equal(tn_binding_input(b, "z", tn_shape(1), TN_F32, &x, 4), TN_ERR_ARGUMENT);
  assert_int_equal(tn_binding_start(b, NULL, 0, s->done, 5), TN_ERR_ARGUMENT);
  check_text(tn_binding_message(b), "no input \"z\"; inputs: \"x\"");
  assert_int_equal(tn_signal_get(s->done), 4);
  check_bound(b, tn_binding_start(b, NULL, 0, s->done, 5));
  check_done(s, 5);
  check_output(b, 5);
}

/** Two bindings change one state; each run begins when the other's is done. */
static void runs_follow_each_other(void **state) {
  enum { TURNS = 50 };
  const setting *s = *state;
  tn_context *c = s->c;
  tn_tensor *t = tn_state(floats(c, FLOATS(0)));
  check_ok(c, tn_realize(c, &t, 1));
  tn_scope_begin(c);
  tn_assign(t, tn_mul(t, tn_num(c, 2)));
  tn_binding *twice = bind_compiled(c, NULL, 0, NULL);
  tn_assign(t, tn_add(t, tn_num(c, 1)));
  tn_binding *more = bind_compiled(c, NULL, 0, NULL);
  check_ok(c, tn_scope_end(c));
  float expected = 0;
  for (uint64_t k = 0; k < TURNS; k++) {
    check_bound(twice, tn_binding_start(twice, s->after, 2 * k, s->done, 2 * k + 1));
    check_bound(more, tn_binding_start(more, s->done, 2 * k + 1, s->after, 2 * k + 2));
    tn_failure f;
    assert_int_equal(tn_signal_wait(s->after, 2 * k + 2, -1, &f), TN_OK);
    expected = (float)((int)(2 * expected + 1) % 8);
    tn_assign(t, tn_fmod(t, tn_num(c, 8))); /* still pending when the next run begins */
  }
  check_floats(c, t, 1, &expected);
}

typedef struct user {
  const setting *s;
  tn_plan *plan;
  float x;
  bool fine;
} user;

static void *use_often(void *arg) {
  user *u = arg;
  tn_binding *b;
  float y;
  u->fine = tn_plan_bind(u->plan, &b) == TN_OK && give(b, &u->x) == TN_OK;
  for (int i = 0; u->fine && i < 100; i++) {
    u->x += 1;
    u->fine =
        tn_binding_start(b, NULL, 0, NULL, 0) == TN_OK && settled(b, &y) == TN_OK && y == u->x + 1;
  }
  tn_binding_free(b);
  return NULL;
}

static void threads_start_runs_at_once(void **state) {
  enum { USERS = 4 };
  const setting *s = *state;
  tn_tensor *y = tn_add(tn_input(s->c, "x", tn_shape(1), TN_F32), tn_num(s->c, 1));
  tn_plan *plan;
  check_ok(s->c, tn_plan_compile(s->c, &y, 1, NULL, &plan));
  pthread_t threads[USERS];
  user users[USERS];
  for (int i = 0; i < USERS; i++) {
    users[i] = (user){.s = s, .plan = plan, .x = (float)(1000 * i)};
    assert_int_equal(pthread_create(&threads[i], NULL, use_often, &users[i]), 0);
  }
  for (int i = 0; i < USERS; i++) {
    pthread_join(threads[i], NULL);
    assert_true(users[i].fine);
  }
  tn_plan_free(plan);
}

static void freeing_cancels(void **state) {
  const setting *s = *state;
  tn_binding *b = increment(s->c);
  const float x = 1;
  give(b, &x);
  check_bound(b, tn_binding_start(b, s->after, 1, s->done, 1));
  tn_binding_free(b);
  check_failed(s, 1, TN_ERR_CANCELLED, "freed");
}

typedef struct caller {
  tn_binding *binding;
  tn_status started;
} caller;

static tn_status start_inside(void *u, tn_call *call) {
  caller *k = u;
  k->started = tn_binding_start(k->binding, NULL, 0, NULL, 0);
  *(float *)tn_call_out(call, 0).data = 1;
  return TN_OK;
}

static void callbacks_start_no_states(void **state) {
  const setting *s = *state;
  tn_tensor *t = tn_state(floats(s->c, FLOATS(1))), *y = tn_neg(t), *out;
  caller k = {bind_compiled(s->c, &y, 1, NULL), TN_OK};
  tn_custom_desc d = TN_CUSTOM_DESC_INIT;
  d.run = start_inside;
  d.user = &k;
  tn_custom(s->c, &d, NULL, 0, &(tn_type){TN_F32, tn_shape(1)}, &out, 1);
  check_floats(s->c, out, FLOATS(1));
  assert_int_equal(k.started, TN_ERR_BUSY);
  check_text(tn_binding_message(k.binding), "callback");
}

/** Each allocation fails in turn: nothing is started, or the run fails or succeeds without it; the
    binding can be started again. */
static void memory_may_run_out(void **state) {
  (void)state;
  counting n = {.fail_at = 0};
  tn_context *c = open_counting(&n, "CPU");
  const float x = 1;
  size_t failed = 0;
  for (size_t fail = 1, calls = 1; fail <= calls; fail++) {
    tn_binding *b = increment(c);
    tn_failure f;
    tn_device *device;
    tn_signal *done;
    assert_int_equal(tn_device_open(c, NULL, &device, &f), TN_OK);
    assert_int_equal(tn_signal_open(device, 0, &done, &f), TN_OK);
    give(b, &x);
    size_t before = n.calls;
    n.fail_at = fail > 1 ? before + fail - 1 : 0;
    tn_status status = tn_binding_start(b, NULL, 0, done, 1);
    if (status == TN_OK) status = tn_signal_wait(done, 1, -1, &f);
    n.fail_at = 0;
    if (fail == 1) calls = n.calls - before + 1;
    if (status != TN_OK) assert_int_equal(status, TN_ERR_MEMORY);
    failed += status != TN_OK;
    float y;
    if (status != TN_OK && tn_signal_get(done) == 1)
      assert_int_equal(settled(b, &y), TN_ERR_MEMORY);
    check_bound(b, tn_binding_start(b, NULL, 0, done, 2));
    assert_int_equal(tn_signal_wait(done, 2, -1, &f), TN_OK);
    check_output(b, 2);
    tn_binding_free(b);
    tn_signal_free(done);
  }
  assert_in_range(failed, 5, SIZE_MAX);
  assert_int_equal(tn_close(c), TN_OK);
  assert_int_equal(n.out, 0);
}

#define WITH(test) cmocka_unit_test_setup_teardown(test, open_one, close_one)

int main(void) {
  const struct CMUnitTest tests[] = {
      WITH(a_run_waits_and_signals),    WITH(signals_may_be_absent),
      WITH(failures_are_told_once),     WITH(runs_follow_each_other),
      WITH(threads_start_runs_at_once), WITH(freeing_cancels),
      WITH(callbacks_start_no_states),  cmocka_unit_test(memory_may_run_out),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
