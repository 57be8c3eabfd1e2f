/* Implements prices of kernels by predictions in irs of their own, as code generation has them:
   they find the same schedules. */
#include "runtime/kernel_prices.h"

#include "codegen/codegen.h"

static const double unpriced = 1e12; /* ns of a kernel that no schedule can be made for */

void kernel_prices_init(kernel_prices *p, ir *g, const target *t, int math) {
  *p = (kernel_prices){.g = g, .target = t, .math = math};
  block_cache_init(&p->blocks, ir_mem(g));
}

void kernel_prices_free(kernel_prices *p) { block_cache_free(&p->blocks); }

double kernel_prices_price(void *user, size_t device, const node *kernel, bool is_searched) {
  (void)device;
  kernel_prices *p = user;
  arena *a = ir_arena(p->g);
  static const decision_list own;
  const codegen_options o = {
      .target = *p->target, .math = p->math, .decisions = is_searched ? NULL : &own};
  decision_list *made = arena_calloc(a, 1, sizeof *made);
  double ns;
  if (!codegen_predict_apart(&p->blocks.mem, kernel, &o, a, made, &ns)) return unpriced;
  if (is_searched) map_set(a, &p->found, kernel, made);
  return ns;
}
