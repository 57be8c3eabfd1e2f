/* Tests states (tensors that are assigned in place), host memory that is wrapped or mapped, and
   custom operations: which contents a read sees, order of assigns, updates in place, and errors. */
#include "support/tensor_check.h"

#include <time.h>

static tn_tensor *plus(tn_context *c, tn_tensor *x, double k) { return tn_add(x, tn_num(c, k)); }

/* Host memory. */

static void values_convert(void **state) {
  tn_context *c = *state;
  const float x[] = {1.5f, -2.5f, 300, 0};
  tn_tensor *t = tn_from_host(c, tn_shape(2, 2), TN_F32, x, sizeof x);
  int8_t i8[4];
  check_ok(c, tn_read(t, TN_I8, i8, sizeof i8));
  assert_int_equal(i8[0], 1);
  assert_int_equal(i8[1], -2);
  assert_int_equal(i8[2], 127);
  bool b[4];
  check_ok(c, tn_read(t, TN_BOOL, b, sizeof b));
  assert_true(b[0] && b[1] && b[2] && !b[3]);
  const uint8_t odd[] = {0, 7};
  check_ok(c, tn_read(tn_from_host(c, tn_shape(2), TN_BOOL, odd, 2), TN_U8, i8, 2));
  assert_int_equal(i8[1], 1);
}

static void sizes_are_exact(void **state) {
  tn_context *c = *state;
  float x[2] = {1, 2};
  tn_tensor *t = floats(c, 2, x);
  assert_int_equal(tn_read(t, TN_F32, x, 7), TN_ERR_ARGUMENT);
  assert_int_equal(tn_read(t, TN_F64, x, 8), TN_ERR_ARGUMENT);
  assert_int_equal(tn_read(t, TN_STRING, x, 8), TN_ERR_DTYPE);
  assert_int_equal(tn_read(t, TN_F32, NULL, 8), TN_ERR_ARGUMENT);
  assert_true(x[0] == 1 && x[1] == 2);
  tn_tensor *bad = tn_from_host(c, tn_shape(2), TN_F32, x, 4);
  assert_int_equal(tn_read(bad, TN_F32, x, 8), TN_ERR_ARGUMENT);
  bad = tn_from_host(c, tn_shape(1, INT64_C(1) << 40, 1 << 30), TN_F32, x, 4);
  assert_int_equal(tn_read(bad, TN_F32, x, 8), TN_ERR_SHAPE);
  tn_tensor *none = tn_from_host(c, tn_shape(3, 0), TN_F32, NULL, 0);
  check_ok(c, tn_read(none, TN_F32, NULL, 0));
  check_ok(c, tn_read(plus(c, none, 1), TN_F32, NULL, 0));
}

static void count_call(void *user) { ++*(int *)user; }

static void wrapped_memory_is_let_go_once(void **state) {
  tn_context *c = *state;
  float x[4] = {1, 2, 3, 4};
  int destroyed = 0;
  tn_scope_begin(c);
  tn_tensor *t = tn_wrap_host(c, tn_shape(4), TN_F32, x, sizeof x, count_call, &destroyed);
  tn_tensor *s = tn_own(tn_state(t));
  tn_tensor *sum = tn_own(plus(c, t, 1));
  tn_assign(s, tn_num(c, 9));
  assert_int_equal(destroyed, 0);
  check_ok(c, tn_scope_end(c));
  assert_int_equal(destroyed, 1);
  assert_true(x[0] == 1 && x[3] == 4);
  check_floats(c, s, FLOATS(9, 9, 9, 9));
  check_floats(c, sum, FLOATS(2, 3, 4, 5));
  destroyed = 0;
  tn_wrap_host(c, tn_shape(3), TN_F32, x, sizeof x, count_call, &destroyed);
  assert_int_equal(destroyed, 1);
  tn_wrap_host(NULL, tn_shape(4), TN_F32, x, sizeof x, count_call, &destroyed);
  assert_int_equal(destroyed, 2);
  tn_tensor *none = tn_wrap_host(c, tn_shape(2, 0), TN_F32, NULL, 0, count_call, &destroyed);
  check_ok(c, tn_read(plus(c, none, 1), TN_F32, NULL, 0));
  assert_int_equal(destroyed, 3);
}

/** Any non-zero byte of wrapped memory is true, and results have 1. */
static void wrapped_bools_are_bytes(void **state) {
  tn_context *c = *state;
  static const uint8_t bytes[4] = {0, 1, 2, 255};
  uint8_t got[4];
  int64_t sum;
  tn_array shown;
  tn_tensor *t = tn_wrap_host(c, tn_shape(4), TN_BOOL, bytes, sizeof bytes, NULL, NULL);
  check_ok(c, tn_read(t, TN_U8, got, sizeof got));
  assert_memory_equal(got, ((uint8_t[]){0, 1, 1, 1}), sizeof got);
  check_ok(c, tn_read(tn_sum(t, TN_ALL, false), TN_I64, &sum, sizeof sum));
  assert_int_equal(sum, 3);
  check_ok(c, tn_map(tn_flip(t, tn_axes(0)), &shown));
  assert_memory_equal(shown.data, ((uint8_t[]){1, 1, 1, 0}), sizeof got);
  check_ok(c, tn_map(t, &shown));
  assert_ptr_equal(shown.data, bytes);
}

/** Returns processor seconds for making, reading and freeing `count` states in order. */
static double time_of_states(tn_context *c, int count) {
  tn_tensor **s = malloc((size_t)count * sizeof *s);
  const float x = 1;
  clock_t start = clock();
  for (int i = 0; i < count; i++) s[i] = tn_own(tn_state(floats(c, 1, &x)));
  check_ok(c, tn_realize(c, s, (size_t)count));
  for (int i = 0; i < count; i++) tn_add(s[i], s[i]);
  for (int i = 0; i < count; i++) tn_release(s[i]);
  free(s);
  return (double)(clock() - start) / CLOCKS_PER_SEC;
}

/** The cost of freeing a state does not depend on their number: with a search, ten times as many
    would take a hundred times as long. */
static void many_states_are_freed_one_by_one(void **state) {
  double few = time_of_states(*state, 4000), many = time_of_states(*state, 40000);
  print_message("4,000 states %.2f s, 40,000 states %.2f s\n", few, many);
  assert_true(many < 40 * few + 0.5);
}

static void mapped_values_are_seen(void **state) {
  tn_context *c = *state;
  tn_array a;
  tn_tensor *s = tn_state(floats(c, FLOATS(1, 2, 3, 4)));
  check_ok(c, tn_map(tn_reshape(s, tn_shape(2, 2)), &a));
  assert_int_equal(a.type.shape.rank, 2);
  assert_true(((float *)a.data)[3] == 4);
  check_ok(c, tn_map(plus(c, s, 1), &a));
  assert_int_equal(a.type.dtype, TN_F32);
  assert_true(((float *)a.data)[3] == 5);
  assert_int_equal(tn_map(NULL, &a), TN_ERR_ARGUMENT);
  assert_null(a.data);
}

/** A weak scalar can be mapped, and its mapping stays valid. */
static void mapped_numbers_stay(void **state) {
  tn_context *c = *state;
  tn_array first, second;
  float got;
  tn_tensor *t = tn_num(c, 3);
  check_ok(c, tn_map(t, &first));
  check_ok(c, tn_map(t, &second));
  assert_ptr_equal(first.data, second.data);
  for (int i = 0; i < 4; i++) check_ok(c, tn_realize(c, (tn_tensor *[]){plus(c, t, i + 1)}, 1));
  assert_true(*(float *)first.data == 3);
  check_ok(c, tn_read(t, TN_F32, &got, sizeof got));
  assert_true(got == 3);
}

static void weak_scalars_are_read(void **state) {
  tn_context *c = *state;
  float f;
  int64_t i;
  check_ok(c, tn_read(tn_num(c, 0.1), TN_F32, &f, 4));
  assert_true(f == 0.1f);
  check_ok(c, tn_read(tn_int(c, 7), TN_I64, &i, 8));
  assert_int_equal(i, 7);
  assert_int_equal(tn_type_of(tn_state(tn_int(c, 7))).dtype, TN_I64);
}

/* Assignments. */

static void assigns_are_ordered(void **state) {
  tn_context *c = *state;
  tn_tensor *s = tn_state(floats(c, FLOATS(1, 2)));
  tn_tensor *before = plus(c, s, 0);
  assert_ptr_equal(tn_assign(s, plus(c, s, 10)), s);
  tn_tensor *between = plus(c, s, 0);
  tn_assign(s, tn_mul(s, tn_num(c, 2)));
  tn_tensor *after = plus(c, s, 0);
  check_floats(c, after, FLOATS(22, 24));
  check_floats(c, between, FLOATS(11, 12));
  check_floats(c, before, FLOATS(1, 2));
  check_floats(c, s, FLOATS(22, 24));
}

static void assigns_happen_once(void **state) {
  tn_context *c = *state;
  tn_tensor *s = tn_state(floats(c, FLOATS(1)));
  tn_assign(s, plus(c, s, 1));
  for (int i = 0; i < 3; i++) check_floats(c, s, FLOATS(2));
  check_floats(c, plus(c, s, 1), FLOATS(3));
  check_floats(c, s, FLOATS(2));
}

static void values_broadcast_and_convert(void **state) {
  tn_context *c = *state;
  tn_tensor *s = tn_state(tn_zeros(c, tn_shape(2, 3), TN_F32));
  const int32_t row[] = {1, 2, 3};
  tn_assign(s, tn_from_host(c, tn_shape(3), TN_I32, row, sizeof row));
  check_floats(c, s, FLOATS(1, 2, 3, 1, 2, 3));
  tn_assign(s, tn_num(c, 0.5));
  check_floats(c, s, FLOATS(.5f, .5f, .5f, .5f, .5f, .5f));
}

static void parts_are_assigned(void **state) {
  tn_context *c = *state;
  tn_tensor *s = tn_state(tn_arange(c, 0, 6, 1, TN_F32));
  tn_tensor *grid = tn_reshape(s, tn_shape(2, 3));
  tn_tensor *column = tn_slice(grid, 1, 1, 2, 1);
  tn_tensor *turned = tn_flip(tn_permute(grid, tn_axes(1, 0)), tn_axes(0));
  tn_assign(column, tn_num(c, 9));
  check_floats(c, s, FLOATS(0, 9, 2, 3, 9, 5));
  check_floats(c, turned, FLOATS(2, 5, 9, 9, 0, 3));
  tn_assign(turned, tn_reshape(tn_arange(c, 0, 6, 1, TN_F32), tn_shape(3, 2)));
  check_floats(c, s, FLOATS(4, 2, 0, 5, 3, 1));
  check_floats(c, column, FLOATS(2, 3));
}

static void views_see_later_assigns(void **state) {
  tn_context *c = *state;
  tn_tensor *s = tn_state(floats(c, FLOATS(1, 2, 3, 4)));
  tn_tensor *tail = tn_slice(s, 0, 2, TN_END, 1), *value = tn_cast(s, TN_F32);
  tn_assign(s, plus(c, s, 10));
  check_floats(c, tail, FLOATS(13, 14));
  check_floats(c, value, FLOATS(1, 2, 3, 4));
}

/** A view that was read, and whose value something unread holds, is still a view when it is
    assigned to, as a whole or in part. */
static void read_views_are_assigned(void **state) {
  tn_context *c = *state;
  for (int how = 0; how < 4; how++) {
    tn_tensor *s = tn_state(floats(c, FLOATS(1, 2, 3, 4))), *changed;
    check_floats(c, s, FLOATS(1, 2, 3, 4));
    tn_tensor *view = how < 2 ? tn_reshape(s, tn_shape(2, 2)) : tn_flip(s, TN_ALL);
    tn_tensor *reader = plus(c, view, 1), *number = tn_num(c, 7);
    check_floats(c, view, 4, how < 2 ? (const float[]){1, 2, 3, 4} : (const float[]){4, 3, 2, 1});
    changed = how % 2 ? tn_slice(view, 0, 0, 1, 1) : view;
    tn_assign(changed, number);
    if (how == 0 || how == 2) check_floats(c, s, FLOATS(7, 7, 7, 7));
    if (how == 1) check_floats(c, s, FLOATS(7, 7, 3, 4));
    if (how == 3) check_floats(c, s, FLOATS(1, 2, 3, 7));
    check_floats(c, reader, 4, how < 2 ? (const float[]){2, 3, 4, 5} : (const float[]){5, 4, 3, 2});
  }
}

/** Assigns f(x) to x where f moves elements: f reads the old contents. */
static void states_are_read_before_they_are_written(void **state) {
  tn_context *c = *state;
  tn_tensor *s = tn_state(floats(c, FLOATS(1, 2, 3, 4, 5, 6)));
  tn_assign(s, tn_flip(s, TN_ALL));
  check_floats(c, s, FLOATS(6, 5, 4, 3, 2, 1));
  tn_assign(tn_slice(s, 0, 1, TN_END, 1), tn_slice(s, 0, 0, 5, 1));
  check_floats(c, s, FLOATS(6, 6, 5, 4, 3, 2));
  tn_assign(tn_slice(s, 0, 0, 5, 1), tn_slice(s, 0, 1, TN_END, 1));
  check_floats(c, s, FLOATS(6, 5, 4, 3, 2, 2));
  tn_tensor *t = tn_state(floats(c, FLOATS(0, 0, 0, 0, 0, 0)));
  tn_assign(t, plus(c, s, 1));
  tn_assign(s, t);
  check_floats(c, s, FLOATS(7, 6, 5, 4, 3, 3));
}

static void swapped_states(void **state) {
  tn_context *c = *state;
  tn_tensor *a = tn_state(floats(c, FLOATS(1, 2))), *b = tn_state(floats(c, FLOATS(3, 4)));
  tn_scope_begin(c);
  tn_tensor *old = plus(c, a, 0);
  tn_assign(a, b);
  tn_assign(b, old);
  check_ok(c, tn_scope_end(c));
  check_floats(c, a, FLOATS(3, 4));
  check_floats(c, b, FLOATS(1, 2));
}

static void equal_states_are_apart(void **state) {
  tn_context *c = *state;
  tn_tensor *zero = tn_zeros(c, tn_shape(2), TN_F32);
  tn_tensor *a = tn_state(zero), *b = tn_state(zero), *d = tn_state(a);
  tn_assign(a, plus(c, a, 1));
  tn_assign(b, plus(c, b, 1));
  check_floats(c, a, FLOATS(1, 1));
  tn_assign(a, plus(c, a, 1));
  check_floats(c, a, FLOATS(2, 2));
  check_floats(c, b, FLOATS(1, 1));
  check_floats(c, zero, FLOATS(0, 0));
  tn_assign(d, tn_num(c, 5));
  check_floats(c, a, FLOATS(2, 2));
  check_floats(c, d, FLOATS(5, 5));
}

static void bad_assigns_leave_the_old_value(void **state) {
  tn_context *c = *state;
  float f[2];
  tn_tensor *s = tn_state(floats(c, FLOATS(1, 2)));
  tn_tensor *t = tn_assign(s, floats(c, FLOATS(1, 2, 3)));
  assert_int_equal(tn_read(t, TN_F32, f, sizeof f), TN_ERR_SHAPE);
  check_text(tn_message(c), "assign(f32[2], f32[3])");
  t = tn_assign(tn_expand(tn_reshape(s, tn_shape(1, 2)), tn_shape(3, 2)), tn_num(c, 1));
  assert_int_equal(tn_read(t, TN_F32, f, sizeof f), TN_ERR_ARGUMENT);
  t = tn_assign(plus(c, s, 1), tn_num(c, 1));
  assert_int_equal(tn_read(t, TN_F32, f, sizeof f), TN_ERR_ARGUMENT);
  check_text(tn_message(c), "only a state");
  check_floats(c, s, FLOATS(1, 2));
  tn_dim n = tn_dim_var(c, "n", 1, 4);
  t = tn_state(tn_input(c, "x", tn_shape(n), TN_F32));
  assert_int_equal(tn_read(t, TN_F32, f, sizeof f), TN_ERR_SHAPE);
}

/** Without a scope, the next call that takes assignments returns the failure. */
static void refused_assigns_are_told_once(void **state) {
  tn_context *c = *state;
  float f[2] = {8, 9};
  tn_plan *plan;
  tn_array shown;
  tn_tensor *s = tn_state(floats(c, FLOATS(1, 2))), *t = tn_state(floats(c, FLOATS(5)));
  tn_tensor *bad = floats(c, FLOATS(1, 2, 3));
  tn_assign(s, bad);
  assert_int_equal(tn_plan_compile(c, &s, 1, NULL, &plan), TN_ERR_SHAPE);
  check_text(tn_message(c), "assign(f32[2], f32[3])");
  assert_null(plan);
  check_ok(c, tn_plan_compile(c, &s, 1, NULL, &plan));
  tn_assign(s, bad);
  tn_assign(tn_num(c, 1), bad); /* a later failure */
  tn_assign(t, plus(c, t, 1));
  assert_int_equal(tn_read(s, TN_F32, f, sizeof f), TN_ERR_SHAPE);
  check_text(tn_message(c), "assign(f32[2], f32[3])");
  assert_true(f[0] == 8 && f[1] == 9);
  check_floats(c, s, FLOATS(1, 2));
  check_floats(c, t, FLOATS(6));
  tn_assign(s, bad);
  assert_int_equal(tn_map(t, &shown), TN_ERR_SHAPE);
  tn_custom(c, &(tn_custom_desc){sizeof(tn_custom_desc), .writes = 1}, &s, 1, NULL, NULL, 0);
  assert_int_equal(tn_realize(c, &t, 1), TN_ERR_ARGUMENT);
  check_text(tn_message(c), "custom(f32[2])");
  tn_tensor *wrong = tn_add(s, bad);
  tn_custom(c, &(tn_custom_desc){sizeof(tn_custom_desc), .writes = 1}, &wrong, 1, NULL, NULL, 0);
  assert_int_equal(tn_realize(c, &t, 1), TN_ERR_SHAPE);
  check_text(tn_message(c), "add(f32[2], f32[3])");
  tn_tensor *read = tn_assign(s, bad);
  assert_int_equal(tn_realize(c, &read, 1), TN_ERR_SHAPE);
  tn_scope_begin(c);
  tn_assign(s, bad);
  assert_int_equal(tn_scope_end(c), TN_ERR_SHAPE);
  check_floats(c, s, FLOATS(1, 2));
}

static void hopeless_assigns_fail_their_scope(void **state) {
  tn_context *c = *state;
  tn_tensor *s = tn_state(floats(c, FLOATS(1, 2))), *t = tn_state(floats(c, FLOATS(5)));
  tn_scope_begin(c);
  tn_assign(s, tn_input(c, "x", tn_shape(2), TN_F32));
  tn_assign(t, plus(c, t, 1));
  assert_int_equal(tn_scope_end(c), TN_ERR_ARGUMENT);
  check_text(tn_message(c), "input x");
  check_floats(c, s, FLOATS(1, 2));
  check_floats(c, t, FLOATS(6));
}

static void written_states(void **state) {
  tn_context *c = *state;
  tn_tensor *s = tn_state(floats(c, FLOATS(1, 2, 3)));
  int16_t x[] = {7, 8};
  check_ok(c, tn_write(tn_slice(s, 0, 1, TN_END, 1), TN_I16, x, sizeof x));
  x[0] = 0;
  check_floats(c, s, FLOATS(1, 7, 8));
  assert_int_equal(tn_write(s, TN_I16, x, sizeof x), TN_ERR_ARGUMENT);
  assert_int_equal(tn_write(plus(c, s, 1), TN_I16, x, sizeof x), TN_ERR_ARGUMENT);
  check_floats(c, s, FLOATS(1, 7, 8));
}

/** Returns the address of a state's contents. */
static const void *address(tn_context *c, tn_tensor *s) {
  tn_array a;
  check_ok(c, tn_map(s, &a));
  return a.data;
}

static void steps_are_in_place(void **state) {
  tn_context *c = *state;
  tn_tensor *s = tn_state(floats(c, FLOATS(1, 2)));
  const void *at = address(c, s);
  for (int i = 0; i < 5; i++) {
    tn_scope_begin(c);
    tn_tensor *twice = tn_mul(s, tn_num(c, 2));
    tn_assign(s, tn_sub(twice, plus(c, s, 1)));
    check_ok(c, tn_scope_end(c));
    assert_ptr_equal(address(c, s), at);
  }
  check_floats(c, s, FLOATS(-4, -3));
}

/** Expressions over values that were read get new nodes when they run, and the old nodes are
    freed. */
static void steps_of_what_was_read_are_in_place(void **state) {
  tn_context *c = *state;
  tn_tensor *s = tn_state(floats(c, FLOATS(1, 2)));
  const void *at = address(c, s);
  for (int i = 0; i < 5; i++) {
    tn_scope_begin(c);
    tn_tensor *sum = tn_sum(tn_mul(s, s), TN_ALL, false), *step = tn_mul(s, sum);
    float f;
    check_ok(c, tn_read(sum, TN_F32, &f, 4));
    tn_assign(s, tn_sub(step, tn_mul(s, tn_sub(sum, tn_num(c, 1)))));
    check_ok(c, tn_scope_end(c));
    assert_ptr_equal(address(c, s), at);
  }
  check_floats(c, s, FLOATS(1, 2));
}

static void live_readers_keep_the_old_contents(void **state) {
  tn_context *c = *state;
  tn_tensor *s = tn_state(floats(c, FLOATS(1, 2)));
  check_floats(c, s, FLOATS(1, 2));
  tn_tensor *late = plus(c, s, 100);
  tn_scope_begin(c);
  tn_assign(s, plus(c, s, 1));
  check_ok(c, tn_scope_end(c));
  check_floats(c, s, FLOATS(2, 3));
  check_floats(c, late, FLOATS(101, 102));
}

static void later_reads_use_what_was_read(void **state) {
  tn_context *c = *state;
  tn_tensor *s = tn_state(floats(c, FLOATS(1, 2)));
  tn_assign(s, plus(c, s, 1));
  tn_tensor *y = tn_mul(s, s);
  check_floats(c, s, FLOATS(2, 3));
  tn_scope_begin(c);
  tn_assign(s, tn_num(c, 0));
  check_ok(c, tn_scope_end(c));
  check_floats(c, y, FLOATS(4, 9));
  check_floats(c, s, FLOATS(0, 0));
}

static void reads_within_a_step(void **state) {
  tn_context *c = *state;
  tn_tensor *s = tn_state(floats(c, FLOATS(1, 2)));
  for (int i = 0; i < 3; i++) {
    tn_scope_begin(c);
    tn_tensor *loss = tn_sum(tn_mul(s, s), TN_ALL, false);
    const float expected[] = {5, 1.25f, .3125f};
    check_floats(c, loss, 1, &expected[i]);
    tn_assign(s, tn_sub(s, tn_mul(s, tn_div(loss, tn_mul(loss, tn_num(c, 2))))));
    check_ok(c, tn_scope_end(c));
  }
}

/* Custom operations. */

typedef struct doubling {
  int runs, destroyed;
  tn_status status;
} doubling;

static tn_status run_double(void *user, tn_call *call) {
  doubling *d = user;
  d->runs++;
  if (d->status != TN_OK) tn_call_fail(call, "not today");
  tn_array in = tn_call_in(call, 0), out = tn_call_out(call, 0);
  for (int64_t i = 0; i < in.type.shape.size[0]; i++)
    ((float *)out.data)[i] = 2 * ((const float *)in.data)[i];
  tn_array count = tn_call_out(call, 1);
  if (count.data) *(int64_t *)count.data = in.type.shape.size[0];
  assert_null(tn_call_in(call, 1).data);
  return d->status;
}

static void destroy_double(void *user) { ((doubling *)user)->destroyed++; }

static tn_custom_desc doubled(doubling *d) {
  tn_custom_desc desc = TN_CUSTOM_DESC_INIT;
  desc.name = "double";
  desc.run = run_double;
  desc.user = d;
  desc.destroy = destroy_double;
  return desc;
}

static void custom_operations_run_once(void **state) {
  tn_context *c = *state;
  doubling d = {0};
  tn_scope_begin(c);
  tn_custom_desc desc = doubled(&d);
  tn_tensor *x = floats(c, FLOATS(1, 2, 3)), *out[2];
  const tn_type types[] = {{TN_F32, tn_shape(3)}, {TN_I64, TN_SCALAR}};
  tn_custom(c, &desc, &x, 1, types, out, 2);
  assert_int_equal(d.runs, 0);
  check_floats(c, plus(c, out[0], 1), FLOATS(3, 5, 7));
  assert_int_equal(d.runs, 1);
  int64_t n;
  check_ok(c, tn_read(out[1], TN_I64, &n, 8));
  assert_int_equal(n, 3);
  assert_int_equal(d.destroyed, 0);
  check_floats(c, out[0], FLOATS(2, 4, 6));
  assert_int_equal(d.runs, 1);
  check_ok(c, tn_scope_end(c));
  assert_int_equal(d.destroyed, 1);
}

/** A custom operation that returns an unknown number still yields a status. */
static void custom_operations_return_statuses(void **state) {
  tn_context *c = *state;
  const int wrong[] = {12345, -1};
  for (int i = 0; i < 2; i++) {
    doubling d = {.status = (tn_status)wrong[i]};
    tn_custom_desc desc = doubled(&d);
    tn_tensor *x = floats(c, FLOATS(1, 2, 3)), *out;
    float got[3];
    tn_scope_begin(c);
    tn_custom(c, &desc, &x, 1, &(tn_type){TN_F32, tn_shape(3)}, &out, 1);
    assert_int_equal(tn_read(out, TN_F32, got, sizeof got), TN_ERR_INTERNAL);
    assert_non_null(strstr(tn_message(c), "which is not a tn_status"));
    assert_int_equal(tn_scope_end(c), TN_ERR_INTERNAL);
  }
}

static void count_plans(void *user, tn_log_level level, const char *text) {
  (void)level;
  *(int *)user += !strncmp(text, "a plan of", 9);
}

/** Equal graphs share a compiled plan, which calls each graph's functions and does not keep them
    alive. */
static void custom_operations_of_steps_are_compiled_once(void **state) {
  (void)state;
  int plans = 0;
  doubling d[3] = {0};
  tn_open_desc o = TN_OPEN_DESC_INIT;
  o.logger = (tn_logger){count_plans, &plans, NULL};
  tn_context *c = tn_open(&o);
  for (int i = 0; i < 3; i++) {
    tn_scope_begin(c);
    tn_custom_desc first = doubled(&d[i]), second = doubled(&d[2 - i]);
    tn_tensor *x = floats(c, FLOATS(1, 2, 3)), *once[2], *twice;
    const tn_type types[] = {{TN_F32, tn_shape(3)}, {TN_I64, TN_SCALAR}};
    tn_custom(c, &first, &x, 1, types, once, 2);
    tn_custom(c, &second, &once[0], 1, types, &twice, 1);
    check_floats(c, plus(c, twice, 1), FLOATS(5, 9, 13));
    assert_int_equal(plans, 1);
    check_ok(c, tn_scope_end(c));
    assert_int_equal(d[i].destroyed, i == 0 ? 1 : 2);
  }
  for (int i = 0; i < 3; i++) assert_int_equal(d[i].runs, 2);
  check_ok(c, tn_close(c));
}

static void custom_failures_are_told(void **state) {
  tn_context *c = *state;
  doubling d = {.status = TN_ERR_IO};
  tn_custom_desc desc = doubled(&d);
  tn_tensor *x = floats(c, FLOATS(1)), *out, *s = tn_state(floats(c, FLOATS(5)));
  check_floats(c, s, FLOATS(5));
  const tn_type type = {TN_F32, tn_shape(1)};
  tn_custom(c, &desc, &x, 1, &type, &out, 1);
  tn_scope_begin(c);
  tn_assign(s, plus(c, s, 1));
  tn_assign(s, tn_add(s, out));
  assert_int_equal(tn_scope_end(c), TN_ERR_IO);
  check_text(tn_message(c), "double: not today");
  check_floats(c, s, FLOATS(6));
  float f;
  assert_int_equal(tn_read(out, TN_F32, &f, 4), TN_ERR_IO);
  d.status = TN_OK;
  check_floats(c, out, FLOATS(2));
}

static void custom_refusals_destroy(void **state) {
  tn_context *c = *state;
  doubling d = {0};
  tn_custom_desc desc = doubled(&d);
  tn_tensor *x = floats(c, FLOATS(1)), *out = NULL, *none = NULL;
  tn_type type = {TN_STRING, tn_shape(1)};
  float f;
  tn_custom(c, &desc, &x, 1, &type, &out, 1);
  assert_int_equal(tn_read(out, TN_F32, &f, 4), TN_ERR_DTYPE);
  assert_int_equal(d.destroyed, 1);
  tn_custom(c, &desc, &x, 1, NULL, NULL, 0);
  assert_int_equal(d.destroyed, 2);
  tn_custom(c, &desc, &none, 1, &type, &out, 1);
  assert_int_equal(tn_read(out, TN_F32, &f, 4), TN_ERR_ARGUMENT);
  check_text(tn_message(c), "custom(NULL): operand 1 is NULL");
  assert_int_equal(d.destroyed, 3);
  type.dtype = TN_F32;
  desc.writes = 1;
  tn_custom(c, &desc, &x, 1, &type, &out, 1);
  assert_int_equal(tn_read(out, TN_F32, &f, 4), TN_ERR_ARGUMENT);
  assert_int_equal(d.destroyed, 4);
  desc.run = NULL;
  tn_custom(c, &desc, &x, 1, &type, &out, 1);
  assert_int_equal(tn_read(out, TN_F32, &f, 4), TN_ERR_ARGUMENT);
  assert_int_equal(d.destroyed, 5);
}

static tn_status run_counter(void *user, tn_call *call) {
  ++*(int *)user;
  float *x = tn_call_in(call, 0).data;
  int32_t *old = tn_call_out(call, 0).data;
  *old = (int32_t)x[0];
  x[0] += tn_call_in(call, 1).type.shape.size[0];
  return TN_OK;
}

static void custom_lists_are_there(void **state) {
  tn_context *c = *state;
  doubling d = {0};
  tn_custom_desc desc = doubled(&d);
  tn_tensor *x = floats(c, FLOATS(1)), *out = NULL;
  const tn_type type = {TN_F32, tn_shape(1)};
  float f;
  tn_custom(c, &desc, NULL, 1, &type, &out, 1);
  assert_int_equal(tn_read(out, TN_F32, &f, 4), TN_ERR_ARGUMENT);
  check_text(tn_message(c), "custom: the list of 1 operands is NULL");
  tn_custom(c, &desc, &x, 1, NULL, &out, 1);
  assert_int_equal(tn_read(out, TN_F32, &f, 4), TN_ERR_ARGUMENT);
  check_text(tn_message(c), "custom(f32[1]): the list of 1 types is NULL");
  tn_custom(c, &desc, &x, 1, &type, NULL, 1);
  check_text(tn_message(c), "custom(f32[1]): the list of 1 results is NULL");
  tn_custom(NULL, &desc, NULL, 1, NULL, NULL, 1);
  assert_int_equal(d.destroyed, 4);
  assert_int_equal(d.runs, 0);
}

static void custom_writes_are_assigns(void **state) {
  tn_context *c = *state;
  int runs = 0;
  tn_custom_desc desc = TN_CUSTOM_DESC_INIT;
  desc.run = run_counter;
  desc.user = &runs;
  desc.writes = 1;
  tn_tensor *s = tn_state(floats(c, FLOATS(1, 2))), *in[] = {s, floats(c, FLOATS(0, 0, 0))}, *old;
  tn_tensor *before = plus(c, s, 0);
  const tn_type type = {TN_I32, TN_SCALAR};
  tn_custom(c, &desc, in, 2, &type, &old, 1);
  tn_tensor *after = plus(c, s, 0);
  check_floats(c, before, FLOATS(1, 2));
  assert_int_equal(runs, 1);
  check_floats(c, after, FLOATS(4, 2));
  check_floats(c, s, FLOATS(4, 2));
  int32_t i;
  check_ok(c, tn_read(old, TN_I32, &i, 4));
  assert_int_equal(i, 1);
  assert_int_equal(runs, 1);
}

/** A custom write runs even if its state is freed with the scope. */
static void custom_writes_run_unseen(void **state) {
  tn_context *c = *state;
  tn_custom_desc desc = TN_CUSTOM_DESC_INIT;
  int runs = 0;
  desc.run = run_counter;
  desc.user = &runs;
  desc.writes = 1;
  for (int known = 0; known < 2; known++) {
    tn_scope_begin(c);
    tn_tensor *in[] = {tn_state(floats(c, FLOATS(1, 2))), floats(c, FLOATS(0, 0, 0))}, *old;
    if (known) check_ok(c, tn_realize(c, in, 1));
    tn_custom(c, &desc, in, 2, &(tn_type){TN_I32, TN_SCALAR}, &old, 1);
    check_ok(c, tn_scope_end(c));
    assert_int_equal(runs, known + 1);
  }
}

/* Failures: independent work still happens. */

static tn_status run_failing(void *user, tn_call *call) {
  (void)call;
  ++*(int *)user;
  return TN_ERR_IO;
}

static tn_status run_seven(void *user, tn_call *call) {
  ++*(int *)user;
  *(float *)tn_call_out(call, 0).data = 7;
  return TN_OK;
}

/** Makes an f32 computed by a host function, which is counted. */
static tn_tensor *given(tn_context *c, tn_status (*run)(void *, tn_call *), int *runs,
                        tn_tensor *of) {
  tn_custom_desc d = TN_CUSTOM_DESC_INIT;
  const tn_type type = {TN_F32, tn_shape(1)};
  tn_tensor *out;
  d.run = run;
  d.user = runs;
  tn_custom(c, &d, &of, of != NULL, &type, &out, 1);
  return out;
}

static void check_status(tn_tensor *t, tn_status status) {
  float f[2];
  assert_int_equal(tn_read(t, TN_F32, f, 4), status);
}

static void open_states_are_refused(void **state) {
  tn_context *c = *state;
  tn_dim n = tn_dim_var(c, "n", 1, 4);
  tn_tensor *in = tn_input(c, "in", tn_shape(n), TN_F32);
  tn_tensor *s = tn_state(tn_sum(in, TN_ALL, true));
  assert_int_equal(tn_type_of(s).dtype, TN_UNDEFINED);
  check_text(tn_message(c), "depends on the");
  check_status(tn_assign(s, tn_num(c, 1)), TN_ERR_ARGUMENT);
  tn_tensor *other = tn_state(tn_num(c, 1));
  tn_assign(other, tn_sum(tn_input(c, "x", tn_shape(1), TN_F32), TN_ALL, false));
  assert_int_equal(tn_type_of(tn_state(other)).dtype, TN_UNDEFINED);
  check_text(tn_message(c), "input x");
  check_floats(c, plus(c, floats(c, FLOATS(1)), 1), FLOATS(2));
}

static void failed_states_fail_alone(void **state) {
  tn_context *c = *state;
  int runs = 0;
  tn_tensor *x = floats(c, FLOATS(1)), *good = tn_state(plus(c, x, 4));
  tn_tensor *s = tn_state(given(c, run_failing, &runs, NULL)), *reader = plus(c, s, 1);
  tn_tensor *copy = tn_state(s), *view = tn_reshape(s, TN_SCALAR);
  tn_assign(good, plus(c, good, 1));
  check_floats(c, plus(c, x, 1), FLOATS(2));
  check_text(tn_message(c), "state: custom operation custom");
  tn_plan *plan;
  tn_tensor *out = tn_add(x, good);
  check_ok(c, tn_plan_compile(c, &out, 1, NULL, &plan));
  int first = runs;
  check_status(s, TN_ERR_IO);
  check_status(view, TN_ERR_IO);
  check_status(reader, TN_ERR_IO);
  check_status(copy, TN_ERR_IO);
  check_status(tn_assign(s, x), TN_ERR_IO);
  assert_int_equal(tn_plan_compile(c, &reader, 1, NULL, &plan), TN_ERR_IO);
  check_floats(c, good, FLOATS(6));
  assert_int_equal(runs, first);
  tn_scope_begin(c);
  tn_state(given(c, run_failing, &runs, NULL));
  s = tn_state(given(c, run_failing, &runs, NULL));
  tn_keep(s);
  tn_keep(plus(c, x, 1));
  assert_int_equal(tn_scope_end(c), TN_ERR_IO);
  check_status(s, TN_ERR_IO);
}

/** The failure of a state's initial contents is returned by the call that computes them and each
    later one, also next to a valid state. */
static void failed_states_are_not_realised(void **state) {
  tn_context *c = *state;
  int runs = 0;
  tn_tensor *good = tn_state(floats(c, FLOATS(1)));
  tn_tensor *bad = tn_state(given(c, run_failing, &runs, NULL));
  tn_tensor *both[] = {good, tn_state(given(c, run_failing, &runs, NULL))};
  for (int i = 0, first = 0; i < 2; i++) {
    assert_int_equal(tn_realize(c, &bad, 1), TN_ERR_IO);
    check_text(tn_message(c), "realize(f32[1]): state: custom operation");
    assert_int_equal(tn_realize(c, both, 2), TN_ERR_IO);
    first = i ? first : runs;
    assert_int_equal(runs, first);
  }
  tn_tensor *view = tn_reshape(bad, TN_SCALAR);
  assert_int_equal(tn_realize(c, &view, 1), TN_ERR_IO);
  check_ok(c, tn_realize(c, &good, 1));
  check_floats(c, good, FLOATS(1));
}

static void failed_assigns_fail_alone(void **state) {
  tn_context *c = *state;
  int fails = 0, sevens = 0;
  tn_tensor *a = tn_state(floats(c, FLOATS(1))), *b = tn_state(floats(c, FLOATS(1)));
  tn_tensor *d = tn_state(floats(c, FLOATS(1)));
  tn_assign(a, tn_num(c, 5));
  tn_assign(b, given(c, run_seven, &sevens, NULL));
  tn_assign(b, tn_add(b, given(c, run_failing, &fails, NULL)));
  tn_assign(d, tn_add(b, a));
  tn_assign(a, plus(c, a, 1));
  check_status(a, TN_ERR_IO); /* returned once, by the call that computed it */
  check_floats(c, a, FLOATS(6));
  check_floats(c, b, FLOATS(7));
  check_floats(c, d, FLOATS(1));
  assert_int_equal(sevens, 1); /* not the failed one */
}

static void failed_scopes_keep_what_is_fine(void **state) {
  tn_context *c = *state;
  int fails = 0, sevens = 0;
  tn_tensor *a = tn_state(floats(c, FLOATS(1))), *b = tn_state(floats(c, FLOATS(1)));
  tn_assign(b, tn_num(c, 2));
  tn_scope_begin(c);
  tn_assign(a, plus(c, a, 1));
  tn_assign(b, given(c, run_failing, &fails, NULL));
  tn_tensor *kept = tn_keep(tn_mul(given(c, run_seven, &sevens, NULL), a));
  tn_tensor *lost = tn_keep(plus(c, b, 1));
  assert_int_equal(tn_scope_end(c), TN_ERR_IO);
  check_floats(c, a, FLOATS(2));
  check_floats(c, b, FLOATS(2));
  check_floats(c, kept, FLOATS(14));
  assert_int_equal(sevens, 1);
  check_status(lost, TN_ERR_IO);
}

/** A failed assignment of an outer scope is returned once; the inner scope's assignments stay the
    plan's. */
static void failed_assigns_are_told_by_what_compiles(void **state) {
  tn_context *c = *state;
  int fails = 0;
  tn_tensor *a = tn_state(floats(c, FLOATS(1))), *b = tn_state(floats(c, FLOATS(1)));
  tn_assign(a, plus(c, a, 1));
  tn_assign(b, given(c, run_failing, &fails, NULL));
  tn_scope_begin(c);
  tn_assign(a, tn_mul(a, tn_num(c, 10)));
  tn_plan *plan;
  assert_int_equal(tn_plan_compile(c, &a, 1, NULL, &plan), TN_ERR_IO);
  check_ok(c, tn_plan_compile(c, &a, 1, NULL, &plan));
  check_floats(c, a, FLOATS(2));
  tn_binding *bound;
  check_ok(c, tn_plan_bind(plan, &bound));
  check_ok(c, tn_binding_run(bound));
  check_floats(c, a, FLOATS(20));
  assert_int_equal(tn_scope_end(c), TN_ERR_IO);
}

/** A pending assignment of a host function's result, built over contents that a run then
    replaces. */
static void host_functions_follow_their_state(void **state) {
  tn_context *c = *state;
  int sevens = 0;
  tn_tensor *s = tn_state(floats(c, FLOATS(1)));
  tn_scope_begin(c);
  tn_assign(s, plus(c, s, 1));
  tn_plan *plan;
  tn_binding *b;
  check_ok(c, tn_plan_compile(c, NULL, 0, NULL, &plan));
  check_ok(c, tn_plan_bind(plan, &b));
  check_ok(c, tn_scope_end(c));
  tn_tensor *x = tn_input(c, "x", tn_shape(1), TN_F32);
  tn_tensor *seven = tn_own(given(c, run_seven, &sevens, s)), *product = tn_own(tn_mul(seven, s));
  tn_tensor *sum = tn_own(tn_add(product, x));
  tn_assign(s, sum); /* cannot run yet, and alone keeps the function alive */
  tn_release(seven);
  tn_release(product);
  tn_release(sum);
  check_ok(c, tn_binding_run(b));
  check_ok(c, tn_plan_compile(c, NULL, 0, NULL, &plan));
  check_floats(c, s, FLOATS(2));
  tn_binding *other;
  const float one = 1;
  check_ok(c, tn_plan_bind(plan, &other));
  tn_binding_input(other, "x", tn_shape(1), TN_F32, &one, 4);
  check_ok(c, tn_binding_run(other));
  check_floats(c, s, FLOATS(15));
  assert_int_equal(sevens, 1);
}

#define WITH(test) cmocka_unit_test_setup_teardown(test, open_context, close_context)

int main(void) {
  const struct CMUnitTest tests[] = {
      WITH(values_convert),
      WITH(sizes_are_exact),
      WITH(wrapped_memory_is_let_go_once),
      WITH(wrapped_bools_are_bytes),
      WITH(many_states_are_freed_one_by_one),
      WITH(mapped_values_are_seen),
      WITH(mapped_numbers_stay),
      WITH(weak_scalars_are_read),
      WITH(assigns_are_ordered),
      WITH(assigns_happen_once),
      WITH(values_broadcast_and_convert),
      WITH(parts_are_assigned),
      WITH(views_see_later_assigns),
      WITH(read_views_are_assigned),
      WITH(states_are_read_before_they_are_written),
      WITH(swapped_states),
      WITH(equal_states_are_apart),
      WITH(bad_assigns_leave_the_old_value),
      WITH(refused_assigns_are_told_once),
      WITH(hopeless_assigns_fail_their_scope),
      WITH(written_states),
      WITH(steps_are_in_place),
      WITH(steps_of_what_was_read_are_in_place),
      WITH(live_readers_keep_the_old_contents),
      WITH(later_reads_use_what_was_read),
      WITH(reads_within_a_step),
      WITH(custom_operations_run_once),
      WITH(custom_operations_return_statuses),
      WITH(custom_operations_of_steps_are_compiled_once),
      WITH(custom_failures_are_told),
      WITH(custom_refusals_destroy),
      WITH(custom_lists_are_there),
      WITH(custom_writes_are_assigns),
      WITH(custom_writes_run_unseen),
      WITH(open_states_are_refused),
      WITH(failed_states_fail_alone),
      WITH(failed_states_are_not_realised),
      WITH(failed_assigns_fail_alone),
      WITH(failed_scopes_keep_what_is_fine),
      WITH(failed_assigns_are_told_by_what_compiles),
      WITH(host_functions_follow_their_state),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
