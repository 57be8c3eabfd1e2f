/* The tensor graph, copied into the scratch ir with its buffers as PARAMs in order of appearance,
   and simplified: equal graphs over other buffers become the same graph. */
#include "ir/build.h"
#include "ir/copy.h"
#include "ir/subst.h"
#include "rules/rules.h"
#include "schedule/passes.h"

typedef struct copying {
  ir *g;
  normalised *out;
} copying;

/** Stands for the array that a SET changes while its view is simplified, so that rules for chains
   of movements end where the view ends. */
enum { PLACEHOLDER = INT32_MAX };

static const node *param_of(copying *c, const node *buffer, const node *const dims[]) {
  int64_t slot = (int64_t)c->out->origins.n;
  vec_push(ir_arena(c->g), &c->out->origins, buffer);
  return ir_node(c->g, OP_PARAM, (dtype)buffer->dtype, dims, buffer->n_src, &slot, 1);
}

static const node *placeholder(ir *g, const node *old) {
  int64_t slot = PLACEHOLDER;
  return ir_node(g, OP_PARAM, (dtype)old->dtype, old->dims, old->rank, &slot, 1);
}

/** A SET with its view taken of a placeholder. */
static const node *copied(void *user, const node *n, const node *const src[]) {
  copying *c = user;
  if (n->op == OP_BUFFER) return param_of(c, n, src);
  if (n->op != OP_SET) return NULL;
  const node *view = subst_view(c->g, ir_arena(c->g), src[1], src[0], placeholder(c->g, src[0]));
  return ir_with_sources(c->g, n, (const node *[]){src[0], view, src[2]});
}

static bool is_empty(const node *n) {
  for (size_t i = 0; i < n->rank; i++)
    if (node_is_bits(n->dims[i], 0)) return true;
  return false;
}

/** SETs get their arrays back, and one that sets nothing goes. */
static const node *finished(void *user, const node *n, const node *const src[]) {
  ir *g = user;
  if (n->op != OP_SET) return NULL;
  if (is_empty(src[1])) return src[0];
  const node *base = src[1];
  while (base->op != OP_PARAM) base = base->src[0];
  const node *view = subst_view(g, ir_arena(g), src[1], base, src[0]);
  return ir_with_sources(g, n, (const node *[]){src[0], view, src[2]});
}

/** Labelled nodes go along as further roots: they are below the others, and so change nothing. */
void schedule_normalise(ir *g, const schedule_request *r, normalised *out) {
  arena *a = ir_arena(g);
  size_t n = r->n_roots + r->n_labels;
  const node **all = arena_alloc(a, (n + 1) * sizeof *all);
  for (size_t i = 0; i < n; i++)
    all[i] = i < r->n_roots ? r->roots[i] : r->labels[i - r->n_roots].node;
  *out = (normalised){.roots = all, .n_roots = r->n_roots, .labelled = all + r->n_roots};
  copying c = {.g = g, .out = out};
  ir_copy(g, a, all, n, copied, &c, all);
  rewriter rw = {.ir = g, .math = r->math};
  rewrite(&rw, rules_simplify_tensor, RULES_SIMPLIFY_TENSOR, all, n);
  ir_copy(g, a, all, n, finished, g, all);
}
