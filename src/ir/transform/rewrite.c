/* Implements the rewrite engine: bottom-up rewriting to a fixed point with an explicit stack of
   frames and a memo table. The number of nodes that rules produce is bounded in proportion to the
   graph. */
#include "ir/transform/rewrite.h"

#include "base/map.h"
#include "base/vec.h"
#include "ir/transform/substitute.h"

#include <inttypes.h>

/** A node that is being rewritten: first its sources, then, if these changed or a rule fired, the
    node that replaces it, whose final image becomes its own. */
typedef struct frame {
  const node *n;
  const node *replacement; /* NULL while sources are rewritten */
  uint32_t next;           /* first source that may have no image yet */
} frame;

typedef struct rewriting {
  rewriter *rw;
  const rewrite_rule_set *sets;
  size_t n_sets;
  const node **roots;
  size_t n_roots;
  arena work;
  map image; /* node → its final form; NULL while its frame is open */
  VEC(frame) stack;
  size_t replaced;   /* frames on the stack that wait for a replacement */
  uint64_t original; /* frames opened for nodes of the graph */
  uint64_t produced; /* frames opened for nodes made by rules */
} rewriting;

enum { STEPS_A_NODE = 2048, STEPS_AT_LEAST = 1 << 17 };

static const node *image_of(const rewriting *w, const node *n) { return map_get(&w->image, n); }

/** Opens a frame. A node that is open already was reached again from its own replacement: rules
    undo each other. */
static void open_frame(rewriting *w, const node *n) {
  if (w->replaced)
    w->produced++;
  else
    w->original++;
  if (w->produced > STEPS_AT_LEAST + w->original * STEPS_A_NODE || map_has(&w->image, n))
    diag_raise(ir_diag(w->rw->ir), TN_ERR_INTERNAL,
               "rewriting does not end: %" PRIu64 " rules fired on %" PRIu64 " nodes, now at %s",
               w->rw->fires, w->original, op_name((op)n->op));
  map_set(&w->work, &w->image, n, NULL);
  vec_push(&w->work, &w->stack, (frame){.n = n});
}

/** Remakes a node from the images of its sources. */
static const node *rebuild_node(rewriting *w, const node *n) {
  bool changed = false;
  arena_mark here = arena_save(&w->work);
  const node **src = arena_alloc(&w->work, n->n_src * sizeof *src);
  for (uint32_t i = 0; i < n->n_src; i++) {
    src[i] = image_of(w, n->src[i]);
    changed |= src[i] != n->src[i];
  }
  const node *r = changed ? subst_rebuild(w->rw->ir, n, src) : n;
  arena_rewind(&w->work, here);
  return r;
}

static const node *apply_rules(rewriting *w, const node *n) {
  for (size_t i = 0; i < w->n_sets; i++) {
    const node *r = w->sets[i](w->rw, n);
    if (r && r != n) return r;
  }
  return NULL;
}

static void close_frame(rewriting *w, const node *becomes) {
  map_set(&w->work, &w->image, vec_last(&w->stack).n, (void *)becomes);
  w->stack.n--;
}

/** Advances the frame on top of the stack by one step. */
static void advance_frame(rewriting *w) {
  frame *f = &vec_last(&w->stack);
  if (f->replacement) {
    w->replaced--;
    close_frame(w, image_of(w, f->replacement));
    return;
  }
  while (f->next < f->n->n_src && image_of(w, f->n->src[f->next])) f->next++;
  if (f->next < f->n->n_src) {
    open_frame(w, f->n->src[f->next]);
    return;
  }
  const node *r = rebuild_node(w, f->n);
  if (r == f->n) r = apply_rules(w, r);
  if (!r) {
    close_frame(w, f->n);
    return;
  }
  f->replacement = r;
  w->replaced++;
  if (!image_of(w, r)) open_frame(w, r);
}

static void rewrite_roots(void *arg) {
  rewriting *w = arg;
  for (size_t i = 0; i < w->n_roots; i++) {
    if (!image_of(w, w->roots[i])) open_frame(w, w->roots[i]);
    while (w->stack.n) advance_frame(w);
  }
  for (size_t i = 0; i < w->n_roots; i++) w->roots[i] = image_of(w, w->roots[i]);
}

void rewrite(rewriter *rw, const rewrite_rule_set sets[], size_t n_sets, const node *roots[],
             size_t n) {
  rewriting w = {.rw = rw, .sets = sets, .n_sets = n_sets, .roots = roots, .n_roots = n};
  diag *d = ir_diag(rw->ir);
  uint64_t before = rw->fires;
  arena_init(&w.work, ir_mem(rw->ir), d);
  tn_status status = diag_catch(d, rewrite_roots, &w);
  arena_free(&w.work);
  ir_add_rules_fired(rw->ir, rw->fires - before);
  if (status != TN_OK) diag_rethrow(d);
}
