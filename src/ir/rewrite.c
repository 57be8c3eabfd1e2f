#include "ir/rewrite.h"

#include "base/map.h"
#include "base/vec.h"
#include "ir/subst.h"

#include <inttypes.h>

/* A node's frame waits for its sources first; then, if they changed or a rule fired, for the node
   that took its place; what that becomes, it becomes. Everything on the way is remembered. */
typedef struct frame {
  const node *n;
  const node *instead; /* NULL: sources are being done */
  uint32_t next;       /* first source that may be undone */
} frame;

typedef struct rewriting {
  rewriter *rw;
  const rule_set *sets;
  size_t n_sets;
  const node **roots;
  size_t n_roots;
  arena work;
  map image; /* node → what it becomes; NULL while its frame is open */
  VEC(frame) stack;
  size_t replaced;          /* frames on the stack that wait for another node */
  uint64_t given, produced; /* frames opened for the graph as it was, and for what rules made */
} rewriting;

enum { STEPS_A_NODE = 2048, STEPS_AT_LEAST = 1 << 17 };

static const node *image_of(const rewriting *w, const node *n) { return map_get(&w->image, n); }

static _Noreturn void endless(const rewriting *w, const node *n) {
  diag_raise(ir_diag(w->rw->ir), TN_ERR_INTERNAL,
             "rewriting does not end: %" PRIu64 " rules fired on %" PRIu64 " nodes, now at %s",
             w->rw->fires, w->given, op_name((op)n->op));
}

/** A node that is open already has become itself again by way of others. */
static void open_frame(rewriting *w, const node *n) {
  if (w->replaced)
    w->produced++;
  else
    w->given++;
  if (w->produced > STEPS_AT_LEAST + w->given * STEPS_A_NODE || map_has(&w->image, n))
    endless(w, n);
  map_set(&w->work, &w->image, n, NULL);
  vec_push(&w->work, &w->stack, (frame){.n = n});
}

/** The node with the sources' images. */
static const node *rebuilt(rewriting *w, const node *n) {
  bool changed = false;
  arena_mark here = arena_here(&w->work);
  const node **src = arena_alloc(&w->work, n->n_src * sizeof *src);
  for (uint32_t i = 0; i < n->n_src; i++) {
    src[i] = image_of(w, n->src[i]);
    changed |= src[i] != n->src[i];
  }
  const node *r = changed ? subst_rebuild(w->rw->ir, n, src) : n;
  arena_reset(&w->work, here);
  return r;
}

static const node *apply(rewriting *w, const node *n) {
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

/** One step of the frame on top. */
static void advance(rewriting *w) {
  frame *f = &vec_last(&w->stack);
  if (f->instead) {
    w->replaced--;
    close_frame(w, image_of(w, f->instead));
    return;
  }
  while (f->next < f->n->n_src && image_of(w, f->n->src[f->next])) f->next++;
  if (f->next < f->n->n_src) {
    open_frame(w, f->n->src[f->next]);
    return;
  }
  const node *r = rebuilt(w, f->n);
  if (r == f->n) r = apply(w, r);
  if (!r) {
    close_frame(w, f->n);
    return;
  }
  f->instead = r;
  w->replaced++;
  if (!image_of(w, r)) open_frame(w, r);
}

static void body(void *arg) {
  rewriting *w = arg;
  for (size_t i = 0; i < w->n_roots; i++) {
    if (!image_of(w, w->roots[i])) open_frame(w, w->roots[i]);
    while (w->stack.n) advance(w);
  }
  for (size_t i = 0; i < w->n_roots; i++) w->roots[i] = image_of(w, w->roots[i]);
}

void rewrite(rewriter *rw, const rule_set sets[], size_t n_sets, const node *roots[], size_t n) {
  rewriting w = {.rw = rw, .sets = sets, .n_sets = n_sets, .roots = roots, .n_roots = n};
  diag *d = ir_diag(rw->ir);
  uint64_t before = rw->fires;
  arena_init(&w.work, ir_mem(rw->ir), d);
  tn_status status = diag_catch(d, body, &w);
  arena_free(&w.work);
  ir_add_fires(rw->ir, rw->fires - before);
  if (status != TN_OK) diag_rethrow(d);
}
