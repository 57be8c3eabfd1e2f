/* Tests explanations of plans (tenon/unstable/explain.h): the steps, kernels, passes and laws
   (schedule transformations) that are reported, and that one request is taken by one plan. */
#include "support/tensor_check.h"

#include <tenon/unstable/explain.h>
#include <tenon/unstable/ir.h>

#include <pthread.h>
#include <unistd.h>

enum { N = 64 };

static tn_status pass_on(void *user, tn_call *call) {
  (void)user;
  memcpy(tn_call_out(call, 0).data, tn_call_in(call, 0).data, N * sizeof(float));
  return TN_OK;
}

/** Compiles two kernels with a host function between them. */
static tn_status compile(tn_context *c) {
  tn_tensor *in = tn_input(c, "x", tn_shape(N, N), TN_F32), *passed;
  tn_tensor *sum = tn_sum(tn_exp(in), tn_axes(1), false);
  tn_custom_desc desc = TN_CUSTOM_DESC_INIT;
  desc.name = "pass_on";
  desc.run = pass_on;
  tn_type type = {TN_F32, tn_shape(N)};
  tn_custom(c, &desc, &sum, 1, &type, &passed, 1);
  tn_tensor *out = tn_div(in, passed);
  tn_plan *plan;
  return tn_plan_compile(c, &out, 1, NULL, &plan);
}

static void check_kernel(const tn_explanation *x, int64_t number, bool reasons) {
  tn_explained_kernel k = TN_EXPLAINED_KERNEL_INIT;
  assert_int_equal(tn_explanation_kernel(x, (size_t)number, &k), TN_OK);
  assert_true(k.cost.ns > 0 && k.cost.nodes > 0);
  assert_int_equal(k.n_schedule > 0, reasons);
  assert_int_equal(strstr(k.source, "void") != NULL, reasons);
  assert_int_equal(k.predicted.total > 0, reasons);
  assert_int_equal(k.predicted.core > 0 && k.predicted.core < 1e9, reasons);
  assert_non_null(strstr(k.loops[0], "write: r0 < 64"));
}

static void check_step(const tn_explanation *x, size_t i, bool reasons) {
  tn_explained_step s = TN_EXPLAINED_STEP_INIT;
  assert_int_equal(tn_explanation_step(x, i, &s), TN_OK);
  assert_int_equal(s.kernel, i == 0 ? 0 : i == 1 ? -1 : 1);
  assert_int_equal(s.is_output, i == 2);
  assert_int_equal(s.n_reads, i > 0);
  if (i) assert_int_equal(s.reads[0], i - 1);
  assert_true(s.n_values > 0);
  for (size_t k = 0; k < s.n_values; k++) assert_int_equal(*s.values[k].why != 0, reasons);
  if (i == 1) assert_string_equal(s.what, "a host function");
  if (i != 1) check_kernel(x, s.kernel, reasons);
  if (i) return;
  assert_string_equal(s.values[0].text, "exp f32 [64, 64]");
  assert_string_equal(s.values[1].text, "reduce add f32 [64]");
}

static void check_passes(const tn_explanation *x) {
  tn_explained_pass p = TN_EXPLAINED_PASS_INIT;
  size_t n = 0;
  for (; tn_explanation_pass(x, n, &p) == TN_OK; n++)
    if (!n) assert_string_equal(p.name, "normalise");
  assert_string_equal(p.name, "compiler");
  assert_true(n > 2 && p.cost.ns > 0);
}

static void check(const tn_explanation *x, bool reasons) {
  tn_explained_step s = TN_EXPLAINED_STEP_INIT;
  tn_explained_kernel k = TN_EXPLAINED_KERNEL_INIT;
  for (size_t i = 0; i < 3; i++) check_step(x, i, reasons);
  s.name = "as it was";
  assert_int_equal(tn_explanation_step(x, 3, &s), TN_ERR_ARGUMENT);
  assert_string_equal(s.name, "as it was");
  assert_int_equal(tn_explanation_step(x, 0, NULL), TN_ERR_ARGUMENT);
  assert_int_equal(tn_explanation_kernel(x, 2, &k), TN_ERR_ARGUMENT);
  check_passes(x);
}

static bool is_empty(const tn_explanation *x) {
  tn_explained_step s = TN_EXPLAINED_STEP_INIT;
  return tn_explanation_step(x, 0, &s) == TN_ERR_ARGUMENT;
}

/** The second plan's kernels come from the cache. */
static void plans_are_explained(void **state) {
  (void)state;
  tn_context *c = tn_open(NULL);
  for (int i = 0; i < 4; i++) {
    tn_explanation *x;
    check_ok(c, tn_explain(c, i % 2 == 0, &x));
    check_ok(c, compile(c));
    check(x, i % 2 == 0);
    if (i < 2) tn_explanation_free(x); /* the others are freed with the context */
  }
  check_ok(c, tn_close(c));
}

/** Two products and their concatenations: the last step reads what both wrote. */
static void pieces_of_arrays_are_counted(void **state) {
  (void)state;
  tn_context *c = tn_open(NULL);
  tn_explanation *x;
  check_ok(c, tn_explain(c, false, &x));
  tn_tensor *in = tn_input(c, "x", tn_shape(N, N), TN_F32);
  tn_tensor *other = tn_input(c, "y", tn_shape(N, N), TN_F32);
  tn_tensor *pieces[] = {tn_matmul(in, other), tn_matmul(other, in)};
  tn_tensor *all = tn_concat(pieces, 2, 1), *out = tn_matmul(all, tn_permute(all, tn_axes(1, 0)));
  tn_plan *plan;
  check_ok(c, tn_plan_compile(c, &out, 1, NULL, &plan));
  tn_explained_step s = TN_EXPLAINED_STEP_INIT;
  for (size_t i = 0; i < 3; i++) {
    assert_int_equal(tn_explanation_step(x, i, &s), TN_OK);
    assert_int_equal(s.n_places, i < 2);
    assert_int_equal(s.n_reads, i < 2 ? 0 : 2);
  }
  assert_int_equal(tn_explanation_step(x, 3, &s), TN_ERR_ARGUMENT);
  check_ok(c, tn_close(c));
}

static void one_plan_takes_a_request(void **state) {
  (void)state;
  tn_context *c = tn_open(NULL);
  tn_explanation *replaced, *x, *freed;
  check_ok(c, tn_explain(c, true, &replaced));
  check_ok(c, tn_explain(c, true, &x));
  check_ok(c, compile(c));
  check_ok(c, compile(c));
  assert_true(is_empty(replaced));
  check(x, true);
  check_ok(c, tn_explain(c, true, &freed));
  tn_explanation_free(freed);
  tn_explanation_free(replaced);
  tn_explanation_free(NULL);
  check_ok(c, compile(c));
  check_ok(c, tn_close(c));
}

static void *compile_beside(void *arg) { return compile(arg) == TN_OK ? arg : NULL; }

/** A request waits for a plan of its own thread. */
static void other_threads_take_no_request(void **state) {
  (void)state;
  tn_context *c = tn_open(NULL);
  tn_explanation *x;
  pthread_t t;
  void *ok;
  check_ok(c, tn_explain(c, true, &x));
  assert_int_equal(pthread_create(&t, NULL, compile_beside, c), 0);
  assert_int_equal(pthread_join(t, &ok), 0);
  assert_non_null(ok);
  assert_true(is_empty(x));
  check_ok(c, compile(c));
  check(x, true);
  check_ok(c, tn_close(c));
}

/** A context whose compilation, once it has begun, is cancelled after another one had time to wait
    for its kernels. */
typedef struct abandoning {
  tn_context *explained;
  tn_explanation *x;
  pthread_t thread;
  bool has_begun;
} abandoning;

static void *explain_beside(void *arg) {
  abandoning *a = arg;
  tn_status s = tn_explain(a->explained, true, &a->x);
  return s == TN_OK && compile(a->explained) == TN_OK ? a : NULL;
}

static bool begin_beside_and_give_up(void *user, const char *what, uint64_t done, uint64_t total) {
  (void)what, (void)done, (void)total;
  abandoning *a = user;
  if (!a->has_begun) a->has_begun = !pthread_create(&a->thread, NULL, explain_beside, a);
  usleep(300000);
  return false;
}

/** Kernels that another thread abandons after they were rendered for the explanation are compiled.
    Runs first: no cache has the kernels yet. */
static void abandoned_kernels_are_explained(void **state) {
  (void)state;
  abandoning a = {0};
  void *ok;
  tn_open_desc d = TN_OPEN_DESC_INIT;
  d.cache_dir = "off";
  a.explained = tn_open(&d);
  d.progress = (tn_progress){begin_beside_and_give_up, &a, NULL};
  tn_context *c = tn_open(&d);
  assert_int_equal(compile(c), TN_ERR_CANCELLED);
  assert_true(a.has_begun);
  assert_int_equal(pthread_join(a.thread, &ok), 0);
  if (!ok) fail_msg("%s", tn_message(a.explained));
  check(a.x, true);
  check_ok(c, tn_close(c));
  check_ok(a.explained, tn_close(a.explained));
}

static void requests_are_refused(void **state) {
  (void)state;
  tn_context *c = tn_open(NULL);
  tn_explanation *x = NULL;
  assert_int_equal(tn_explain(c, true, NULL), TN_ERR_ARGUMENT);
  check_text(tn_message(c), "the place for the explanation is NULL");
  assert_int_equal(tn_explain(NULL, true, &x), TN_ERR_ARGUMENT);
  assert_null(x);
  check_ok(c, tn_close(c));
}

static bool give_up(void *user, const char *what, uint64_t done, uint64_t total) {
  (void)user, (void)what, (void)done, (void)total;
  return false;
}

static void what_fails_leaves_nothing(void **state) {
  (void)state;
  tn_open_desc desc = TN_OPEN_DESC_INIT;
  desc.progress = (tn_progress){give_up, NULL, NULL};
  tn_context *c = tn_open(&desc);
  tn_explanation *x;
  check_ok(c, tn_explain(c, true, &x));
  assert_int_equal(compile(c), TN_ERR_CANCELLED);
  tn_explanation_free(x);
  check_ok(c, tn_close(c));
}

static void laws_are_named(void **state) {
  (void)state;
  const char *name, *arguments, *about;
  bool has_split = false, has_range = false;
  size_t i = 0;
  for (; tn_law_get(i, &name, &arguments, &about) == TN_OK; i++) {
    assert_true(*name && *about);
    has_split |= arguments && !strcmp(name, "SPLIT") && !strcmp(arguments, "RANGE by NUMBER");
    has_range |= !arguments && !strcmp(name, "RANGE");
  }
  assert_true(i > 20 && has_split && has_range);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(abandoned_kernels_are_explained),
      cmocka_unit_test(plans_are_explained),
      cmocka_unit_test(other_threads_take_no_request),
      cmocka_unit_test(pieces_of_arrays_are_counted),
      cmocka_unit_test(one_plan_takes_a_request),
      cmocka_unit_test(requests_are_refused),
      cmocka_unit_test(what_fails_leaves_nothing),
      cmocka_unit_test(laws_are_named),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
