#include "tensor/usage.h"

#include "ir/loop.h"
#include "tensor/leaf.h"
#include "tensor/state.h"

void usage_list(usage *u, const node *const roots[], size_t n) {
  arena *a = &u->c->arena;
  u->order = topo_sort(a, roots, n, NULL, NULL);
  u->place = (map){0};
  for (size_t i = 0; i < u->order.n; i++)
    map_set(a, &u->place, u->order.at[i], (void *)(uintptr_t)(i + 1));
}

size_t usage_place(const usage *u, const node *n) {
  return (size_t)(uintptr_t)map_get(&u->place, n) - 1;
}

static bool depends_on_runs(const usage *u, const bool runs[], const node *n) {
  if (n->op == OP_VAR) return true;
  if (n->op == OP_BUFFER && leaf_of(u->c, n)->kind != LEAF_DATA) return true;
  for (uint32_t i = 0; i < n->n_src; i++)
    if (runs[usage_place(u, n->src[i])]) return true;
  return false;
}

bool usage_find_open(usage *u) {
  bool any = false, *runs = arena_calloc(&u->c->arena, u->order.n + 1, sizeof *runs);
  const bool *loops = loop_find_open(&u->c->arena, u->order.at, u->order.n);
  u->open = arena_calloc(&u->c->arena, u->order.n + 1, sizeof *u->open);
  for (size_t i = 0; i < u->order.n; i++) {
    runs[i] = depends_on_runs(u, runs, u->order.at[i]);
    any |= u->open[i] = runs[i] || loops[i];
  }
  return any;
}

void usage_count(usage *u) {
  u->held = arena_calloc(&u->c->arena, u->order.n + 1, sizeof *u->held);
  for (size_t i = 0; i < u->order.n; i++) {
    const node *n = u->order.at[i];
    u->has_custom |= n->op == OP_CUSTOM;
    for (uint32_t k = 0; k < n->n_src; k++) usage_hold(u, n->src[k]);
  }
}

void usage_hold(usage *u, const node *n) {
  if (n && map_has(&u->place, n)) u->held[usage_place(u, n)]++;
}

/** One reference fewer: to a node of the graph it is known, others may be without any then. */
static void let_go(usage *u, const node *n, node_list *dead) {
  arena *a = &u->c->arena;
  usage_hold(u, n);
  if (map_has(&u->place, n)) return;
  uintptr_t gone = (uintptr_t)map_get(&u->gone, n) + 1;
  map_set(a, &u->gone, n, (void *)gone);
  if (gone == n->refs) vec_push(a, dead, n);
}

void usage_let_go(usage *u, const node *n) {
  node_list dead = {0};
  if (n) let_go(u, n, &dead);
  while (dead.n) {
    const node *gone = vec_pop(&dead), *value = leaf_realised(u->c, gone);
    for (uint32_t k = 0; k < gone->n_src; k++) let_go(u, gone->src[k], &dead);
    if (value) let_go(u, value, &dead);
  }
}

bool usage_is_held_outside(const usage *u, const node *n) {
  return n->refs > u->held[usage_place(u, n)];
}

void usage_find_needed(usage *u) {
  u->needed = arena_calloc(&u->c->arena, u->order.n + 1, sizeof *u->needed);
  for (size_t i = u->order.n; i-- > 0;) {
    const node *n = u->order.at[i];
    u->needed[i] |= usage_is_held_outside(u, n);
    if (!u->needed[i]) continue;
    for (uint32_t k = 0; k < n->n_src; k++) u->needed[usage_place(u, n->src[k])] = true;
  }
}

bool usage_may_overwrite(const usage *u, const node *buffer) {
  const leaf *l = leaf_of(u->c, buffer);
  return l->cell && l->cell->settled == buffer && !u->has_custom &&
         !u->needed[usage_place(u, buffer)];
}
