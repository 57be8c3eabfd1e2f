/* Implements the index of kernels: the nodes of a kernel in topological order, and its binders.
   Laws and the choices between them ask for these many times between two rewrites, so the indices
   of the kernels that were asked about last are remembered. Kernels are immutable: an index is
   valid as long as its ir. */
#include "laws/law_support.h"

#include "ir/core/topo_sort.h"

/* A law's result is looked at beside the kernel it came from, and two more laws may follow before
   one of them is dropped. */
enum { REMEMBERED = 4 };

struct kernel_indices {
  kernel_index at[REMEMBERED];
  size_t next; /* to be replaced */
};

kernel_indices *law_indices_new(ir *g) {
  return arena_calloc(ir_arena(g), 1, sizeof(kernel_indices));
}

static kernel_index make_index(arena *a, const node *sink) {
  kernel_index x = {.sink = sink, .nodes = topo_sort(a, &sink, 1, NULL, NULL)};
  for (size_t i = 0; i < x.nodes.n; i++)
    if (node_is_binder(x.nodes.at[i])) vec_push(a, &x.binders, x.nodes.at[i]);
  return x;
}

kernel_index law_index_of(const laws *l, const node *sink) {
  kernel_indices *known = l->indices;
  for (size_t i = 0; known && i < REMEMBERED; i++)
    if (known->at[i].sink == sink) return known->at[i];
  kernel_index made = make_index(ir_arena(l->g), sink);
  if (known) {
    known->at[known->next] = made;
    known->next = (known->next + 1) % REMEMBERED;
  }
  return made;
}

const node *law_find_binder(const laws *l, const node *sink, const node *range) {
  kernel_index x = law_index_of(l, sink);
  for (size_t i = 0; i < x.binders.n; i++) {
    const node *const *ranges;
    size_t n = binder_ranges(x.binders.at[i], &ranges);
    if (nodes_contain(ranges, n, range)) return x.binders.at[i];
  }
  return NULL;
}
