/* Lowers arrays in slots (law DEPTH). Iterations of the loop around such an array use its slots by
   turns. The loops that build it run d − 1 iterations ahead, behind a WAIT, which marks the end of
   a turn for stores of the turns before:

     for p < d − 1:  wait; if p < n: build slot p
     for r < n:      wait (d − 2 are pending); if r + d − 1 < n: build slot (r + d − 1) mod d; …

   Both run inside of all loops that the loop is inside of, since each run of it begins anew, and
   of no other. Which these are is known when everything is lowered: digits are no loops, and arrays
   may lie in outputs. From then on the array's storage depends on them, and with it what builds it.
   Barriers between turns are inserted as everywhere (barriers.c), and copies_ahead.c makes stores
   asynchronous where the target can. */
#include "codegen/lower/lowering.h"
#include "ir/index/index_arithmetic.h"
#include "ir/transform/substitute.h"
#include "laws/array_slots.h"

enum { NOTHING_PENDING = -1 };

void lower_find_turns(lowering *l, const node *sink, const node_list *order) {
  for (size_t i = 0; i < order->n; i++) {
    const node *s = order->at[i], *turn;
    if (s->op != OP_STAGE || stage_slots(s) < 2) continue;
    if (array_slots_objection(l->g, sink, &l->teams, s, &turn)) continue;
    const range_set *place = range_set_without(l->g, map_get(&l->places, s), turn);
    map_set(l->a, &l->turns, s, (void *)turn);
    map_set(l->a, &l->places, s, (void *)place);
  }
}

/** The loop whose iterations use a STAGE's slots, lowered. */
static const node *turn_of(lowering *l, const node *stage) {
  return lower_node(l, map_get(&l->turns, stage));
}

const node *lower_slot(lowering *l, const node *stage) {
  return ix_mod(l->g, turn_of(l, stage), ix_const(l->g, stage_slots(stage)));
}

static const node *wait_make(lowering *l, const node *range, int64_t pending) {
  return ir_node(l->g, OP_WAIT, DT_VOID, &range, 1, &pending, 1);
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
  map_set(l->a, &l->ahead, alloc, (void *)turn);
  const node *first = range_make(l->g, ix_const(l->g, ahead), KIND_LOOP);
  waits[0] = wait_make(l, first, NOTHING_PENDING);
  const node *storage = lower_after(l, alloc, waits, 1, NULL, 0);
  effects[0] = build_for(l, turn, first, alloc, storage, end);
  effects[0] = lower_close_loops(l, effects, NULL, 1, &first, 1);
  waits[0] = effects[0];
  waits[1] = wait_make(l, turn, ahead - 1);
  storage = lower_after(l, alloc, waits, 2, NULL, 0);
  effects[1] = build_for(l, turn, ix_add_const(l->g, turn, ahead), alloc, storage, end);
  return lower_after(l, alloc, effects, 2, NULL, 0);
}

/** An ALLOC with more ranges that its contents depend on. */
static const node *alloc_inside(lowering *l, const node *alloc, const range_set *ranges) {
  node_list src = {0};
  for (uint32_t i = 0; i < alloc->n_src; i++) vec_push(l->a, &src, alloc->src[i]);
  for (uint32_t i = 0; i < ranges->n; i++)
    if (!node_is_free_in(ranges->at[i], alloc)) vec_push(l->a, &src, ranges->at[i]);
  node_spec s = node_spec_with_sources(alloc, src.at, src.n);
  return ir_make(l->g, &s);
}

const node *lower_enclose_slots(lowering *l, const node *sink) {
  if (!l->ahead.n) return sink;
  node_list order = topo_sort(l->a, &sink, 1, NULL, NULL);
  map ends = {0}, with = {0};
  for (size_t i = 0; i < order.n; i++)
    if (order.at[i]->op == OP_END)
      map_set(l->a, &ends, order.at[i]->src[0], (void *)order.at[i]->free);
  for (size_t i = 0; i < l->ahead.n; i++) {
    const node *alloc = l->ahead.at[i].key, *turn = l->ahead.at[i].value;
    const range_set *around = map_get(&ends, turn);
    if (around) map_set(l->a, &with, alloc, (void *)alloc_inside(l, alloc, around));
  }
  return subst(l->g, sink, &with);
}
