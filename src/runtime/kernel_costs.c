/* Implements estimates of kernels by predictions in irs of their own, as code generation has them:
   they find the same schedules. */
#include "runtime/kernel_costs.h"

#include "codegen/codegen.h"

static const double unknown_cost = 1e12; /* ns of a kernel that no schedule can be made for */

void kernel_costs_init(kernel_costs *p, ir *g, const target *t, int math) {
  *p = (kernel_costs){.g = g, .target = t, .math = math};
  block_cache_init(&p->blocks, ir_mem(g));
}

void kernel_costs_free(kernel_costs *p) { block_cache_free(&p->blocks); }

double kernel_costs_estimate(void *user, size_t device, const node *kernel, bool is_searched) {
  (void)device;
  kernel_costs *p = user;
  arena *a = ir_arena(p->g);
  static const decision_list own;
  const codegen_options o = {
      .target = *p->target, .math = p->math, .decisions = is_searched ? NULL : &own};
  decision_list *made = arena_calloc(a, 1, sizeof *made);
  double ns;
  if (!codegen_predict_apart(&p->blocks.mem, kernel, &o, a, made, &ns)) return unknown_cost;
  if (is_searched) map_set(a, &p->found, kernel, made);
  return ns;
}
