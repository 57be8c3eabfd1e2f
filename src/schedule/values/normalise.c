/* Normalises a tensor graph: turns BUFFERs (graph inputs) into PARAMs (arguments by slot) in order
   of first use, and simplifies by the rewrite rules for tensors, so that equal graphs over other
   buffers become the same graph. While the view that a SET (a partial write) changes is simplified,
   a placeholder stands for the array that it changes. */
#include "schedule/values/normalise.h"
#include "ir/core/build.h"
#include "ir/transform/copy_graph.h"
#include "ir/transform/substitute.h"
#include "rules/rule_sets.h"
#include "schedule/core/param_like.h"
#include "schedule/values/tensor_products.h"

typedef struct copying {
  ir *g;
  normalised *out;
} copying;

/** Slot of the placeholder for the array that a SET changes: rules for chains of movements stop
 * there. */
enum { PLACEHOLDER = INT32_MAX };

/** The placeholder for an array, on its device or on none: whether the graph has devices is not
    known before all of it is copied. */
static const node *placeholder_for(ir *g, const node *array) {
  int64_t ints[2] = {PLACEHOLDER, (int64_t)array->device - 1};
  size_t n = array->device == 1 ? 1 : 2;
  return ir_node(g, OP_PARAM, (dtype)array->dtype, array->dims, array->rank, ints, n);
}

/** Copies a node; a SET gets its view of a placeholder. */
static const node *copy_node(void *user, const node *n, const node *const src[]) {
  copying *c = user;
  if (n->op == OP_BUFFER) {
    vec_push(ir_arena(c->g), &c->out->origins, n);
    return param_like(c->g, n, src, c->out->origins.n - 1);
  }
  if (n->op != OP_SET) return NULL;
  const node *view =
      subst_view_base(c->g, ir_scratch(c->g), src[1], src[0], placeholder_for(c->g, src[0]));
  return ir_with_sources(c->g, n, (const node *[]){src[0], view, src[2]});
}

/** Gives a SET its array back; one that sets no element becomes the array. */
static const node *restore_set(void *user, const node *n, const node *const src[]) {
  ir *g = user;
  for (size_t i = 0; n->op == OP_SCATTER && i < src[1]->rank; i++)
    if (node_is_bits(src[1]->dims[i], 0)) return src[0];
  if (n->op != OP_SET) return NULL;
  for (size_t i = 0; i < src[1]->rank; i++)
    if (node_is_bits(src[1]->dims[i], 0)) return src[0];
  const node *base = src[1];
  while (base->op != OP_PARAM) base = base->src[0];
  const node *view = subst_view_base(g, ir_scratch(g), src[1], base, src[0]);
  return ir_with_sources(g, n, (const node *[]){src[0], view, src[2]});
}

/** The tensor rows that all devices have as instructions. */
static uint32_t rows_of(const schedule_request *r) {
  uint32_t rows = r->target.rows;
  for (size_t i = 0; i < r->n_more; i++) rows &= r->more[i].rows;
  return rows;
}

/** Labelled nodes are copied as further roots: reachable from the others, they add nothing. */
void normalise_graph(ir *g, const schedule_request *r, normalised *out) {
  arena *work = ir_scratch(g);
  arena_mark here = arena_save(work);
  size_t n = r->n_roots + r->n_labels;
  const node **all = arena_alloc(ir_arena(g), (n + 1) * sizeof *all);
  for (size_t i = 0; i < n; i++)
    all[i] = i < r->n_roots ? r->roots[i] : r->labels[i - r->n_roots].node;
  *out = (normalised){
      .roots = all, .n_roots = r->n_roots, .labelled = all + r->n_roots, .n_labelled = r->n_labels};
  copying c = {.g = g, .out = out};
  ir_copy(g, work, all, n, copy_node, &c, all);
  arena_rewind(work, here);
  tensor_products_rewrite(g, &(tensor_products_request){
                                 .roots = all, .n_roots = n, .rows = rows_of(r), .math = r->math});
  rewriter rw = {.ir = g, .math = r->math};
  rewrite(&rw, rules_simplify_tensor, RULES_SIMPLIFY_TENSOR, all, n);
  ir_copy(g, work, all, n, restore_set, g, all);
  arena_rewind(work, here);
}
