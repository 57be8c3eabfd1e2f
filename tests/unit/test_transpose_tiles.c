/* Tests cache-blocked transposes: random permutations of three axes, of sizes that fill tiles and
   of others, also dynamic ones, against plain loops, for one to three threads and several types. */
#include "support/tensor_check.h"

enum { RANK = 3, MOST = 80 * 80 * 80, CASES = 60 };

typedef struct layout {
  size_t size[RANK];
  int32_t order[RANK]; /* axis i of the result is axis order[i] of x */
  bool is_open;        /* true: the size of the first axis is a variable */
} layout;

static uint32_t random_below(uint32_t *state, uint32_t n) {
  *state = *state * 1664525 + 1013904223;
  return (*state >> 8) % n;
}

static layout random_layout(uint32_t *state) {
  layout l = {.order = {0, 1, 2}, .is_open = random_below(state, 4) == 0};
  for (size_t i = 0; i < RANK; i++) {
    l.size[i] = 1 + random_below(state, random_below(state, 2) ? 80 : 6);
    size_t other = random_below(state, (uint32_t)i + 1);
    int32_t axis = l.order[i];
    l.order[i] = l.order[other];
    l.order[other] = axis;
  }
  return l;
}

/** Returns the position in x of element i of the result. */
static size_t place(const layout *l, size_t i) {
  size_t at[RANK], to = 0;
  for (size_t k = RANK; k-- > 0;) {
    size_t n = l->size[l->order[k]];
    at[l->order[k]] = i % n;
    i /= n;
  }
  for (size_t k = 0; k < RANK; k++) to = to * l->size[k] + at[k];
  return to;
}

static tn_shape shape_of(tn_context *c, const layout *l) {
  tn_dim first = (tn_dim)l->size[0];
  if (l->is_open) first = tn_dim_var(c, "rows", 1, 4096);
  return tn_shape(first, (tn_dim)l->size[1], (tn_dim)l->size[2]);
}

static tn_tensor *turned(tn_tensor *x, const layout *l) {
  return tn_permute(x, tn_axes(l->order[0], l->order[1], l->order[2]));
}

/** Checks the permuted x; twice the permuted x plus y; and both in one plan. */
static void check_layout(tn_context *c, const layout *l, tn_dtype t) {
  static double x[MOST], y[MOST], one[MOST], two[MOST];
  size_t n = l->size[0] * l->size[1] * l->size[2];
  assert_true(n <= MOST);
  tn_shape given = tn_shape((tn_dim)l->size[0], (tn_dim)l->size[1], (tn_dim)l->size[2]);
  for (size_t i = 0; i < n; i++) x[i] = (double)(i * 7 % 53), y[i] = (double)(i % 11);
  tn_scope_begin(c);
  tn_shape shape = shape_of(c, l);
  tn_tensor *a = turned(tn_input(c, "x", shape, t), l), *b = tn_input(c, "y", shape, t);
  tn_tensor *out[] = {a, tn_add(tn_mul(a, tn_cast(tn_num(c, 2), t)), turned(b, l))};
  tn_plan *plan;
  tn_binding *r;
  check_ok(c, tn_plan_compile(c, out, 2, NULL, &plan));
  check_ok(c, tn_plan_bind(plan, &r));
  tn_binding_input(r, "x", given, TN_F64, x, n * sizeof *x);
  tn_binding_input(r, "y", given, TN_F64, y, n * sizeof *y);
  if (tn_binding_run(r) != TN_OK) fail_msg("%s", tn_binding_message(r));
  assert_int_equal(tn_binding_read(r, "0", TN_F64, one, n * sizeof *one), TN_OK);
  assert_int_equal(tn_binding_read(r, "1", TN_F64, two, n * sizeof *two), TN_OK);
  for (size_t i = 0; i < n; i++) {
    size_t from = place(l, i);
    if (one[i] != x[from] || two[i] != 2 * x[from] + y[from])
      fail_msg("%zux%zux%zu to %d %d %d: element %zu", l->size[0], l->size[1], l->size[2],
               (int)l->order[0], (int)l->order[1], (int)l->order[2], i);
  }
  tn_binding_free(r);
  tn_plan_free(plan);
  check_ok(c, tn_scope_end(c));
}

static void axes_are_turned(void **state) {
  (void)state;
  static const tn_dtype types[] = {TN_F32, TN_F64, TN_F32, TN_U8, TN_I16, TN_BF16};
  const char *seed = getenv("TENON_SEED");
  uint32_t random = seed ? (uint32_t)strtoul(seed, NULL, 10) : 1;
  for (int threads = 1; threads <= 3; threads++) {
    tn_open_desc d = TN_OPEN_DESC_INIT;
    d.threads = threads;
    tn_context *c = tn_open(&d);
    for (int i = 0; i < CASES / 3; i++) {
      layout l = random_layout(&random);
      check_layout(c, &l, types[random_below(&random, 6)]);
    }
    check_ok(c, tn_close(c));
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(axes_are_turned),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
