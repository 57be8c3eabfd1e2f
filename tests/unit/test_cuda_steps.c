/* Tests the steps of plans on CUDA's devices, over the stand-in driver: products of halves in tiles
   of warps store packed words and nothing else, sums of products are in registers, and selections
   leave the scan of each row to a kernel of its own. Skipped (77) where LD_LIBRARY_PATH does not
   lead to the stand-in. */
#include "support/tensor_check.h"

#include <tenon/plan.h>
#include <tenon/unstable/explain.h>
#include <tenon/unstable/schedule.h>

enum { SKIPPED = 77 };

static int open_cuda(void **state) {
  tn_open_desc d = TN_OPEN_DESC_INIT;
  d.device = "CUDA";
  d.cache_dir = "off";
  tn_context *c = *state = tn_open(&d);
  tn_context_info info = TN_CONTEXT_INFO_INIT;
  return !c || tn_context_get(c, &info) != TN_OK;
}

static int close_cuda(void **state) { return tn_close(*state) != TN_OK; }

/** The names of the steps that compute a tensor, with commas between. */
static void list_steps(tn_context *c, tn_tensor *x, char *text, size_t size) {
  tn_schedule *s;
  tn_scheduled_step step = TN_SCHEDULED_STEP_INIT;
  size_t n = 0;
  check_ok(c, tn_schedule_make(c, &x, 1, NULL, &s));
  for (size_t i = 0; tn_schedule_step(s, i, &step) == TN_OK; i++)
    n += (size_t)snprintf(text + n, size - n, "%s%s", i ? "; " : "", step.name);
  tn_schedule_free(s);
}

static void products_of_halves_store_words_alone(void **state) {
  tn_context *c = *state;
  char steps[1024];
  tn_tensor *x = tn_input(c, "x", tn_shape(256, 512), TN_F16),
            *y = tn_input(c, "y", tn_shape(512, 256), TN_F16);
  list_steps(c, tn_matmul(x, y), steps, sizeof steps);
  assert_string_equal(steps,
                      "bitcast, cast, shl, or; bitcast, cast, shl, or; dot_f16, reduce add, cast");
}

static void scans_of_selections_are_kernels(void **state) {
  tn_context *c = *state;
  char steps[1024];
  list_steps(c, tn_nonzero(tn_input(c, "x", tn_shape(40000), TN_BOOL)), steps, sizeof steps);
  check_text(steps, "; cast, scan; ");
}

static void sums_of_products_are_in_registers(void **state) {
  tn_context *c = *state;
  tn_explanation *told;
  tn_plan *plan;
  tn_explained_kernel kernel = TN_EXPLAINED_KERNEL_INIT;
  tn_tensor *x = tn_input(c, "x", tn_shape(1024, 1024), TN_F32),
            *y = tn_input(c, "y", tn_shape(1024, 1024), TN_F32), *product = tn_matmul(x, y);
  check_ok(c, tn_explain(c, true, &told));
  check_ok(c, tn_plan_compile(c, &product, 1, NULL, &plan));
  check_ok(c, tn_explanation_kernel(told, 0, &kernel));
  assert_non_null(strstr(kernel.source, "float acc1;")); /* two sums or more */
  assert_null(strstr(kernel.source, "float s0["));
  tn_plan_free(plan);
  tn_explanation_free(told);
}

int main(void) {
  void *c = NULL;
  if (open_cuda(&c)) {
    tn_close(c);
    return SKIPPED;
  }
  tn_close(c);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(products_of_halves_store_words_alone, open_cuda, close_cuda),
      cmocka_unit_test_setup_teardown(scans_of_selections_are_kernels, open_cuda, close_cuda),
      cmocka_unit_test_setup_teardown(sums_of_products_are_in_registers, open_cuda, close_cuda),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
