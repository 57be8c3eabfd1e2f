/* Copies the items of a plan's explanation into lists, so that steps and kernels can refer to each
   other by index. */
#include "cli/data/explained_plan.h"

#include "cli/core/text_format.h"

explained_plan explained_plan_list(const tn_explanation *explanation, arena *a) {
  explained_plan x = {0};
  tn_explained_step step = TN_EXPLAINED_STEP_INIT;
  tn_explained_kernel kernel = TN_EXPLAINED_KERNEL_INIT;
  tn_explained_pass pass = TN_EXPLAINED_PASS_INIT;
  for (size_t i = 0; tn_explanation_step(explanation, i, &step) == TN_OK; i++)
    vec_push(a, &x.steps, step);
  for (size_t i = 0; tn_explanation_kernel(explanation, i, &kernel) == TN_OK; i++)
    vec_push(a, &x.kernels, kernel);
  for (size_t i = 0; tn_explanation_pass(explanation, i, &pass) == TN_OK; i++)
    vec_push(a, &x.passes, pass);
  return x;
}

const char *predicted_parts(arena *a, const tn_explained_time *t) {
  return arena_printf(a, "instructions %s, second cache %s, last cache %s, memory %s",
                      text_time(a, t->core * 1e-6), text_time(a, t->l2_data * 1e-6),
                      text_time(a, t->l3_data * 1e-6), text_time(a, t->memory * 1e-6));
}
