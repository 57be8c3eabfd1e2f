/* Lowers arrays in slots (law DEPTH). Iterations of the loop around such an array use its slots by
   turns. The loops that build it run d − 1 iterations ahead, behind a WAIT, which marks the end of
   a turn for stores of the turns before:

     for p < d − 1:  wait; if p < n: build slot p
     for r < n:      wait (d − 2 are pending); if r + d − 1 < n: build slot (r + d − 1) mod d; …

   Both run inside of all ranges that the loop is inside of, since each run of it begins anew.
   Barriers between turns are inserted as everywhere (barriers.c), and copies_ahead.c makes stores
   asynchronous where the target can. */
#include "codegen/lower/lowering.h"
#include "ir/index/index_arithmetic.h"
#include "ir/transform/substitute.h"
#include "laws/array_slots.h"

enum { NOTHING_PENDING = -1 };

/** The number of ranges around the loop of a STAGE's turns, and the first of them. */
static size_t ranges_around(const lowering *l, const node *stage, const node *const **first) {
  const node_list *open = map_get(&l->teams.open, stage);
  *first = open->at;
  return open->n - 1;
}

void lower_find_turns(lowering *l, const node *sink, const node_list *order) {
  for (size_t i = 0; i < order->n; i++) {
    const node *s = order->at[i], *turn, *const * around;
    if (s->op != OP_STAGE || stage_slots(s) < 2) continue;
    if (array_slots_objection(l->g, sink, &l->teams, s, &turn)) continue;
    const range_set *place = ix_const(l->g, 0)->free;
    for (size_t k = ranges_around(l, s, &around); k-- > 0;)
      place = range_set_union(l->g, place, around[k]->free);
    map_set(l->a, &l->turns, s, (void *)turn);
    map_set(l->a, &l->places, s, (void *)place);
  }
}

node_list lower_slot_dependences(lowering *l, const node *stage) {
  const node *const *around;
  node_list all = {0};
  for (size_t k = 0, n = ranges_around(l, stage, &around); k < n; k++)
    vec_push(l->a, &all, around[k]);
  for (uint32_t k = 0; k < stage->n_src; k++) vec_push(l->a, &all, stage->src[k]);
  return all;
}

/** The loop whose iterations use a STAGE's slots, lowered. */
static const node *turn_of(lowering *l, const node *stage) {
  return lower_node(l, map_get(&l->turns, stage));
}

const node *lower_slot(lowering *l, const node *stage) {
  return ix_mod(l->g, turn_of(l, stage), ix_const(l->g, stage_slots(stage)));
}

static const node *wait_make(lowering *l, const node *stage, const node *range, int64_t pending) {
  const node *const *around;
  size_t n = ranges_around(l, stage, &around), count = 0;
  const node **loops = lower_loops(l, around, n), **src = arena_alloc(l->a, (n + 1) * sizeof *src);
  src[count++] = range;
  for (size_t i = 0; i < n; i++)
    if (loops[i]) src[count++] = loops[i];
  return ir_node(l->g, OP_WAIT, DT_VOID, src, count, &pending, 1);
}

/** The loops that build the array of another iteration, if there is such a one, behind a WAIT. */
static const node *build_for(lowering *l, const node *turn, const node *at, const node *alloc,
                             const node *storage, const node *end) {
  const node *extent = range_extent(turn), *gate = lower_gate(l, ix_sub(l->g, extent, at));
  map with = {0}, behind = {0};
  map_set(l->a, &with, turn, (void *)ix_add(l->g, at, gate));
  map_set(l->a, &behind, alloc, (void *)storage);
  const node *build = subst(l->g, subst_fresh_ranges(l->g, end, &with), &behind);
  return lower_close_loops(l, &build, NULL, 1, &gate, 1);
}

const node *lower_build_ahead(lowering *l, const node *stage, const node *alloc, const node *end) {
  const node *turn = turn_of(l, stage), *waits[2], *effects[2];
  int64_t ahead = stage_slots(stage) - 1;
  const node *first = range_make(l->g, ix_const(l->g, ahead), KIND_LOOP);
  waits[0] = wait_make(l, stage, first, NOTHING_PENDING);
  const node *storage = lower_after(l, alloc, waits, 1, NULL, 0);
  effects[0] = build_for(l, turn, first, alloc, storage, end);
  effects[0] = lower_close_loops(l, effects, NULL, 1, &first, 1);
  waits[0] = effects[0];
  waits[1] = wait_make(l, stage, turn, ahead - 1);
  storage = lower_after(l, alloc, waits, 2, NULL, 0);
  effects[1] = build_for(l, turn, ix_add_const(l->g, turn, ahead), alloc, storage, end);
  return lower_after(l, alloc, effects, 2, NULL, 0);
}
