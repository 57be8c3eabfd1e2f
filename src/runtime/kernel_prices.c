/* Implements prices of kernels. Each prediction has an ir of its own, as code generation has, so
   that it finds the same schedule and nothing of it remains but time and decisions. */
#include "runtime/kernel_prices.h"

#include "codegen/codegen.h"
#include "ir/transform/copy_graph.h"

static const double unpriced = 1e12; /* ns of a kernel that no schedule can be made for */

void kernel_prices_init(kernel_prices *p, ir *g, const target *t, int math) {
  *p = (kernel_prices){.g = g, .target = t, .math = math};
  block_cache_init(&p->blocks, ir_mem(g));
}

void kernel_prices_free(kernel_prices *p) { block_cache_free(&p->blocks); }

typedef struct prediction {
  kernel_prices *prices;
  ir *g;
  const node *kernel;
  bool is_searched;
  double ns;
} prediction;

static void keep_decisions(kernel_prices *p, const node *kernel, const decision_list *made) {
  arena *a = ir_arena(p->g);
  decision_list *kept = arena_alloc(a, sizeof *kept);
  *kept = decisions_copy(a, made);
  map_set(a, &p->found, kernel, kept);
}

static void predict_body(void *arg) {
  prediction *p = arg;
  static const decision_list own;
  const codegen_options o = {.target = *p->prices->target,
                             .math = p->prices->math,
                             .decisions = p->is_searched ? NULL : &own};
  const node *kernel;
  decision_list made;
  double ns;
  ir_copy(p->g, ir_arena(p->g), &p->kernel, 1, NULL, NULL, &kernel);
  if (!codegen_predict(p->g, kernel, &o, &made, &ns)) return;
  p->ns = ns;
  if (p->is_searched) keep_decisions(p->prices, p->kernel, &made);
}

double kernel_prices_price(void *user, const node *kernel, bool is_searched) {
  kernel_prices *all = user;
  diag *d = ir_diag(all->g);
  prediction p = {.prices = all, .kernel = kernel, .is_searched = is_searched, .ns = unpriced};
  p.g = ir_new(&all->blocks.mem, d, false);
  if (!p.g) diag_raise(d, TN_ERR_MEMORY, "out of memory");
  tn_status status = diag_catch(d, predict_body, &p);
  ir_free(p.g);
  if (status == TN_ERR_MEMORY || status == TN_ERR_INTERNAL) diag_rethrow(d);
  if (status) diag_clear(d);
  return p.ns;
}
