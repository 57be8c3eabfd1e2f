/* The tensor graph, copied into the scratch ir with its buffers as PARAMs in order of appearance,
   and simplified: equal graphs over other buffers become the same graph. */
#include "ir/build.h"
#include "ir/copy.h"
#include "rules/rules.h"
#include "schedule/passes.h"

typedef struct copying {
  ir *g;
  normalised *out;
  map image;
} copying;

/** Stands for the array that a SET changes while its view is simplified, so that rules for chains
   of movements end where the view ends. */
enum { PLACEHOLDER = INT32_MAX };

static const node *with_sources(ir *g, const node *n, const node *const src[]) {
  if (n->dtype == DT_INDEX && n->n_src) return ix_rebuild(g, n, src);
  return ir_make(g, &(node_spec){.op = (op)n->op,
                                 .dtype = (dtype)n->dtype,
                                 .lanes = n->lanes,
                                 .src = src,
                                 .n_src = n->n_src,
                                 .ints = n->ints,
                                 .n_int = n->n_int,
                                 .text = n->text,
                                 .n_text = n->n_text});
}

static const node *param_of(copying *c, const node *buffer, const node *const dims[]) {
  int64_t slot = (int64_t)c->out->origins.n;
  vec_push(ir_arena(c->g), &c->out->origins, buffer);
  return ir_node(c->g, OP_PARAM, (dtype)buffer->dtype, dims, buffer->n_src, &slot, 1);
}

static const node **images(copying *c, const node *n) {
  const node **src = arena_alloc(ir_arena(c->g), n->n_src * sizeof *src);
  for (uint32_t i = 0; i < n->n_src; i++) src[i] = map_get(&c->image, n->src[i]);
  return src;
}

/** The image of a chain of movements from `old` to `view`, which begins at the placeholder. */
static const node *view_of_placeholder(copying *c, const node *view, const node *old) {
  arena *a = ir_arena(c->g);
  node_list chain = {0};
  for (; view != old; view = view->src[0]) vec_push(a, &chain, view);
  const node *image = map_get(&c->image, old);
  int64_t slot = PLACEHOLDER;
  const node *at = ir_node(c->g, OP_PARAM, (dtype)old->dtype, image->dims, image->rank, &slot, 1);
  while (chain.n) {
    const node *v = vec_pop(&chain), **src = images(c, v);
    src[0] = at;
    at = with_sources(c->g, v, src);
  }
  return at;
}

static const node *copied(copying *c, const node *n) {
  const node **src = images(c, n);
  if (n->op == OP_BUFFER) return param_of(c, n, src);
  if (n->op == OP_SET) src[1] = view_of_placeholder(c, n->src[1], n->src[0]);
  return with_sources(c->g, n, src);
}

/** A SET's view, of the array that it changes again. */
static const node *view_of(ir *g, const node *view, const node *old) {
  arena *a = ir_arena(g);
  node_list chain = {0};
  for (; view->op != OP_PARAM; view = view->src[0]) vec_push(a, &chain, view);
  const node *at = old;
  while (chain.n) {
    const node *v = vec_pop(&chain), **src = arena_copy(a, v->src, v->n_src * sizeof *src);
    src[0] = at;
    at = with_sources(g, v, src);
  }
  return at;
}

static bool is_empty(const node *n) {
  for (size_t i = 0; i < n->rank; i++)
    if (node_is_bits(n->dims[i], 0)) return true;
  return false;
}

/** What stands for a node: SETs get their arrays back, and one that sets nothing goes. */
static const node *finished(copying *c, const node *n) {
  const node **src = images(c, n);
  if (n->op == OP_SET && is_empty(n->src[1])) return src[0];
  if (n->op == OP_SET) src[1] = view_of(c->g, n->src[1], src[0]);
  return ir_with_sources(c->g, n, src);
}

static void replace_placeholders(ir *g, normalised *out) {
  arena *a = ir_arena(g);
  copying c = {.g = g, .out = out};
  node_list order = topo_sort(a, out->roots, out->n_roots, NULL, NULL);
  for (size_t i = 0; i < order.n; i++)
    map_set(a, &c.image, order.at[i], (void *)finished(&c, order.at[i]));
  for (size_t i = 0; i < out->n_roots; i++) out->roots[i] = map_get(&c.image, out->roots[i]);
}

void schedule_normalise(ir *g, const schedule_request *r, normalised *out) {
  arena *a = ir_arena(g);
  *out =
      (normalised){.roots = arena_alloc(a, r->n_roots * sizeof *out->roots), .n_roots = r->n_roots};
  copying c = {.g = g, .out = out};
  node_list order = topo_sort(a, r->roots, r->n_roots, NULL, NULL);
  for (size_t i = 0; i < order.n; i++)
    map_set(a, &c.image, order.at[i], (void *)copied(&c, order.at[i]));
  for (size_t i = 0; i < r->n_roots; i++) out->roots[i] = map_get(&c.image, r->roots[i]);
  rewriter rw = {.ir = g, .math = r->math};
  rewrite(&rw, rules_simplify_tensor, RULES_SIMPLIFY_TENSOR, out->roots, r->n_roots);
  replace_placeholders(g, out);
}
