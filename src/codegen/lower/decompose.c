/* Decomposes ops that the target has no instruction for: first by the backend's own callback, then
   by the library's rewrite rules. Multiply-adds are fused before, so that the backend sees them as
   one op, and nothing that a decomposition makes is fused later. */
#include "codegen/codegen.h"
#include "ir/core/topo_sort.h"
#include "ir/transform/substitute.h"
#include "rules/rule_sets.h"

/** One sweep of the backend's callback over a graph. Nodes that it returns are not passed to it
    again. */
typedef struct callback_sweep {
  ir *g;
  const codegen_decomposer *by;
  const node *root;
  arena work;
  map image; /* node → its replacement, where it has one */
} callback_sweep;

static const node *image_of(const callback_sweep *c, const node *n) {
  const node *with = map_get(&c->image, n);
  return with ? with : n;
}

static const node *rebuild_with_images(callback_sweep *c, const node *n) {
  bool changed = false;
  const node **src = arena_alloc(&c->work, n->n_src * sizeof *src);
  for (uint32_t i = 0; i < n->n_src; i++) {
    src[i] = image_of(c, n->src[i]);
    changed |= src[i] != n->src[i];
  }
  return changed ? subst_rebuild(c->g, n, src) : n;
}

/** The replacement of a node, checked to have its type and lanes; the node itself without one. */
static const node *call_decomposer(const callback_sweep *c, const node *n) {
  diag *d = ir_diag(c->g);
  diag_clear(d);
  const node *r = c->by->decompose(c->by->user, c->g, n);
  if (!r && d->status != TN_OK) diag_rethrow(d);
  if (r && (r->dtype != n->dtype || r->lanes != n->lanes))
    diag_raise(d, TN_ERR_DEVICE, "the target's decomposition of %s of %s has type %s, %d lanes",
               op_name((op)n->op), dtype_name((dtype)n->dtype), dtype_name((dtype)r->dtype),
               (int)r->lanes);
  return r ? r : n;
}

static void sweep_graph(void *arg) {
  callback_sweep *c = arg;
  node_list order = topo_sort(&c->work, &c->root, 1, NULL, NULL);
  for (size_t i = 0; i < order.n; i++) {
    const node *n = order.at[i];
    arena_mark here = arena_save(&c->work);
    const node *now = rebuild_with_images(c, n);
    arena_rewind(&c->work, here);
    now = call_decomposer(c, now);
    if (now != n) map_set(&c->work, &c->image, n, (void *)now);
  }
  c->root = image_of(c, c->root);
}

static const node *apply_callback(ir *g, const node *sink, const codegen_decomposer *by) {
  if (!by->decompose) return sink;
  callback_sweep c = {.g = g, .by = by, .root = sink};
  arena_init(&c.work, ir_mem(g), ir_diag(g));
  tn_status status = diag_catch(ir_diag(g), sweep_graph, &c);
  arena_free(&c.work);
  if (status != TN_OK) diag_rethrow(ir_diag(g));
  return c.root;
}

static const node *apply_rules(ir *g, const node *sink, const codegen_options *o,
                               const rewrite_rule_set sets[], size_t n) {
  rewriter rw = {.ir = g, .math = o->math, .target = &o->target.rules};
  rewrite(&rw, sets, n, &sink, 1);
  return sink;
}

const node *codegen_decompose(ir *g, const node *sink, const codegen_options *o) {
  sink = apply_rules(g, sink, o, rules_contract_fma, RULES_CONTRACT_FMA);
  sink = apply_callback(g, sink, &o->decomposer);
  return apply_rules(g, sink, o, rules_lower, RULES_LOWER);
}
