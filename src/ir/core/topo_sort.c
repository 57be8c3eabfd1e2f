/* Implements topological sorting as a depth-first post-order with an explicit stack. Each walk has
   its own hash set of visited nodes, so a graph can be walked by several threads, or inside of
   another walk. */
#include "ir/core/topo_sort.h"

#include <string.h>

/* Visited nodes: open addressing, at most half full. Nodes that were made together have consecutive
   ids, so the id is the first slot: neighbours do not collide and share cache lines. Collisions of
   ids that are far apart step on by a second hash. Small walks fit in the slots inside. */

enum { SLOTS_INSIDE = 128, GROWTH = 4 };

typedef struct visited_set {
  const node **slot;
  size_t n, mask; /* nodes; slots − 1 */
  const node *inside[SLOTS_INSIDE];
} visited_set;

static void visited_init(visited_set *v) {
  v->slot = v->inside;
  v->n = 0;
  v->mask = SLOTS_INSIDE - 1;
  memset(v->inside, 0, sizeof v->inside);
}

static inline size_t second_hash(const node *n) {
  return (size_t)(n->id * UINT64_C(0x9E3779B97F4A7C15) >> 32) | 1;
}

static void visited_grow(arena *a, visited_set *v) {
  const node **old = v->slot;
  size_t n_old = v->mask + 1;
  v->slot = arena_calloc(a, n_old * GROWTH, sizeof *v->slot);
  v->mask = n_old * GROWTH - 1;
  for (size_t k = 0; k < n_old; k++) {
    if (!old[k]) continue;
    size_t i = (size_t)old[k]->id & v->mask;
    while (v->slot[i]) i = (i + second_hash(old[k])) & v->mask;
    v->slot[i] = old[k];
  }
}

/** Adds a node; false if the walk has met it already. */
static inline bool visited_add(arena *a, visited_set *v, const node *n) {
  const node **slot = v->slot;
  size_t mask = v->mask, i = (size_t)n->id & mask;
  for (; slot[i]; i = (i + second_hash(n)) & mask)
    if (slot[i] == n) return false;
  slot[i] = n;
  if (++v->n * 2 > mask) visited_grow(a, v);
  return true;
}

/** A node on the path from a root. */
typedef struct frame {
  const node *n;
  uint32_t next, n_src; /* source to look at next; sources that are followed */
} frame;

node_list topo_sort(arena *a, const node *const roots[], size_t n,
                    bool (*enter)(const node *n, void *user), void *user) {
  visited_set visited;
  VEC(frame) stack = {0};
  node_list out = {0};
  arena_mark before = arena_save(a);
  visited_init(&visited);
  for (size_t i = 0; i < n; i++) {
    const node *opened = visited_add(a, &visited, roots[i]) ? roots[i] : NULL;
    while (opened || stack.n) {
      if (opened)
        vec_push(a, &stack, (frame){opened, 0, !enter || enter(opened, user) ? opened->n_src : 0});
      frame *f = &vec_last(&stack);
      for (opened = NULL; f->next < f->n_src && !opened; f->next++)
        if (visited_add(a, &visited, f->n->src[f->next])) opened = f->n->src[f->next];
      if (opened) continue;
      vec_push(a, &out, f->n);
      stack.n--;
    }
  }
  if (!out.n) return out;
  out.at = arena_rewind_keeping(a, before, out.at, out.n * sizeof *out.at);
  out.cap = out.n;
  return out;
}
