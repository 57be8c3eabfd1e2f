/* Tests sizes that a run computes (tn_dim_item): in runs of plans, when realised, in loops and with
   states; bounds, empty tensors, several in one run, and the plan cache. */
#include "../backend/ref.c"

#include "base/thread.h"
#include "support/temporary.h"
#include "support/tensor_check.h"

enum { N = 16 };

static void give_x(tn_binding *b, size_t n, const float *x) {
  tn_binding_input(b, "x", tn_shape((tn_dim)n), TN_F32, x, n * sizeof *x);
}

/** The number of elements of x above 0, an i64. */
static tn_tensor *count_positive(tn_context *c, tn_tensor *x) {
  return tn_sum(tn_cast(tn_gt(x, tn_num(c, 0)), TN_I64), TN_ALL, false);
}

static void check_integers(tn_binding *b, const char *name, size_t n, const int64_t *expected) {
  int64_t found[N * N];
  tn_type t = tn_binding_type(b, name);
  assert_int_equal(t.shape.rank, 1);
  assert_int_equal(t.shape.size[0], n);
  check_bound(b, tn_binding_read(b, name, TN_I64, found, n * sizeof *found));
  for (size_t i = 0; i < n; i++) assert_int_equal(found[i], expected[i]);
}

static const int64_t iota[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};

static void sizes_follow_from_elements(void **state) {
  tn_context *c = *state;
  tn_dim n = tn_dim_var(c, "n", 0, N);
  tn_tensor *x = tn_input(c, "x", tn_shape(n), TN_F32);
  tn_dim k = tn_dim_item(count_positive(c, x), 0, n);
  assert_true(k == tn_dim_item(count_positive(c, x), 0, n));
  tn_tensor *out[] = {tn_arange(c, 0, k, 1, TN_I64),
                      tn_sum(tn_arange(c, 0, k, 1, TN_I64), TN_ALL, false)};
  tn_binding *b = bind_compiled(c, out, 2, NULL);
  float in[N];
  for (size_t i = 0; i < N; i++) in[i] = i % 3 ? 1 : -1;
  size_t lengths[] = {N, 4, 5, 0, 1, N};
  for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
    int64_t sum, expected = 0;
    for (size_t j = 0; j < lengths[i]; j++) expected += j % 3 != 0;
    give_x(b, lengths[i], in);
    check_bound(b, tn_binding_run(b));
    check_integers(b, "0", (size_t)expected, iota);
    check_bound(b, tn_binding_read(b, "1", TN_I64, &sum, sizeof sum));
    assert_int_equal(sum, expected * (expected - 1) / 2);
  }
}

/** A reshape to computed sizes, several ITEMs of which one bounds another, and sizes that only an
    output has. */
static void several_sizes_are_computed(void **state) {
  tn_context *c = *state;
  tn_tensor *x = tn_input(c, "x", tn_shape(N), TN_F32);
  tn_dim k = tn_dim_item(count_positive(c, x), 0, N);
  tn_tensor *y = tn_arange(c, 0, tn_dim_mul(c, k, 2), 1, TN_I64);
  tn_tensor *big = tn_sum(tn_cast(tn_ge(y, tn_num(c, 6)), TN_I64), TN_ALL, false);
  tn_dim m = tn_dim_item(big, 0, tn_dim_mul(c, k, 2));
  tn_tensor *out[] = {tn_reshape(y, tn_shape(k, 2)), tn_arange(c, 0, m, 1, TN_I64),
                      tn_sum(tn_reshape(y, tn_shape(2, k)), tn_axes(0), false),
                      tn_expand(tn_sum(y, TN_ALL, true), tn_shape(tn_dim_add(c, m, 1)))};
  tn_binding *b = bind_compiled(c, out, 4, NULL);
  float in[N];
  for (int64_t positive = N; positive >= 0; positive--) {
    int64_t at[2 * N], sums[N];
    for (int64_t i = 0; i < N; i++) in[i] = i < positive ? 1 : -1;
    give_x(b, N, in);
    check_bound(b, tn_binding_run(b));
    tn_type t = tn_binding_type(b, "0");
    assert_int_equal(t.shape.rank, 2);
    assert_int_equal(t.shape.size[0], positive);
    assert_int_equal(t.shape.size[1], 2);
    check_bound(b, tn_binding_read(b, "0", TN_I64, at, (size_t)positive * 16));
    for (int64_t i = 0; i < 2 * positive; i++) assert_int_equal(at[i], i);
    int64_t above = positive > 3 ? 2 * positive - 6 : 0;
    assert_int_equal(tn_binding_type(b, "1").shape.size[0], above);
    for (int64_t i = 0; i < positive; i++) sums[i] = 2 * i + positive;
    check_integers(b, "2", (size_t)positive, sums);
    assert_int_equal(tn_binding_type(b, "3").shape.size[0], above + 1);
  }
}

/** Takes a slice by Python's rules; returns the number of elements. */
static size_t take_slice(int64_t size, const float *x, int64_t start, int64_t stop, int64_t step,
                         float *y) {
  int64_t first = step < 0 ? -1 : 0, end = step < 0 ? size - 1 : size;
  if (start < 0) start += size;
  start = start < first ? first : start > end ? end : start;
  if (stop < 0) stop += size;
  stop = stop < first ? first : stop > end ? end : stop;
  size_t n = 0;
  for (int64_t i = start; step > 0 ? i < stop : i > stop; i += step) y[n++] = x[i];
  return n;
}

/** Bounds of slices are clamped where the axis varies or is computed, and where they do. */
static void slices_are_clamped(void **state) {
  tn_context *c = *state;
  enum { BOUNDS = 6, SLICES = 2 * BOUNDS * BOUNDS };
  tn_dim n = tn_dim_var(c, "n", 0, N);
  tn_tensor *x = tn_input(c, "x", tn_shape(n), TN_F32), *out[2 * SLICES];
  tn_tensor *above = tn_masked_select(x, tn_gt(x, tn_num(c, 0)));
  tn_dim k = tn_dim_item(count_positive(c, x), 0, n), bounds[BOUNDS] = {-3, 1, 4};
  bounds[3] = k;
  bounds[4] = tn_dim_sub(c, n, 4);
  bounds[5] = tn_dim_item(tn_sub(count_positive(c, x), tn_int(c, 3)), -3, N);
  for (size_t i = 0; i < SLICES; i++) {
    tn_dim start = bounds[i / 2 % BOUNDS], stop = bounds[i / 2 / BOUNDS], step = i % 2 ? 1 : -2;
    out[2 * i] = tn_slice(x, 0, start, stop, step);
    out[2 * i + 1] = tn_slice(above, 0, start, stop, step);
  }
  tn_binding *b = bind_compiled(c, out, 2 * SLICES, NULL);
  for (int64_t size = 0; size <= 8; size++) {
    float in[N], kept[N], expected[N];
    int64_t positive = 0;
    for (int64_t i = 0; i < size; i++) {
      in[i] = (i + size) % 3 ? (float)(i + 1) : -(float)(i + 1);
      if (in[i] > 0) kept[positive++] = in[i];
    }
    int64_t number[BOUNDS] = {-3, 1, 4, positive, size - 4, positive - 3};
    give_x(b, (size_t)size, in);
    check_bound(b, tn_binding_run(b));
    for (size_t i = 0; i < 2 * SLICES; i++) {
      int64_t start = number[i / 4 % BOUNDS], stop = number[i / 4 / BOUNDS];
      size_t found = take_slice(i % 2 ? positive : size, i % 2 ? kept : in, start, stop,
                                i / 2 % 2 ? 1 : -2, expected);
      char name[8];
      snprintf(name, sizeof name, "%zu", i);
      assert_int_equal(tn_binding_type(b, name).shape.size[0], found);
      check_output_floats(b, name, found, expected);
    }
  }
}

/** Slices of slices, to the end too: what is left of an axis is no less than 0. */
static void slices_are_sliced(void **state) {
  tn_context *c = *state;
  tn_tensor *x = tn_input(c, "x", tn_shape(N), TN_F32);
  tn_tensor *above = tn_masked_select(x, tn_gt(x, tn_num(c, 0)));
  tn_tensor *rest = tn_slice(above, 0, 1, TN_END, 1);
  tn_tensor *out[] = {tn_slice(rest, 0, 2, 5, 1), tn_slice(rest, 0, -2, TN_END, 1),
                      tn_concat((tn_tensor *[]){rest, tn_slice(above, 0, 0, 1, 1)}, 2, 0)};
  assert_true(tn_type_of(out[2]).shape.size[0] == tn_type_of(above).shape.size[0]);
  tn_binding *b = bind_compiled(c, out, 3, NULL);
  for (int64_t positive = 0; positive <= 8; positive++) {
    float in[N], expected[N];
    for (int64_t i = 0; i < N; i++) in[i] = i < positive ? (float)(i + 1) : -1;
    give_x(b, N, in);
    check_bound(b, tn_binding_run(b));
    int64_t left = positive ? positive - 1 : 0;
    check_output_floats(b, "0", take_slice(left, in + 1, 2, 5, 1, expected), expected);
    check_output_floats(b, "1", take_slice(left, in + 1, -2, N, 1, expected), expected);
    for (int64_t i = 0; i < positive; i++) expected[i] = in[(i + 1) % positive];
    check_output_floats(b, "2", (size_t)positive, expected);
  }
}

/** Parts of an axis that provably fit, and parts that the run checks. */
static void axes_are_split(void **state) {
  tn_context *c = *state;
  tn_dim n = tn_dim_var(c, "n", 0, N);
  tn_tensor *x = tn_input(c, "x", tn_shape(n), TN_F32), *out[8];
  tn_tensor *above = tn_masked_select(x, tn_gt(x, tn_num(c, 0)));
  tn_dim k = tn_dim_item(count_positive(c, x), 0, n), m = tn_type_of(above).shape.size[0];
  tn_dim half = tn_dim_div(c, m, 2);
  const float counts[] = {0, 1, 2, 3};
  tn_split(x, 0, (tn_dim[]){k, tn_dim_sub(c, n, k)}, out, 2);
  tn_split(above, 0, (tn_dim[]){half, tn_dim_sub(c, m, half)}, out + 2, 2);
  tn_split(above, 0, (tn_dim[]){2, tn_dim_sub(c, m, 2)}, out + 4, 2);
  tn_split(tn_arange(c, 0, 4, 1, TN_F32), 0, (tn_dim[]){m, tn_dim_sub(c, 4, m)}, out + 6, 2);
  tn_binding *b = bind_compiled(c, out, 4, NULL), *checked = bind_compiled(c, out + 4, 1, NULL);
  tn_binding *of_number = bind_compiled(c, out + 6, 2, NULL);
  for (int64_t size = 0; size <= 8; size++) {
    float in[N], kept[N];
    int64_t positive = 0;
    for (int64_t i = 0; i < size; i++) {
      in[i] = (i + size) % 3 ? (float)(i + 1) : -(float)(i + 1);
      if (in[i] > 0) kept[positive++] = in[i];
    }
    give_x(b, (size_t)size, in);
    check_bound(b, tn_binding_run(b));
    check_output_floats(b, "0", (size_t)positive, in);
    check_output_floats(b, "1", (size_t)(size - positive), in + positive);
    check_output_floats(b, "2", (size_t)(positive / 2), kept);
    check_output_floats(b, "3", (size_t)(positive - positive / 2), kept + positive / 2);
    give_x(checked, (size_t)size, in);
    assert_int_equal(tn_binding_run(checked), positive < 2 ? TN_ERR_SHAPE : TN_OK);
    if (positive >= 2) check_output_floats(checked, "0", 2, kept);
    give_x(of_number, (size_t)size, in);
    assert_int_equal(tn_binding_run(of_number), positive > 4 ? TN_ERR_SHAPE : TN_OK);
    if (positive > 4) continue;
    check_output_floats(of_number, "0", (size_t)positive, counts);
    check_output_floats(of_number, "1", (size_t)(4 - positive), counts + positive);
  }
  tn_split(above, 0, (tn_dim[]){m, -1}, out, 2);
  assert_int_equal(tn_type_of(out[1]).dtype, TN_UNDEFINED);
  assert_int_equal(tn_realize(c, &out[1], 1), TN_ERR_SHAPE);
  check_text(tn_message(c), "part 1, of size -1");
}

/** Parts of a rest, whose size is a difference, have sizes that are never negative. */
static void rests_are_divided(void **state) {
  tn_context *c = *state;
  tn_dim n = tn_dim_var(c, "n", 0, N);
  tn_tensor *x = tn_input(c, "x", tn_shape(n), TN_F32), *out[4];
  tn_dim k = tn_dim_item(count_positive(c, x), 0, n), rest = tn_dim_sub(c, n, k);
  tn_dim half = tn_dim_div(c, rest, 2);
  tn_tensor *after = tn_slice(x, 0, k, TN_END, 1);
  out[0] = tn_reshape(tn_slice(after, 0, 0, tn_dim_mul(c, half, 2), 1), tn_shape(half, 2));
  out[0] = tn_sum(out[0], tn_axes(1), false);
  out[1] = tn_tile(tn_full(c, tn_shape(2), TN_F32, 3), tn_shape(rest));
  tn_topk(after, half, 0, true, out + 2);
  out[3] = tn_full(c, tn_shape(tn_dim_div(c, tn_dim_add(c, rest, 1), 2)), TN_F32, 4);
  tn_binding *b = bind_compiled(c, out, 4, NULL);
  for (int64_t size = 0; size <= 8; size++) {
    float in[N], sums[N], threes[2 * N], most[N], fours[N];
    int64_t positive = (size + 1) / 3, left = size - positive;
    for (int64_t i = 0; i < size; i++) in[i] = (float)(positive - i);
    for (int64_t i = 0; i < size; i++) threes[2 * i] = threes[2 * i + 1] = 3, fours[i] = 4;
    for (int64_t i = 0; i < left / 2; i++) sums[i] = (float)(-4 * i - 1), most[i] = (float)-i;
    give_x(b, (size_t)size, in);
    check_bound(b, tn_binding_run(b));
    check_output_floats(b, "0", (size_t)(left / 2), sums);
    check_output_floats(b, "1", (size_t)(2 * left), threes);
    check_output_floats(b, "2", (size_t)(left / 2), most);
    check_output_floats(b, "3", (size_t)((left + 1) / 2), fours);
  }
}

/** A window of known length is written to a state where an element says. */
static void states_are_written_at_elements(void **state) {
  tn_context *c = *state;
  enum { MOST = 5, LENGTH = 3 };
  float zeros[MOST + LENGTH] = {0}, found[MOST + LENGTH], expected[MOST + LENGTH] = {0};
  tn_tensor *s = tn_state(tn_from_host(c, tn_shape(MOST + LENGTH), TN_F32, zeros, sizeof zeros));
  check_ok(c, tn_realize(c, NULL, 0));
  tn_scope_begin(c);
  tn_tensor *x = tn_input(c, "x", tn_shape(LENGTH), TN_F32);
  tn_tensor *at = tn_input(c, "at", TN_SCALAR, TN_I64);
  tn_dim first = tn_dim_item(at, 0, MOST);
  tn_assign(tn_slice(s, 0, first, tn_dim_add(c, first, LENGTH), 1), x);
  tn_binding *b = bind_compiled(c, NULL, 0, NULL);
  check_ok(c, tn_scope_end(c));
  for (int64_t i = 0; i <= MOST + 1; i += 2) {
    const float in[LENGTH] = {(float)i, 1, 2};
    give_x(b, LENGTH, in);
    check_bound(b, tn_binding_input(b, "at", TN_SCALAR, TN_I64, &i, sizeof i));
    assert_int_equal(tn_binding_run(b), i > MOST ? TN_ERR_SHAPE : TN_OK);
    if (i <= MOST) memcpy(expected + i, in, sizeof in);
    check_ok(c, tn_read(s, TN_F32, found, sizeof found));
    for (size_t k = 0; k < MOST + LENGTH; k++) assert_true(found[k] == expected[k]);
  }
}

/** A step waits for the bound of its size, of which nothing else in the step tells, and for what
    bounds that. */
static void bounds_are_computed_before(void **state) {
  tn_context *c = *state;
  tn_tensor *x = tn_input(c, "x", tn_shape(N), TN_F32);
  tn_dim k = tn_dim_item(count_positive(c, tn_sub(x, tn_num(c, 2))), 0, N);
  for (int i = 1; i >= 0; i--)
    k = tn_dim_item(count_positive(c, tn_sub(x, tn_num(c, i))), 0, tn_dim_add(c, k, 4));
  tn_tensor *out[] = {tn_arange(c, 0, k, 1, TN_I64)};
  tn_binding *b = bind_compiled(c, out, 1, NULL);
  for (size_t i = 0; i < 4; i++) {
    float in[N] = {1, 1, 3, 2, 3};
    for (size_t j = 5; j < 5 + i; j++) in[j] = 0.5f;
    give_x(b, N, in);
    if (i < 3) {
      check_bound(b, tn_binding_run(b));
      check_integers(b, "0", 5 + i, iota);
    } else {
      assert_int_equal(tn_binding_run(b), TN_ERR_SHAPE);
      check_text(tn_binding_message(b), "a size is 8");
      check_text(tn_binding_message(b), "it must be from 0 to 7");
    }
  }
}

/** A value outside of its bounds fails the run: states keep their contents, and the next is right.
 */
static void bounds_are_checked(void **state) {
  tn_context *c = *state;
  tn_dim n = tn_dim_var(c, "n", 1, N);
  tn_tensor *s = tn_state(tn_zeros(c, tn_shape(N), TN_F32));
  check_ok(c, tn_realize(c, NULL, 0));
  tn_scope_begin(c);
  tn_tensor *x = tn_input(c, "x", tn_shape(n), TN_F32);
  tn_assign(s, tn_add(s, tn_num(c, 1)));
  tn_dim k = tn_dim_item(count_positive(c, x), 2, tn_dim_sub(c, n, 1));
  tn_tensor *out[] = {tn_arange(c, 0, k, 1, TN_I64), tn_sum(s, TN_ALL, false)};
  tn_binding *b = bind_compiled(c, out, 2, NULL);
  check_ok(c, tn_scope_end(c));
  float in[N];
  size_t runs = 0, counts[] = {3, 1, N, 5, 0, N - 1};
  for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
    for (size_t j = 0; j < N; j++) in[j] = j < counts[i] ? 1 : -1;
    give_x(b, N, in);
    if (counts[i] < 2 || counts[i] == N) {
      assert_int_equal(tn_binding_run(b), TN_ERR_SHAPE);
      char text[64];
      snprintf(text, sizeof text, "a size is %zu, an element of", counts[i]);
      check_text(tn_binding_message(b), text);
      check_text(tn_binding_message(b), "it must be from 2 to 15");
    } else {
      check_bound(b, tn_binding_run(b));
      check_integers(b, "0", counts[i], iota);
      check_output_floats(b, "1", FLOATS((float)(++runs * N)));
    }
    float found[N];
    check_ok(c, tn_read(s, TN_F32, found, sizeof found));
    for (size_t j = 0; j < N; j++) assert_true(found[j] == (float)runs);
  }
}

/** tn_realize, tn_read and tn_dim_value compute sizes at once. */
static void sizes_are_realised(void **state) {
  tn_context *c = *state;
  tn_tensor *x = floats(c, FLOATS(1, -1, 3, 0, 7));
  tn_dim k = tn_dim_item(count_positive(c, x), 0, 5);
  int64_t value, found[3];
  tn_tensor *y = tn_arange(c, 0, k, 1, TN_I64), *z = tn_mul(y, tn_num(c, 2));
  check_ok(c, tn_read(y, TN_I64, found, sizeof found));
  assert_int_equal(found[2], 2);
  assert_int_equal(tn_type_of(y).shape.size[0], 3);
  check_ok(c, tn_read(z, TN_I64, found, sizeof found));
  assert_int_equal(found[2], 4);
  check_ok(c, tn_dim_value(c, tn_dim_add(c, k, 4), &value));
  assert_int_equal(value, 7);
  tn_dim nested = tn_dim_item(tn_sum(y, TN_ALL, false), 0, k);
  check_ok(c, tn_dim_value(c, nested, &value));
  assert_int_equal(value, 3);
  tn_dim less = tn_dim_item(tn_sum(y, TN_ALL, false), 0, 2);
  assert_int_equal(tn_dim_value(c, less, &value), TN_ERR_SHAPE);
  check_text(tn_message(c), "a size is 3, an element of a tensor; it must be from 0 to 2");
  assert_int_equal(tn_read(tn_arange(c, 0, less, 1, TN_I64), TN_I64, found, sizeof found),
                   TN_ERR_SHAPE);
  check_text(tn_message(c), "a size is 3, an element of a tensor; it must be from 0 to 2");
  assert_int_equal(tn_dim_value(c, tn_dim_var(c, "n", 0, 3), &value), TN_ERR_ARGUMENT);
  assert_int_equal(tn_dim_value(c, 5, NULL), TN_ERR_ARGUMENT);
  check_ok(c, tn_dim_value(c, 5, &value));
  assert_int_equal(value, 5);
}

static void what_is_no_size_is_refused(void **state) {
  tn_context *c = *state;
  tn_tensor *x = floats(c, FLOATS(1, 2));
  struct {
    tn_tensor *x;
    int64_t min;
    tn_dim max;
    tn_status status;
    const char *words;
  } cases[] = {
      {tn_sum(x, TN_ALL, false), 0, 1, TN_ERR_DTYPE, "a size is an integer or a bool, not f32"},
      {tn_cast(x, TN_I32), 0, 1, TN_ERR_SHAPE, "a size is one element; axis 0 has size 2"},
      {count_positive(c, x), 3, 2, TN_ERR_ARGUMENT, "the size is from 3 to 2"},
      {count_positive(c, x), 0, INT64_C(1) << 41, TN_ERR_ARGUMENT, "up to 2^40"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    int64_t value;
    tn_dim d = tn_dim_item(cases[i].x, cases[i].min, cases[i].max);
    assert_int_equal(tn_dim_value(c, d, &value), cases[i].status);
    check_text(tn_message(c), cases[i].words);
  }
  assert_int_equal(tn_type_of(tn_zeros(c, tn_shape(tn_dim_item(NULL, 0, 1)), TN_F32)).dtype,
                   TN_UNDEFINED);
}

/** States have numbers as sizes: the message names tn_realize, after which the tensor fits. */
static void states_take_realised_sizes(void **state) {
  tn_context *c = *state;
  float in[4] = {1, -1, 2, -1}, out[2];
  tn_tensor *x = tn_from_host(c, tn_shape(4), TN_F32, in, sizeof in);
  tn_tensor *y = tn_masked_select(x, tn_gt(x, tn_num(c, 0)));
  tn_tensor *s = tn_state(tn_zeros(c, tn_shape(2), TN_F32));
  assert_int_equal(tn_read(tn_state(y), TN_F32, out, sizeof out), TN_ERR_SHAPE);
  check_text(tn_message(c),
             "sizes that follow from elements are numbers once it is realised (tn_realize)");
  tn_assign(s, y);
  assert_int_equal(tn_read(s, TN_F32, out, sizeof out), TN_ERR_SHAPE);
  check_text(tn_message(c),
             "sizes that follow from elements are numbers once it is realised (tn_realize)");
  check_ok(c, tn_realize(c, &y, 1));
  tn_assign(s, y);
  check_ok(c, tn_read(tn_add(s, tn_state(y)), TN_F32, out, sizeof out));
  assert_true(out[0] == 2 && out[1] == 4);
}

/** nonzero of a matrix, and what follows from it in the same run. */
static void elements_are_selected(void **state) {
  tn_context *c = *state;
  tn_dim n = tn_dim_var(c, "n", 0, N);
  tn_tensor *x = tn_input(c, "x", tn_shape(n, 3), TN_F32);
  tn_tensor *rows = tn_gt(tn_sum(x, tn_axes(1), false), tn_num(c, 2));
  tn_tensor *out[] = {tn_nonzero(x), tn_compress(x, rows, 0),
                      tn_masked_select(x, tn_gt(x, tn_num(c, 1))),
                      tn_sum(tn_compress(x, rows, 0), TN_ALL, false)};
  const char *names[] = {"nonzero", "rows", "large", "sum"};
  tn_plan_desc desc = {sizeof desc, "test", names, TN_VARIANTS_AUTO, false, NULL, 0};
  tn_binding *b = bind_compiled(c, out, 4, &desc);
  float in[N][3], found[N * 3];
  for (size_t i = 0; i < N; i++)
    for (size_t k = 0; k < 3; k++) in[i][k] = (float)((i * 7 + k * 5) % 4 * ((i + k) % 3 != 0));
  for (size_t length = 0; length <= N; length += 4) {
    int64_t at[N * 3][2], expected[N * 3][2];
    float large[N * 3], kept[N][3], sum = 0;
    size_t n_at = 0, n_large = 0, n_kept = 0;
    for (size_t i = 0; i < length; i++) {
      for (size_t k = 0; k < 3; k++) {
        if (in[i][k]) expected[n_at][0] = (int64_t)i, expected[n_at++][1] = (int64_t)k;
        if (in[i][k] > 1) large[n_large++] = in[i][k];
      }
      float all = in[i][0] + in[i][1] + in[i][2];
      if (all > 2) memcpy(kept[n_kept++], in[i], sizeof in[i]), sum += all;
    }
    tn_binding_input(b, "x", tn_shape((tn_dim)length, 3), TN_F32, in, length * sizeof in[0]);
    check_bound(b, tn_binding_run(b));
    tn_type t = tn_binding_type(b, "nonzero");
    assert_int_equal(t.shape.size[0], n_at);
    assert_int_equal(t.shape.size[1], 2);
    check_bound(b, tn_binding_read(b, "nonzero", TN_I64, at, n_at * sizeof *at));
    assert_memory_equal(at, expected, n_at * sizeof *at);
    assert_int_equal(tn_binding_type(b, "rows").shape.size[0], n_kept);
    check_bound(b, tn_binding_read(b, "rows", TN_F32, found, n_kept * sizeof *kept));
    assert_memory_equal(found, kept, n_kept * sizeof *kept);
    check_bound(b, tn_binding_read(b, "large", TN_F32, found, n_large * sizeof *large));
    assert_memory_equal(found, large, n_large * sizeof *large);
    check_output_floats(b, "sum", FLOATS(sum));
  }
}

/** Sums along axes of computed sizes, whose terms are the same in all rows: a row of the largest
   size would be too large for the memory of a kernel's own. */
static void computed_sizes_may_be_large(void **state) {
  tn_context *c = *state;
  enum { ROWS = 4, MOST = 300000, K = 1000 };
  tn_tensor *k = tn_input(c, "k", tn_shape(1), TN_I64);
  tn_tensor *x = tn_input(c, "x", tn_shape(ROWS, MOST), TN_BOOL);
  tn_tensor *twos = tn_full(c, tn_shape(ROWS, tn_dim_item(k, 0, MOST)), TN_I64, 2);
  tn_tensor *sums = tn_cumsum(twos, 1);
  tn_tensor *out[] = {sums, tn_flip(sums, tn_axes(1)), tn_cumsum(tn_nonzero(x), 0)};
  const char *names[] = {"sums", "down", "places"};
  tn_plan_desc desc = {sizeof desc, "test", names, TN_VARIANTS_AUTO, false, NULL, 0};
  tn_binding *b = bind_compiled(c, out, 3, &desc);
  static bool in[ROWS][MOST];
  static int64_t got[ROWS][K], down[ROWS][K], places[K][2];
  int64_t size = K, sum[2] = {0, 0};
  for (int64_t i = 0; i < K; i++) in[i % ROWS][i * 250] = true;
  tn_binding_input(b, "k", tn_shape(1), TN_I64, &size, sizeof size);
  tn_binding_input(b, "x", tn_shape(ROWS, MOST), TN_BOOL, in, sizeof in);
  check_bound(b, tn_binding_run(b));
  assert_int_equal(tn_binding_type(b, "places").shape.size[0], K);
  check_bound(b, tn_binding_read(b, "sums", TN_I64, got, sizeof got));
  check_bound(b, tn_binding_read(b, "down", TN_I64, down, sizeof down));
  check_bound(b, tn_binding_read(b, "places", TN_I64, places, sizeof places));
  for (int64_t i = 0; i < ROWS * K; i++) {
    assert_int_equal(got[i / K][i % K], 2 * (i % K + 1));
    assert_int_equal(down[i / K][i % K], 2 * (K - i % K));
  }
  for (int64_t i = 0, n = 0; i < ROWS; i++)
    for (int64_t at = i; at < K; at += ROWS, n++) {
      sum[0] += i, sum[1] += at * 250;
      assert_int_equal(places[n][0], sum[0]);
      assert_int_equal(places[n][1], sum[1]);
    }
}

/* Loops. */

/** A state grows by a row in each step; its old value is emitted. */
static void add_row(void *user, tn_tensor *index, tn_tensor *const state[], tn_tensor *const x[],
                    tn_tensor *next[], tn_tensor *y[]) {
  (void)index, (void)x;
  next[0] = tn_add(state[0], user);
  y[0] = state[0];
}

/** Computed trip counts, and computed sizes of what a loop carries, emits and reads. */
static void loops_have_computed_sizes(void **state) {
  tn_context *c = *state;
  tn_tensor *x = tn_input(c, "x", tn_shape(N), TN_F32), *out[3];
  tn_dim k = tn_dim_item(count_positive(c, x), 0, N);
  tn_tensor *row = tn_arange(c, 0, k, 1, TN_I64), *init = tn_mul(row, tn_num(c, 3));
  tn_scan_desc d = TN_SCAN_DESC_INIT;
  d.body = add_row;
  d.user = row;
  d.steps = k;
  tn_scan(c, &d, &init, 1, NULL, 0, out, 1);
  out[2] = tn_sum(out[1], tn_axes(0), false);
  tn_binding *b = bind_compiled(c, out, 3, NULL);
  for (int64_t positive = 0; positive <= N; positive += 3) {
    float in[N];
    int64_t last[N], sums[N];
    for (int64_t i = 0; i < N; i++) in[i] = i < positive ? 1 : -1;
    for (int64_t i = 0; i < positive; i++) {
      last[i] = i * (3 + positive);
      sums[i] = 0;
      for (int64_t t = 0; t < positive; t++) sums[i] += i * (3 + t);
    }
    give_x(b, N, in);
    check_bound(b, tn_binding_run(b));
    check_integers(b, "0", (size_t)positive, last);
    tn_type t = tn_binding_type(b, "1");
    assert_int_equal(t.shape.size[0], positive);
    assert_int_equal(t.shape.size[1], positive);
    check_integers(b, "2", (size_t)positive, sums);
  }
}

/** The size that a step computes is no size of the loop's states. */
static void sum_of_prefix(void *user, tn_tensor *index, tn_tensor *const state[],
                          tn_tensor *const x[], tn_tensor *next[], tn_tensor *y[]) {
  (void)index, (void)x, (void)y;
  tn_dim n = tn_dim_item(state[0], 0, N);
  next[0] = tn_add(tn_sum(tn_arange(user, 0, n, 1, TN_I64), TN_ALL, false), tn_int(user, 1));
}

static void sizes_of_a_loops_steps_are_refused(void **state) {
  tn_context *c = *state;
  tn_tensor *init = tn_cast(tn_int(c, 3), TN_I64), *out[1];
  int64_t value;
  tn_scan_desc d = TN_SCAN_DESC_INIT;
  d.body = sum_of_prefix;
  d.user = c;
  d.steps = 2;
  tn_scan(c, &d, &init, 1, NULL, 0, out, 0);
  assert_int_equal(tn_read(out[0], TN_I64, &value, sizeof value), TN_ERR_UNSUPPORTED);
  check_text(tn_message(c), "a size follows from an element that a loop computes");
}

/* Shapes. */

/** A reshape to sizes that only a run knows to fit is checked by it. */
static void reshapes_are_checked(void **state) {
  tn_context *c = *state;
  tn_tensor *x = tn_input(c, "x", tn_shape(N), TN_F32);
  tn_dim k = tn_dim_item(count_positive(c, x), 1, N);
  tn_tensor *all = tn_arange(c, 0, 12, 1, TN_I64);
  tn_tensor *out[] = {tn_reshape(all, tn_shape(k, -1)), tn_reshape(all, tn_shape(-1, k)),
                      tn_sum(tn_reshape(all, tn_shape(k, tn_dim_add(c, k, 1))), tn_axes(1), false)};
  tn_binding *b = bind_compiled(c, out, 2, NULL);
  tn_binding *square = bind_compiled(c, out + 2, 1, NULL);
  for (int64_t n = 1; n <= N; n++) {
    float in[N];
    int64_t found[12];
    for (int64_t i = 0; i < N; i++) in[i] = i < n ? 1 : -1;
    give_x(b, N, in);
    give_x(square, N, in);
    if (12 % n) {
      assert_int_equal(tn_binding_run(b), TN_ERR_SHAPE);
      char message[96];
      snprintf(message, sizeof message, "do not fit together: %d is not 12", (int)(12 / n * n));
      check_text(tn_binding_message(b), message);
    } else {
      check_bound(b, tn_binding_run(b));
      assert_int_equal(tn_binding_type(b, "0").shape.size[0], n);
      assert_int_equal(tn_binding_type(b, "0").shape.size[1], 12 / n);
      assert_int_equal(tn_binding_type(b, "1").shape.size[0], 12 / n);
      check_bound(b, tn_binding_read(b, "0", TN_I64, found, sizeof found));
      for (int64_t i = 0; i < 12; i++) assert_int_equal(found[i], i);
    }
    if (n != 3) {
      assert_int_equal(tn_binding_run(square), TN_ERR_SHAPE);
    } else {
      check_bound(square, tn_binding_run(square));
      check_integers(square, "0", 3, (const int64_t[]){6, 22, 38});
    }
  }
}

/* Sizes that must be equal. */

/** The number of elements of two inputs above 0, as sizes that nothing proves to be equal. */
static void give_counts(tn_binding *b, size_t n, size_t m) {
  static float x[N], y[N];
  for (size_t i = 0; i < N; i++) {
    x[i] = i < n ? 1 : -1;
    y[i] = i < m ? 1 : -1;
  }
  give_x(b, N, x);
  check_bound(b, tn_binding_input(b, "y", tn_shape(N), TN_F32, y, sizeof y));
}

/** Operators take computed sizes that are not known to be equal: a run checks that they are. */
static void equal_sizes_are_checked(void **state) {
  tn_context *c = *state;
  tn_tensor *x = tn_input(c, "x", tn_shape(N), TN_F32), *y = tn_input(c, "y", tn_shape(N), TN_F32);
  tn_dim k = tn_dim_item(count_positive(c, x), 0, N), m = tn_dim_item(count_positive(c, y), 0, N);
  tn_tensor *f = tn_arange(c, 0, k, 1, TN_I64),
            *g = tn_mul(tn_arange(c, 0, m, 1, TN_I64), tn_int(c, 2));
  tn_tensor *sum = tn_add(f, g), *half = tn_arange(c, 0, 5, 1, TN_I64);
  tn_tensor *rows[] = {tn_reshape(f, tn_shape(1, k)), tn_reshape(g, tn_shape(1, m))};
  tn_tensor *out[] = {sum,
                      tn_sub(tn_mul(sum, f), g),
                      tn_matmul(f, g),
                      tn_sum(tn_concat(rows, 2, 0), tn_axes(0), false),
                      tn_expand(f, tn_shape(m)),
                      tn_where(tn_lt(f, tn_int(c, 2)), g, half)};
  enum { FIXED = 5 }; /* the output that has 5 elements */
  tn_binding *b = bind_compiled(c, out, FIXED, NULL),
             *fixed = bind_compiled(c, out + FIXED, 1, NULL);
  const size_t counts[][2] = {{5, 5}, {4, 4}, {5, 3}, {N, N}, {3, 5},
                              {0, 0}, {1, 1}, {1, 5}, {5, 5}};
  for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
    size_t n = counts[i][0];
    bool fits = n == counts[i][1];
    int64_t total = 0, found, expected[2][N], chosen[] = {0, 2, 2, 3, 4};
    for (int64_t j = 0; j < (int64_t)n; j++) {
      total += 2 * j * j;
      expected[0][j] = 3 * j;
      expected[1][j] = 3 * j * j - 2 * j;
    }
    give_counts(b, n, counts[i][1]);
    give_counts(fixed, n, counts[i][1]);
    assert_int_equal(tn_binding_run(b), fits ? TN_OK : TN_ERR_SHAPE);
    assert_int_equal(tn_binding_run(fixed), fits && n == 5 ? TN_OK : TN_ERR_SHAPE);
    if (!fits) check_text(tn_binding_message(b), "sizes that the run computed do not fit together");
    if (fits && n == 5) check_integers(fixed, "0", 5, chosen);
    if (!fits) continue;
    check_integers(b, "0", n, expected[0]);
    check_integers(b, "1", n, expected[1]);
    check_bound(b, tn_binding_read(b, "2", TN_I64, &found, sizeof found));
    assert_int_equal(found, total);
    check_integers(b, "3", n, expected[0]);
    check_integers(b, "4", n, iota);
  }
  assert_true(tn_type_of(tn_sub(sum, f)).shape.size[0] == tn_type_of(sum).shape.size[0]);
}

/** Realising compares the sizes at once. */
static void equal_sizes_are_realised(void **state) {
  tn_context *c = *state;
  tn_tensor *x = floats(c, FLOATS(1, -1, 3, 0, 7)), *y = floats(c, FLOATS(2, 4, -1, 6));
  tn_tensor *f = tn_arange(c, 0, tn_dim_item(count_positive(c, x), 0, 5), 1, TN_I64);
  tn_tensor *g = tn_arange(c, 0, tn_dim_item(count_positive(c, y), 0, 4), 1, TN_I64);
  tn_tensor *z = tn_arange(c, 0, tn_dim_item(tn_sum(f, TN_ALL, false), 0, 4), 1, TN_I64);
  int64_t found[3];
  check_ok(c, tn_read(tn_add(f, g), TN_I64, found, sizeof found));
  assert_int_equal(found[2], 4);
  check_ok(c, tn_read(tn_add(z, f), TN_I64, found, sizeof found));
  y = floats(c, FLOATS(2, 4));
  g = tn_arange(c, 0, tn_dim_item(count_positive(c, y), 0, 2), 1, TN_I64);
  assert_int_equal(tn_read(tn_add(z, g), TN_I64, found, sizeof found), TN_ERR_SHAPE);
}

/** The caller's memory of an output whose size is computed may be too small: the run fails when the
    others are written. */
static void memory_may_be_too_small(void **state) {
  tn_context *c = *state;
  tn_tensor *x = tn_input(c, "x", tn_shape(N), TN_F32);
  tn_dim k = tn_dim_item(count_positive(c, x), 0, N);
  tn_tensor *out[] = {tn_arange(c, 0, k, 1, TN_I64), tn_mul(x, tn_num(c, 2))};
  tn_binding *b = bind_compiled(c, out, 2, NULL);
  int64_t small[4];
  float in[N], twice[N] = {0};
  tn_binding_output(b, "0", TN_I64, small, sizeof small);
  tn_binding_output(b, "1", TN_F32, twice, sizeof twice);
  for (size_t n = 3; n <= 5; n++) {
    for (size_t i = 0; i < N; i++) in[i] = i < n ? (float)n : -1;
    give_x(b, N, in);
    if (n <= 4) check_bound(b, tn_binding_run(b));
    if (n <= 4) assert_int_equal(small[n - 1], n - 1);
    if (n > 4) assert_int_equal(tn_binding_run(b), TN_ERR_SHAPE);
    assert_true(twice[0] == (float)(2 * n));
  }
  check_text(tn_binding_message(b), "output 0 needs 40 bytes; the buffer has 32");
}

/** A carried output of a computed size is the next run's input. */
static void computed_sizes_are_carried(void **state) {
  tn_context *c = *state;
  tn_dim n = tn_dim_var(c, "n", 0, N);
  tn_tensor *x = tn_input(c, "x", tn_shape(n), TN_F32);
  tn_tensor *out = tn_sub(tn_masked_select(x, tn_gt(x, tn_num(c, 1))), tn_num(c, 1));
  tn_binding *b = bind_compiled(c, &out, 1, NULL);
  float in[N];
  for (size_t i = 0; i < N; i++) in[i] = (float)i;
  give_x(b, N, in);
  check_bound(b, tn_binding_carry(b, "0", "x"));
  for (size_t run = 1; run < N + 2; run++) {
    size_t left = run + 1 < N ? N - run - 1 : 0;
    float expected[N];
    for (size_t i = 0; i < left; i++) expected[i] = (float)(i + 1);
    check_bound(b, tn_binding_run(b));
    assert_int_equal(tn_binding_type(b, "0").shape.size[0], left);
    check_output_floats(b, "0", left, expected);
  }
}

static void add_step(void *user, tn_tensor *i, tn_tensor *const states[], tn_tensor *const x[],
                     tn_tensor *next[], tn_tensor *emitted[]) {
  (void)user, (void)x, (void)emitted;
  next[0] = tn_add(states[0], i);
}

/** A loop runs as often as a tensor has different elements, which another loop sorts. */
static void steps_are_counted_behind_a_loop(void **state) {
  tn_context *c = *state;
  tn_tensor *x = tn_input(c, "x", tn_shape(tn_dim_var(c, "n", 0, 1000)), TN_F32);
  tn_tensor *unique[4], *sum, *zero = tn_cast(tn_num(c, 0), TN_I64);
  tn_unique(x, 0, true, unique);
  tn_scan_desc d = TN_SCAN_DESC_INIT;
  d.body = add_step;
  d.steps = tn_type_of(unique[0]).shape.size[0];
  tn_scan(c, &d, &zero, 1, NULL, 0, &sum, 0);
  tn_binding *b = bind_compiled(c, &sum, 1, NULL);
  const float in[] = {1, 2, 2, 0, 1, 3, 0, 0, 5};
  const int64_t expected[] = {0, 0, 1, 1, 3, 3, 6, 6, 6, 10};
  for (size_t n = 0; n < 10; n++) {
    int64_t found;
    give_x(b, n, in);
    check_bound(b, tn_binding_run(b));
    check_bound(b, tn_binding_read(b, "0", TN_I64, &found, sizeof found));
    assert_int_equal(found, expected[n]);
  }
}

/** Where nothing is selected there is no greatest element: that run alone is refused. */
static void selections_without_an_extreme_are_refused(void **state) {
  tn_context *c = *state;
  tn_tensor *x = tn_input(c, "x", tn_shape(N), TN_F32);
  tn_tensor *y = tn_masked_select(x, tn_gt(x, tn_num(c, 0)));
  tn_tensor *out[] = {tn_argmax(y, 0, false), tn_max(y, TN_ALL, false)};
  tn_binding *b = bind_compiled(c, out, 2, NULL);
  for (size_t n = 0; n < 5; n++) {
    float in[N] = {0}, greatest;
    int64_t at;
    for (size_t i = 0; i < n; i++) in[N - n + i] = (float)(i + 1);
    give_x(b, N, in);
    assert_int_equal(tn_binding_run(b), n ? TN_OK : TN_ERR_SHAPE);
    if (!n) check_text(tn_binding_message(b), "a size is 0");
    if (!n) continue;
    check_bound(b, tn_binding_read(b, "0", TN_I64, &at, sizeof at));
    check_bound(b, tn_binding_read(b, "1", TN_F32, &greatest, sizeof greatest));
    assert_int_equal(at, n - 1);
    assert_true(greatest == (float)n);
  }
}

/* Failures and files. */

static tn_binding *bind_selection(tn_context *c) {
  tn_tensor *x = tn_input(c, "x", tn_shape(N), TN_F32);
  tn_tensor *y = tn_masked_select(x, tn_gt(x, tn_num(c, 0)));
  tn_tensor *out[] = {tn_add(y, tn_sum(y, TN_ALL, false)), tn_nonzero(x)};
  return bind_compiled(c, out, 2, NULL);
}

/** Runs with n positive elements of value n, of which each result is n + n². */
static tn_status run_selection(tn_binding *b, size_t n) {
  float in[N], expected[N];
  for (size_t i = 0; i < N; i++) in[i] = i < n ? (float)n : 0;
  for (size_t i = 0; i < n; i++) expected[i] = (float)(n + n * n);
  give_x(b, N, in);
  tn_status s = tn_binding_run(b);
  if (s != TN_OK) return s;
  check_output_floats(b, "0", n, expected);
  assert_int_equal(tn_binding_type(b, "1").shape.size[0], n);
  return s;
}

/** Elements of more than memory can have are refused with the step that stores them; 0 in any place
    makes a tensor empty. */
static void numbers_of_elements_may_overflow(void **state) {
  tn_context *c = *state;
  const int64_t most = INT64_C(1) << 40;
  tn_tensor *x = tn_input(c, "x", tn_shape(3), TN_I64);
  tn_dim size[3];
  for (int i = 0; i < 3; i++) size[i] = tn_dim_item(tn_slice(x, 0, i, i + 1, 1), 0, most);
  tn_tensor *sorted = tn_sort(tn_full(c, tn_shape(size[0], size[1], size[2]), TN_I64, 2), 0, false);
  tn_tensor *out[] = {tn_sum(sorted, TN_ALL, false)};
  tn_binding *b = bind_compiled(c, out, 1, NULL);
  const int64_t sizes[][4] = {
      {2, 3, 4, 48},      {most, most, most, -1},          {most, most, 4, -1},
      {0, 1 << 20, 4, 0}, {1 << 20, 1 << 22, 1 << 22, -1}, {3, 1, 2, 12}};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    int64_t sum;
    tn_binding_input(b, "x", tn_shape(3), TN_I64, sizes[i], 24);
    tn_status s = tn_binding_run(b);
    assert_int_equal(s, sizes[i][3] < 0 ? TN_ERR_SHAPE : TN_OK);
    if (s != TN_OK) check_text(tn_binding_message(b), "a launch size overflows");
    if (s != TN_OK) continue;
    check_bound(b, tn_binding_read(b, "0", TN_I64, &sum, sizeof sum));
    assert_int_equal(sum, sizes[i][3]);
  }
}

/* Plans of many segments. */

enum { MANY = 320, FEW = 40, ROW = 8 };

/** Runs a plan that selects from n rows, and tells the shortest time of a run and the memory of a
    binding. */
static void run_segments(size_t n, int64_t *ns, size_t *bytes) {
  static tn_tensor *out[MANY];
  static float in[MANY * ROW];
  counting memory = {0};
  tn_context *c = open_counting(&memory, "CPU");
  tn_tensor *x = tn_input(c, "x", tn_shape((tn_dim)n, ROW), TN_F32);
  for (size_t i = 0; i < n; i++) out[i] = tn_nonzero(tn_slice(x, 0, (tn_dim)i, (tn_dim)i + 1, 1));
  for (size_t i = 0; i < n * ROW; i++) in[i] = i % 3 == 0;
  tn_plan *p = NULL;
  tn_binding *b;
  check_ok(c, tn_plan_compile(c, out, n, NULL, &p));
  size_t before = memory.out;
  check_ok(c, tn_plan_bind(p, &b));
  *ns = INT64_MAX;
  for (int k = 0; k < 10; k++) {
    tn_binding_input(b, "x", tn_shape((tn_dim)n, ROW), TN_F32, in, n * ROW * sizeof *in);
    int64_t begin = clock_now_ns();
    check_bound(b, tn_binding_run(b));
    int64_t took = clock_now_ns() - begin;
    if (took < *ns) *ns = took;
  }
  *bytes = memory.out - before;
  for (size_t i = 0; i < n; i++) {
    char name[24];
    snprintf(name, sizeof name, "%zu", i);
    int64_t expected = 0;
    for (size_t k = 0; k < ROW; k++) expected += (i * ROW + k) % 3 == 0;
    tn_shape s = tn_binding_type(b, name).shape;
    assert_int_equal(s.size[0] < s.size[1] ? s.size[1] : s.size[0], expected);
  }
  tn_binding_free(b);
  assert_int_equal(tn_close(c), TN_OK);
}

/** Segments take time and memory for what becomes known in them alone: plans that have eight times
    as many take far less than 64 times as much. */
static void segments_take_what_is_theirs(void **state) {
  (void)state;
  int64_t few_ns, many_ns;
  size_t few, many;
  run_segments(FEW, &few_ns, &few);
  run_segments(MANY, &many_ns, &many);
  if (many_ns > 24 * few_ns) fail_msg("%lld ns, not %lld", (long long)many_ns, (long long)few_ns);
  if (many > 16 * few) fail_msg("%zu bytes, not %zu", many, few);
}

/** Each allocation of a run whose sizes grow fails once: the run after it is right. */
static void want_of_memory_is_survived(void **state) {
  (void)state;
  counting memory = {0};
  tn_context *c = open_counting(&memory, "CPU");
  size_t n_failed = 0;
  for (size_t k = 1;; k++) {
    tn_binding *b = bind_selection(c);
    assert_int_equal(run_selection(b, 1), TN_OK);
    memory.fail_at = atomic_load(&memory.calls) + k;
    tn_status s = run_selection(b, N);
    bool is_over = atomic_load(&memory.calls) < memory.fail_at;
    memory.fail_at = 0;
    if (s != TN_OK) assert_int_equal(s, TN_ERR_MEMORY);
    n_failed += s != TN_OK;
    assert_int_equal(run_selection(b, 3), TN_OK);
    assert_int_equal(run_selection(b, N), TN_OK);
    tn_binding_free(b);
    if (is_over) break;
  }
  assert_true(n_failed > 0);
  assert_int_equal(tn_close(c), TN_OK);
  assert_int_equal(memory.out, 0);
}

static void count_found(void *user, tn_log_level level, const char *text) {
  (void)level;
  *(int *)user += strstr(text, "found on disk") != NULL;
}

/** A plan from the disk has the same segments. */
static void plans_are_found_on_disk(void **state) {
  (void)state;
  arena a;
  diag d = {0};
  arena_init(&a, &mem_system, &d);
  tn_open_desc desc = TN_OPEN_DESC_INIT;
  int found = 0;
  desc.cache_dir = temporary_folder(&a);
  desc.logger = (tn_logger){count_found, &found, NULL};
  for (int i = 0; i < 2; i++) {
    tn_context *c = tn_open(&desc);
    tn_binding *b = bind_selection(c);
    for (size_t n = 0; n <= N; n += 5) assert_int_equal(run_selection(b, n), TN_OK);
    assert_int_equal(found, i);
    assert_int_equal(tn_close(c), TN_OK);
  }
  assert_int_equal(temporary_remove(&a, desc.cache_dir), 0);
  arena_free(&a);
}

/* Devices: the CPU, and one with streams and memory of its own. */

static int open_first(void **state) {
  tn_context *first = *state = tn_open(NULL);
  return !first || tn_backend_add(first, &ref_backend) != TN_OK;
}

static int open_ref(void **state) {
  tn_open_desc desc = TN_OPEN_DESC_INIT;
  desc.device = "REF";
  *state = tn_open(&desc);
  tn_context_info info = TN_CONTEXT_INFO_INIT;
  return !*state || tn_context_get(*state, &info) != TN_OK;
}

enum { SELECTIONS = 20 };

/** Takes the elements above 0 and subtracts a quarter from them, again and again. */
static tn_tensor *select_often(tn_context *c, tn_tensor *x) {
  for (int i = 0; i < SELECTIONS; i++)
    x = tn_add(tn_compress(x, tn_gt(x, tn_num(c, 0)), 0), tn_num(c, -0.25));
  return x;
}

/** Compiling and realising sizes that follow from sizes: the work must not double with each. */
static void selections_follow_from_selections(void **state) {
  tn_context *c = *state;
  enum { LEFT = N - SELECTIONS / 4 };
  float in[N], found[2][LEFT];
  for (size_t i = 0; i < N; i++) in[i] = (float)i;
  tn_tensor *y = select_often(c, tn_input(c, "x", tn_shape(N), TN_F32));
  tn_tensor *z = select_often(c, floats(c, N, in));
  tn_binding *b = bind_compiled(c, &y, 1, NULL);
  give_x(b, N, in);
  check_bound(b, tn_binding_run(b));
  assert_int_equal(tn_binding_type(b, "0").shape.size[0], LEFT);
  check_bound(b, tn_binding_read(b, "0", TN_F32, found[0], sizeof found[0]));
  check_ok(c, tn_read(z, TN_F32, found[1], sizeof found[1]));
  for (size_t i = 0; i < LEFT; i++) assert_true(found[0][i] == (float)i && found[1][i] == (float)i);
}

#define WITH(test) cmocka_unit_test_setup_teardown(test, open_context, close_context)
#define WITH_REF(test) \
  { #test " on REF", test, open_ref, close_context, NULL }

static void count_sums(void *user, const tn_trace_span *span) {
  int *n = user;
  *n += strstr(span->name, "scan") || strstr(span->name, "reduce");
}

/** Realising positions computes the sums of their mask once: for their number, and for them. */
static void sums_of_a_selection_are_computed_once(void **state) {
  (void)state;
  enum { LENGTH = 40000, EACH = 7 };
  int n_sums = 0;
  tn_open_desc d = TN_OPEN_DESC_INIT;
  d.tracer = (tn_tracer){count_sums, &n_sums, NULL};
  tn_context *c = tn_open(&d);
  tn_tensor *x = tn_mod(tn_arange(c, 0, LENGTH, 1, TN_I64), tn_num(c, EACH));
  tn_tensor *at = tn_nonzero(tn_eq(x, tn_num(c, 0)));
  static int64_t got[LENGTH / EACH + 1];
  enum { FOUND = sizeof got / sizeof *got };
  check_ok(c, tn_read(at, TN_I64, got, sizeof got));
  for (int64_t i = 0; i < FOUND; i++) assert_int_equal(got[i], i * EACH);
  assert_int_equal(n_sums, 1); /* of blocks, in the kernel of the running ones of these */
  check_ok(c, tn_close(c));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      WITH(sizes_follow_from_elements),
      WITH(several_sizes_are_computed),
      WITH(slices_are_clamped),
      WITH(slices_are_sliced),
      WITH(axes_are_split),
      WITH(rests_are_divided),
      WITH(states_are_written_at_elements),
      WITH(bounds_are_computed_before),
      WITH(bounds_are_checked),
      WITH(sizes_are_realised),
      WITH(what_is_no_size_is_refused),
      WITH(states_take_realised_sizes),
      WITH(elements_are_selected),
      WITH(computed_sizes_may_be_large),
      WITH(loops_have_computed_sizes),
      WITH(sizes_of_a_loops_steps_are_refused),
      WITH(reshapes_are_checked),
      WITH(equal_sizes_are_checked),
      WITH(equal_sizes_are_realised),
      WITH(memory_may_be_too_small),
      WITH(computed_sizes_are_carried),
      WITH(selections_follow_from_selections),
      cmocka_unit_test(sums_of_a_selection_are_computed_once),
      WITH(steps_are_counted_behind_a_loop),
      WITH(selections_without_an_extreme_are_refused),
      WITH(numbers_of_elements_may_overflow),
      cmocka_unit_test(segments_take_what_is_theirs),
      cmocka_unit_test(want_of_memory_is_survived),
      cmocka_unit_test(plans_are_found_on_disk),
      WITH_REF(sizes_follow_from_elements),
      WITH_REF(several_sizes_are_computed),
      WITH_REF(bounds_are_checked),
      WITH_REF(sizes_are_realised),
      WITH_REF(elements_are_selected),
      WITH_REF(loops_have_computed_sizes),
      WITH_REF(reshapes_are_checked),
      WITH_REF(equal_sizes_are_checked),
      WITH_REF(equal_sizes_are_realised),
      WITH_REF(computed_sizes_are_carried),
  };
  return cmocka_run_group_tests(tests, open_first, close_context);
}
