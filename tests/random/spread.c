/* Chooses a device for each node of a graph, in order, and moves operands there. */
#include "spread.h"

#include "ir/core/node_device.h"
#include "ir/transform/substitute.h"

typedef struct spreading {
  graph *g;
  rng *r;
  map open;    /* nodes that depend on the index of a loop */
  uint8_t own; /* the device of loops, as node.device */
  map image;
} spreading;

static const node *image_of(const spreading *x, const node *n) { return map_get(&x->image, n); }

/** A tensor on a device: moved, unless it is there or anybody's. */
static const node *on_device(spreading *x, const node *n, uint8_t device, bool may_pin) {
  bool is_tensor = n->dtype != DT_INDEX && n->dtype != DT_VOID;
  bool is_pinned = !n->device && may_pin && rng_chance(x->r, 10);
  if (!device || !is_tensor || n->device == device || !(n->device || is_pinned)) return n;
  int64_t ints[] = {device - 1};
  return ir_node(x->g->ir, OP_TO, (dtype)n->dtype, &n, 1, ints, 1);
}

/** A BUFFER on a device that follows from its number. */
static const node *moved_buffer(spreading *x, const node *n, const node *const src[]) {
  int64_t ints[] = {n->ints[0], n->ints[1], n->ints[0] / 7 % SPREAD_DEVICES};
  return ir_node(x->g->ir, OP_BUFFER, (dtype)n->dtype, src, n->n_src, ints, ints[2] ? 3 : 2);
}

/** Rebuilds the view of a SET over an array. */
static const node *view_over(spreading *x, const node *set, const node *old) {
  node_list chain = {0};
  for (const node *v = set->src[1]; v != set->src[0]; v = v->src[0]) vec_push(x->g->a, &chain, v);
  while (chain.n) {
    const node *v = vec_pop(&chain);
    const node **src = arena_alloc(x->g->a, v->n_src * sizeof *src);
    for (uint32_t i = 0; i < v->n_src; i++) src[i] = i ? image_of(x, v->src[i]) : old;
    old = subst_rebuild(x->g->ir, v, src);
  }
  return old;
}

/** The device for a node: that of an operand, or any. */
static uint8_t choose_device(spreading *x, const node *n, const node *const src[]) {
  bool moves = op_is_movement((op)n->op) && n->op != OP_GATHER;
  if (map_has(&x->open, n) || n->op == OP_LOOP) return x->own;
  if (moves || n->op == OP_SET || n->op == OP_RESULT) return src[0]->device;
  for (uint32_t i = 0; i < n->n_src && rng_chance(x->r, 70); i++)
    if (src[i]->device) return src[i]->device;
  return (uint8_t)(1 + rng_below(x->r, SPREAD_DEVICES));
}

static const node *spread_node(spreading *x, const node *n) {
  const node **src = arena_alloc(x->g->a, (n->n_src + 1) * sizeof *src);
  for (uint32_t i = 0; i < n->n_src; i++) src[i] = image_of(x, n->src[i]);
  if (n->op == OP_BUFFER) return moved_buffer(x, n, src);
  if (n->dtype == DT_INDEX || !n->n_src) return subst_rebuild(x->g->ir, n, src);
  uint8_t device = choose_device(x, n, src);
  for (uint32_t i = 0; i < n->n_src; i++) {
    bool is_view = n->op == OP_SET && i == 1, is_open = map_has(&x->open, n->src[i]);
    if (is_view) src[1] = view_over(x, n, src[0]);
    if (!is_view && !is_open) src[i] = on_device(x, src[i], device, !map_has(&x->open, n));
  }
  return subst_rebuild(x->g->ir, n, src);
}

void spread(graph *g, rng *r) {
  spreading x = {.g = g, .r = r, .own = (uint8_t)(1 + rng_below(r, SPREAD_DEVICES))};
  node_list order = topo_sort(g->a, g->roots, g->n_roots, NULL, NULL);
  x.open = graph_open_nodes(g->a, &order);
  for (size_t i = 0; i < order.n; i++)
    map_set(g->a, &x.image, order.at[i], (void *)spread_node(&x, order.at[i]));
  for (size_t i = 0; i < g->n_roots; i++) {
    g->roots[i] = image_of(&x, g->roots[i]);
    if (rng_chance(r, 20)) g->roots[i] = on_device(&x, g->roots[i], 2, true);
  }
}
