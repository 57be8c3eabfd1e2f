/* Tests scopes and ownership of tensors: lifetimes of handles, when pending assigns are run, and
   which call reports an error of an earlier operation. */
#include "support/tensor_check.h"

static tn_tensor *bad(tn_context *c) {
  return tn_add(floats(c, FLOATS(1, 2)), floats(c, FLOATS(1, 2, 3)));
}

static void kept_tensors_outlive(void **state) {
  tn_context *c = *state;
  tn_scope_begin(c);
  tn_scope_begin(c);
  tn_tensor *x = tn_keep(tn_add(floats(c, FLOATS(1, 2)), tn_num(c, 1)));
  check_ok(c, tn_scope_end(c));
  check_floats(c, x, FLOATS(2, 3));
  tn_keep(x);
  check_ok(c, tn_scope_end(c));
  check_floats(c, x, FLOATS(2, 3));
  assert_ptr_equal(tn_keep(x), x);
}

static void owned_tensors_are_counted(void **state) {
  tn_context *c = *state;
  tn_scope_begin(c);
  tn_tensor *x = tn_own(floats(c, FLOATS(4, 5)));
  check_ok(c, tn_scope_end(c));
  tn_retain(x);
  tn_release(x);
  check_floats(c, x, FLOATS(4, 5));
  assert_ptr_equal(tn_own(x), x);
  tn_release(x);
  check_floats(c, x, FLOATS(4, 5));
  tn_release(x);
  tn_release(NULL);
}

static void owners_are_told_apart(void **state) {
  tn_context *c = *state;
  tn_scope_begin(c);
  tn_tensor *x = floats(c, FLOATS(4, 5));
  tn_release(x);
  check_floats(c, x, FLOATS(4, 5));
  assert_int_equal(tn_scope_end(c), TN_ERR_ARGUMENT);
  check_text(tn_message(c), "release");
  tn_scope_begin(c);
  tn_retain(floats(c, FLOATS(4, 5)));
  assert_int_equal(tn_scope_end(c), TN_ERR_ARGUMENT);
}

static void the_first_failure_is_kept(void **state) {
  tn_context *c = *state;
  tn_scope_begin(c);
  bad(c);
  float f;
  assert_int_equal(tn_read(floats(c, FLOATS(1)), TN_F32, &f, 5), TN_ERR_ARGUMENT);
  check_text(tn_message(c), "5 bytes");
  assert_int_equal(tn_scope_end(c), TN_ERR_SHAPE);
  check_text(tn_message(c), "add(f32[2], f32[3])");
  tn_scope_begin(c);
  check_ok(c, tn_scope_end(c));
}

static void the_oldest_failure_travels(void **state) {
  tn_context *c = *state;
  float f;
  tn_tensor *older = bad(c);
  tn_tensor *younger = tn_from_host(c, tn_shape(1), TN_F32, &f, 3);
  tn_tensor *both = tn_add(tn_mul(younger, tn_num(c, 2)), older);
  assert_int_equal(tn_read(both, TN_F32, &f, 4), TN_ERR_SHAPE);
  check_text(tn_message(c), "add(f32[2], f32[3])");
  assert_int_equal(tn_read(younger, TN_F32, &f, 4), TN_ERR_ARGUMENT);
}

static void null_objects_alone_are_refused_in_silence(void **state) {
  tn_context *c = *state;
  bad(c);
  char before[256];
  snprintf(before, sizeof before, "%s", tn_message(c));
  float f;
  assert_null(tn_add(NULL, NULL));
  assert_null(tn_concat(NULL, 3, 0));
  assert_null(tn_stack(NULL, 3, 0));
  assert_null(tn_state(NULL));
  assert_null(tn_assign(NULL, NULL));
  assert_null(tn_keep(NULL));
  assert_int_equal(tn_read(NULL, TN_F32, &f, 4), TN_ERR_ARGUMENT);
  assert_int_equal(tn_type_of(NULL).dtype, TN_UNDEFINED);
  assert_string_equal(tn_message(c), before);
}

static void null_operands_are_told(void **state) {
  tn_context *c = *state;
  float f;
  tn_tensor *a = floats(c, FLOATS(1, 2)), *list[] = {a, NULL, a}, *parts[2];
  tn_tensor *sum = tn_relu(tn_add(a, NULL));
  assert_string_equal(tn_message(c), "add(f32[2], NULL): operand 2 is NULL");
  tn_label(c, "net.c:12");
  tn_concat(list, 3, 0);
  check_text(tn_message(c), "concat(f32[2], NULL, f32[2]): operand 2 is NULL\nat net.c:12");
  assert_int_equal(tn_read(sum, TN_F32, &f, 4), TN_ERR_ARGUMENT);
  assert_string_equal(tn_message(c), "add(f32[2], NULL): operand 2 is NULL");
  tn_tensor *s = tn_state(a);
  assert_int_equal(tn_read(tn_assign(s, NULL), TN_F32, &f, 4), TN_ERR_ARGUMENT);
  check_text(tn_message(c), "assign(f32[2], NULL): operand 2 is NULL");
  assert_int_equal(tn_realize(c, list, 3), TN_ERR_ARGUMENT);
  check_text(tn_message(c), "realize(f32[2], NULL, f32[2]): operand 2");
  assert_int_equal(tn_realize(c, NULL, 3), TN_ERR_ARGUMENT);
  check_text(tn_message(c), "realize: the list of 3 operands is NULL");
  assert_int_equal(tn_realize(NULL, NULL, 3), TN_ERR_ARGUMENT);
  assert_int_equal(tn_realize(NULL, list, 3), TN_ERR_ARGUMENT);
  tn_split(a, 0, NULL, NULL, 3);
  check_text(tn_message(c), "split: the list of 3 results is NULL");
  tn_split(NULL, 0, NULL, NULL, 3);
  tn_split(NULL, 0, NULL, parts, 2);
  assert_null(parts[0]);
  assert_int_equal(tn_map(a, NULL), TN_ERR_ARGUMENT);
  check_text(tn_message(c), "map(f32[2]): the place for the array is NULL");
  assert_int_equal(tn_device_get(c, 0, NULL), TN_ERR_ARGUMENT);
  check_text(tn_message(c), "device_get: the place");
  check_floats(c, s, FLOATS(1, 2));
}

/** The message about a NULL operand quotes the previous failure, its likely cause, once, however
    long the chain. */
static void what_made_it_null_is_quoted(void **state) {
  tn_context *c = *state;
  float f;
  tn_tensor *a = floats(c, FLOATS(1, 2));
  tn_label(c, "net.c:1");
  assert_int_equal(tn_read(bad(c), TN_F32, &f, 4), TN_ERR_SHAPE);
  for (int i = 0; i < 3; i++) {
    tn_label(c, "net.c:2");
    assert_int_equal(tn_read(tn_add(a, NULL), TN_F32, &f, 4), TN_ERR_ARGUMENT);
    check_text(tn_message(c), "add(f32[2], NULL): operand 2 is NULL\nat net.c:2\nthe failure "
                              "before it, which may be unrelated: add(f32[2], f32[3])");
    const char *quote = strstr(tn_message(c), "before it");
    assert_null(strstr(quote + 1, "before it"));
    assert_null(strstr(quote, "net.c:2"));
  }
  assert_int_equal(tn_read(tn_add(bad(c), NULL), TN_F32, &f, 4), TN_ERR_SHAPE);
}

static void no_scope_is_told(void **state) {
  tn_context *c = *state;
  assert_int_equal(tn_scope_end(c), TN_ERR_ARGUMENT);
  check_text(tn_message(c), "no scope is open");
}

static void labels_are_told(void **state) {
  tn_context *c = *state;
  tn_label(c, "net.c:12");
  bad(c);
  check_text(tn_message(c), "\nat net.c:12");
  float f[2];
  tn_tensor *s = tn_state(floats(c, FLOATS(1, 2)));
  tn_assign(s, tn_zeros(c, tn_shape(3), TN_F32));
  assert_int_equal(tn_read(s, TN_F32, f, sizeof f), TN_ERR_SHAPE);
  assert_string_equal(strchr(tn_message(c), '\n'), "\nat net.c:12");
  tn_assign(s, tn_zeros(c, tn_shape(3), TN_F32));
  tn_label(c, "net.c:13");
  assert_int_equal(tn_read(s, TN_F32, f, sizeof f), TN_ERR_SHAPE);
  assert_string_equal(strchr(tn_message(c), '\n'), "\nat net.c:12\nat net.c:13");
  tn_dim none = tn_dim_div(c, 1, 0);
  tn_label(c, "net.c:13"); /* the same again */
  tn_zeros(c, tn_shape(none), TN_F32);
  assert_string_equal(strchr(tn_message(c), '\n'), "\nat net.c:13");
  tn_label(c, "13"); /* the end of the message, but another label */
  tn_zeros(c, tn_shape(tn_dim_div(c, 1, none)), TN_F32);
  assert_string_equal(strchr(tn_message(c), '\n'), "\nat net.c:13\nat 13");
  tn_model *m;
  tn_scope_begin(c);
  tn_assign(s, tn_zeros(c, tn_shape(3), TN_F32));
  assert_int_equal(tn_scope_end(c), TN_ERR_SHAPE);
  assert_string_equal(strchr(tn_message(c), '\n'), "\nat 13"); /* of the assign */
  assert_int_equal(tn_model_load_bytes(c, "no model", 8, NULL, &m), TN_ERR_FORMAT);
  assert_null(strstr(tn_message(c), "at 13")); /* it builds no node of the context */
  assert_int_equal(tn_scope_end(c), TN_ERR_ARGUMENT);
  assert_null(strstr(tn_message(c), "at 13"));
  tn_label(c, NULL);
  bad(c);
  assert_null(strstr(tn_message(c), "net.c"));
}

static void expressions_outlive_handles(void **state) {
  tn_context *c = *state;
  tn_tensor *x = tn_own(floats(c, FLOATS(1, 2)));
  tn_tensor *y = tn_mul(x, x);
  tn_release(x);
  check_floats(c, y, FLOATS(1, 4));
}

static void kept_inputs_stay_expressions(void **state) {
  tn_context *c = *state;
  tn_scope_begin(c);
  tn_tensor *x = tn_own(tn_input(c, "x", tn_shape(2), TN_F32));
  tn_tensor *y = tn_own(tn_add(x, tn_num(c, 1)));
  check_ok(c, tn_scope_end(c));
  float f[2];
  assert_int_equal(tn_read(y, TN_F32, f, sizeof f), TN_ERR_ARGUMENT);
  check_text(tn_message(c), "input x");
}

#ifndef NDEBUG
static void stale_handles_are_told(void **state) {
  tn_context *c = *state;
  tn_scope_begin(c);
  tn_tensor *x = floats(c, FLOATS(1));
  check_ok(c, tn_scope_end(c));
  float f;
  assert_int_equal(tn_read(x, TN_F32, &f, 4), TN_ERR_ARGUMENT);
  check_text(tn_message(c), "freed");
  tn_tensor *y = tn_add(x, x);
  assert_int_equal(tn_read(y, TN_F32, &f, 4), TN_ERR_ARGUMENT);
  assert_int_equal(tn_type_of(x).dtype, TN_UNDEFINED);
  tn_keep(x);
  check_text(tn_message(c), "keep: the tensor was freed");
}
#endif

static void contexts_do_not_mix(void **state) {
  tn_context *c = *state, *other = tn_open(NULL);
  tn_tensor *x = floats(c, FLOATS(1)), *y = floats(other, FLOATS(1));
  float f;
  assert_int_equal(tn_read(tn_add(x, y), TN_F32, &f, 4), TN_ERR_ARGUMENT);
  check_text(tn_message(c), "different contexts");
  check_ok(other, tn_close(other));
}

/** A small training step: a long graph, kept tensors, states changed in place. */
static void step(tn_context *c, tn_tensor *w, tn_tensor *m, tn_tensor **mean, int i) {
  float x[16];
  for (int k = 0; k < 16; k++) x[k] = (float)((i + k) % 7);
  tn_scope_begin(c);
  tn_tensor *in = floats(c, 16, x);
  tn_tensor *g = tn_sub(tn_mul(in, w), tn_num(c, 0.5));
  tn_assign(m, tn_add(tn_mul(m, tn_num(c, 0.9)), g));
  tn_assign(w, tn_sub(w, tn_mul(m, tn_num(c, 1e-3))));
  tn_release(*mean);
  *mean = tn_own(tn_mean(w, TN_ALL, false));
  check_ok(c, tn_scope_end(c));
}

static void steps_take_constant_memory(void **state) {
  enum { STEPS = 3000 };
  tn_context *c = *state;
  float one[16];
  for (int i = 0; i < 16; i++) one[i] = 1;
  tn_tensor *w = tn_state(floats(c, 16, one)), *m = tn_state(tn_zeros(c, tn_shape(16), TN_F32));
  tn_tensor *mean = NULL;
  long after_a_tenth = 0;
  for (int i = 0; i < STEPS; i++) {
    step(c, w, m, &mean, i);
    if (i == STEPS / 10) after_a_tenth = resident_kib();
  }
  float x;
  check_ok(c, tn_read(mean, TN_F32, &x, sizeof x));
  assert_true(x > 0 && x < 1);
  long end = resident_kib();
  if (!IS_SANITIZED && end > after_a_tenth + 1024)
    fail_msg("%ld KiB at the end, %ld KiB after a tenth", end, after_a_tenth);
  tn_release(mean);
}

static void states_of_a_scope_serve_what_is_kept(void **state) {
  tn_context *c = *state;
  tn_scope_begin(c);
  tn_tensor *s = tn_state(floats(c, FLOATS(1, 2)));
  tn_tensor *old = tn_keep(tn_mul(s, tn_num(c, 2)));
  tn_assign(s, tn_add(s, tn_num(c, 1)));
  tn_tensor *now = tn_keep(tn_mul(s, tn_num(c, 2))), *alias = tn_keep(tn_flip(s, TN_ALL));
  check_ok(c, tn_scope_end(c));
  check_floats(c, old, FLOATS(2, 4));
  check_floats(c, now, FLOATS(4, 6));
  check_floats(c, alias, FLOATS(3, 2));
  tn_scope_begin(c);
  tn_assign(tn_state(tn_num(c, 1)), tn_num(c, 2));
  check_ok(c, tn_scope_end(c));
}

static void nested_scopes_run_outer_assigns(void **state) {
  tn_context *c = *state;
  tn_tensor *s = tn_state(floats(c, FLOATS(1)));
  tn_scope_begin(c);
  tn_assign(s, tn_add(s, tn_num(c, 1)));
  tn_scope_begin(c);
  tn_assign(s, tn_mul(s, tn_num(c, 10)));
  check_ok(c, tn_scope_end(c));
  tn_assign(s, tn_add(s, tn_num(c, 3)));
  check_ok(c, tn_scope_end(c));
  check_floats(c, s, FLOATS(23));
}

/** Assignments that a scope cannot compute are dropped with it, others happen: each stays with the
    scope in which it was made. */
static void hopeless_assigns_go_alone(void **state) {
  tn_context *c = *state;
  tn_tensor *s = tn_state(floats(c, FLOATS(1)));
  check_ok(c, tn_realize(c, &s, 1));
  tn_tensor *triple = tn_mul(s, tn_num(c, 3));
  tn_plan *plan;
  tn_assign(s, tn_num(c, 5));
  tn_scope_begin(c);
  tn_scope_begin(c);
  tn_assign(s, tn_input(c, "x", tn_shape(1), TN_F32));
  assert_int_equal(tn_scope_end(c), TN_ERR_ARGUMENT);
  check_ok(c, tn_plan_compile(c, &triple, 1, NULL, &plan));
  check_floats(c, s, FLOATS(5));
  check_ok(c, tn_scope_end(c));
}

static void assigns_below_hopeless_ones_happen(void **state) {
  tn_context *c = *state;
  tn_tensor *s = tn_state(floats(c, FLOATS(1)));
  tn_scope_begin(c);
  tn_assign(s, tn_add(s, tn_num(c, 1)));
  tn_tensor *kept = tn_keep(tn_neg(s));
  tn_assign(s, tn_add(s, tn_input(c, "x", tn_shape(1), TN_F32)));
  assert_int_equal(tn_scope_end(c), TN_ERR_ARGUMENT);
  check_floats(c, kept, FLOATS(-2));
  check_floats(c, s, FLOATS(2));
}

/** Two nested scopes with pending assignments to one state: each compiles its own into a plan. */
static void plans_take_assigns_of_their_scope(void **state) {
  tn_context *c = *state;
  tn_tensor *s = tn_state(floats(c, FLOATS(1)));
  const float x = 10;
  tn_plan *plans[2];
  tn_scope_begin(c);
  tn_assign(s, tn_input(c, "x", tn_shape(1), TN_F32));
  tn_scope_begin(c);
  tn_assign(s, tn_add(s, tn_num(c, 1)));
  check_ok(c, tn_plan_compile(c, NULL, 0, NULL, &plans[0]));
  check_ok(c, tn_scope_end(c));
  check_ok(c, tn_plan_compile(c, NULL, 0, NULL, &plans[1]));
  check_ok(c, tn_scope_end(c));
  for (int i = 0; i < 2; i++) {
    tn_binding *b;
    check_ok(c, tn_plan_bind(plans[i], &b));
    assert_int_equal(tn_binding_input(b, "x", tn_shape(1), TN_F32, &x, 4), TN_OK);
    assert_int_equal(tn_binding_run(b), TN_OK);
    check_floats(c, s, 1, i ? &x : (const float[]){11});
  }
}

static void count_plans(void *user, tn_log_level level, const char *text) {
  if (level == TN_LOG_DEBUG && strstr(text, "plan")) ++*(int *)user;
}

static void equal_steps_compile_once(void **state) {
  (void)state;
  int plans = 0;
  tn_open_desc d = TN_OPEN_DESC_INIT;
  d.logger = (tn_logger){count_plans, &plans, NULL};
  tn_context *c = tn_open(&d);
  float one[16];
  for (int i = 0; i < 16; i++) one[i] = 1;
  tn_tensor *w = tn_state(floats(c, 16, one)), *m = tn_state(tn_zeros(c, tn_shape(16), TN_F32));
  tn_tensor *mean = NULL;
  for (int i = 0; i < 20; i++) step(c, w, m, &mean, i);
  if (plans > 3) fail_msg("%d plans", plans);
  check_ok(c, tn_close(c));
}

#define WITH(test) cmocka_unit_test_setup_teardown(test, open_context, close_context)

int main(void) {
  const struct CMUnitTest tests[] = {
      WITH(kept_tensors_outlive),
      WITH(owned_tensors_are_counted),
      WITH(owners_are_told_apart),
      WITH(the_first_failure_is_kept),
      WITH(the_oldest_failure_travels),
      WITH(null_objects_alone_are_refused_in_silence),
      WITH(null_operands_are_told),
      WITH(what_made_it_null_is_quoted),
      WITH(no_scope_is_told),
      WITH(labels_are_told),
      WITH(expressions_outlive_handles),
      WITH(kept_inputs_stay_expressions),
#ifndef NDEBUG
      WITH(stale_handles_are_told),
#endif
      WITH(contexts_do_not_mix),
      WITH(states_of_a_scope_serve_what_is_kept),
      WITH(nested_scopes_run_outer_assigns),
      WITH(hopeless_assigns_go_alone),
      WITH(assigns_below_hopeless_ones_happen),
      WITH(plans_take_assigns_of_their_scope),
      cmocka_unit_test(equal_steps_compile_once),
      WITH(steps_take_constant_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
