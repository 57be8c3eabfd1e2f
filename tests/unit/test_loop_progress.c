/* Tests the progress of loops in plans and in what is realised: it is told now and then between
   steps, and ends a loop that is long or has no end. A run that it cancels leaves states and the
   context as they were, and can be run again; also on a device that goes on by itself. */
#include "../backend/ref.c"

#include "support/tensor_check.h"

#include <time.h>

enum { WIDTH = 3, BETWEEN_MS = 10, TICK_MS = 4 };

/** Callbacks about steps of loops. */
typedef struct follower {
  tn_context *c;
  uint64_t calls, last, total;
  uint64_t most; /* calls before it cancels; 0: it does not */
} follower;

static bool follow(void *user, const char *what, uint64_t done, uint64_t total) {
  follower *f = user;
  if (strcmp(what, "steps") != 0) return true;
  if (f->calls && done <= f->last) fail_msg("step %d after %d", (int)done, (int)f->last);
  f->last = done;
  f->total = total;
  return ++f->calls != f->most;
}

static void open_followed(follower *f, const char *device) {
  tn_open_desc d = TN_OPEN_DESC_INIT;
  *f = (follower){.calls = 0};
  d.progress = (tn_progress){follow, f, NULL};
  d.device = device;
  f->c = tn_open(&d);
  assert_non_null(f->c);
}

/** Has the callback cancel at its `most`-th call from now on; 0: never. */
static void cancel_at(follower *f, uint64_t most) {
  f->calls = f->last = 0;
  f->most = most;
}

/** Halves a state, and ends when its first element is below a limit. */
typedef struct halving {
  tn_context *c;
  tn_tensor *limit;
} halving;

static void halve(void *user, tn_tensor *index, tn_tensor *const state[], tn_tensor *const x[],
                  tn_tensor *next[], tn_tensor *y[]) {
  const halving *h = user;
  (void)index, (void)x, (void)y;
  next[0] = tn_mul(state[0], tn_num(h->c, 0.5));
  if (h->limit) next[1] = tn_lt(tn_max(next[0], TN_ALL, false), h->limit);
}

/** x, halved until it is below the limit, or without one so many times. */
static tn_tensor *halved(tn_context *c, tn_tensor *x, tn_tensor *limit, int64_t steps) {
  halving h = {c, limit};
  tn_scan_desc d = TN_SCAN_DESC_INIT;
  tn_tensor *init[] = {x, tn_cast(tn_int(c, 0), TN_BOOL)}, *out[2];
  d.body = halve;
  d.user = &h;
  d.steps = steps;
  if (limit) d.until = 1;
  tn_scan(c, &d, init, limit ? 2 : 1, NULL, 0, out, 0);
  return out[0];
}

static double now_ms(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

/** A loop that is realised: calls are rare, and tell how far it is. */
static void calls_are_rare(void **state) {
  enum { STEPS = 100000 };
  follower f;
  (void)state;
  open_followed(&f, NULL);
  tn_tensor *y = halved(f.c, floats(f.c, FLOATS(4, 2, 1)), NULL, STEPS);
  double begin = now_ms();
  check_floats(f.c, y, FLOATS(0, 0, 0));
  double ms = now_ms() - begin;
  assert_true(f.calls >= 1 && f.last < STEPS);
  assert_int_equal(f.total, STEPS);
  assert_true((double)f.calls <= 1 + (ms + TICK_MS) / BETWEEN_MS);
  check_ok(f.c, tn_close(f.c));
}

/** A loop without an end is cancelled, and what is realised with it stays pending. */
static void endless_loops_end(void **state) {
  follower f;
  float got[WIDTH];
  (void)state;
  open_followed(&f, NULL);
  tn_tensor *limit = tn_state(tn_num(f.c, -1)), *w = tn_state(floats(f.c, FLOATS(4, 2, 1)));
  check_ok(f.c, tn_realize(f.c, NULL, 0));
  tn_tensor *y = halved(f.c, w, tn_cast(limit, TN_F32), -1);
  tn_assign(w, tn_add(w, y));
  cancel_at(&f, 3);
  assert_int_equal(tn_read(w, TN_F32, got, sizeof got), TN_ERR_CANCELLED);
  check_text(tn_message(f.c), "was cancelled after ");
  assert_int_equal(f.calls, 3);
  assert_int_equal(f.total, 0);
  cancel_at(&f, 2); /* the assignment is still there */
  assert_int_equal(tn_realize(f.c, NULL, 0), TN_ERR_CANCELLED);
  assert_int_equal(f.calls, 2);
  check_ok(f.c, tn_close(f.c));
}

/** Assigns of a scope at whose end a loop is cancelled do not happen. */
static void cancelled_scopes_change_nothing(void **state) {
  follower f;
  (void)state;
  open_followed(&f, NULL);
  tn_tensor *w = tn_state(floats(f.c, FLOATS(4, 2, 1))),
            *y = tn_state(floats(f.c, FLOATS(0, 0, 0)));
  check_ok(f.c, tn_realize(f.c, NULL, 0));
  tn_scope_begin(f.c);
  tn_assign(w, tn_add(w, tn_num(f.c, 1)));
  tn_assign(y, halved(f.c, w, NULL, 3));
  cancel_at(&f, 1);
  assert_int_equal(tn_scope_end(f.c), TN_ERR_CANCELLED);
  assert_int_equal(f.last, 1);
  cancel_at(&f, 0);
  check_floats(f.c, y, FLOATS(0, 0, 0));
  check_floats(f.c, w, FLOATS(4, 2, 1));
  check_ok(f.c, tn_close(f.c));
}

/** Runs with an x of ones. */
static tn_status run_with(tn_binding *b, float limit) {
  static const float x[WIDTH] = {1, 1, 1};
  check_bound(b, tn_binding_input(b, "x", tn_shape(WIDTH), TN_F32, x, sizeof x));
  check_bound(b, tn_binding_input(b, "limit", TN_SCALAR, TN_F32, &limit, sizeof limit));
  return tn_binding_run(b);
}

/** A plan that adds x to a state, and then halves it in a loop: a run that is cancelled in the loop
    has not changed the state, and the next one does. */
static void cancelled_runs_change_nothing(void **state) {
  follower f;
  (void)state;
  open_followed(&f, NULL);
  tn_tensor *w = tn_state(floats(f.c, FLOATS(4, 2, 1))), *kept = tn_state(floats(f.c, FLOATS(7)));
  check_ok(f.c, tn_realize(f.c, NULL, 0));
  tn_scope_begin(f.c);
  tn_tensor *x = tn_input(f.c, "x", tn_shape(WIDTH), TN_F32);
  tn_tensor *limit = tn_input(f.c, "limit", TN_SCALAR, TN_F32);
  tn_assign(kept, tn_add(kept, tn_slice(x, 0, 0, 1, 1)));
  tn_assign(w, tn_add(w, x));
  tn_tensor *y = halved(f.c, w, limit, -1);
  tn_binding *b = bind_compiled(f.c, &y, 1, NULL);
  check_ok(f.c, tn_scope_end(f.c));
  for (int round = 0; round < 3; round++) {
    float sum = (float)round;
    cancel_at(&f, 1 + (uint64_t)round);
    assert_int_equal(run_with(b, -1), TN_ERR_CANCELLED);
    check_text(tn_binding_message(b), "was cancelled after ");
    check_floats(f.c, w, FLOATS(4 + sum, 2 + sum, 1 + sum));
    check_floats(f.c, kept, FLOATS(7 + sum));
    cancel_at(&f, 0);
    check_bound(b, run_with(b, 3));
    check_floats(f.c, w, FLOATS(5 + sum, 3 + sum, 2 + sum));
    check_floats(f.c, kept, FLOATS(8 + sum));
    float by = round ? 4 : 2; /* 5 is halved once; 6 and 7, twice */
    check_output_floats(b, "0", FLOATS((5 + sum) / by, (3 + sum) / by, (2 + sum) / by));
  }
  tn_binding_free(b);
  check_ok(f.c, tn_close(f.c));
}

/** A device that goes on by itself is waited for before the run returns. */
static void devices_are_waited_for(void **state) {
  follower f;
  (void)state;
  tn_context *first = tn_open(NULL);
  assert_int_equal(tn_backend_add(first, &ref_backend), TN_OK);
  open_followed(&f, "REF");
  tn_tensor *x = tn_input(f.c, "x", tn_shape(WIDTH), TN_F32);
  tn_tensor *y = halved(f.c, x, NULL, 2000000);
  tn_binding *b = bind_compiled(f.c, &y, 1, NULL);
  check_bound(b, tn_binding_input(b, "x", tn_shape(WIDTH), TN_F32, (float[]){1, 2, 3}, 12));
  for (uint64_t round = 1; round < 3; round++) {
    cancel_at(&f, round);
    assert_int_equal(tn_binding_run(b), TN_ERR_CANCELLED);
    assert_int_equal(f.calls, round);
    assert_int_equal(f.total, 2000000);
  }
  tn_binding_free(b);
  check_ok(f.c, tn_close(f.c));
  check_ok(first, tn_close(first));
}

int main(void) {
  static const struct CMUnitTest tests[] = {
      cmocka_unit_test(calls_are_rare),
      cmocka_unit_test(endless_loops_end),
      cmocka_unit_test(cancelled_scopes_change_nothing),
      cmocka_unit_test(cancelled_runs_change_nothing),
      cmocka_unit_test(devices_are_waited_for),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
