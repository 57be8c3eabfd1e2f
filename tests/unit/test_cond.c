/* Tests branches (tn_cond): in runs of plans and when realised one side is computed, with sizes
   that differ, nested, in and around loops, with computed sizes in a side; and what is refused. */
#include "support/tensor_check.h"

enum { N = 16 };

/** Sides for the bodies of branches. */
typedef struct sides {
  tn_tensor *yes[2], *no[2];
  size_t n;
} sides;

static void then_side(void *user, tn_tensor *out[]) {
  const sides *s = user;
  for (size_t i = 0; i < s->n; i++) out[i] = s->yes[i];
}

static void else_side(void *user, tn_tensor *out[]) {
  const sides *s = user;
  for (size_t i = 0; i < s->n; i++) out[i] = s->no[i];
}

static void choose(tn_context *c, tn_tensor *condition, sides *s, tn_tensor *out[]) {
  const tn_cond_desc d = {sizeof d, then_side, else_side, s};
  tn_cond(c, condition, &d, out, s->n);
}

static tn_tensor *chosen(tn_context *c, tn_tensor *condition, tn_tensor *yes, tn_tensor *no) {
  sides s = {{yes, NULL}, {no, NULL}, 1};
  tn_tensor *out;
  choose(c, condition, &s, &out);
  return out;
}

static void give_x(tn_binding *b, size_t n, const float *x) {
  check_bound(b, tn_binding_input(b, "x", tn_shape((tn_dim)n), TN_F32, x, n * sizeof *x));
}

static void check_output(tn_binding *b, const char *name, size_t n, const float *expected) {
  float found[N * N];
  assert_int_equal(tn_binding_type(b, name).shape.size[0], n);
  check_bound(b, tn_binding_read(b, name, TN_F32, found, n * sizeof *found));
  for (size_t i = 0; i < n; i++)
    if (found[i] != expected[i])
      fail_msg("%s: element %zu is %g, not %g", name, i, found[i], expected[i]);
}

/* Host functions count the runs of a side. */

static tn_status count_run(void *user, tn_call *call) {
  tn_array in = tn_call_in(call, 0), out = tn_call_out(call, 0);
  for (size_t i = 0; i < N; i++)
    if (i < (size_t)in.type.shape.size[0]) ((float *)out.data)[i] = ((const float *)in.data)[i] * 2;
  ++*(int *)user;
  return TN_OK;
}

static tn_tensor *counted(tn_context *c, tn_tensor *x, int *count) {
  tn_custom_desc d = TN_CUSTOM_DESC_INIT;
  tn_type t = tn_type_of(x);
  tn_tensor *out;
  d.run = count_run;
  d.user = count;
  tn_custom(c, &d, &x, 1, &t, &out, 1);
  return out;
}

static void one_side_is_computed(void **state) {
  tn_context *c = *state;
  int runs[2] = {0, 0}, expected[2] = {0, 0};
  tn_tensor *x = tn_input(c, "x", tn_shape(N), TN_F32);
  tn_tensor *on = tn_gt(tn_sum(x, TN_ALL, false), tn_num(c, 0));
  tn_tensor *shared = tn_add(x, tn_num(c, 1));
  sides s = {
      {counted(c, shared, &runs[0]), tn_mul(x, x)}, {tn_neg(counted(c, shared, &runs[1])), x}, 2};
  tn_tensor *out[3];
  choose(c, on, &s, out);
  out[2] = tn_add(out[0], shared);
  tn_binding *b = bind_compiled(c, out, 3, NULL);
  for (int k = 0; k < 5; k++) {
    float in[N], want[3][N];
    int taken = k % 3 != 1;
    for (size_t i = 0; i < N; i++) {
      in[i] = (float)(taken ? i + 1 : 0) - (float)k;
      want[0][i] = (in[i] + 1) * (taken ? 2 : -2);
      want[1][i] = taken ? in[i] * in[i] : in[i];
      want[2][i] = want[0][i] + in[i] + 1;
    }
    give_x(b, N, in);
    check_bound(b, tn_binding_run(b));
    check_output(b, "0", N, want[0]);
    check_output(b, "1", N, want[1]);
    check_output(b, "2", N, want[2]);
    expected[!taken]++;
    assert_int_equal(runs[0], expected[0]);
    assert_int_equal(runs[1], expected[1]);
  }
}

static void realising_computes_one_side(void **state) {
  tn_context *c = *state;
  int runs[2] = {0, 0};
  for (int k = 0; k < 2; k++) {
    tn_tensor *x = floats(c, FLOATS(1, 2, 3));
    tn_tensor *on = tn_gt(tn_sum(x, TN_ALL, false), tn_num(c, k ? 100 : 0));
    tn_tensor *y = chosen(c, on, counted(c, x, &runs[0]), tn_neg(counted(c, x, &runs[1])));
    check_floats(c, tn_add(y, tn_num(c, 1)), 3, k ? (float[]){-1, -3, -5} : (float[]){3, 5, 7});
    assert_int_equal(runs[0], 1);
    assert_int_equal(runs[1], k);
  }
}

/** The number of elements of x above 0, an i64. */
static tn_tensor *count_positive(tn_context *c, tn_tensor *x) {
  return tn_sum(tn_cast(tn_gt(x, tn_num(c, 0)), TN_I64), TN_ALL, false);
}

static tn_tensor *iota(tn_context *c, tn_dim n) { return tn_arange(c, 0, n, 1, TN_F32); }

static const float counting_up[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};

/** The sizes of a result are those of the side that is taken, and elements that decide sizes of the
    other are not read: a bound that they violate is no error. */
static void sides_have_sizes_of_their_own(void **state) {
  tn_context *c = *state;
  tn_tensor *x = tn_input(c, "x", tn_shape(N), TN_F32);
  tn_tensor *on = tn_gt(tn_sum(x, TN_ALL, false), tn_num(c, 0));
  tn_tensor *n = count_positive(c, x);
  tn_tensor *small = iota(c, tn_dim_item(n, 0, 4)), *other = tn_mul(x, tn_num(c, 2));
  tn_tensor *y = chosen(c, on, small, other), *out[] = {y, tn_sum(y, TN_ALL, true), tn_neg(y)};
  tn_binding *b = bind_compiled(c, out, 3, NULL);
  for (size_t k = 0; k < 12; k++) {
    float in[N], negated[N], total = 0, twice[N];
    size_t positive = k % 7;
    bool taken = k % 2;
    for (size_t i = 0; i < N; i++) in[i] = i < positive ? (taken ? 100 : 1) : -2;
    for (size_t i = 0; i < N; i++) twice[i] = 2 * in[i];
    taken = positive && taken;
    give_x(b, N, in);
    if (taken && positive > 4) {
      assert_int_equal(tn_binding_run(b), TN_ERR_SHAPE);
      check_text(tn_binding_message(b), "it must be from 0 to 4");
      continue;
    }
    size_t size = taken ? positive : N;
    const float *want = taken ? counting_up : twice;
    for (size_t i = 0; i < size; i++) total += want[i], negated[i] = -want[i];
    check_bound(b, tn_binding_run(b));
    check_output(b, "0", size, want);
    check_output(b, "1", 1, &total);
    check_output(b, "2", size, negated);
  }
  for (int k = 0; k < 2; k++) { /* realised */
    x = floats(c, FLOATS(1, 2, 3, 4, 5));
    on = tn_gt(tn_sum(x, TN_ALL, false), tn_num(c, k ? 100 : 0));
    y = chosen(c, on, x, iota(c, tn_dim_item(count_positive(c, x), 0, 4)));
    if (!k) check_floats(c, y, 5, (float[]){1, 2, 3, 4, 5});
    float found[N];
    if (k) assert_int_equal(tn_read(y, TN_F32, found, 20), TN_ERR_SHAPE);
  }
}

/** A variant for sizes that both sides have alike knows the result's before its run. */
static void sides_may_have_equal_sizes(void **state) {
  tn_context *c = *state;
  tn_dim n = tn_dim_var(c, "n", 0, N), m = tn_dim_var(c, "m", 0, N);
  tn_tensor *x = tn_input(c, "x", tn_shape(n), TN_F32), *w = tn_input(c, "w", tn_shape(m), TN_F32);
  tn_tensor *is_positive = tn_gt(tn_sum(x, TN_ALL, false), tn_num(c, 0));
  tn_tensor *y = chosen(c, is_positive, tn_neg(x), tn_mul(w, tn_num(c, 2)));
  tn_binding *b = bind_compiled(c, &y, 1, NULL);
  float in[] = {1, 2, 3, 4}, less[] = {-1, -2, -3, -4}, doubled[] = {2, 4, 6, 8}, out[4];
  const struct {
    size_t n, m;
    const float *x, *expected;
  } runs[] = {{4, 4, in, less}, {4, 4, less, doubled}, {4, 3, in, less},
              {4, 4, in, less}, {3, 3, less, doubled}, {0, 0, in, NULL}};
  check_bound(b, tn_binding_output(b, "0", TN_F32, out, sizeof out));
  for (size_t i = 0; i < sizeof runs / sizeof *runs; i++) {
    give_x(b, runs[i].n, runs[i].x);
    check_bound(b, tn_binding_input(b, "w", tn_shape((tn_dim)runs[i].m), TN_F32, in,
                                    runs[i].m * sizeof *in));
    check_bound(b, tn_binding_run(b));
    assert_int_equal(tn_binding_type(b, "0").shape.size[0], runs[i].n);
    for (size_t k = 0; k < runs[i].n; k++) assert_true(out[k] == runs[i].expected[k]);
  }
}

/** A side of another size than its values allow is not computed, and has no memory. */
static void sizes_of_the_other_side_may_be_impossible(void **state) {
  tn_context *c = *state;
  tn_dim n = tn_dim_var(c, "n", 1, N);
  tn_tensor *x = tn_input(c, "x", tn_shape(n), TN_F32);
  tn_tensor *k = count_positive(c, x);
  tn_dim size = tn_dim_item(k, 3, n);
  tn_tensor *big = tn_matmul(tn_reshape(iota(c, size), tn_shape(size, 1)),
                             tn_reshape(iota(c, size), tn_shape(1, size)));
  tn_tensor *yes = tn_sum(tn_softmax(big, 1), TN_ALL, false), *no = tn_sum(x, TN_ALL, false);
  tn_tensor *y = chosen(c, tn_gt(k, tn_int(c, 2)), yes, no);
  tn_binding *b = bind_compiled(c, &y, 1, NULL);
  for (size_t positive = 0; positive < 6; positive++) {
    float in[N], want = positive > 2 ? (float)positive : 0;
    for (size_t i = 0; i < 7; i++) {
      in[i] = i < positive ? 2 : -1;
      if (positive <= 2) want += in[i];
    }
    give_x(b, 7, in);
    check_bound(b, tn_binding_run(b));
    float found;
    check_bound(b, tn_binding_read(b, "0", TN_F32, &found, sizeof found));
    assert_true(found > want - 1e-4f && found < want + 1e-4f);
  }
}

/** An element that is read outside of a side, too, has no bounds there but its own: those of the
    side fail a run that takes the side, by a condition that is given or computed. */
static void bounds_of_one_side_are_its_own(void **state) {
  tn_context *c = *state;
  tn_tensor *x = tn_input(c, "x", tn_shape(N), TN_F32), *k = count_positive(c, x);
  tn_tensor *given = tn_input(c, "given", TN_SCALAR, TN_BOOL), *is_many = tn_ge(k, tn_int(c, 2));
  tn_tensor *yes = iota(c, tn_dim_item(k, 2, 5)), *no = tn_full(c, tn_shape(1), TN_F32, 9);
  for (int i = 0; i < 6; i++) {
    bool is_given = i % 2, reads_all = i / 2;
    tn_tensor *out[] = {chosen(c, is_given ? given : is_many, yes, no),
                        iota(c, tn_dim_item(k, 0, 9)), k};
    tn_binding *b = bind_compiled(c, out, 1 + (size_t)i / 2, NULL);
    for (int64_t n = 0; n < 11; n++) {
      float in[N];
      bool takes = is_given ? n % 3 : n >= 2, fits = n >= 2 && n <= 5;
      for (int64_t j = 0; j < N; j++) in[j] = j < n ? 1 : -1;
      give_x(b, N, in);
      if (is_given)
        check_bound(b, tn_binding_input(b, "given", TN_SCALAR, TN_BOOL, &takes, sizeof takes));
      if ((takes && !fits) || (reads_all && n > 9)) {
        assert_int_equal(tn_binding_run(b), TN_ERR_SHAPE);
        check_text(tn_binding_message(b), "it must be from");
        continue;
      }
      check_bound(b, tn_binding_run(b));
      assert_int_equal(tn_binding_type(b, "0").shape.size[0], takes ? n : 1);
      if (reads_all) assert_int_equal(tn_binding_type(b, "1").shape.size[0], n);
    }
  }
}

/** An element that both sides read, with other bounds, is checked by those of the side taken: in
    plans of data, when realised, and where a condition is an input of the plan. */
static void bounds_of_sides_differ(void **state) {
  tn_context *c = *state;
  for (int64_t positive = 2; positive <= 5; positive += 3) {
    float in[N], found[N], expected[] = {0, 1, 2, 3, 4};
    for (int64_t i = 0; i < N; i++) in[i] = i < positive ? 1 : -1;
    tn_tensor *k = count_positive(c, tn_from_host(c, tn_shape(N), TN_F32, in, sizeof in));
    tn_tensor *few = iota(c, tn_dim_item(k, 0, 3)), *many = tn_neg(iota(c, tn_dim_item(k, 0, 9)));
    tn_tensor *given = tn_input(c, "given", TN_SCALAR, TN_BOOL), *out[2];
    out[0] = chosen(c, tn_le(k, tn_int(c, 3)), few, many);
    out[1] = chosen(c, given, few, many);
    tn_binding *b = bind_compiled(c, out, 2, NULL);
    bool is_few = positive <= 3;
    for (size_t i = 0; i < 5 && !is_few; i++) expected[i] = -expected[i];
    check_bound(b, tn_binding_input(b, "given", TN_SCALAR, TN_BOOL, &is_few, sizeof is_few));
    check_bound(b, tn_binding_run(b));
    check_output(b, "0", (size_t)positive, expected);
    check_output(b, "1", (size_t)positive, expected);
    check_ok(c, tn_read(out[0], TN_F32, found, (size_t)positive * sizeof *found));
    for (int64_t i = 0; i < positive; i++) assert_true(found[i] == expected[i]);
    is_few = true;
    check_bound(b, tn_binding_input(b, "given", TN_SCALAR, TN_BOOL, &is_few, sizeof is_few));
    assert_int_equal(tn_binding_run(b), positive > 3 ? TN_ERR_SHAPE : TN_OK);
  }
}

/** Values of the other side that an element and something else would read are not computed. */
static void shared_values_are_of_the_side_taken(void **state) {
  tn_context *c = *state;
  static const float data[] = {5, 3, 1, 3, 9};
  tn_tensor *x = tn_from_host(c, tn_shape(5), TN_F32, data, sizeof data);
  tn_tensor *above = tn_masked_select(x, tn_gt(x, tn_num(c, 2))), *sums = tn_cumsum(above, 0);
  for (int i = 0; i < 2; i++) {
    tn_tensor *two = tn_full(c, tn_shape(2), TN_F32, 1.5), *out[2];
    sides s = {{two, tn_num(c, 8)}, {sums, tn_sum(sums, TN_ALL, false)}, 2};
    choose(c, tn_from_host(c, TN_SCALAR, TN_BOOL, &(bool){!i}, 1), &s, out);
    tn_tensor *total = tn_cast(tn_sum(out[0], TN_ALL, false), TN_I64);
    tn_dim size = tn_dim_item(tn_mod(total, tn_int(c, 5)), 0, 5);
    float found[5];
    check_ok(c, tn_read(tn_add(iota(c, size), out[1]), TN_F32, found, (i ? 4 : 3) * sizeof *found));
    assert_true(found[0] == (i ? 44 : 8));
  }
}

/** A size that is chosen between two bounds another one, of which one side is out of its own. */
static void bounds_are_chosen(void **state) {
  tn_context *c = *state;
  int count = 0;
  tn_tensor *x = tn_input(c, "x", tn_shape(N), TN_F32), *k = count_positive(c, x);
  tn_tensor *given = tn_input(c, "given", TN_SCALAR, TN_BOOL);
  tn_tensor *yes = counted(c, iota(c, tn_dim_item(k, 2, 5)), &count);
  tn_tensor *y = chosen(c, given, yes, tn_full(c, tn_shape(3), TN_F32, 9));
  tn_tensor *above = tn_masked_select(y, tn_gt(y, tn_num(c, 1)));
  tn_binding *b = bind_compiled(c, &above, 1, NULL);
  for (size_t i = 0; i < 4; i++) {
    bool takes = i % 2;
    float in[N] = {i < 2, i < 2, 1, 0};
    give_x(b, N, in);
    check_bound(b, tn_binding_input(b, "given", TN_SCALAR, TN_BOOL, &takes, sizeof takes));
    if (i == 3) {
      assert_int_equal(tn_binding_run(b), TN_ERR_SHAPE);
      check_text(tn_binding_message(b), "a size is 1, an element of a tensor; it must be from 2");
      continue;
    }
    check_bound(b, tn_binding_run(b));
    check_output(b, "0", takes ? 2 : 3, takes ? (float[]){2, 4} : (float[]){9, 9, 9});
  }
  assert_int_equal(count, 1);
}

/** Where only the size of a result is used, a run neither computes nor checks the side that is not
    taken: in plans and when evaluated. */
static void sizes_of_results_are_of_the_side_taken(void **state) {
  tn_context *c = *state;
  int count = 0;
  const float data[N] = {1, 1, 1, 1, 1, 1, 1};
  for (int i = 0; i < 4; i++) {
    bool is_given = i % 2, takes = i < 2; /* 7 is out of bounds where taken */
    tn_tensor *x = is_given ? tn_input(c, "x", tn_shape(N), TN_F32)
                            : tn_from_host(c, tn_shape(N), TN_F32, data, sizeof data);
    tn_tensor *on = is_given ? tn_input(c, "given", TN_SCALAR, TN_BOOL)
                             : tn_from_host(c, TN_SCALAR, TN_BOOL, &takes, sizeof takes);
    tn_tensor *above = tn_masked_select(counted(c, x, &count), tn_gt(x, tn_num(c, 0)));
    tn_dim k = tn_dim_item(count_positive(c, x), 2, 5);
    tn_tensor *yes = tn_slice(above, 0, 0, k, 1), *y = chosen(c, on, yes, iota(c, 3));
    tn_dim size = tn_type_of(y).shape.size[0];
    tn_tensor *of_size = tn_add(iota(c, tn_dim_div(c, size, 2)), tn_num(c, 1));
    float found = 0;
    count = 0;
    if (!is_given) {
      tn_status s = tn_read(of_size, TN_F32, &found, sizeof found);
      assert_int_equal(s, takes ? TN_ERR_SHAPE : TN_OK);
      assert_true(found == (takes ? 0 : 1) && (takes || !count));
      continue;
    }
    tn_binding *b = bind_compiled(c, &of_size, 1, NULL);
    give_x(b, N, data);
    check_bound(b, tn_binding_input(b, "given", TN_SCALAR, TN_BOOL, &takes, sizeof takes));
    assert_int_equal(tn_binding_run(b), takes ? TN_ERR_SHAPE : TN_OK);
    if (!takes) check_output(b, "0", 1, (float[]){1});
    assert_true(takes || !count);
  }
}

static void double_it(void *user, tn_tensor *index, tn_tensor *const state[], tn_tensor *const x[],
                      tn_tensor *next[], tn_tensor *y[]) {
  (void)index, (void)x, (void)y;
  tn_tensor *twice = tn_mul(state[0], tn_num(user, 2));
  next[0] = twice;
}

typedef struct body {
  tn_context *c;
  tn_tensor *on;
} body;

/** A loop that comes after a branch, as those of sorts are, needs the side taken alone. */
static void loops_read_the_side_taken(void **state) {
  tn_context *c = *state;
  int count = 0;
  tn_tensor *x = tn_input(c, "x", tn_shape(N), TN_F32);
  tn_tensor *given = tn_input(c, "given", TN_SCALAR, TN_BOOL);
  tn_dim k = tn_dim_item(tn_cast(tn_sum(counted(c, x, &count), TN_ALL, false), TN_I64), 0, 4000);
  tn_tensor *y = chosen(c, given, iota(c, k), iota(c, 3)), *out[3] = {tn_sort(y, 0, true)};
  tn_scan_desc d = TN_SCAN_DESC_INIT;
  d.body = double_it;
  d.user = c;
  d.steps = 2;
  tn_scan(c, &d, &y, 1, NULL, 0, out + 1, 0);
  d.steps = tn_type_of(y).shape.size[0];
  tn_tensor *ones = tn_full(c, tn_shape(2), TN_F32, 1);
  tn_scan(c, &d, &ones, 1, NULL, 0, out + 2, 0);
  for (size_t i = 0; i < 3; i++) {
    tn_binding *b = bind_compiled(c, out + i, 1, NULL);
    for (int round = 0; round < 3; round++) {
      bool takes = round > 0;
      float in[N] = {round == 1 ? 1 : 3000};
      count = 0;
      give_x(b, N, in);
      check_bound(b, tn_binding_input(b, "given", TN_SCALAR, TN_BOOL, &takes, sizeof takes));
      assert_int_equal(tn_binding_run(b), round == 2 ? TN_ERR_SHAPE : TN_OK);
      assert_true(takes || !count);
      if (round == 2) continue;
      const float want[2][3][3] = {{{2, 1, 0}, {0, 4, 8}, {8, 8}}, {{1, 0}, {0, 4}, {4, 4}}};
      check_output(b, "0", i == 2 || takes ? 2 : 3, want[takes][i]);
    }
  }
}

/** A side of a branch may be in as many others as the cases of a switch. */
static void branches_make_a_switch(void **state) {
  enum { CASES = 40 };
  tn_context *c = *state;
  tn_tensor *x = tn_input(c, "x", tn_shape(N), TN_F32);
  tn_tensor *which = tn_input(c, "which", TN_SCALAR, TN_I64);
  tn_tensor *down = tn_neg(tn_cumsum(x, 0)), *up = down;
  for (int i = 0; i < CASES; i++) {
    tn_tensor *side = tn_cumsum(tn_mul(x, tn_num(c, i)), 0);
    down = chosen(c, tn_eq(which, tn_int(c, i)), side, down);
    up = chosen(c, tn_ne(which, tn_int(c, i)), up, side);
  }
  tn_binding *b = bind_compiled(c, (tn_tensor *[]){down, up}, 2, NULL);
  float in[N], expected[N];
  for (size_t i = 0; i < N; i++) in[i] = 1;
  give_x(b, N, in);
  for (int64_t i = -1; i <= CASES; i += 3) {
    for (int64_t k = 0; k < N; k++) expected[k] = (float)((k + 1) * (i < 0 || i == CASES ? -1 : i));
    check_bound(b, tn_binding_input(b, "which", TN_SCALAR, TN_I64, &i, sizeof i));
    check_bound(b, tn_binding_run(b));
    check_output(b, "0", N, expected);
    check_output(b, "1", N, expected);
  }
}

/** The greatest of n³ sums, which are stored. */
static tn_tensor *max_of_cube(tn_tensor *y, tn_dim n, int axis) {
  tn_tensor *cube = tn_mul(tn_reshape(y, tn_shape(n, 1, 1)),
                           tn_mul(tn_reshape(y, tn_shape(1, n, 1)), tn_reshape(y, tn_shape(n))));
  tn_tensor *sums = tn_cumsum(tn_cumsum(cube, axis + 1), axis);
  return tn_max(tn_mul(sums, tn_flip(sums, tn_axes(1))), TN_ALL, false);
}

/** Sizes of the other side may overflow, whether the condition is an input or computed; those of
   the side that is taken fail the run, which names the step. */
static void sizes_of_the_other_side_may_overflow(void **state) {
  enum { SMALL = 4, LARGE = 3 << 20 };
  tn_context *c = *state;
  static int8_t in[LARGE];
  memset(in, 1, sizeof in);
  tn_dim n = tn_dim_var(c, "n", 1, 1 << 23);
  tn_tensor *x = tn_input(c, "x", tn_shape(n), TN_I8), *y = tn_cast(x, TN_I64);
  tn_tensor *total = tn_sum(y, TN_ALL, false);
  tn_tensor *given = tn_input(c, "given", TN_SCALAR, TN_BOOL);
  tn_tensor *is_small = tn_lt(total, tn_int(c, 100));
  tn_tensor *out[] = {chosen(c, given, max_of_cube(y, n, 0), total),
                      chosen(c, is_small, max_of_cube(y, n, 1), tn_neg(total))};
  tn_binding *b = bind_compiled(c, out, 2, NULL);
  static const int64_t sizes[] = {SMALL, LARGE, SMALL, LARGE};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    int64_t found[2], size = sizes[i];
    bool takes = size == SMALL;
    check_bound(b, tn_binding_input(b, "x", tn_shape(size), TN_I8, in, (size_t)size));
    for (int k = 0; k < 2; k++) { /* first the side that has no size */
      bool flag = takes || !k;
      check_bound(b, tn_binding_input(b, "given", TN_SCALAR, TN_BOOL, &flag, sizeof flag));
      if (flag != takes) {
        assert_int_equal(tn_binding_run(b), TN_ERR_SHAPE);
        check_text(tn_binding_message(b), "a launch size overflows: 9895604649984 * 3145728");
        check_text(tn_binding_message(b), "scan: ");
        continue;
      }
      check_bound(b, tn_binding_run(b));
      check_bound(b, tn_binding_read(b, "0", TN_I64, &found[0], sizeof *found));
      check_bound(b, tn_binding_read(b, "1", TN_I64, &found[1], sizeof *found));
      assert_int_equal(found[0], takes ? 6 * SMALL * SMALL : size);
      assert_int_equal(found[1], takes ? 6 * SMALL * SMALL : -size);
    }
  }
}

static void branches_nest(void **state) {
  tn_context *c = *state;
  int runs = 0;
  tn_tensor *x = tn_input(c, "x", tn_shape(N), TN_F32), *sum = tn_sum(x, TN_ALL, false);
  tn_tensor *inner =
      chosen(c, tn_gt(tn_max(x, TN_ALL, false), tn_num(c, 5)), counted(c, x, &runs), iota(c, 3));
  tn_tensor *y = chosen(c, tn_gt(sum, tn_num(c, 0)), inner, tn_sub(x, tn_num(c, 1)));
  tn_binding *b = bind_compiled(c, &y, 1, NULL);
  int expected = 0;
  for (int k = 0; k < 4; k++) {
    float in[N], want[N];
    bool outer = k & 1, is_high = k & 2;
    for (size_t i = 0; i < N; i++) in[i] = outer ? 1 : -1;
    if (is_high) in[3] = 6;
    for (size_t i = 0; i < N; i++)
      want[i] = !outer ? in[i] - 1 : is_high ? in[i] * 2 : counting_up[i];
    give_x(b, N, in);
    check_bound(b, tn_binding_run(b));
    check_output(b, "0", outer && !is_high ? 3 : N, want);
    expected += outer && is_high;
    assert_int_equal(runs, expected);
  }
}

static void add_or_double(void *user, tn_tensor *index, tn_tensor *const state[],
                          tn_tensor *const x[], tn_tensor *next[], tn_tensor *y[]) {
  const body *k = user;
  (void)index, (void)x, (void)y;
  next[0] =
      chosen(k->c, k->on, tn_add(state[0], tn_num(k->c, 1)), tn_mul(state[0], tn_num(k->c, 2)));
}

/** A loop in a branch is skipped as a whole; in a loop, a branch may be taken that a condition from
    outside chooses. */
static void loops_and_branches_nest(void **state) {
  tn_context *c = *state;
  tn_tensor *x = tn_input(c, "x", tn_shape(N), TN_F32), *loop, *out[2];
  tn_tensor *on = tn_gt(tn_sum(x, TN_ALL, false), tn_num(c, 0));
  body k = {c, on};
  tn_scan_desc d = TN_SCAN_DESC_INIT;
  d.body = double_it;
  d.user = c;
  d.steps = 5;
  tn_scan(c, &d, &x, 1, NULL, 0, &loop, 0);
  out[0] = chosen(c, on, loop, tn_neg(x));
  d.body = add_or_double;
  d.user = &k;
  tn_scan(c, &d, &x, 1, NULL, 0, out + 1, 0);
  tn_binding *b = bind_compiled(c, out, 2, NULL);
  for (int round = 0; round < 4; round++) {
    float in[N], want[2][N];
    for (size_t i = 0; i < N; i++) {
      in[i] = round % 2 ? 3 : -1;
      want[0][i] = round % 2 ? 96 : 1;
      want[1][i] = round % 2 ? 8 : -32;
    }
    give_x(b, N, in);
    check_bound(b, tn_binding_run(b));
    check_output(b, "0", N, want[0]);
    check_output(b, "1", N, want[1]);
  }
}

static void add_or_halve(void *user, tn_tensor *index, tn_tensor *const state[],
                         tn_tensor *const x[], tn_tensor *next[], tn_tensor *y[]) {
  (void)index, (void)x, (void)y;
  tn_tensor *on = tn_lt(tn_sum(state[0], TN_ALL, false), tn_num(user, 50));
  next[0] =
      chosen(user, on, tn_add(state[0], tn_num(user, 3)), tn_mul(state[0], tn_num(user, 0.5)));
}

/** A condition that changes from step to step. */
static void steps_of_a_loop_choose(void **state) {
  tn_context *c = *state;
  tn_tensor *x = floats(c, FLOATS(1, 2, 4)), *out;
  float want[] = {1, 2, 4};
  tn_scan_desc d = TN_SCAN_DESC_INIT;
  d.body = add_or_halve;
  d.user = c;
  d.steps = 9;
  tn_scan(c, &d, &x, 1, NULL, 0, &out, 0);
  for (int t = 0; t < 9; t++) {
    bool adds = want[0] + want[1] + want[2] < 50;
    for (int i = 0; i < 3; i++) want[i] = adds ? want[i] + 3 : want[i] / 2;
  }
  check_floats(c, out, 3, want);
}

/** A run that fails in the side that it takes leaves states as they were. */
static void failed_runs_leave_states(void **state) {
  tn_context *c = *state;
  tn_tensor *s = tn_state(tn_zeros(c, tn_shape(N), TN_F32));
  check_ok(c, tn_realize(c, NULL, 0));
  tn_scope_begin(c);
  tn_tensor *x = tn_input(c, "x", tn_shape(N), TN_F32), *n = count_positive(c, x);
  tn_tensor *sum = tn_sum(iota(c, tn_dim_item(n, 0, 4)), TN_ALL, false);
  tn_tensor *on = tn_gt(tn_sum(x, TN_ALL, false), tn_num(c, 0));
  tn_tensor *next = chosen(c, on, tn_add(s, sum), tn_sub(s, tn_num(c, 1))), *out[] = {next};
  tn_assign(s, next);
  tn_binding *b = bind_compiled(c, out, 1, NULL);
  check_ok(c, tn_scope_end(c));
  float expected = 0;
  for (size_t k = 0; k < 8; k++) {
    float in[N], found[N];
    bool taken = k % 2;
    for (size_t i = 0; i < N; i++) in[i] = i < k ? (taken ? 100 : 1) : taken ? -1 : -20;
    give_x(b, N, in);
    bool fails = taken && k > 4;
    assert_int_equal(tn_binding_run(b), fails ? TN_ERR_SHAPE : TN_OK);
    if (!fails) expected += taken ? (float)(k * (k - 1) / 2) : -1;
    check_ok(c, tn_read(s, TN_F32, found, sizeof found));
    for (size_t i = 0; i < N; i++) assert_true(found[i] == expected);
  }
}

/** A condition on a size that varies, and one that is known. */
static void conditions_may_be_known(void **state) {
  tn_context *c = *state;
  int runs = 0;
  tn_dim n = tn_dim_var(c, "n", 1, N);
  tn_tensor *x = tn_input(c, "x", tn_shape(n), TN_F32);
  tn_tensor *length = tn_sum(tn_cast(tn_eq(x, x), TN_I64), TN_ALL, false);
  tn_tensor *out[] = {chosen(c, tn_lt(length, tn_int(c, 5)), tn_neg(x), tn_mul(x, x)),
                      chosen(c, tn_cast(tn_int(c, 1), TN_BOOL), x, counted(c, x, &runs))};
  tn_binding *b = bind_compiled(c, out, 2, NULL);
  float in[N], negated[N], squares[N];
  for (size_t i = 0; i < N; i++) {
    in[i] = (float)i + 1;
    negated[i] = -in[i];
    squares[i] = in[i] * in[i];
  }
  for (size_t size = 1; size <= N; size += 3) {
    give_x(b, size, in);
    check_bound(b, tn_binding_run(b));
    check_output(b, "0", size, size < 5 ? negated : squares);
    check_output(b, "1", size, in);
  }
  assert_int_equal(runs, 0);
}

/* Misuse. */

static void leave_unset(void *user, tn_tensor *out[]) { (void)user, (void)out; }

static void leave_scope_open(void *user, tn_tensor *out[]) {
  tn_scope_begin(user);
  out[0] = tn_num(user, 1);
}

static void assign_state(void *user, tn_tensor *out[]) {
  tn_assign(user, tn_neg(user));
  out[0] = user;
}

static void misuse_is_refused(void **state) {
  tn_context *c = *state;
  tn_tensor *x = floats(c, FLOATS(1, 2)), *on = tn_gt(x, tn_num(c, 0)), *out;
  tn_tensor *one = tn_gt(tn_sum(x, TN_ALL, false), tn_num(c, 0)), *s = tn_state(x);
  struct {
    tn_tensor *condition, *yes, *no;
    tn_status status;
    const char *words;
  } cases[] = {
      {x, x, x, TN_ERR_DTYPE, "the condition is f32, expected bool"},
      {on, x, x, TN_ERR_SHAPE, "the condition is one element; axis 0 has size 2"},
      {one, x, tn_cast(x, TN_I32), TN_ERR_DTYPE, "out[0] is f32 in one branch and i32"},
      {one, x, tn_sum(x, TN_ALL, false), TN_ERR_SHAPE,
       "out[0] has shape 2 in one branch and scalar"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    float found[2];
    out = chosen(c, cases[i].condition, cases[i].yes, cases[i].no);
    assert_int_equal(tn_read(out, TN_F32, found, sizeof found), cases[i].status);
    check_text(tn_message(c), cases[i].words);
  }
  const struct {
    tn_cond_desc d;
    size_t n;
    const char *words;
  } bodies[] = {
      {{sizeof(tn_cond_desc), NULL, leave_unset, NULL}, 1, "the body of a branch is NULL"},
      {{sizeof(tn_cond_desc), leave_unset, leave_unset, NULL}, 0, "1 to 65536 results"},
      {{sizeof(tn_cond_desc), leave_unset, leave_unset, NULL}, 1, "the body left out[0] unset"},
      {{sizeof(tn_cond_desc), leave_scope_open, leave_scope_open, c}, 1, "left a scope open"},
      {{sizeof(tn_cond_desc), assign_state, assign_state, s},
       1,
       "cannot be assigned to in a branch"},
  };
  for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++) {
    out = NULL;
    tn_cond(c, one, &bodies[i].d, &out, bodies[i].n);
    if (bodies[i].n) assert_int_equal(tn_type_of(out).dtype, i == 4 ? TN_F32 : TN_UNDEFINED);
    check_text(tn_message(c), bodies[i].words);
  }
}

/** A failed allocation anywhere in a run leaves nothing behind; the next run is right. */
static void memory_may_run_out(void **state) {
  (void)state;
  size_t fails = 0;
  for (size_t at = 1; at < 40; at++) {
    counting k = {0};
    tn_context *c = open_counting(&k, NULL);
    tn_tensor *x = tn_input(c, "x", tn_shape(N), TN_F32);
    tn_tensor *on = tn_gt(tn_sum(x, TN_ALL, false), tn_num(c, 0));
    tn_dim n = tn_dim_item(count_positive(c, x), 0, N);
    tn_tensor *yes = tn_sum(tn_reshape(iota(c, n), tn_shape(n, 1)), TN_ALL, false);
    tn_tensor *y = chosen(c, on, yes, tn_sum(x, TN_ALL, false));
    tn_binding *b = bind_compiled(c, &y, 1, NULL);
    float in[N], want = 120, found = 0;
    for (size_t i = 0; i < N; i++) in[i] = 1;
    give_x(b, N, in);
    k.fail_at = k.calls + at;
    tn_status s = tn_binding_run(b);
    k.fail_at = 0;
    if (s != TN_OK) assert_int_equal(s, TN_ERR_MEMORY);
    fails += s != TN_OK;
    check_bound(b, tn_binding_run(b));
    check_bound(b, tn_binding_read(b, "0", TN_F32, &found, sizeof found));
    assert_true(found == want);
    assert_int_equal(tn_close(c), TN_OK);
    assert_int_equal(k.out, 0);
    if (s == TN_OK && at > 5) break;
  }
  assert_true(fails);
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, open_context, close_context)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(one_side_is_computed),
      TEST(realising_computes_one_side),
      TEST(sides_have_sizes_of_their_own),
      TEST(sides_may_have_equal_sizes),
      TEST(sizes_of_the_other_side_may_be_impossible),
      TEST(bounds_of_one_side_are_its_own),
      TEST(bounds_of_sides_differ),
      TEST(shared_values_are_of_the_side_taken),
      TEST(bounds_are_chosen),
      TEST(sizes_of_results_are_of_the_side_taken),
      TEST(loops_read_the_side_taken),
      TEST(branches_make_a_switch),
      TEST(sizes_of_the_other_side_may_overflow),
      TEST(branches_nest),
      TEST(loops_and_branches_nest),
      TEST(steps_of_a_loop_choose),
      TEST(failed_runs_leave_states),
      TEST(conditions_may_be_known),
      TEST(misuse_is_refused),
      TEST(memory_may_run_out),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
