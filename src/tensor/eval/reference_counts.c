/* Reference counts of a graph about to run. The known references of a node are those of the graph
   itself and those that the run drops; a node with more is held from outside, and is needed after
   the run together with all its sources. */
#include "tensor/eval/reference_counts.h"

#include "ir/core/tensor_loop.h"
#include "tensor/state/graph_input.h"
#include "tensor/state/state.h"

void reference_counts_list(reference_counts *u, const node *const roots[], size_t n) {
  arena *a = &u->c->arena;
  u->order = topo_sort(a, roots, n, NULL, NULL);
  u->index_of = (map){0};
  for (size_t i = 0; i < u->order.n; i++)
    map_set(a, &u->index_of, u->order.at[i], (void *)(uintptr_t)(i + 1));
}

size_t reference_counts_index(const reference_counts *u, const node *n) {
  return (size_t)(uintptr_t)map_get(&u->index_of, n) - 1;
}

static bool depends_on_runs(const reference_counts *u, const bool runs[], const node *n) {
  if (graph_input_is_of_runs(u->c, n)) return true;
  for (uint32_t i = 0; i < n->n_src; i++)
    if (runs[reference_counts_index(u, n->src[i])]) return true;
  return false;
}

bool reference_counts_find_unbound(reference_counts *u) {
  bool any = false, *runs = arena_calloc(&u->c->arena, u->order.n + 1, sizeof *runs);
  const bool *loops = loop_find_unbound(&u->c->arena, u->order.at, u->order.n);
  u->unbound = arena_calloc(&u->c->arena, u->order.n + 1, sizeof *u->unbound);
  for (size_t i = 0; i < u->order.n; i++) {
    runs[i] = depends_on_runs(u, runs, u->order.at[i]);
    any |= u->unbound[i] = runs[i] || loops[i];
  }
  return any;
}

void reference_counts_init(reference_counts *u) {
  u->n_known = arena_calloc(&u->c->arena, u->order.n + 1, sizeof *u->n_known);
  bool is_followed = u->c->progress.step;
  for (size_t i = 0; i < u->order.n; i++) {
    const node *n = u->order.at[i];
    u->may_fail |= n->op == OP_CUSTOM || (n->op == OP_LOOP && is_followed);
    for (uint32_t k = 0; k < n->n_src; k++) reference_counts_add(u, n->src[k]);
  }
}

void reference_counts_add(reference_counts *u, const node *n) {
  if (n && map_has(&u->index_of, n)) u->n_known[reference_counts_index(u, n)]++;
}

/** Counts a dropped reference to a node. A node outside of the graph that has none left is added to
    `dead`. */
static void drop_reference(reference_counts *u, const node *n, node_list *dead) {
  arena *a = &u->c->arena;
  reference_counts_add(u, n);
  if (map_has(&u->index_of, n)) return;
  uintptr_t n_dropped = (uintptr_t)map_get(&u->n_dropped, n) + 1;
  map_set(a, &u->n_dropped, n, (void *)n_dropped);
  if (n_dropped == n->refs) vec_push(a, dead, n);
}

void reference_counts_release(reference_counts *u, const node *n) {
  node_list dead = {0};
  if (n) drop_reference(u, n, &dead);
  while (dead.n) {
    const node *n_dropped = vec_pop(&dead), *value = computed_value_of(u->c, n_dropped);
    for (uint32_t k = 0; k < n_dropped->n_src; k++) drop_reference(u, n_dropped->src[k], &dead);
    if (value) drop_reference(u, value, &dead);
  }
}

bool reference_counts_held_outside(const reference_counts *u, const node *n) {
  return n->refs > u->n_known[reference_counts_index(u, n)];
}

void reference_counts_find_needed(reference_counts *u) {
  u->needed = arena_calloc(&u->c->arena, u->order.n + 1, sizeof *u->needed);
  for (size_t i = u->order.n; i-- > 0;) {
    const node *n = u->order.at[i];
    u->needed[i] |= reference_counts_held_outside(u, n);
    if (!u->needed[i]) continue;
    for (uint32_t k = 0; k < n->n_src; k++) u->needed[reference_counts_index(u, n->src[k])] = true;
  }
}

bool reference_counts_may_overwrite(const reference_counts *u, const node *buffer) {
  const graph_input *l = graph_input_of(u->c, buffer);
  return l->state && l->state->versions.committed == buffer && !u->may_fail &&
         !u->needed[reference_counts_index(u, buffer)];
}
