/* Tests plans and bindings: assigns to states, carried outputs, dynamic sizes, host types,
   concurrent runs from threads and callbacks, messages, and failure of each allocation. */
#include "support/tensor_check.h"

#include "base/thread.h"

static void give(tn_binding *b, const char *name, size_t n, const float *x) {
  tn_binding_input(b, name, tn_shape((tn_dim)n), TN_F32, x, n * sizeof *x);
}

static void plans_run_many_times(void **state) {
  tn_context *c = *state;
  tn_tensor *x = tn_input(c, "x", tn_shape(3), TN_F32);
  tn_tensor *w = tn_mul(floats(c, FLOATS(1, 2, 3)), tn_num(c, 2));
  tn_tensor *out[] = {tn_add(x, w), tn_sum(x, TN_ALL, false)};
  const char *names[] = {"moved", "sum"};
  tn_plan_desc desc = {sizeof desc, "test", names, TN_VARIANTS_AUTO, false, NULL, 0};
  tn_binding *b = bind_compiled(c, out, 2, &desc);
  float in[3] = {1, 1, 1};
  give(b, "x", 3, in);
  check_bound(b, tn_binding_run(b));
  check_output_floats(b, "moved", FLOATS(3, 5, 7));
  check_output_floats(b, "sum", FLOATS(3));
  in[0] = 11;
  check_bound(b, tn_binding_run(b));
  check_output_floats(b, "moved", FLOATS(13, 5, 7));
  tn_type t = tn_binding_type(b, "moved");
  assert_int_equal(t.dtype, TN_F32);
  assert_int_equal(t.shape.size[0], 3);
  assert_int_equal(tn_binding_type(b, "none").dtype, TN_UNDEFINED);
}

static void sizes_vary(void **state) {
  tn_context *c = *state;
  tn_dim n = tn_dim_var(c, "n", 0, 20);
  tn_tensor *x = tn_input(c, "x", tn_shape(n), TN_F32);
  tn_tensor *y = tn_input(c, "y", tn_shape(tn_dim_add(c, tn_dim_mul(c, n, 2), 1)), TN_F32);
  tn_tensor *out[] = {tn_add(tn_add(x, tn_num(c, 1)), tn_sum(y, TN_ALL, false))};
  tn_binding *b = bind_compiled(c, out, 1, NULL);
  float one[64];
  for (int i = 0; i < 64; i++) one[i] = 1;
  for (size_t k = 1; k <= 20; k += 6) {
    give(b, "x", k, one);
    give(b, "y", 2 * k + 1, one);
    check_bound(b, tn_binding_run(b));
    float expected[20];
    for (size_t i = 0; i < k; i++) expected[i] = (float)(2 * k + 3);
    check_output_floats(b, "0", k, expected);
    assert_int_equal(tn_binding_type(b, "0").shape.size[0], k);
  }
  give(b, "x", 0, one);
  give(b, "y", 1, one);
  check_bound(b, tn_binding_run(b));
  check_bound(b, tn_binding_read(b, "0", TN_F32, NULL, 0));
  give(b, "y", 5, one);
  assert_int_equal(tn_binding_run(b), TN_ERR_SHAPE);
  check_text(tn_binding_message(b), "input y: axis 0 has size 5, not 1");
  assert_int_equal(tn_binding_type(b, "0").dtype, TN_UNDEFINED);
  assert_int_equal(tn_binding_read(b, "0", TN_F32, one, 0), TN_ERR_ARGUMENT);
}

/** A small result next to one of a variable size, whose vectors and tiles may be empty. */
static void small_results_stand_beside_varying_ones(void **state) {
  tn_context *c = *state;
  enum { COLUMNS = 4, MOST = 16 };
  tn_dim n = tn_dim_var(c, "n", 1, 1000);
  tn_tensor *x = tn_input(c, "x", tn_shape(n, COLUMNS), TN_F32);
  tn_tensor *row = tn_input(c, "row", tn_shape(COLUMNS), TN_F32), *small, *out[2];
  small = tn_mul(row, tn_num(c, 2));
  out[0] = small;
  out[1] = tn_add(tn_matmul(x, tn_unsqueeze(row, tn_axes(1))), small);
  tn_binding *b = bind_compiled(c, out, 2, NULL);
  float ones[MOST * COLUMNS], small_expected[COLUMNS], expected[MOST * COLUMNS];
  for (int i = 0; i < MOST * COLUMNS; i++) ones[i] = 1;
  for (int k = 1; k <= MOST; k++) {
    for (int i = 0; i < MOST * COLUMNS; i++) expected[i] = (float)(k * COLUMNS + 2 * k);
    for (int i = 0; i < COLUMNS; i++) small_expected[i] = (float)(2 * k);
    float values[COLUMNS];
    for (int i = 0; i < COLUMNS; i++) values[i] = (float)k;
    give(b, "row", COLUMNS, values);
    tn_binding_input(b, "x", tn_shape(k, COLUMNS), TN_F32, ones, (size_t)k * sizeof values);
    check_bound(b, tn_binding_run(b));
    check_output_floats(b, "0", COLUMNS, small_expected);
    check_output_floats(b, "1", (size_t)k * COLUMNS, expected);
  }
}

/** Kernels do not loop over the rows of empty arrays, which may be more than a run can visit. */
static void empty_arrays_may_have_many_rows(void **state) {
  tn_context *c = *state;
  const tn_dim rows = (tn_dim)1 << 40;
  tn_dim n = tn_dim_var(c, "n", 0, 4);
  tn_tensor *x = tn_input(c, "x", tn_shape(n, rows, 16), TN_F32);
  tn_tensor *out[] = {tn_softmax(tn_permute(x, tn_axes(2, 0, 1)), 1),
                      tn_softmax(tn_permute(x, tn_axes(1, 2, 0)), 2)};
  tn_binding *b = bind_compiled(c, out, 2, NULL);
  tn_binding_input(b, "x", tn_shape(0, rows, 16), TN_F32, NULL, 0);
  check_bound(b, tn_binding_run(b));
  assert_true(tn_binding_type(b, "0").shape.size[2] == rows);
  check_output_floats(b, "1", 0, NULL);
}

/** A scatter into a large array writes to the result, also where its places are no data. */
static void places_may_be_known(void **state) {
  tn_context *c = *state;
  enum { SIZE = 1 << 21, UPDATES = 100 };
  static float found[SIZE];
  float updates[UPDATES];
  tn_tensor *x = tn_full(c, tn_shape(SIZE), TN_F32, 0.5), *i = tn_arange(c, 0, UPDATES, 1, TN_I64);
  tn_tensor *places[] = {tn_mul(i, tn_int(c, 0)), tn_add(tn_mul(i, tn_int(c, 0)), tn_int(c, 7)),
                         tn_mod(i, tn_int(c, 7)), tn_mul(i, tn_int(c, 9)),
                         tn_mul(i, tn_int(c, -1))};
  static const int64_t scale[] = {0, 0, 1, 9, -1}, modulus[] = {1, 1, 7, SIZE, SIZE};
  for (size_t k = 0; k < UPDATES; k++) updates[k] = (float)(k + 1);
  tn_tensor *u = tn_from_host(c, tn_shape(UPDATES), TN_F32, updates, sizeof updates);
  for (size_t p = 0; p < 5; p++) {
    double sums[UPDATES] = {0};
    tn_tensor *y = tn_scatter(x, places[p], u, 0, TN_REDUCTION_ADD);
    check_ok(c, tn_read(y, TN_F32, found, sizeof found));
    for (int64_t k = 0; k < UPDATES; k++) sums[k * !!scale[p] % modulus[p]] += (double)(k + 1);
    for (int64_t k = 0; k < UPDATES && sums[k] > 0; k++) {
      int64_t at = k * scale[p] + (p == 1) * 7;
      assert_true(found[at < 0 ? at + SIZE : at] == 0.5f + (float)sums[k]);
    }
    assert_true(found[SIZE / 2] == 0.5f);
  }
  tn_tensor *one_each = tn_scatter(x, tn_arange(c, 0, SIZE, 1, TN_I64),
                                   tn_arange(c, 0, SIZE, 1, TN_F32), 0, TN_REDUCTION_ADD);
  check_ok(c, tn_read(one_each, TN_F32, found, sizeof found));
  for (size_t k = 0; k < SIZE; k++) assert_true(found[k] == 0.5f + (float)k);
}

/** One kernel writes a state and sums the old contents that it read. */
static void old_contents_are_summed_first(void **state) {
  tn_context *c = *state;
  enum { N = 4 };
  int32_t before[N][N], after[N][N], sums[N][N];
  for (int i = 0; i < N * N; i++) before[i / N][i % N] = i * i;
  tn_tensor *s = tn_state(tn_from_host(c, tn_shape(N, N), TN_I32, before, sizeof before));
  tn_tensor *five = tn_state(tn_from_host(c, tn_shape(2), TN_I32, (int32_t[]){2, 3}, 8));
  check_ok(c, tn_realize(c, NULL, 0));
  tn_scope_begin(c);
  tn_assign(s, tn_add(s, tn_cast(tn_sum(five, TN_ALL, false), TN_I32)));
  tn_tensor *twice = tn_sum(tn_expand(s, tn_shape(2, N, N)), tn_axes(0), false);
  tn_tensor *out = tn_cast(twice, TN_I32);
  tn_assign(s, tn_swapaxes(s, 0, 1));
  tn_binding *b = bind_compiled(c, &out, 1, NULL);
  check_bound(b, tn_binding_run(b));
  check_bound(b, tn_binding_read(b, "0", TN_I32, sums, sizeof sums));
  check_ok(c, tn_read(s, TN_I32, after, sizeof after));
  for (int i = 0; i < N; i++)
    for (int k = 0; k < N; k++) {
      assert_int_equal(sums[i][k], 2 * (before[i][k] + 5));
      assert_int_equal(after[i][k], before[k][i] + 5);
    }
  check_ok(c, tn_scope_end(c));
}

static tn_tensor *own_sum(tn_tensor *a, tn_tensor *b) {
  tn_tensor *sum = tn_own(tn_add(a, b));
  tn_release(a);
  return sum;
}

/** Compiles a plan of y = x + 1 after x = 2·s + t + t was computed with the next step of s, which
    then must not be in place: the plan computes x anew. `part`: t + t was computed too, before;
    `times`: how often x is used. */
static void check_read_by_plans(tn_context *c, bool part, size_t times) {
  tn_tensor *s = tn_own(tn_state(floats(c, FLOATS(10)))), *two = tn_own(tn_num(c, 2));
  tn_tensor *t = tn_own(tn_state(floats(c, FLOATS(1)))), *next = tn_own(tn_add(s, two));
  tn_tensor *twice = tn_own(tn_add(t, t));
  if (part) check_ok(c, tn_realize(c, &twice, 1));
  tn_tensor *x = own_sum(tn_own(tn_mul(s, two)), twice), *wanted[] = {x, x}, *out[1];
  out[0] = tn_own(tn_add(x, two));
  tn_release(twice);
  tn_release(tn_own(tn_assign(s, next)));
  tn_release(next);
  check_ok(c, tn_realize(c, wanted, times));
  tn_binding *b = bind_compiled(c, out, 1, NULL);
  check_bound(b, tn_binding_run(b));
  check_output_floats(b, "0", FLOATS(24));
  check_floats(c, s, FLOATS(12));
}

static void plans_read_what_values_were_computed_from(void **state) {
  for (size_t times = 1; times <= 2; times++) {
    check_read_by_plans(*state, false, times);
    check_read_by_plans(*state, true, times);
  }
}

/** Names of sizes that equal or resemble the names that kernels use for workers. */
static void sizes_have_any_name(void **state) {
  (void)state;
  enum { COLUMNS = 1024, ROWS = 300 };
  static float in[ROWS][COLUMNS], got[ROWS][COLUMNS];
  const char *const names[] = {"core_id", "core_count", "'core_id", "i64", "g0"};
  tn_open_desc d = TN_OPEN_DESC_INIT;
  d.threads = 2;
  tn_context *c = tn_open(&d);
  for (int i = 0; i < ROWS; i++)
    for (int k = 0; k < COLUMNS; k++) in[i][k] = (float)(k % 7);
  for (size_t v = 0; v < sizeof names / sizeof *names; v++) {
    tn_dim n = tn_dim_var(c, names[v], 64, 4096);
    tn_tensor *x = tn_input(c, "x", tn_shape(n, COLUMNS), TN_F32);
    tn_tensor *row = tn_reshape(tn_cast(tn_arange(c, 0, n, 1, TN_I64), TN_F32), tn_shape(n, 1));
    tn_tensor *sum = tn_add(x, tn_expand(row, tn_shape(n, COLUMNS)));
    tn_binding *b = bind_compiled(c, &sum, 1, NULL);
    check_bound(b, tn_binding_input(b, "x", tn_shape(ROWS, COLUMNS), TN_F32, in, sizeof in));
    check_bound(b, tn_binding_run(b));
    check_bound(b, tn_binding_read(b, "0", TN_F32, got, sizeof got));
    for (int i = 0; i < ROWS; i++)
      for (int k = 0; k < COLUMNS; k++)
        if (got[i][k] != in[i][k] + (float)i) fail_msg("%s: row %d is wrong", names[v], i);
    char expected[128];
    snprintf(expected, sizeof expected, "axis 0 has size 9, but %s must be from 64 to 4096",
             names[v]);
    tn_binding_input(b, "x", tn_shape(9, COLUMNS), TN_F32, in, sizeof in);
    assert_int_equal(tn_binding_run(b), TN_ERR_SHAPE);
    check_text(tn_binding_message(b), expected);
  }
  assert_int_equal(tn_close(c), TN_OK);
}

/** A name is free again after its scope, and a plan may still have both sizes. */
static void sizes_of_one_name_are_one_size(void **state) {
  tn_context *c = *state;
  tn_plan *plan;
  tn_scope_begin(c);
  tn_tensor *x = tn_own(tn_input(c, "x", tn_shape(tn_dim_var(c, "core_n", 0, 8)), TN_F32));
  check_ok(c, tn_scope_end(c));
  tn_scope_begin(c);
  tn_tensor *y = tn_input(c, "y", tn_shape(tn_dim_var(c, "core_n", 0, 100)), TN_F32);
  tn_tensor *both = tn_add(tn_sum(x, TN_ALL, false), tn_sum(y, TN_ALL, false));
  assert_int_equal(tn_plan_compile(c, &both, 1, NULL, &plan), TN_ERR_ARGUMENT);
  assert_null(plan);
  check_text(tn_message(c), "two sizes are named core_n, one from 0 to ");
  check_text(tn_message(c), " from 0 to 8");
  check_text(tn_message(c), " from 0 to 100");
  assert_int_equal(tn_scope_end(c), TN_ERR_ARGUMENT);
  tn_scope_begin(c);
  y = tn_input(c, "y", tn_shape(tn_dim_var(c, "core_n", 0, 8)), TN_F32);
  both = tn_add(x, y);
  tn_binding *b = bind_compiled(c, &both, 1, NULL);
  give(b, "x", FLOATS(1, 2));
  give(b, "y", FLOATS(3, 4));
  check_bound(b, tn_binding_run(b));
  check_output_floats(b, "0", 2, (const float[]){4, 6});
  tn_binding_free(b);
  check_ok(c, tn_scope_end(c));
  tn_release(x);
}

static void bad_inputs_are_kept_for_the_run(void **state) {
  tn_context *c = *state;
  tn_dim n = tn_dim_var(c, "n", 1, 4);
  tn_tensor *x = tn_input(c, "x", tn_shape(n, 2), TN_F32);
  tn_binding *b = bind_compiled(c, &x, 1, NULL);
  float f[64] = {0};
  assert_int_equal(tn_binding_run(b), TN_ERR_ARGUMENT);
  check_text(tn_binding_message(b), "without a value: x");
  assert_int_equal(tn_binding_input(b, "z", tn_shape(1, 2), TN_F32, f, 8), TN_ERR_ARGUMENT);
  assert_int_equal(tn_binding_input(b, "x", tn_shape(2), TN_F32, f, 8), TN_ERR_SHAPE);
  assert_int_equal(tn_binding_run(b), TN_ERR_ARGUMENT);
  check_text(tn_binding_message(b), "no input \"z\"; inputs: \"x\"");
  assert_int_equal(tn_binding_input(b, "x", tn_shape(9, 2), TN_F32, f, 72), TN_ERR_SHAPE);
  assert_string_equal(tn_binding_message(b),
                      "input x: axis 0 has size 9, but n must be from 1 to 4");
  assert_int_equal(tn_binding_input(b, "x", tn_shape(-1, 2), TN_F32, f, 72), TN_ERR_SHAPE);
  assert_int_equal(tn_binding_input(b, "x", tn_shape(1, 2), TN_F32, f, 9), TN_ERR_ARGUMENT);
  assert_int_equal(tn_binding_input(b, "x", tn_shape(1, 2), TN_F32, NULL, 8), TN_ERR_ARGUMENT);
  assert_string_equal(tn_binding_message(b), "input x: the data is NULL");
  assert_int_equal(tn_binding_input(b, "x", tn_shape(1, 2), TN_STRING, f, 8), TN_ERR_DTYPE);
  assert_int_equal(tn_binding_run(b), TN_ERR_SHAPE);
  assert_int_equal(tn_binding_input(b, "x", tn_shape(1, 3), TN_F32, f, 12), TN_ERR_SHAPE);
  assert_string_equal(tn_binding_message(b), "input x: axis 1 has size 3, not 2, its fixed size");
  assert_int_equal(tn_binding_run(b), TN_ERR_SHAPE);
  assert_int_equal(tn_binding_input(b, "x", tn_shape(0, 3), TN_F32, f, 0), TN_ERR_SHAPE);
  assert_string_equal(tn_binding_message(b),
                      "input x: axis 0 has size 0, but n must be from 1 to 4; "
                      "input x: axis 1 has size 3, not 2, its fixed size");
  assert_int_equal(tn_binding_run(b), TN_ERR_SHAPE);
  assert_int_equal(tn_binding_input(b, "x", tn_shape(1, 2), TN_F32, f, 8), TN_OK);
  check_bound(b, tn_binding_run(b));
  assert_int_equal(tn_binding_read(b, "0", TN_F32, NULL, 8), TN_ERR_ARGUMENT);
  assert_string_equal(tn_binding_message(b), "output 0: the data is NULL");
  assert_int_equal(tn_binding_run(NULL), TN_ERR_ARGUMENT);
  check_text(tn_binding_message(NULL), "no binding");
}

/** A refused input has no value: runs never read an older one. */
static void refused_inputs_have_no_value(void **state) {
  tn_context *c = *state;
  tn_tensor *x = tn_input(c, "x", tn_shape(2), TN_F32);
  tn_tensor *sums[] = {tn_add(x, tn_input(c, "y", tn_shape(2), TN_F32))};
  tn_binding *b = bind_compiled(c, sums, 1, NULL);
  float f[] = {1, 2}, got[2];
  check_bound(b, tn_binding_carry(b, "0", "y"));
  for (int i = 0; i < 2; i++) {
    const char *name = i ? "y" : "x";
    check_bound(b, tn_binding_input(b, "x", tn_shape(2), TN_F32, f, 8));
    check_bound(b, tn_binding_input(b, "y", tn_shape(2), TN_F32, f, 8));
    check_bound(b, tn_binding_run(b));
    assert_int_equal(tn_binding_input(b, name, tn_shape(2), TN_F32, f, 7), TN_ERR_ARGUMENT);
    assert_int_equal(tn_binding_run(b), TN_ERR_ARGUMENT);
    check_text(tn_binding_message(b), i ? "input y needs 8 bytes; the data has 7"
                                        : "input x needs 8 bytes; the data has 7");
    assert_int_equal(tn_binding_input(b, "q", tn_shape(2), TN_F32, f, 8), TN_ERR_ARGUMENT);
    check_text(tn_binding_message(b), "there is no input \"q\"; inputs: \"x\", \"y\"");
    assert_int_equal(tn_binding_run(b), TN_ERR_ARGUMENT);
    assert_int_equal(tn_binding_run(b), TN_ERR_ARGUMENT);
    check_text(tn_binding_message(b), i ? "without a value: y" : "without a value: x");
    check_bound(b, tn_binding_input(b, name, tn_shape(2), TN_F32, f, 8));
    check_bound(b, tn_binding_run(b));
    check_bound(b, tn_binding_read(b, "0", TN_F32, got, sizeof got));
    assert_true(got[0] == (i ? 2 : 3) && got[1] == (i ? 4 : 6));
  }
}

static void sizes_that_differ_name_both_inputs(void **state) {
  tn_context *c = *state;
  tn_dim n = tn_dim_var(c, "n", 1, 4);
  tn_tensor *x = tn_input(c, "x", tn_shape(n), TN_F32);
  tn_tensor *y = tn_input(c, "y", tn_shape(2, tn_dim_mul(c, n, 2)), TN_F32);
  tn_tensor *both[] = {tn_neg(x), tn_neg(y)};
  tn_binding *b = bind_compiled(c, both, 2, NULL);
  float f[16] = {0};
  check_bound(b, tn_binding_input(b, "x", tn_shape(3), TN_F32, f, 12));
  check_bound(b, tn_binding_input(b, "y", tn_shape(2, 4), TN_F32, f, 32));
  assert_int_equal(tn_binding_run(b), TN_ERR_SHAPE);
  assert_string_equal(tn_binding_message(b),
                      "input y: axis 1 has size 4, not 6, as n is 3 by axis 0 of input x");
  check_bound(b, tn_binding_input(b, "y", tn_shape(2, 6), TN_F32, f, 48));
  check_bound(b, tn_binding_run(b));
}

/** A size that no value of its variable gives, one of two variables, and more than fit a message.
 */
static void all_sizes_that_differ_are_in_one_message(void **state) {
  tn_context *c = *state;
  tn_dim n = tn_dim_var(c, "n", 1, 4), m = tn_dim_var(c, "m", 1, 4);
  tn_tensor *x = tn_input(c, "x", tn_shape(n, m), TN_F32);
  tn_tensor *y = tn_input(c, "y", tn_shape(n, tn_dim_mul(c, n, m), m), TN_F32);
  tn_tensor *z = tn_input(c, "z", tn_shape(tn_dim_add(c, tn_dim_mul(c, n, 2), 1)), TN_F32);
  tn_tensor *all[24] = {tn_neg(x), tn_neg(y), tn_neg(z)};
  tn_binding *b = bind_compiled(c, all, 3, NULL);
  float f[64] = {0};
  assert_int_equal(tn_binding_input(b, "z", tn_shape(4), TN_F32, f, 16), TN_ERR_SHAPE);
  assert_string_equal(tn_binding_message(b),
                      "input z: axis 0 has size 4, but must be 2*n + 1, with n from 1 to 4");
  tn_binding_run(b);
  check_bound(b, tn_binding_input(b, "z", tn_shape(5), TN_F32, f, 20));
  check_bound(b, tn_binding_input(b, "x", tn_shape(2, 3), TN_F32, f, 24));
  check_bound(b, tn_binding_input(b, "y", tn_shape(1, 5, 4), TN_F32, f, 80));
  assert_int_equal(tn_binding_run(b), TN_ERR_SHAPE);
  assert_string_equal(tn_binding_message(b),
                      "input y: axis 0 has size 1, not 2, as n is 2 by axis 0 of input x; "
                      "input y: axis 1 has size 5, not 6, the value of n*m by the other inputs; "
                      "input y: axis 2 has size 4, not 3, as m is 3 by axis 1 of input x");
  char name[64];
  for (int i = 0; i < 24; i++) {
    snprintf(name, sizeof name, "an input with a name that takes its room %d", i);
    all[i] = tn_neg(tn_input(c, name, tn_shape(n), TN_F32));
  }
  b = bind_compiled(c, all, 24, NULL);
  for (int i = 0; i < 24; i++) {
    snprintf(name, sizeof name, "an input with a name that takes its room %d", i);
    check_bound(b, tn_binding_input(b, name, tn_shape(i ? 2 : 3), TN_F32, f, i ? 8 : 12));
  }
  assert_int_equal(tn_binding_run(b), TN_ERR_SHAPE);
  const char *more = strstr(tn_binding_message(b), "; and ");
  size_t shown = 0;
  for (const char *s = tn_binding_message(b); (s = strstr(s, "axis 0 has size")); s++) shown++;
  assert_non_null(more);
  assert_true(shown > 2 && shown + strtoul(more + 6, NULL, 10) >= 23);
}

static void host_types_convert(void **state) {
  tn_context *c = *state;
  tn_tensor *x = tn_input(c, "x", tn_shape(2), TN_F16), *y = tn_add(x, x);
  tn_binding *b = bind_compiled(c, &y, 1, NULL);
  const double in[] = {1.5, -2};
  int32_t out[3] = {0, 0, 77};
  tn_binding_input(b, "x", tn_shape(2), TN_F64, in, sizeof in);
  tn_binding_output(b, "0", TN_I32, out, sizeof out);
  check_bound(b, tn_binding_run(b));
  assert_int_equal(out[0], 3);
  assert_int_equal(out[1], -4);
  assert_int_equal(out[2], 77);
  tn_binding_output(b, "0", TN_I32, out, 4);
  assert_int_equal(tn_binding_run(b), TN_ERR_SHAPE);
  check_text(tn_binding_message(b), "needs 8 bytes");
  tn_binding_output(b, "0", TN_I32, NULL, 0);
  check_bound(b, tn_binding_run(b));
  double d[2];
  check_bound(b, tn_binding_read(b, "0", TN_F64, d, sizeof d));
  assert_true(d[0] == 3 && d[1] == -4);
}

/** A run reads all inputs before it writes outputs; neither needs to be aligned. */
static void memory_may_be_shared_and_lie_anywhere(void **state) {
  tn_context *c = *state;
  enum { N = 5, BYTES = N * sizeof(float) };
  tn_tensor *x = tn_input(c, "x", tn_shape(N), TN_F32), *out[2];
  out[0] = tn_flip(x, TN_ALL);
  out[1] = tn_mul(x, tn_num(c, 2));
  tn_binding *b = bind_compiled(c, out, 2, NULL);
  for (size_t shift = 0; shift < 3; shift += 2) {
    char at[BYTES + 2], other[BYTES + 2];
    float got[N];
    memcpy(at + shift, (const float[N]){1, 2, 3, 4, 5}, BYTES);
    tn_binding_input(b, "x", tn_shape(N), TN_F32, at + shift, BYTES);
    tn_binding_output(b, "0", TN_F32, at + shift, BYTES);
    tn_binding_output(b, "1", TN_F32, other + shift, BYTES);
    for (int run = 0; run < 2; run++) {
      check_bound(b, tn_binding_run(b));
      memcpy(got, at + shift, BYTES);
      for (int i = 0; i < N; i++) assert_true(got[i] == (float)(run ? i + 1 : N - i));
      memcpy(got, other + shift, BYTES);
      for (int i = 0; i < N; i++) assert_true(got[i] == 2 * (float)(run ? N - i : i + 1));
    }
  }
}

static void outputs_are_carried(void **state) {
  tn_context *c = *state;
  tn_tensor *x = tn_input(c, "x", tn_shape(2), TN_F32), *z = tn_input(c, "z", tn_shape(2), TN_F32);
  tn_tensor *out[] = {tn_add(x, z), tn_mul(x, tn_num(c, 2))};
  tn_binding *b = bind_compiled(c, out, 2, NULL);
  check_bound(b, tn_binding_carry(b, "0", "x"));
  give(b, "x", FLOATS(1, 2));
  const float z1[] = {10, 20};
  give(b, "z", 2, z1);
  for (int i = 0; i < 3; i++) check_bound(b, tn_binding_run(b));
  check_output_floats(b, "0", FLOATS(31, 62));
  check_output_floats(b, "1", FLOATS(42, 84));
  const float x1[] = {0, 1};
  give(b, "x", 2, x1);
  check_bound(b, tn_binding_run(b));
  check_output_floats(b, "0", FLOATS(10, 21));
  check_bound(b, tn_binding_run(b));
  check_output_floats(b, "0", FLOATS(20, 41));
  assert_int_equal(tn_binding_carry(b, "0", "none"), TN_ERR_ARGUMENT);
}

/** An expression that was read before and is still referenced is computed by each run from the
    states' contents. */
static void what_was_read_is_computed_anew(void **state) {
  tn_context *c = *state;
  tn_tensor *s = tn_state(floats(c, FLOATS(1, 2))), *v = tn_flip(s, TN_ALL), *kept = tn_neg(v);
  tn_tensor *squares = tn_mul(s, s), *loss = tn_sum(squares, TN_ALL, false);
  check_floats(c, v, FLOATS(2, 1));
  check_floats(c, squares, FLOATS(1, 4));
  tn_assign(v, tn_add(v, tn_num(c, 1)));
  tn_tensor *out[] = {loss, kept};
  tn_binding *b = bind_compiled(c, out, 2, NULL);
  const float losses[] = {5, 13, 25}, firsts[] = {-2, -3, -4}, seconds[] = {-1, -2, -3};
  for (int i = 0; i < 3; i++) {
    check_bound(b, tn_binding_run(b));
    check_output_floats(b, "0", 1, &losses[i]);
    check_output_floats(b, "1", FLOATS(firsts[i], seconds[i]));
  }
  check_floats(c, s, FLOATS(4, 5));
}

/** An assignment that depends on an input is computed by runs from the states' contents then,
    whatever was read in between. */
static void reads_do_not_freeze_what_waits(void **state) {
  tn_context *c = *state;
  tn_tensor *s = tn_state(floats(c, FLOATS(1))), *y = tn_state(floats(c, FLOATS(0)));
  check_ok(c, tn_realize(c, NULL, 0));
  tn_scope_begin(c);
  tn_tensor *twice = tn_mul(s, tn_num(c, 2));
  tn_assign(y, tn_add(twice, tn_input(c, "x", tn_shape(1), TN_F32)));
  check_floats(c, twice, FLOATS(2));
  check_floats(c, s, FLOATS(1));
  tn_binding *b = bind_compiled(c, NULL, 0, NULL);
  check_ok(c, tn_scope_end(c));
  give(b, "x", FLOATS(10));
  tn_assign(s, tn_num(c, 100));
  check_bound(b, tn_binding_run(b));
  check_floats(c, y, FLOATS(210));
}

/** An input is set again, with as many elements as were carried last. */
static void inputs_are_given_anew(void **state) {
  tn_context *c = *state;
  tn_tensor *x = tn_input(c, "x", tn_shape(tn_dim_var(c, "n", 0, 100)), TN_F32);
  tn_tensor *both = tn_concat((tn_tensor *[]){x, tn_neg(x)}, 2, 0);
  tn_binding *b = bind_compiled(c, &both, 1, NULL);
  const float data[] = {1, 2, 3, 4};
  tn_binding_carry(b, "0", "x");
  give(b, "x", 2, data);
  check_bound(b, tn_binding_run(b));
  check_output_floats(b, "0", FLOATS(1, 2, -1, -2));
  give(b, "x", 4, data);
  check_bound(b, tn_binding_run(b));
  check_output_floats(b, "0", FLOATS(1, 2, 3, 4, -1, -2, -3, -4));
}

static void count_input_copy(void *user, const tn_trace_span *span) {
  if (span->step < 0 && !strncmp(span->name, "copy of input ", 14)) ++*(int *)user;
}

/** Kernels read the caller's bools in place, of which the trace shows no copy, unless there are
    bytes other than 0 and 1, which are true. */
static void bools_of_any_byte_are_read(void **state) {
  enum { N = 67 }; /* more than the words that are checked at once, and a rest */
  (void)state;
  int copies = 0;
  tn_open_desc desc = TN_OPEN_DESC_INIT;
  desc.tracer = (tn_tracer){count_input_copy, &copies, NULL};
  tn_context *c = tn_open(&desc);
  tn_tensor *x = tn_input(c, "x", tn_shape(N), TN_BOOL);
  tn_tensor *out[] = {x, tn_sum(tn_cast(x, TN_I32), tn_axes(0), false)};
  tn_binding *b = bind_compiled(c, out, 2, NULL);
  unsigned char data[N], seen[N];
  memset(data, 1, sizeof data);
  tn_binding_input(b, "x", tn_shape(N), TN_BOOL, data, sizeof data);
  for (int i = 0; i <= N; i++) {
    int32_t sum = -1;
    check_bound(b, tn_binding_run(b));
    check_bound(b, tn_binding_read(b, "1", TN_I32, &sum, sizeof sum));
    check_bound(b, tn_binding_read(b, "0", TN_BOOL, seen, sizeof seen));
    assert_int_equal(sum, N - i / 2);
    for (int k = 0; k < N; k++) assert_int_equal(seen[k], data[k] != 0);
    assert_int_equal(copies, i > N / 2 ? i - N / 2 : 0);
    if (i < N) data[i] = i % 2 ? 0 : 1; /* read without being given again */
    if (i >= N / 2) data[0] = 254;
  }
  int32_t numbers[N] = {1}; /* those of another type are copied */
  tn_binding_input(b, "x", tn_shape(N), TN_I32, numbers, sizeof numbers);
  check_bound(b, tn_binding_run(b));
  assert_int_equal(copies, N - N / 2 + 1);
  check_ok(c, tn_close(c));
}

/** A growing cache: a carried input takes the output's size. */
static void carried_sizes_grow(void **state) {
  tn_context *c = *state;
  tn_dim n = tn_dim_var(c, "n", 0, 32);
  tn_tensor *in[] = {tn_input(c, "past", tn_shape(n), TN_F32),
                     tn_input(c, "x", tn_shape(1), TN_F32)};
  tn_tensor *all = tn_concat(in, 2, 0);
  tn_binding *b = bind_compiled(c, &all, 1, NULL);
  float x, expected[10];
  tn_binding_input(b, "past", tn_shape(0), TN_F32, NULL, 0);
  tn_binding_input(b, "x", tn_shape(1), TN_F32, &x, 4);
  tn_binding_carry(b, "0", "past");
  for (int i = 0; i < 10; i++) {
    expected[i] = x = (float)(i * i);
    check_bound(b, tn_binding_run(b));
    check_output_floats(b, "0", (size_t)i + 1, expected);
  }
}

static void plans_take_assigns(void **state) {
  tn_context *c = *state;
  tn_tensor *s = tn_state(floats(c, FLOATS(1, 2)));
  tn_assign(s, tn_mul(s, tn_num(c, 3)));
  tn_scope_begin(c);
  tn_tensor *x = tn_input(c, "x", tn_shape(2), TN_F32);
  tn_tensor *before = tn_add(s, tn_num(c, 0));
  tn_assign(s, tn_add(s, x));
  tn_tensor *after = tn_mul(s, tn_num(c, 10)), *out[] = {before, after, s};
  tn_binding *b = bind_compiled(c, out, 3, NULL);
  check_ok(c, tn_scope_end(c));
  check_floats(c, s, FLOATS(3, 6));
  const float one[] = {1, 1};
  give(b, "x", 2, one);
  check_bound(b, tn_binding_run(b));
  check_output_floats(b, "0", FLOATS(3, 6));
  check_output_floats(b, "1", FLOATS(40, 70));
  check_output_floats(b, "2", FLOATS(4, 7));
  check_floats(c, s, FLOATS(4, 7));
  tn_assign(s, tn_num(c, 100));
  check_bound(b, tn_binding_run(b));
  check_output_floats(b, "0", FLOATS(100, 100));
  check_output_floats(b, "2", FLOATS(101, 101));
  check_floats(c, s, FLOATS(101, 101));
}

static void reading_another_plans_assign_changes_nothing(void **state) {
  tn_context *c = *state;
  for (int part = 0; part < 2; part++) {
    tn_tensor *s = tn_state(floats(c, FLOATS(1, 2, 3, 4)));
    check_ok(c, tn_realize(c, NULL, 0));
    tn_tensor *to = part ? tn_slice(s, 0, 0, 2, 1) : s, *old = tn_mul(s, tn_num(c, 2));
    tn_assign(to, tn_mul(to, tn_num(c, 10)));
    tn_tensor *y = tn_add(s, tn_num(c, 1));
    tn_binding *writes = bind_compiled(c, &y, 1, NULL), *reads = bind_compiled(c, &y, 1, NULL);
    const float *expected = part ? (float[]){11, 21, 4, 5} : (float[]){11, 21, 31, 41};
    for (int i = 0; i < 2; i++) {
      check_bound(reads, tn_binding_run(reads));
      check_output_floats(reads, "0", 4, expected);
    }
    check_floats(c, old, FLOATS(2, 4, 6, 8));
    check_floats(c, s, FLOATS(1, 2, 3, 4));
    check_bound(writes, tn_binding_run(writes));
    check_output_floats(writes, "0", 4, expected);
    check_bound(reads, tn_binding_run(reads));
    check_output_floats(reads, "0", 4,
                        part ? (float[]){101, 201, 4, 5} : (float[]){101, 201, 301, 401});
  }
}

static void contents_overwritten_on_the_way_are_kept_for_readers(void **state) {
  tn_context *c = *state;
  for (int other = 0; other < 2; other++) {
    tn_tensor *s = tn_state(floats(c, FLOATS(1)));
    check_ok(c, tn_realize(c, NULL, 0));
    tn_scope_begin(c);
    tn_assign(s, floats(c, FLOATS(10)));
    tn_tensor *twice = tn_own(tn_add(s, s));
    if (other) bind_compiled(c, NULL, 0, NULL);
    tn_assign(s, tn_add(twice, tn_num(c, 100)));
    tn_binding *b = bind_compiled(c, NULL, 0, NULL);
    tn_tensor *old = tn_add(s, tn_num(c, 500));
    for (int i = 0; i < 2; i++) check_bound(b, tn_binding_run(b));
    check_floats(c, old, FLOATS(501));
    check_floats(c, s, FLOATS(120));
    check_ok(c, tn_scope_end(c));
    tn_release(twice);
  }
}

static void readers_of_the_context_keep_their_contents(void **state) {
  tn_context *c = *state;
  tn_tensor *s = tn_state(floats(c, FLOATS(1)));
  tn_scope_begin(c);
  tn_assign(s, tn_add(s, tn_num(c, 1)));
  tn_binding *b = bind_compiled(c, NULL, 0, NULL);
  check_ok(c, tn_scope_end(c));
  tn_tensor *old = tn_mul(s, tn_num(c, 10));
  check_bound(b, tn_binding_run(b));
  tn_tensor *middle = tn_mul(s, tn_num(c, 10));
  check_bound(b, tn_binding_run(b));
  check_floats(c, old, FLOATS(10));
  check_floats(c, middle, FLOATS(20));
  check_floats(c, s, FLOATS(3));
  tn_scope_begin(c);
  tn_assign(s, tn_add(s, tn_num(c, 5)));
  check_ok(c, tn_scope_end(c));
  for (int i = 0; i < 10; i++) check_bound(b, tn_binding_run(b));
  check_floats(c, s, FLOATS(18));
}

static void whole_replacements_work_too(void **state) {
  tn_context *c = *state;
  tn_tensor *s = tn_state(floats(c, FLOATS(1, 2)));
  tn_scope_begin(c);
  tn_assign(s, tn_flip(s, TN_ALL));
  tn_tensor *out = tn_sum(s, TN_ALL, false);
  tn_binding *b = bind_compiled(c, &out, 1, NULL);
  check_ok(c, tn_scope_end(c));
  for (int i = 0; i < 5; i++) {
    tn_tensor *before = tn_mul(s, tn_num(c, 1));
    check_bound(b, tn_binding_run(b));
    if (i % 2)
      check_floats(c, before, FLOATS(2, 1));
    else
      check_floats(c, before, FLOATS(1, 2));
  }
  check_floats(c, s, FLOATS(2, 1));
}

static void bad_plans_leave_assigns_pending(void **state) {
  tn_context *c = *state;
  tn_tensor *s = tn_state(floats(c, FLOATS(1)));
  tn_plan *plan = (tn_plan *)c;
  assert_int_equal(tn_plan_compile(c, NULL, 0, NULL, &plan), TN_ERR_ARGUMENT);
  assert_null(plan);
  assert_int_equal(tn_plan_compile(c, NULL, 3, NULL, &plan), TN_ERR_ARGUMENT);
  check_text(tn_message(c), "the list of 3 operands is NULL");
  tn_tensor *hole[] = {s, NULL};
  assert_int_equal(tn_plan_compile(c, hole, 2, NULL, &plan), TN_ERR_ARGUMENT);
  check_text(tn_message(c), "plan_compile(f32[1], NULL): operand 2 is NULL");
  assert_int_equal(tn_plan_compile(c, &s, 1, NULL, NULL), TN_ERR_ARGUMENT);
  check_text(tn_message(c), "the place for the plan is NULL");
  tn_assign(s, tn_num(c, 2));
  tn_tensor *twins[] = {tn_input(c, "x", tn_shape(1), TN_F32),
                        tn_input(c, "x", tn_shape(1), TN_F32)};
  assert_int_equal(tn_plan_compile(c, twins, 2, NULL, &plan), TN_ERR_ARGUMENT);
  check_text(tn_message(c), "two inputs are named x");
  const char *names[] = {"a", "a"};
  tn_plan_desc desc = {sizeof desc, NULL, names, TN_VARIANTS_AUTO, false, NULL, 0};
  tn_tensor *same[] = {twins[0], twins[0]};
  assert_int_equal(tn_plan_compile(c, same, 2, &desc, &plan), TN_ERR_ARGUMENT);
  check_text(tn_message(c), "two outputs are named a");
  tn_tensor *bad = tn_add(floats(c, FLOATS(1, 2)), floats(c, FLOATS(1, 2, 3)));
  assert_int_equal(tn_plan_compile(c, &bad, 1, NULL, &plan), TN_ERR_SHAPE);
  assert_null(plan);
  check_floats(c, s, FLOATS(2));
  tn_plan_free(NULL);
  assert_int_equal(tn_plan_bind(NULL, NULL), TN_ERR_ARGUMENT);
  check_ok(c, tn_plan_compile(c, &s, 1, NULL, &plan));
  assert_int_equal(tn_plan_bind(plan, NULL), TN_ERR_ARGUMENT);
  check_text(tn_message(c), "the place for the binding is NULL");
}

static tn_status sum_rows(void *user, tn_call *call) {
  (void)user;
  tn_array in = tn_call_in(call, 0), sums = tn_call_out(call, 0), rows = tn_call_out(call, 1);
  int64_t n = in.type.shape.size[0], m = in.type.shape.size[1];
  if (sums.type.shape.size[0] != n) return TN_ERR_INTERNAL;
  for (int64_t i = 0; i < n; i++) {
    ((float *)sums.data)[i] = 0;
    for (int64_t k = 0; k < m; k++) ((float *)sums.data)[i] += ((const float *)in.data)[i * m + k];
  }
  *(int16_t *)rows.data = (int16_t)n;
  return TN_OK;
}

static void custom_sizes_vary(void **state) {
  tn_context *c = *state;
  tn_dim n = tn_dim_var(c, "n", 1, 9);
  tn_tensor *x = tn_input(c, "x", tn_shape(n, 2), TN_F32), *out[2];
  tn_custom_desc d = TN_CUSTOM_DESC_INIT;
  d.run = sum_rows;
  const tn_type types[] = {{TN_F32, tn_shape(n)}, {TN_I16, TN_SCALAR}};
  tn_custom(c, &d, &x, 1, types, out, 2);
  tn_binding *b = bind_compiled(c, out, 2, NULL);
  const float in[] = {1, 2, 3, 4, 5, 6};
  for (int k = 1; k <= 3; k++) {
    tn_binding_input(b, "x", tn_shape(k, 2), TN_F32, in, (size_t)k * 8);
    check_bound(b, tn_binding_run(b));
    const float sums[] = {3, 7, 11}, rows = (float)k;
    check_output_floats(b, "0", (size_t)k, sums);
    check_output_floats(b, "1", 1, &rows);
  }
}

/* Failures. */

static tn_status fail_anew(void *user, tn_call *call) {
  int *n = user;
  char text[40];
  snprintf(text, sizeof text, "failure number %d", ++*n);
  tn_call_fail(call, text);
  if (*n == 3) *(float *)tn_call_out(call, 0).data = 3;
  return *n == 1 ? TN_ERR_IO : *n == 3 ? TN_OK : TN_ERR_FORMAT;
}

static tn_tensor *custom_of(tn_context *c, tn_status (*run)(void *, tn_call *), void *user,
                            tn_tensor *x) {
  tn_custom_desc d = TN_CUSTOM_DESC_INIT;
  const tn_type type = {TN_F32, TN_SCALAR};
  tn_tensor *out;
  d.run = run;
  d.user = user;
  tn_custom(c, &d, &x, x != NULL, &type, &out, 1);
  return out;
}

static tn_status give_seven(void *user, tn_call *call) {
  (void)user;
  *(float *)tn_call_out(call, 0).data = 7;
  return TN_OK;
}

/** A realised value is unchanged although its memory was a state's contents, or becomes them. */
static void realised_values_are_no_states(void **state) {
  tn_context *c = *state;
  tn_tensor *x = floats(c, FLOATS(7)), *host = custom_of(c, give_seven, NULL, NULL);
  tn_tensor *s[] = {tn_state(x), tn_state(host), tn_state(x)};
  check_ok(c, tn_realize(c, s, 3));
  tn_assign(s[2], tn_add(s[2], tn_num(c, 0)));
  tn_tensor *y[] = {tn_cast(s[0], TN_F32), host, tn_cast(s[2], TN_F32)};
  check_ok(c, tn_realize(c, y, 3));
  for (int i = 0; i < 3; i++) y[i] = tn_add(y[i], tn_num(c, 1));
  tn_binding *b = bind_compiled(c, y, 3, NULL);
  for (int i = 0; i < 3; i++) check_ok(c, tn_write(s[i], TN_F32, &(float){100}, 4));
  for (int runs = 0; runs < 2; runs++) {
    check_bound(b, tn_binding_run(b));
    check_output_floats(b, "0", FLOATS(8));
    check_output_floats(b, "1", FLOATS(8));
    check_output_floats(b, "2", FLOATS(8));
  }
  for (int i = 0; i < 3; i++) check_floats(c, s[i], FLOATS(100));
}

/** A state version that was also read as a value still belongs to the state in plans. */
static void versions_that_are_values_are_states(void **state) {
  tn_context *c = *state;
  tn_tensor *s = tn_state(floats(c, FLOATS(1)));
  tn_assign(s, tn_add(s, tn_num(c, 10)));
  tn_tensor *twice = tn_mul(s, tn_num(c, 2)), *value = tn_cast(s, TN_F32);
  check_ok(c, tn_realize(c, &value, 1));
  tn_binding *b = bind_compiled(c, &twice, 1, NULL);
  check_ok(c, tn_write(s, TN_F32, &(float){100}, 4));
  check_bound(b, tn_binding_run(b));
  check_output_floats(b, "0", FLOATS(200));
  check_floats(c, value, FLOATS(11));
}

static void each_run_tells_its_own_failure(void **state) {
  tn_context *c = *state;
  int n = 0;
  tn_tensor *y = custom_of(c, fail_anew, &n, tn_input(c, "x", TN_SCALAR, TN_F32));
  tn_binding *b = bind_compiled(c, &y, 1, NULL);
  const float x = 1;
  tn_binding_input(b, "x", TN_SCALAR, TN_F32, &x, 4);
  assert_int_equal(tn_binding_run(b), TN_ERR_IO);
  check_text(tn_binding_message(b), "number 1");
  assert_int_equal(tn_binding_run(b), TN_ERR_FORMAT);
  check_text(tn_binding_message(b), "number 2");
  check_bound(b, tn_binding_run(b));
  check_output_floats(b, "0", FLOATS(3));
  assert_int_equal(tn_binding_run(b), TN_ERR_FORMAT);
  check_text(tn_binding_message(b), "number 4");
}

static void sizes_that_are_none_are_refused(void **state) {
  tn_context *c = *state;
  tn_dim n = tn_dim_var(c, "n", 0, 5);
  tn_tensor *x = tn_input(c, "x", tn_shape(tn_dim_sub(c, 10, n)), TN_F32);
  tn_binding *b = bind_compiled(c, &x, 1, NULL);
  float f[10] = {0};
  const int64_t sizes[] = {INT64_MIN, INT64_MIN + 9, INT64_MIN + 10,
                           -1,        INT64_MAX,     INT64_C(1) << 44};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    assert_int_equal(tn_binding_input(b, "x", tn_shape(sizes[i]), TN_F32, f, 4), TN_ERR_SHAPE);
    assert_int_equal(tn_binding_run(b), TN_ERR_SHAPE);
  }
  const tn_shape far = {INT32_MAX, {1}};
  assert_int_equal(tn_binding_input(b, "x", far, TN_F32, f, 4), TN_ERR_SHAPE);
  assert_int_equal(tn_binding_run(b), TN_ERR_SHAPE);
  give(b, "x", 7, f);
  check_bound(b, tn_binding_run(b));
}

static void count_step(void *user, tn_tensor *i, tn_tensor *const state[], tn_tensor *const x[],
                       tn_tensor *next[], tn_tensor *y[]) {
  (void)i, (void)x, (void)y;
  next[0] = tn_add(state[0], tn_int(user, 1));
}

/** A plan that uses an input's size but not the input is refused: no run could determine the
    size. */
static void sizes_that_nothing_tells_are_refused(void **state) {
  tn_context *c = *state;
  tn_dim n = tn_dim_var(c, "n", 0, 5);
  tn_tensor *x = tn_input(c, "x", tn_shape(n), TN_F32), *zero = tn_zeros(c, TN_SCALAR, TN_F32);
  tn_scan_desc d = TN_SCAN_DESC_INIT;
  d.body = count_step;
  d.user = c;
  tn_tensor *out[2];
  tn_scan(c, &d, &zero, 1, &x, 1, out, 0);
  tn_plan *plan;
  assert_int_equal(tn_plan_compile(c, out, 1, NULL, &plan), TN_ERR_ARGUMENT);
  check_text(tn_message(c), "no input's shape tells the size n");
  out[1] = tn_neg(x);
  tn_binding *b = bind_compiled(c, out, 2, NULL);
  give(b, "x", FLOATS(1, 2, 3));
  check_bound(b, tn_binding_run(b));
  check_output_floats(b, "0", FLOATS(3));
}

static void long_names_are_missed_too(void **state) {
  tn_context *c = *state;
  char name[601] = "";
  memset(name, 'a', sizeof name - 1);
  tn_tensor *long_one = tn_input(c, name, TN_SCALAR, TN_F32);
  tn_tensor *y = tn_add(long_one, tn_input(c, "z", TN_SCALAR, TN_F32));
  tn_binding *b = bind_compiled(c, &y, 1, NULL);
  assert_int_equal(tn_binding_run(b), TN_ERR_ARGUMENT);
  check_text(tn_binding_message(b), "aaa…, z");
  b = bind_compiled(c, &long_one, 1, NULL);
  assert_int_equal(tn_binding_run(b), TN_ERR_ARGUMENT);
  check_text(tn_binding_message(b), "aaa…");
}

/* Pending assignments. */

static void *ask_type(void *arg) {
  tn_type_of(arg);
  return NULL;
}

static void *run_bound(void *arg) { return (void *)(intptr_t)tn_binding_run(arg); }

static void *on_a_thread(void *(*body)(void *), void *arg) {
  void *result;
  pthread_t t;
  assert_int_equal(pthread_create(&t, NULL, body, arg), 0);
  pthread_join(t, &result);
  return result;
}

/** Runs on any thread see assignments made before, by any thread. */
static void runs_see_assigns_made_before(void **state) {
  tn_context *c = *state;
  tn_tensor *s = tn_state(floats(c, FLOATS(1))), *y = tn_add(s, tn_num(c, 0));
  tn_binding *b = bind_compiled(c, &y, 1, NULL);
  for (int turn = 0; turn < 4; turn++) {
    const float x = (float)(5 + turn);
    tn_assign(s, tn_num(c, x));
    if (turn & 1) on_a_thread(ask_type, s);
    tn_status run = turn & 2 ? (tn_status)(intptr_t)on_a_thread(run_bound, b) : tn_binding_run(b);
    check_bound(b, run);
    check_output_floats(b, "0", 1, &x);
  }
}

typedef struct caller {
  tn_binding *binding;
  tn_tensor *state;
  tn_status run;
  char text[200];
} caller;

static tn_status run_inside(void *user, tn_call *call) {
  caller *k = user;
  float f;
  if (k->state) /* no context: the run is in a callback */
    assert_int_equal(tn_read(tn_assign(k->state, k->state), TN_F32, &f, 4), TN_ERR_BUSY);
  k->run = tn_binding_run(k->binding);
  snprintf(k->text, sizeof k->text, "%s", tn_binding_message(k->binding));
  *(float *)tn_call_out(call, 0).data = 1;
  return TN_OK;
}

/** A run in a callback must not wait for the call that it is part of: for the context, if
    assignments are pending, or for a state's turn. */
static void callbacks_run_no_states(void **state) {
  tn_context *c = *state;
  float f;
  tn_tensor *s = tn_state(floats(c, FLOATS(1))), *y = tn_add(s, tn_num(c, 0)), *free = tn_num(c, 3);
  tn_binding *reads = bind_compiled(c, &y, 1, NULL), *reads_none = bind_compiled(c, &free, 1, NULL);
  caller pending = {reads, s, TN_OK, ""}, turn = {reads, NULL, TN_OK, ""};
  tn_assign(s, custom_of(c, run_inside, &pending, NULL));
  check_floats(c, s, FLOATS(1));
  assert_int_equal(pending.run, TN_ERR_BUSY);
  check_text(pending.text, "callback");
  check_ok(c, tn_read(tn_add(tn_sum(s, TN_ALL, false), custom_of(c, run_inside, &turn, NULL)),
                      TN_F32, &f, 4));
  assert_int_equal(turn.run, TN_ERR_BUSY);
  caller beside = {reads, NULL, TN_OK, ""}, none = {reads_none, NULL, TN_ERR_BUSY, ""};
  tn_tensor *z = tn_add(tn_sum(s, TN_ALL, false), custom_of(c, run_inside, &beside, NULL));
  check_bound(reads, tn_binding_run(bind_compiled(c, &z, 1, NULL)));
  assert_int_equal(beside.run, TN_ERR_BUSY);
  check_ok(c, tn_read(custom_of(c, run_inside, &none, NULL), TN_F32, &f, 4));
  assert_int_equal(none.run, TN_OK);
  check_bound(reads, tn_binding_run(reads));
}

static void *run_often(void *arg) {
  tn_status s = TN_OK;
  for (int i = 0; i < 300 && s == TN_OK; i++) s = tn_binding_run(arg);
  return (void *)(intptr_t)s;
}

/** Runs of other threads that compute this thread's assignments do not make its calls fail with
    TN_ERR_BUSY. */
static void runs_do_not_keep_the_context_from_its_thread(void **state) {
  enum { OTHERS = 3 };
  tn_context *c = *state;
  tn_tensor *s = tn_state(floats(c, FLOATS(0))), *y = tn_add(s, tn_num(c, 0));
  tn_plan *plan;
  check_ok(c, tn_plan_compile(c, &y, 1, NULL, &plan));
  pthread_t threads[OTHERS];
  tn_binding *b[OTHERS];
  for (int i = 0; i < OTHERS; i++) {
    check_ok(c, tn_plan_bind(plan, &b[i]));
    assert_int_equal(pthread_create(&threads[i], NULL, run_often, b[i]), 0);
  }
  for (int i = 1; i <= 200; i++) {
    tn_scope_begin(c);
    tn_tensor *one = tn_add(s, tn_num(c, 1));
    assert_non_null(one);
    assert_ptr_equal(tn_assign(s, one), s);
    if (i % 3)
      check_ok(c, tn_scope_end(c));
    else
      check_floats(c, s, 1, (const float[]){(float)i}), check_ok(c, tn_scope_end(c));
  }
  for (int i = 0; i < OTHERS; i++) {
    void *result;
    pthread_join(threads[i], &result);
    check_bound(b[i], (tn_status)(intptr_t)result);
  }
  check_floats(c, s, FLOATS(200));
}

/** A host function that blocks until it is released. */
typedef struct gate {
  atomic_bool entered, opened;
} gate;

static tn_status add_ten(void *user, tn_call *call) {
  gate *g = user;
  atomic_store(&g->entered, true);
  while (!atomic_load(&g->opened)) sched_yield();
  *(float *)tn_call_in(call, 0).data += 10;
  return TN_OK;
}

/** Compiles a plan that adds 10 to `s` by a host function. */
static tn_binding *adding_ten(tn_context *c, tn_tensor *s, gate *g) {
  tn_custom_desc d = TN_CUSTOM_DESC_INIT;
  d.run = add_ten;
  d.user = g;
  d.writes = 1;
  tn_scope_begin(c);
  tn_custom(c, &d, &s, 1, NULL, NULL, 0);
  tn_binding *b = bind_compiled(c, NULL, 0, NULL);
  check_ok(c, tn_scope_end(c));
  return b;
}

/** A value keeps the contents that it was built over, for its reader and for an assignment of
    it. */
static void runs_beside_leave_values_alone(void **state) {
  tn_context *c = *state;
  for (int during = 0; during < 2; during++) {
    tn_tensor *s = tn_state(floats(c, FLOATS(1))), *y = NULL;
    check_ok(c, tn_realize(c, &s, 1));
    gate g = {false, false};
    tn_binding *b = adding_ten(c, s, &g);
    pthread_t thread;
    void *result;
    if (!during) y = tn_mul(s, tn_num(c, 2));
    assert_int_equal(pthread_create(&thread, NULL, run_bound, b), 0);
    while (!atomic_load(&g.entered)) sched_yield();
    if (during) y = tn_mul(s, tn_num(c, 2));
    tn_assign(s, y);
    atomic_store(&g.opened, true);
    pthread_join(thread, &result);
    check_bound(b, (tn_status)(intptr_t)result);
    check_floats(c, s, FLOATS(2));
    check_floats(c, y, FLOATS(2));
  }
}

/** An expression that depends on a plan's input uses the state's contents in each run, although a
    concurrent run changed them before. */
static void runs_beside_do_not_freeze_what_waits(void **state) {
  tn_context *c = *state;
  gate g = {false, true};
  tn_tensor *s = tn_state(floats(c, FLOATS(1)));
  check_ok(c, tn_realize(c, &s, 1));
  tn_binding *beside = adding_ten(c, s, &g);
  tn_scope_begin(c);
  tn_tensor *twice = tn_mul(s, tn_num(c, 2)), *less = tn_neg(twice);
  tn_assign(s, tn_add(twice, tn_input(c, "x", tn_shape(1), TN_F32)));
  check_bound(beside, tn_binding_run(beside));
  check_floats(c, twice, FLOATS(2));
  tn_binding *b = bind_compiled(c, &less, 1, NULL);
  check_ok(c, tn_scope_end(c));
  give(b, "x", FLOATS(1));
  for (int i = 0; i < 2; i++) check_bound(b, tn_binding_run(b));
  check_output_floats(b, "0", FLOATS(-46));
  check_floats(c, s, FLOATS(47)); /* 1 + 10 = 11, 2 · 11 + 1 = 23, 2 · 23 + 1 */
}

typedef struct reading {
  tn_tensor *of;
  atomic_bool done;
  tn_status status;
  float value;
} reading;

static void *read_it(void *arg) {
  reading *r = arg;
  r->status = tn_read(r->of, TN_F32, &r->value, sizeof r->value);
  atomic_store(&r->done, true);
  return NULL;
}

/** The contents of a freed state are read after the concurrent run that has begun. */
static void readers_wait_for_runs_of_states_that_are_gone(void **state) {
  tn_context *c = *state;
  gate g = {false, false};
  tn_tensor *s = tn_own(tn_state(floats(c, FLOATS(1))));
  check_ok(c, tn_realize(c, &s, 1));
  tn_binding *b = adding_ten(c, s, &g);
  pthread_t running, reader;
  void *result;
  assert_int_equal(pthread_create(&running, NULL, run_bound, b), 0);
  while (!atomic_load(&g.entered)) sched_yield();
  reading r = {.of = tn_cast(s, TN_F32)};
  tn_release(s);
  assert_int_equal(pthread_create(&reader, NULL, read_it, &r), 0);
  for (int64_t end = clock_now_ns() + 20000000; clock_now_ns() < end;) sched_yield();
  assert_false(atomic_load(&r.done));
  atomic_store(&g.opened, true);
  pthread_join(running, &result);
  pthread_join(reader, NULL);
  check_bound(b, (tn_status)(intptr_t)result);
  check_ok(c, r.status);
  assert_true(r.value == 1 || r.value == 11);
}

/* Threads. */

enum { THREADS = 4, RUNS = 100 };

typedef struct worker {
  thread thread;
  tn_plan *plan;
  float x[8];
  tn_status status;
  bool right;
} worker;

static void *run_alone(void *arg) {
  worker *w = arg;
  tn_binding *b;
  w->status = tn_plan_bind(w->plan, &b);
  w->right = true;
  for (int i = 0; i < RUNS && w->status == TN_OK; i++) {
    float y[8];
    for (int k = 0; k < 8; k++) w->x[k] = (float)(i + k);
    give(b, "x", 8, w->x);
    w->status = tn_binding_run(b);
    if (w->status == TN_OK) w->status = tn_binding_read(b, "0", TN_F32, y, sizeof y);
    for (int k = 0; k < 8; k++) w->right &= y[k] == (float)(2 * (i + k));
  }
  tn_binding_free(b);
  return NULL;
}

static void run_workers(tn_plan *plan, void *(*body)(void *arg)) {
  worker w[THREADS] = {0};
  diag d = {0};
  for (int i = 0; i < THREADS; i++) {
    w[i].plan = plan;
    assert_int_equal(thread_start(&w[i].thread, body, &w[i], &d), TN_OK);
  }
  for (int i = 0; i < THREADS; i++) thread_join(w[i].thread);
  for (int i = 0; i < THREADS; i++) {
    assert_int_equal(w[i].status, TN_OK);
    assert_true(w[i].right);
  }
}

static void bindings_run_at_once(void **state) {
  tn_context *c = *state;
  tn_tensor *x = tn_input(c, "x", tn_shape(8), TN_F32), *y = tn_add(x, x);
  tn_plan *plan;
  check_ok(c, tn_plan_compile(c, &y, 1, NULL, &plan));
  run_workers(plan, run_alone);
}

static void *run_counter(void *arg) {
  worker *w = arg;
  tn_binding *b;
  w->right = true;
  w->status = tn_plan_bind(w->plan, &b);
  for (int i = 0; i < RUNS && w->status == TN_OK; i++) {
    float y[2];
    w->status = tn_binding_run(b);
    if (w->status == TN_OK) w->status = tn_binding_read(b, "0", TN_F32, y, sizeof y);
    w->right &= y[0] == y[1];
  }
  tn_binding_free(b);
  return NULL;
}

/** Returns the half of a state that only plans change, or only the context. */
static tn_tensor *part(tn_tensor *s, int i) { return tn_slice(s, 0, 2 * i, 2 * i + 2, 1); }

/** Four threads count in one half of a state while the context reads it and assigns the other
    half. */
static void runs_take_turns(void **state) {
  tn_context *c = *state;
  tn_tensor *s = tn_state(tn_zeros(c, tn_shape(4), TN_F32));
  tn_scope_begin(c);
  tn_assign(part(s, 0), tn_add(part(s, 0), tn_num(c, 1)));
  tn_tensor *out = tn_mul(part(s, 0), tn_num(c, 1));
  tn_plan *plan;
  check_ok(c, tn_plan_compile(c, &out, 1, NULL, &plan));
  check_ok(c, tn_scope_end(c));
  worker w[THREADS] = {0};
  diag d = {0};
  for (int i = 0; i < THREADS; i++) {
    w[i].plan = plan;
    assert_int_equal(thread_start(&w[i].thread, run_counter, &w[i], &d), TN_OK);
  }
  float last = 0;
  for (int i = 1; i <= 60; i++) {
    float x[4];
    tn_scope_begin(c);
    tn_assign(part(s, 1), tn_num(c, i));
    check_ok(c, tn_read(i % 2 ? s : tn_add(s, tn_num(c, 0)), TN_F32, x, sizeof x));
    assert_true(x[0] == x[1] && x[0] >= last && x[2] == (float)i && x[3] == (float)i);
    tn_assign(part(s, 1), tn_num(c, -i));
    check_ok(c, tn_scope_end(c));
    last = x[0];
  }
  for (int i = 0; i < THREADS; i++) thread_join(w[i].thread);
  for (int i = 0; i < THREADS; i++) assert_true(w[i].status == TN_OK && w[i].right);
  check_floats(c, s, FLOATS(THREADS * RUNS, THREADS * RUNS, -60, -60));
}

/* Memory. */

/** Runs a workload of all features; returns the first failure, or TN_OK. */
static tn_status everything(counting *memory, const char *device) {
  tn_context *c = open_counting(memory, device);
  if (!c) return TN_ERR_MEMORY;
  float f[2] = {1, 2};
  tn_plan *plan;
  tn_binding *b;
  tn_scope_begin(c);
  tn_label(c, "here");
  tn_tensor *s = tn_own(tn_state(floats(c, 2, f))), *y = tn_add(tn_mul(s, s), tn_num(c, 1));
  tn_assign(tn_slice(s, 0, 0, 1, 1), tn_num(c, 5));
  tn_status status = tn_read(y, TN_F32, f, sizeof f);
  tn_status ended = tn_scope_end(c);
  if (status == TN_OK) status = ended;
  tn_tensor *x = tn_input(c, "x", tn_shape(tn_dim_var(c, "n", 1, 4)), TN_F32);
  tn_assign(s, tn_add(s, tn_num(c, 1)));
  tn_tensor *out = tn_add(tn_sum(x, TN_ALL, false), s);
  tn_status made = tn_plan_compile(c, &out, 1, NULL, &plan);
  if (made == TN_OK) made = tn_plan_bind(plan, &b);
  if (made == TN_OK) {
    tn_binding_input(b, "x", tn_shape(2), TN_F32, f, sizeof f);
    for (int i = 0; i < 2 && made == TN_OK; i++) made = tn_binding_run(b);
    if (made == TN_OK) made = tn_binding_read(b, "0", TN_F32, f, sizeof f);
    if (made == TN_OK && !device && !(f[0] == 14 && f[1] == 11)) made = TN_ERR_INTERNAL;
  }
  if (status == TN_OK) status = made;
  tn_status closed = tn_close(c);
  return closed == TN_OK ? status : closed;
}

static void fail_at_every(const char *device, size_t step) {
  counting memory = {0};
  assert_int_equal(everything(&memory, device), TN_OK);
  assert_int_equal(memory.out, 0);
  size_t calls = memory.calls, failed = 0;
  assert_true(calls > 200);
  for (size_t n = 1; n <= calls; n += step) {
    counting m = {.fail_at = n};
    tn_status s = everything(&m, device);
    if (s != TN_OK && s != TN_ERR_MEMORY) fail_msg("call %zu: status %d", n, (int)s);
    if (m.out) fail_msg("call %zu: %zu bytes are lost", n, (size_t)m.out);
    assert_int_equal(m.destroyed, 1);
    failed += s != TN_OK;
  }
  assert_true(failed > calls / step / 3); /* caches may be skipped without a failure */
}

/* The null device does every step but the compiler's. */
static void memory_may_run_out_anywhere(void **state) {
  (void)state;
  fail_at_every("NULL", 1);
  fail_at_every(NULL, 29);
}

/** An assignment of an outer scope fails by each allocation of a compilation in turn: the plan's
    own assignments stay pending. */
static void plans_keep_their_assigns_without_memory(void **state) {
  (void)state;
  tn_status first = TN_ERR_MEMORY;
  for (size_t n = 1; first != TN_OK; n++) {
    counting memory = {0};
    tn_context *c = open_counting(&memory, NULL);
    tn_tensor *s = tn_state(floats(c, FLOATS(1))), *out = tn_full(c, tn_shape(1), TN_F32, 3);
    tn_plan *plan;
    tn_binding *b;
    check_ok(c, tn_realize(c, &s, 1));
    tn_assign(s, tn_num(c, 5));
    tn_scope_begin(c);
    tn_assign(s, tn_num(c, 7));
    memory.fail_at = memory.calls + n;
    first = tn_plan_compile(c, &out, 1, NULL, &plan);
    memory.fail_at = 0;
    if (first != TN_OK) check_ok(c, tn_plan_compile(c, &out, 1, NULL, &plan));
    tn_scope_end(c);
    check_ok(c, tn_plan_bind(plan, &b));
    check_bound(b, tn_binding_run(b));
    check_floats(c, s, FLOATS(7));
    check_ok(c, tn_close(c));
    assert_int_equal(memory.out, 0);
  }
}

#define WITH(test) cmocka_unit_test_setup_teardown(test, open_context, close_context)

/* Memory of compilation. */

typedef struct peak {
  counting counting;
  size_t most;
} peak;

static void *peak_alloc(void *user, size_t bytes, size_t align) {
  peak *p = user;
  void *at = counting_alloc(&p->counting, bytes, align);
  if (atomic_load(&p->counting.out) > p->most) p->most = atomic_load(&p->counting.out);
  return at;
}

static void peak_release(void *user, void *at, size_t bytes) {
  counting_release(&((peak *)user)->counting, at, bytes);
}

/** Returns the peak of allocated bytes while compiling so many products, each a separate kernel. */
static size_t most_for(size_t kernels) {
  enum { MOST = 24, SIZE = 40 };
  peak p = {.most = 0};
  tn_open_desc d = TN_OPEN_DESC_INIT;
  d.device = "NULL";
  d.cache_dir = "off";
  d.threads = 1;
  d.allocator = (tn_allocator){peak_alloc, peak_release, &p, NULL};
  tn_context *c = tn_open(&d);
  tn_tensor *out[MOST];
  tn_plan *plan;
  for (size_t i = 0; i < kernels; i++) {
    char name[2][24];
    snprintf(name[0], sizeof name[0], "x%zu", i);
    snprintf(name[1], sizeof name[1], "w%zu", i);
    tn_dim inner = SIZE + (tn_dim)i;
    out[i] = tn_matmul(tn_input(c, name[0], tn_shape(SIZE, inner), TN_F32),
                       tn_input(c, name[1], tn_shape(inner, SIZE), TN_F32));
  }
  check_ok(c, tn_plan_compile(c, out, kernels, NULL, &plan));
  check_ok(c, tn_close(c));
  return p.most;
}

/** Memory of a kernel's passes is freed before the next kernel's. */
static void kernels_are_compiled_in_the_memory_of_one(void **state) {
  (void)state;
  size_t few = most_for(4), many = most_for(24);
  if (many > 3 * few) fail_msg("%zu bytes for 4 kernels, %zu for 24", few, many);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      WITH(plans_run_many_times),
      WITH(sizes_vary),
      WITH(small_results_stand_beside_varying_ones),
      WITH(empty_arrays_may_have_many_rows),
      WITH(places_may_be_known),
      WITH(old_contents_are_summed_first),
      WITH(plans_read_what_values_were_computed_from),
      cmocka_unit_test(sizes_have_any_name),
      WITH(sizes_of_one_name_are_one_size),
      WITH(bad_inputs_are_kept_for_the_run),
      WITH(refused_inputs_have_no_value),
      WITH(sizes_that_differ_name_both_inputs),
      WITH(all_sizes_that_differ_are_in_one_message),
      WITH(host_types_convert),
      WITH(memory_may_be_shared_and_lie_anywhere),
      WITH(outputs_are_carried),
      WITH(carried_sizes_grow),
      WITH(inputs_are_given_anew),
      WITH(bools_of_any_byte_are_read),
      WITH(what_was_read_is_computed_anew),
      WITH(reads_do_not_freeze_what_waits),
      WITH(plans_take_assigns),
      WITH(reading_another_plans_assign_changes_nothing),
      WITH(contents_overwritten_on_the_way_are_kept_for_readers),
      WITH(readers_of_the_context_keep_their_contents),
      WITH(whole_replacements_work_too),
      WITH(bad_plans_leave_assigns_pending),
      WITH(custom_sizes_vary),
      WITH(realised_values_are_no_states),
      WITH(versions_that_are_values_are_states),
      WITH(each_run_tells_its_own_failure),
      WITH(sizes_that_are_none_are_refused),
      WITH(sizes_that_nothing_tells_are_refused),
      WITH(long_names_are_missed_too),
      WITH(runs_see_assigns_made_before),
      WITH(callbacks_run_no_states),
      WITH(runs_do_not_keep_the_context_from_its_thread),
      WITH(bindings_run_at_once),
      WITH(runs_beside_leave_values_alone),
      WITH(runs_beside_do_not_freeze_what_waits),
      WITH(readers_wait_for_runs_of_states_that_are_gone),
      WITH(runs_take_turns),
      cmocka_unit_test(memory_may_run_out_anywhere),
      cmocka_unit_test(plans_keep_their_assigns_without_memory),
      cmocka_unit_test(kernels_are_compiled_in_the_memory_of_one),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
