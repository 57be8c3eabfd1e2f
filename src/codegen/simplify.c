/* Rewriting by rules: algebra, and the decomposition of what the target lacks. */
#include "codegen/codegen.h"
#include "ir/sink.h"
#include "ir/subst.h"
#include "ir/topo.h"
#include "rules/rules.h"

static const node *rewritten(ir *g, const node *sink, const codegen_options *o,
                             const rule_set sets[], size_t n, const rule_target *t) {
  rewriter rw = {.ir = g, .math = o->math, .target = t};
  rewrite(&rw, sets, n, &sink, 1);
  return sink;
}

/** The lines of a schedule are about the kernel that brings it, as it is. */
const node *codegen_simplify(ir *g, const node *sink, const codegen_options *o) {
  size_t bytes;
  if (sink_schedule(sink, &bytes)) return sink;
  return rewritten(g, sink, o, rules_simplify_kernel, RULES_SIMPLIFY_KERNEL, NULL);
}

/* The target's own decompositions. What they make is not offered to them again. */

typedef struct offering {
  ir *g;
  const codegen_decomposer *by;
  const node *root;
  arena work;
  map image; /* node → what stands for it, where it changed */
} offering;

static const node *image(const offering *f, const node *n) {
  const node *with = map_get(&f->image, n);
  return with ? with : n;
}

/** A node with the images of its sources. */
static const node *with_images(offering *f, const node *n) {
  bool changed = false;
  const node **src = arena_alloc(&f->work, n->n_src * sizeof *src);
  for (uint32_t i = 0; i < n->n_src; i++) {
    src[i] = image(f, n->src[i]);
    changed |= src[i] != n->src[i];
  }
  return changed ? subst_rebuild(f->g, n, src) : n;
}

static const node *offer(const offering *f, const node *n) {
  diag *d = ir_diag(f->g);
  diag_clear(d);
  const node *r = f->by->decompose(f->by->user, f->g, n);
  if (!r && d->status != TN_OK) diag_rethrow(d);
  if (r && (r->dtype != n->dtype || r->lanes != n->lanes))
    diag_raise(d, TN_ERR_DEVICE, "the target's decomposition of %s of %s has type %s, %d lanes",
               op_name((op)n->op), dtype_name((dtype)n->dtype), dtype_name((dtype)r->dtype),
               (int)r->lanes);
  return r ? r : n;
}

static void offer_all(void *arg) {
  offering *f = arg;
  node_list order = topo_sort(&f->work, &f->root, 1, NULL, NULL);
  for (size_t i = 0; i < order.n; i++) {
    const node *n = order.at[i];
    arena_mark here = arena_here(&f->work);
    const node *now = with_images(f, n);
    arena_reset(&f->work, here);
    now = offer(f, now);
    if (now != n) map_set(&f->work, &f->image, n, (void *)now);
  }
  f->root = image(f, f->root);
}

static const node *offered(ir *g, const node *sink, const codegen_decomposer *by) {
  if (!by->decompose) return sink;
  offering f = {.g = g, .by = by, .root = sink};
  arena_init(&f.work, ir_mem(g), ir_diag(g));
  tn_status status = diag_catch(ir_diag(g), offer_all, &f);
  arena_free(&f.work);
  if (status != TN_OK) diag_rethrow(ir_diag(g));
  return f.root;
}

/** What was fused is offered as one, and what the target makes of nodes is not fused. */
const node *codegen_decompose(ir *g, const node *sink, const codegen_options *o) {
  sink = rewritten(g, sink, o, rules_fuse, RULES_FUSE, &o->target.rules);
  sink = offered(g, sink, &o->first);
  return rewritten(g, sink, o, rules_lower, RULES_LOWER, &o->target.rules);
}
