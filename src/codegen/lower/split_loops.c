/* Implements index-set splitting in a lowered graph: replaces a loop by consecutive loops over
   parts of its index range. A node that depended on the loop then depends on all of the parts. */
#include "codegen/lower/split_loops.h"

#include "ir/core/binder.h"
#include "ir/index/index_arithmetic.h"
#include "ir/transform/substitute.h"

const node *split_loops_part(ir *g, const node *end, const node *from, const node *to,
                             const map *known) {
  arena *a = ir_arena(g);
  const node *r = end->src[0], *extent = ix_sub(g, to, from);
  if (node_is_bits(extent, 0)) return NULL;
  const node *own = range_make(g, extent, KIND_LOOP);
  map moved = {0};
  map_set(a, &moved, r, (void *)ix_add(g, from, own));
  const node **src = arena_alloc(a, end->n_src * sizeof *src);
  src[0] = own;
  for (uint32_t i = 1; i < end->n_src; i++)
    src[i] = subst_fresh_ranges(g, subst(g, end->src[i], known), &moved);
  return ir_node(g, OP_END, DT_VOID, src, end->n_src, NULL, 0);
}

/** A node with the images of its sources, and all parts of a split loop among them. */
static const node *rebuild_node(ir *g, const node *n, const map *image, const map *parts) {
  arena *a = ir_arena(g);
  node_list src = {0};
  bool same = true, has_parts = false;
  for (uint32_t k = 0; k < n->n_src; k++) {
    const node_list *own = map_get(parts, n->src[k]);
    const node *with = map_get(image, n->src[k]);
    for (size_t p = 0; own && p < own->n; p++) vec_push(a, &src, own->at[p]);
    if (!own) vec_push(a, &src, with);
    has_parts |= own != NULL;
    same &= with == n->src[k];
  }
  if (!has_parts) return same ? n : subst_rebuild(g, n, src.at);
  node_spec s = node_spec_with_sources(n, src.at, src.n);
  return ir_make(g, &s);
}

const node *split_loops_replace(ir *g, const node *sink, split_loops_callback split, void *user) {
  arena *a = ir_arena(g);
  node_list order = topo_sort(a, &sink, 1, NULL, NULL);
  map image = {0}, parts = {0};
  for (size_t i = 0; i < order.n; i++) {
    const node *n = order.at[i], *now = rebuild_node(g, n, &image, &parts);
    node_list own = {0};
    map_set(a, &image, n, (void *)now);
    if (n->op == OP_END && split(user, n, now, &own))
      map_set(a, &parts, n, arena_copy(a, &own, sizeof own));
  }
  return map_get(&image, sink);
}
