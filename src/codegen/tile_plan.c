/* Implements the plan of registers for tiles: finds live ranges in one walk over the instructions,
   and gives each the lowest number that is free in a second one. */
#include "codegen/tile_plan.h"

#include "base/diag.h"
#include "base/vec.h"
#include "ir/core/tensor_rows.h"

#include <inttypes.h>

/** A register: from its first instruction to its last. */
typedef struct live_tile {
  size_t first, last, depth; /* depth: open loops at the first one */
  size_t number;
} live_tile;

typedef struct tile_walk {
  arena *a;
  const node *linear;
  map ends;         /* RANGE → position of its END */
  map of;           /* instruction or ALLOC → live_tile */
  VEC(size_t) open; /* positions of the ENDs of the open loops */
  VEC(live_tile *) all;
} tile_walk;

static live_tile *begin(tile_walk *w, const node *n, size_t at) {
  live_tile *x = arena_alloc(w->a, sizeof *x);
  *x = (live_tile){at, at, w->open.n, 0};
  map_set(w->a, &w->of, n, x);
  vec_push(w->a, &w->all, x);
  return x;
}

/** Makes a register live up to an instruction, or to the end of the loop that repeats it. */
static void extend(const tile_walk *w, const node *n, size_t at) {
  live_tile *x = map_get(&w->of, n);
  if (!x) return;
  size_t last = w->open.n > x->depth ? w->open.at[x->depth] : at;
  if (last > x->last) x->last = last;
}

static bool is_register(const node *storage) {
  return storage->op == OP_ALLOC && storage->ints[1] == SPACE_REGISTER;
}

/** The register of a value: its own, or that which it is loaded from or adds to. */
static void add_value(tile_walk *w, const node *n, size_t at) {
  const node *from = n->op == OP_LOAD ? node_storage_root(n->src[0]) : NULL;
  bool is_op = tensor_tile_of((op)n->op) != NULL;
  const node *holder = is_op ? n->src[0] : from && is_register(from) ? from : NULL;
  if (n->op == OP_SPLAT) return;
  if (!holder) {
    begin(w, n, at);
    return;
  }
  map_set(w->a, &w->of, n, map_get(&w->of, holder));
}

static void add_instruction(tile_walk *w, const node *n, size_t at) {
  if (n->op == OP_RANGE) vec_push(w->a, &w->open, (size_t)(uintptr_t)map_get(&w->ends, n));
  if (n->op == OP_END) w->open.n--;
  for (uint32_t i = 0; i < n->n_src; i++)
    if (node_is_tile(n->src[i])) extend(w, node_storage_root(n->src[i]), at);
  if (n->op == OP_ALLOC && node_is_tile(n)) begin(w, n, at);
  if (n->op != OP_ALLOC && n->op != OP_STORE && node_is_tile(n)) add_value(w, n, at);
}

/** The lowest number that no other register has while this one is live. */
static size_t free_number(const tile_walk *w, size_t i) {
  const live_tile *x = w->all.at[i];
  for (size_t number = 0;; number++) {
    bool is_free = true;
    for (size_t k = 0; k < i && is_free; k++) {
      const live_tile *other = w->all.at[k];
      is_free = other->number != number || other->last < x->first || other->first > x->last;
    }
    if (is_free) return number;
  }
}

/** Raises where a sum is read behind the op that changes it. */
static void check_sums(const tile_walk *w) {
  map changed = {0};
  for (size_t i = 0; i < w->linear->n_src; i++) {
    const node *n = w->linear->src[i];
    for (uint32_t k = 0; k < n->n_src; k++)
      if (map_has(&changed, n->src[k]))
        diag_raise(w->a->diag, TN_ERR_INTERNAL,
                   "%s (node %" PRIu64 ") reads a tile that was added to", op_name((op)n->op),
                   n->id);
    if (tensor_tile_of((op)n->op)) map_set(w->a, &changed, n->src[0], NULL);
  }
}

tile_plan tile_plan_make(arena *a, const node *linear) {
  tile_walk w = {.a = a, .linear = linear};
  tile_plan plan = {0};
  bool has_tiles = false;
  for (size_t i = 0; i < linear->n_src; i++) {
    const node *n = linear->src[i];
    has_tiles |= node_is_tile(n);
    if (n->op == OP_END) map_set(a, &w.ends, n->src[0], (void *)(uintptr_t)i);
  }
  if (!has_tiles) return plan;
  check_sums(&w);
  for (size_t i = 0; i < linear->n_src; i++) add_instruction(&w, linear->src[i], i);
  for (size_t i = 0; i < w.all.n; i++) {
    w.all.at[i]->number = free_number(&w, i);
    if (w.all.at[i]->number >= plan.n) plan.n = w.all.at[i]->number + 1;
  }
  for (size_t i = 0; i < w.of.n; i++) {
    const live_tile *x = w.of.at[i].value;
    map_set(a, &plan.numbers, w.of.at[i].key, (void *)(uintptr_t)(x->number + 1));
  }
  return plan;
}

int64_t tile_plan_number(const tile_plan *p, const node *n) {
  return (int64_t)(uintptr_t)map_get(&p->numbers, n) - 1;
}
