/* What is kept of a compilation for people who ask. */
#include "runtime/explanation.h"
#include "tensor/context.h" /* before cmocka, which has a macro fail */

#include "tensor_check.h"

enum { N = 64 };

static tn_status pass_on(void *user, tn_call *call) {
  (void)user;
  memcpy(tn_call_out(call, 0).data, tn_call_in(call, 0).data, N * sizeof(float));
  return TN_OK;
}

/** Two kernels with a host function between them. */
static tn_status compile(tn_context *c, explanation *x, bool reasons) {
  tn_tensor *in = tn_input(c, "x", tn_shape(N, N), TN_F32), *passed;
  tn_tensor *sum = tn_sum(tn_exp(in), tn_axes(1), false);
  tn_custom_desc desc = TN_CUSTOM_DESC_INIT;
  desc.name = "pass_on";
  desc.run = pass_on;
  tn_type type = {TN_F32, tn_shape(N)};
  tn_custom(c, &desc, &sum, 1, &type, &passed, 1);
  tn_tensor *out = tn_div(in, passed);
  tn_plan *plan;
  explanation_open(x, &mem_system, reasons);
  c->explanation = x;
  tn_status s = tn_plan_compile(c, &out, 1, NULL, &plan);
  c->explanation = NULL;
  assert_null(x->arena.diag);
  return s;
}

static void check_kernel(const explained_kernel *k, bool reasons) {
  assert_true(k->cost.ns > 0 && k->cost.nodes > 0);
  assert_int_equal(k->schedule.n > 0, reasons);
  assert_int_equal(strstr(k->source, "void") != NULL, reasons);
  assert_non_null(strstr(k->loops.at[0], "write: r0 < 64"));
}

static void check(const explanation *x, bool reasons) {
  assert_int_equal(x->steps.n, 3);
  assert_int_equal(x->kernels.n, 2);
  for (size_t i = 0; i < 3; i++) {
    const explained_step *s = &x->steps.at[i];
    assert_int_equal(s->kernel == SIZE_MAX, i == 1);
    assert_int_equal(s->is_output, i == 2);
    assert_int_equal(s->reads.n, i > 0);
    if (i) assert_int_equal(s->reads.at[0], i - 1);
    assert_true(s->values.n > 0);
    for (size_t k = 0; k < s->values.n; k++) assert_int_equal(*s->values.at[k].why != 0, reasons);
    if (i != 1) check_kernel(&x->kernels.at[s->kernel], reasons);
  }
  assert_string_equal(x->steps.at[0].values.at[0].text, "exp f32 [64, 64]");
  assert_string_equal(x->steps.at[0].values.at[1].text, "reduce add f32 [64]");
  assert_string_equal(x->passes.at[0].name, "normalise");
  assert_string_equal(x->passes.at[x->passes.n - 1].name, "compiler");
}

/** Also what is in the cache by then. */
static void plans_are_explained(void **state) {
  (void)state;
  tn_context *c = tn_open(NULL);
  for (int i = 0; i < 4; i++) {
    explanation x;
    check_ok(c, compile(c, &x, i % 2 == 0));
    check(&x, i % 2 == 0);
    explanation_free(&x);
  }
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
  explanation x;
  assert_int_equal(compile(c, &x, true), TN_ERR_CANCELLED);
  explanation_free(&x);
  check_ok(c, tn_close(c));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(plans_are_explained),
      cmocka_unit_test(what_fails_leaves_nothing),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
