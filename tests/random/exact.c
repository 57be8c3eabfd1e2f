/* Checks exact variants: copies a random graph with numbers for the variables that are sizes, and
   compares its results with the reference evaluator's for the graph with variables. */
#include "exact.h"

#include "ir/index/index_arithmetic.h"
#include "ir/transform/copy_graph.h"

typedef struct numbering {
  const graph *g;
  ir *to;
} numbering;

static const node *number_of_size(void *user, const node *n, const node *const src[]) {
  const numbering *k = user;
  (void)src;
  if (n->op != OP_VAR || n->dtype != DT_INDEX) return NULL;
  return ix_const(k->to, graph_size(k->g, n));
}

static bool has_sizes(const graph *g) {
  node_list order = topo_sort(g->a, g->roots, g->n_roots, NULL, NULL);
  for (size_t i = 0; i < order.n; i++)
    if (order.at[i]->op == OP_VAR && order.at[i]->dtype == DT_INDEX) return true;
  return false;
}

/** True if the evaluator computes the same values for the copy. */
static bool is_same(const graph *g, const expected *want, const expected *got, report *r) {
  for (size_t i = 0; i < g->n_roots && !r->failed; i++) {
    const interp_array *w = &want[i].value, *x = &got[i].value;
    size_t each = dtype_bytes(w->dtype);
    if (w->bytes != x->bytes) report_fail(r, "with numbers, a root has another size");
    for (size_t k = 0; k < w->bytes / each && !r->failed; k++) {
      uint64_t a = scalar_load(w->dtype, (const char *)w->data + k * each);
      uint64_t b = scalar_load(w->dtype, (const char *)x->data + k * each);
      if (!same_scalar(w->dtype, a, b))
        report_element(r, "with numbers, a root", k, w->dtype, a, b);
    }
  }
  return !r->failed;
}

static void check_copy(compiled *c, const target *t, const graph *g, const graph *exact,
                       const expected *e, report *r) {
  void **results = arena_calloc(g->a, g->n_roots + 1, sizeof *results);
  report_stage(r, "sizes as numbers");
  const expected *own = expect(exact);
  if (!is_same(g, e, own, r)) return;
  check_programs(exact, t, own, results, r);
  if (!r->failed && c) compiled_check(c, exact, results, r);
}

void check_exact(compiled *c, const target *t, const graph *g, const expected *e, report *r) {
  if (!has_sizes(g)) return;
  *r = (report){0};
  graph exact = {
      .ir = ir_new(g->a->mem, g->a->diag, true), .a = g->a, .math = g->math, .n_roots = g->n_roots};
  if (!exact.ir) diag_raise(g->a->diag, TN_ERR_MEMORY, "out of memory");
  exact.roots = arena_alloc(g->a, (g->n_roots + 1) * sizeof *exact.roots);
  numbering k = {g, exact.ir};
  ir_copy(exact.ir, g->a, g->roots, g->n_roots, number_of_size, &k, exact.roots);
  graph_prepare(&exact);
  check_copy(c, t, g, &exact, e, r);
  ir_free(exact.ir);
}
