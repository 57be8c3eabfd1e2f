/* Copies a graph from one IR to another: rebuilds its nodes in topological order, so that index
   arithmetic is canonical by the new node ids. */
#include "ir/transform/copy_graph.h"

#include "ir/transform/substitute.h"

void ir_copy(ir *to, arena *a, const node *const roots[], size_t n, ir_copy_replace_fn leaf,
             void *user, const node *copies[]) {
  node_list order = topo_sort(a, roots, n, NULL, NULL);
  ir_copy_sorted(to, a, &order, roots, n, leaf, user, copies);
}

void ir_copy_sorted(ir *to, arena *a, const node_list *order, const node *const roots[], size_t n,
                    ir_copy_replace_fn leaf, void *user, const node *copies[]) {
  map image = {0};
  for (size_t i = 0; i < order->n; i++) {
    const node *from = order->at[i];
    const node **src = arena_alloc(a, (from->n_src + 1) * sizeof *src);
    for (uint32_t k = 0; k < from->n_src; k++) src[k] = map_get(&image, from->src[k]);
    const node *made = leaf ? leaf(user, from, src) : NULL;
    map_set(a, &image, from, (void *)(made ? made : subst_rebuild(to, from, src)));
  }
  for (size_t i = 0; i < n; i++) copies[i] = map_get(&image, roots[i]);
}
