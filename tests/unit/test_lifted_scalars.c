/* Tests scalar lifting: loops whose scalars change from step to step compile kernels in their first
   two steps only, as the second makes the scalars variables, and give the results of a context that
   compiles each step's scalars in. */
#include "compile/kernel_cache.h"
#include "device/registry/device_registry.h"
#include "ir/text/graph_key.h"
#include "ir/text/parse.h"
#include "tensor/context/context.h"

#include "support/tensor_check.h"

#include <math.h>

/** Returns the number of kernels compiled so far. */
static uint64_t compiled(tn_context *c) {
  return kernel_cache_get_stats(kernel_cache_of(c->registry)).compiled;
}

/** Counts the kernels compiled by a step: none from the third step on. */
typedef struct counter {
  tn_context *c;
  int steps;
  uint64_t before;
} counter;

static void begin_step(counter *k, tn_context *c) {
  k->c = c;
  k->before = compiled(c);
}

static void end_step(counter *k) {
  uint64_t n = compiled(k->c) - k->before;
  if (k->steps++ > 1 && n)
    fail_msg("step %d compiled %llu kernels", k->steps, (unsigned long long)n);
}

/* Values. */

/** Returns a learning rate that changes in each step. */
static double rate(int step) { return 0.1 / (1 + step); }

/** Does one step of gradient descent on |w − target|² with a plain number as its rate. */
static tn_status descend(tn_context *c, tn_tensor *w, int step) {
  tn_scope_begin(c);
  tn_tensor *slope = tn_mul(tn_sub(w, floats(c, FLOATS(1, -2, 3))), tn_num(c, 2));
  tn_assign(w, tn_sub(w, tn_mul(slope, tn_num(c, rate(step)))));
  return tn_scope_end(c);
}

static void a_rate_that_decays(void **state) {
  tn_context *c = *state;
  enum { STEPS = 12 };
  float want[3] = {0}, target[3] = {1, -2, 3};
  counter k = {0};
  tn_tensor *w = tn_state(tn_full(c, tn_shape(3), TN_F32, 0));
  check_ok(c, tn_realize(c, &w, 1));
  for (int step = 0; step < STEPS; step++) {
    begin_step(&k, c);
    check_ok(c, descend(c, w, step));
    end_step(&k);
    for (int i = 0; i < 3; i++) {
      float slope = (want[i] - target[i]) * 2, way = slope * (float)rate(step);
      want[i] -= way;
    }
    float got[3];
    check_ok(c, tn_read(w, TN_F32, got, sizeof got));
    for (int i = 0; i < 3; i++)
      if (fabsf(got[i] - want[i]) > 1e-6f * fabsf(want[i]) + 1e-7f)
        fail_msg("step %d: %g, not %g", step, (double)got[i], (double)want[i]);
  }
}

typedef struct adam {
  tn_tensor *w, *m, *v;
} adam;

static adam adam_open(tn_context *c) {
  float w[] = {1, -2, 3, 0.5f}, zeros[4] = {0};
  return (adam){tn_state(floats(c, 4, w)), tn_state(floats(c, 4, zeros)),
                tn_state(floats(c, 4, zeros))};
}

/** Adam with bias corrections that depend on the step. */
static tn_status adam_step(tn_context *c, adam *a, int step) {
  double b1 = 0.9, b2 = 0.999;
  tn_scope_begin(c);
  tn_tensor *g = tn_mul(a->w, a->w);
  tn_tensor *m = tn_add(tn_mul(a->m, tn_num(c, b1)), tn_mul(g, tn_num(c, 1 - b1)));
  tn_tensor *v = tn_add(tn_mul(a->v, tn_num(c, b2)), tn_mul(tn_mul(g, g), tn_num(c, 1 - b2)));
  tn_tensor *mh = tn_div(m, tn_num(c, 1 - pow(b1, step + 1)));
  tn_tensor *vh = tn_div(v, tn_num(c, 1 - pow(b2, step + 1)));
  tn_tensor *by = tn_div(mh, tn_add(tn_sqrt(vh), tn_num(c, 1e-8)));
  tn_assign(a->w, tn_sub(a->w, tn_mul(by, tn_num(c, rate(step)))));
  tn_assign(a->m, m);
  tn_assign(a->v, v);
  return tn_scope_end(c);
}

/** Compares each step with a context without earlier steps. */
static void adam_with_a_schedule(void **state) {
  tn_context *c = *state;
  enum { STEPS = 5 };
  counter k = {0};
  adam a = adam_open(c);
  check_ok(c, tn_realize(c, (tn_tensor *[]){a.w, a.m, a.v}, 3));
  for (int step = 0; step < STEPS; step++) {
    float before[3][4], want[4], got[4];
    tn_tensor *all[] = {a.w, a.m, a.v};
    for (int i = 0; i < 3; i++) check_ok(c, tn_read(all[i], TN_F32, before[i], sizeof *before));
    begin_step(&k, c);
    check_ok(c, adam_step(c, &a, step));
    end_step(&k);
    tn_context *fresh = tn_open(NULL);
    adam b = {tn_state(floats(fresh, 4, before[0])), tn_state(floats(fresh, 4, before[1])),
              tn_state(floats(fresh, 4, before[2]))};
    check_ok(fresh, adam_step(fresh, &b, step));
    check_ok(fresh, tn_read(b.w, TN_F32, want, sizeof want));
    check_ok(c, tn_read(a.w, TN_F32, got, sizeof got));
    assert_memory_equal(got, want, sizeof got);
    check_ok(fresh, tn_close(fresh));
  }
}

/* Offsets. */

enum { ROOM = 6, WIDE = 3 };

/** Writes a row of a cache and attends to the rows so far. */
static tn_tensor *cache_step(tn_context *c, tn_tensor *cache, int at) {
  float row[WIDE] = {(float)at, 1, (float)(at * at)};
  tn_tensor *x = tn_from_host(c, tn_shape(1, WIDE), TN_F32, row, sizeof row);
  tn_assign(tn_slice(cache, 0, at, at + 1, 1), x);
  tn_tensor *seen = tn_le(tn_arange(c, 0, ROOM, 1, TN_I64), tn_int(c, at));
  tn_tensor *rows = tn_where(tn_reshape(seen, tn_shape(ROOM, 1)), cache, tn_num(c, 100));
  return tn_add(tn_sum(rows, TN_ALL, false),
                tn_sum(tn_slice(cache, 0, at, at + 1, 1), TN_ALL, false));
}

static float cache_sum(const float *cache, int at) {
  float sum = 0;
  for (int i = 0; i < ROOM * WIDE; i++) sum += i / WIDE <= at ? cache[i] : 100;
  for (int i = 0; i < WIDE; i++) sum += cache[at * WIDE + i];
  return sum;
}

static void a_place_in_a_cache(void **state) {
  tn_context *c = *state;
  static const int places[] = {0, 1, 2, 5, 3, 0, 4, 5, 2};
  float want[ROOM * WIDE] = {0}, got;
  counter k = {0};
  tn_tensor *cache = tn_state(tn_full(c, tn_shape(ROOM, WIDE), TN_F32, 0));
  check_ok(c, tn_realize(c, &cache, 1));
  for (int step = 0; step < (int)(sizeof places / sizeof *places); step++) {
    int at = places[step];
    float row[WIDE] = {(float)at, 1, (float)(at * at)};
    memcpy(want + at * WIDE, row, sizeof row);
    begin_step(&k, c);
    tn_scope_begin(c);
    check_ok(c, tn_read(cache_step(c, cache, at), TN_F32, &got, sizeof got));
    check_ok(c, tn_scope_end(c));
    end_step(&k);
    if (got != cache_sum(want, at))
      fail_msg("step %d, place %d: %g, not %g", step, at, (double)got, (double)cache_sum(want, at));
  }
  check_floats(c, tn_reshape(cache, tn_shape(ROOM * WIDE)), ROOM * WIDE, want);
}

/** Takes a reversed window, padded from the left, over other data each time. */
static tn_tensor *window(tn_context *c, int from, int low) {
  tn_tensor *x = tn_arange(c, from, from + 8, 1, TN_F32); /* its start varies too */
  tn_tensor *part = tn_slice(x, 0, from, from - 6, -2);
  return tn_pad(part, tn_shape(low), tn_shape(5 - low), TN_PAD_CONSTANT, -from);
}

static void windows_and_paddings(void **state) {
  tn_context *c = *state;
  counter k = {0};
  for (int step = 0; step < 6; step++) {
    int from = step % 2 ? 7 : 6, low = step * 2 % 6;
    float got[8];
    begin_step(&k, c);
    tn_scope_begin(c);
    check_ok(c, tn_read(window(c, from, low), TN_F32, got, sizeof got));
    check_ok(c, tn_scope_end(c));
    end_step(&k);
    for (int i = 0; i < 8; i++) {
      int at = i - low;
      float want = at < 0 || at > 2 ? (float)-from : (float)(2 * from - 2 * at);
      if (got[i] != want)
        fail_msg("%d, %d: [%d] is %g, not %g", from, low, i, (double)got[i], (double)want);
    }
  }
}

/* Random numbers. */

static void draw(tn_context *c, uint64_t seed, float got[32]) {
  tn_seed(c, seed);
  tn_scope_begin(c);
  tn_tensor *x = tn_add(tn_randn(c, tn_shape(32), TN_F32), tn_rand(c, tn_shape(32), TN_F32));
  check_ok(c, tn_read(x, TN_F32, got, 32 * sizeof *got));
  check_ok(c, tn_scope_end(c));
}

static void new_seeds(void **state) {
  tn_context *c = *state;
  counter k = {0};
  for (int step = 0; step < 5; step++) {
    uint64_t seed = (uint64_t)step * UINT64_C(0x9e3779b97f4a7c15);
    float got[32], want[32];
    begin_step(&k, c);
    draw(c, seed, got);
    end_step(&k);
    tn_context *fresh = tn_open(NULL);
    draw(fresh, seed, want);
    assert_memory_equal(got, want, sizeof got);
    check_ok(fresh, tn_close(fresh));
  }
}

/* All types. */

static double number(tn_dtype t, int step) {
  static const double floats[] = {0.1, -0.0, -2.5, 1e5, (double)INFINITY, -(double)INFINITY};
  bool is_unsigned = t == TN_U8 || t == TN_U16 || t == TN_U32 || t == TN_U64;
  if (t == TN_BOOL) return step % 2;
  if (t == TN_F32 || t == TN_F64 || t == TN_F16 || t == TN_BF16) return floats[step];
  return is_unsigned ? 200 - step * 40 : step * 50 - 127;
}

static void all_types(void **state) {
  tn_context *c = *state;
  static const tn_dtype types[] = {TN_F32, TN_F64, TN_F16, TN_BF16, TN_I8,  TN_I16, TN_I32,
                                   TN_I64, TN_U8,  TN_U16, TN_U32,  TN_U64, TN_BOOL};
  for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
    counter k = {0};
    for (int step = 0; step < 6; step++) {
      double got[2], v = number(types[t], step);
      begin_step(&k, c);
      tn_scope_begin(c);
      tn_tensor *x = tn_full(c, tn_shape(2), types[t], v);
      check_ok(c, tn_read(x, TN_F64, got, sizeof got));
      check_ok(c, tn_scope_end(c));
      end_step(&k);
      double want = types[t] == TN_F32 ? (double)(float)v : v;
      bool is_half = types[t] == TN_F16 || types[t] == TN_BF16;
      for (int i = 0; i < 2; i++)
        if (is_half ? !(got[i] == want || fabs(got[i] - want) < fabs(want) / 100 || got[i] > 6e4)
                    : got[i] != want || signbit(got[i]) != signbit(want))
          fail_msg("%s: %g, not %g", tn_dtype_name(types[t]), got[i], want);
    }
  }
}

/* Equal and different scalars. */

static tn_tensor *twice(tn_context *c, double a, double b) {
  tn_tensor *x = floats(c, FLOATS(1, 2));
  return tn_add(tn_mul(x, tn_num(c, a)), tn_mul(tn_add(x, tn_num(c, 1)), tn_num(c, b)));
}

static void check_twice(tn_context *c, double a, double b) {
  float fa = (float)a, fb = (float)b;
  tn_scope_begin(c);
  check_floats(c, twice(c, a, b), FLOATS(fa + 2 * fb, 2 * fa + 3 * fb));
  check_ok(c, tn_scope_end(c));
}

/** Equal numbers share a variable until they differ; 1 stays a constant. */
static void equal_numbers_come_apart(void **state) {
  tn_context *c = *state;
  check_twice(c, 2, 2);
  uint64_t first = compiled(c);
  check_twice(c, 4, 4);
  uint64_t second = compiled(c);
  assert_int_equal(second, first + 1);
  check_twice(c, 8, 8);
  check_twice(c, 2, 2);
  assert_int_equal(compiled(c), second);
  check_twice(c, 8, 16);
  assert_int_equal(compiled(c), second + 1);
  check_twice(c, 1, 4); /* one equals another number now */
  check_twice(c, 16, 16);
  check_twice(c, -0.0, 0.0);
  assert_int_equal(compiled(c), second + 1);
}

/** Scalars that determine shapes are not lifted. */
static void sizes_are_compiled(void **state) {
  tn_context *c = *state;
  for (int n = 1; n < 5; n++) {
    float got[8];
    tn_scope_begin(c);
    tn_tensor *x = tn_slice(tn_arange(c, 0, 8, 1, TN_F32), 0, 8 - n, 8, 1);
    check_ok(c, tn_read(x, TN_F32, got, (size_t)n * sizeof *got));
    check_ok(c, tn_scope_end(c));
    for (int i = 0; i < n; i++) assert_true(got[i] == (float)(8 - n + i));
  }
}

/* Host functions. */

static tn_status negate(void *user, tn_call *call) {
  tn_array in = tn_call_in(call, 0), out = tn_call_out(call, 0);
  (void)user;
  for (int i = 0; i < 2; i++) ((float *)out.data)[i] = -((const float *)in.data)[i];
  return TN_OK;
}

/** Plans with host functions are not cached, but kernels are; both products share one, with
    different variables. */
static void around_host_functions(void **state) {
  tn_context *c = *state;
  counter k = {0};
  for (int step = 0; step < 5; step++) {
    tn_custom_desc d = TN_CUSTOM_DESC_INIT;
    d.name = "negate";
    d.run = negate;
    float a = (float)step + 2, b = (float)step * 10 + 7;
    begin_step(&k, c);
    tn_scope_begin(c);
    tn_tensor *x = tn_mul(floats(c, FLOATS(1, 2)), tn_num(c, (double)a)), *y;
    tn_custom(c, &d, &x, 1, &(tn_type){TN_F32, tn_shape(2)}, &y, 1);
    check_floats(c, tn_mul(y, tn_num(c, (double)b)), FLOATS(-a * b, -2 * a * b));
    check_ok(c, tn_scope_end(c));
    if (step < 2) assert_int_equal(compiled(c) - k.before, 2 - step);
    end_step(&k);
  }
}

/* Definition of liftable scalars. */

typedef struct reading {
  diag d;
  ir *g;
  const char *text;
  liftable_scalar_list scalars;
  str key;
} reading;

static void read_scalars(void *arg) {
  reading *r = arg;
  arena *a = ir_arena(r->g);
  node_list roots = parse_graph(r->g, a, r->text, strlen(r->text));
  node_list order = topo_sort(a, roots.at, roots.n, NULL, NULL);
  graph_key key = {.to = &r->key, .scalars = &r->scalars};
  r->key = str_new(a);
  for (size_t i = 0; i < order.n; i++) graph_key_add(&key, order.at[i], 0);
  for (size_t i = 0; i < roots.n; i++) graph_key_add_root(&key, roots.at[i]);
}

static void open_reading(reading *r, const char *text) {
  *r = (reading){.text = text};
  r->g = ir_new(&mem_system, &r->d, false);
  assert_non_null(r->g);
  if (diag_catch(&r->d, read_scalars, r) != TN_OK) fail_msg("%s", r->d.text);
}

typedef struct scalar_case {
  const char *text;
  size_t n;
  liftable_scalar first;
} scalar_case;

#define SLICED(start, size, step)                                                                 \
  "%0 = buffer f32 8 [uid=0 version=0]\n%1 = slice f32 %0 " start " " size " [" step "]\nreturn " \
  "%1"

/** Lifted starts and paddings are bounded so that accesses stay in bounds. */
static void what_is_a_scalar(void **state) {
  static const scalar_case cases[] = {
      {SLICED("2", "3", "1"), 1, {DT_INDEX, 2, 0, 5}},
      {SLICED("1", "3", "2"), 1, {DT_INDEX, 1, 0, 3}},
      {SLICED("6", "3", "-2"), 1, {DT_INDEX, 6, 4, 7}},
      {SLICED("0", "8", "1"), 1, {DT_INDEX, 0, 0, 0}},
      {SLICED("0", "0", "1"), 0, {DT_VOID, 0, 0, 0}},
      {"%0 = buffer f32 8 [uid=0 version=0]\n%1 = const f32 1.0\n%2 = pad f32 %0 %1 2 12\nreturn "
       "%2",
       2,
       {DT_F32, 0x3f800000, 0, UINT32_MAX}},
      {"%0 = const index 7\n%1 = cast i32 %0\nreturn %1", 1, {DT_I64, 7, INT64_MIN, INT64_MAX}},
      {"%0 = const i8 -3\n%1 = reshape i8 %0 1\n%2 = expand i8 %1 4\nreturn %2",
       1,
       {DT_I8, -3, -128, 127}},
      {"%0 = buffer f32 8 [uid=0 version=0]\n%1 = reshape f32 %0 2 4\nreturn %1",
       0,
       {DT_VOID, 0, 0, 0}}};
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    reading r;
    const liftable_scalar *want = &cases[i].first;
    open_reading(&r, cases[i].text);
    assert_int_equal(r.scalars.n, cases[i].n);
    const liftable_scalar *got = r.scalars.n ? r.scalars.at : want;
    if (got->dtype != want->dtype || got->value != want->value || got->min != want->min ||
        got->max != want->max)
      fail_msg("case %zu: %s %lld from %lld to %lld", i, dtype_name(got->dtype),
               (long long)got->value, (long long)got->min, (long long)got->max);
    ir_free(r.g);
  }
}

static bool have_one_form(const char *one, const char *other) {
  reading a, b;
  open_reading(&a, one);
  open_reading(&b, other);
  bool same = a.key.n == b.key.n && !memcmp(a.key.at, b.key.at, a.key.n);
  ir_free(a.g);
  ir_free(b.g);
  return same;
}

#define SUM(a, b)                                                                 \
  "%0 = buffer f32 [uid=0 version=0]\n%1 = const f32 " a "\n%2 = mul f32 %0 %1\n" \
  "%3 = const f32 " b "\n%4 = add f32 %2 %3\nreturn %4"

static void forms_have_sizes_and_no_numbers(void **state) {
  (void)state;
  assert_true(have_one_form(SUM("1.0", "2.0"), SUM("3.0", "3.0")));
  assert_true(have_one_form(SLICED("1", "3", "1"), SLICED("5", "3", "1")));
  assert_false(have_one_form(SLICED("1", "3", "1"), SLICED("1", "4", "1")));
  assert_false(have_one_form(SLICED("1", "3", "1"), SLICED("1", "3", "2")));
}

static void names_of_variables(void **state) {
  static const char *const wrong[] = {"core_scalar",
                                      "core_scalar1x",
                                      "core_value1",
                                      "scalar1",
                                      "",
                                      "core_scalar99999999999999999999999"};
  char name[LIFTED_VAR_NAME_BYTES];
  (void)state;
  lifted_var_name(name, LIFTED_VAR_OF_GRAPH, 1234);
  assert_int_equal(lifted_var_number(name, LIFTED_VAR_OF_GRAPH), 1234);
  assert_int_equal(lifted_var_number(name, LIFTED_VAR_OF_KERNEL), SIZE_MAX);
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
    assert_int_equal(lifted_var_number(wrong[i], LIFTED_VAR_OF_GRAPH), SIZE_MAX);
}

/* Long loops. */

static void memory_is_constant(void **state) {
  (void)state;
  enum { STEPS = 3000, SETTLED = 1500 };
  counting counting = {0};
  tn_context *c = open_counting(&counting, "CPU");
  counter k = {0};
  size_t settled = 0;
  tn_tensor *w = tn_state(tn_full(c, tn_shape(3), TN_F32, 0));
  check_ok(c, tn_realize(c, &w, 1));
  for (int step = 0; step < STEPS; step++) {
    begin_step(&k, c);
    check_ok(c, descend(c, w, step));
    end_step(&k);
    if (step == SETTLED) settled = counting.out;
    if (step > SETTLED && counting.out > settled)
      fail_msg("%zu bytes after %d steps, %zu after %d", settled, SETTLED, (size_t)counting.out,
               step);
  }
  assert_int_equal(tn_close(c), TN_OK);
  assert_int_equal(counting.out, 0);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_context, close_context)
  const struct CMUnitTest tests[] = {TEST(a_rate_that_decays),
                                     TEST(adam_with_a_schedule),
                                     TEST(a_place_in_a_cache),
                                     TEST(windows_and_paddings),
                                     TEST(new_seeds),
                                     TEST(all_types),
                                     TEST(equal_numbers_come_apart),
                                     TEST(sizes_are_compiled),
                                     TEST(around_host_functions),
                                     cmocka_unit_test(what_is_a_scalar),
                                     cmocka_unit_test(forms_have_sizes_and_no_numbers),
                                     cmocka_unit_test(names_of_variables),
                                     cmocka_unit_test(memory_is_constant)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
