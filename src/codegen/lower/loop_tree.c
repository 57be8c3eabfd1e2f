/* Finds the tree of loops of a lowered kernel, which linearising and prefetching follow. */
#include "codegen/lower/loop_tree.h"

loop *loop_tree_around(loop_tree *tree, const node *n) {
  loop *deepest = map_get(&tree->within, n);
  if (!deepest) deepest = &tree->outside;
  for (uint32_t i = 0; i < n->free->n; i++) {
    loop *l = map_get(&tree->loops, n->free->at[i]);
    if (l && l->depth > deepest->depth) deepest = l;
  }
  return deepest;
}

void loop_tree_make(loop_tree *tree, arena *a, const node_list *order) {
  *tree = (loop_tree){0};
  for (size_t i = order->n; i-- > 0;) { /* an outer END follows the inner ones */
    const node *end = order->at[i];
    if (end->op != OP_END) continue;
    loop *own = arena_calloc(a, 1, sizeof *own), *parent = loop_tree_around(tree, end);
    *own = (loop){.range = end->src[0], .end = end, .parent = parent, .depth = parent->depth + 1};
    parent->has_loops = true;
    map_set(a, &tree->loops, own->range, own);
    for (uint32_t k = 1; k < end->n_src; k++) map_set(a, &tree->within, end->src[k], own);
  }
}
