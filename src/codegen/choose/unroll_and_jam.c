/* Unrolls and jams: copies and lanes that a reduction is inside of move inside of its loop (law
   INTERCHANGE), so that an operand is loaded once for all of them. Loops that read the same vectors
   may follow into the blocks of a blocked sum (cache blocking along the reduction). Copies along
   which vectors are loaded come inside of others, and lanes innermost, which keeps the live ranges
   of loaded vectors short. */
#include "codegen/choose/choice.h"
#include "codegen/choose/nest_analysis.h"

#include "base/map.h"

/** Lists the ranges of copies and lanes around a FOLD in their new order, outer ones first. */
static size_t ranges_to_move(choice *c, const node *fold, const node *outer[], size_t most) {
  enum { COPIES, OF_VECTORS, LANES, CLASSES };
  size_t n = 0;
  for (int wanted = 0; wanted < CLASSES; wanted++)
    for (uint32_t i = 0; i < fold->free->n && n < most; i++) {
      const node *r = fold->free->at[i];
      range_kind kind = range_kind_of(r);
      int own = kind == KIND_VECTOR                            ? LANES
                : kind != KIND_UNROLL                          ? CLASSES
                : nest_loads_vectors(c->laws.g, fold, r, true) ? OF_VECTORS
                                                               : COPIES;
      if (own == wanted) outer[n++] = r;
    }
  return n;
}

/** Turns copies that hold a reduction's partial results into lanes. */
static void vectorise_partial_sums(choice *c, const node *fold, const node *outer,
                                   const node *own) {
  const node *b = law_find_binder(&c->laws, c->sink, outer), *vector;
  node_list nest = nest_nodes(ir_arena(c->laws.g), fold);
  if (!b || b->op != OP_FOLD || !nest_has_consecutive_read(c->laws.g, &nest, outer)) return;
  choice_take(c, law_kind(&c->laws, c->sink, own, KIND_VECTOR, &vector));
}

/** True if a FOLD sums the results of another one that depends on its ranges: blocks of a sum. */
static bool is_blocked(arena *a, const node *fold) {
  node_list nest = nest_nodes(a, fold);
  for (size_t i = 0; i < nest.n; i++)
    if (nest.at[i]->op == OP_FOLD && node_is_free_in(fold_innermost_range(fold), nest.at[i]))
      return true;
  return false;
}

/** Bytes of a blocked sum's results for one tile. */
static double tile_bytes(const node *fold) {
  double bytes = 0;
  for (size_t i = 0; i < fold_n_states(fold); i++)
    bytes += (double)dtype_bytes((dtype)fold_init(fold, i)->dtype);
  for (uint32_t i = 0; i < fold->free->n; i++) {
    range_kind kind = range_kind_of(fold->free->at[i]);
    if (kind == KIND_UNROLL || kind == KIND_VECTOR) bytes *= range_likely_trips(fold->free->at[i]);
  }
  return bytes;
}

/** Cache blocking along the reduction: lists the loops around the copies of a blocked sum, at most
    `most`, that can run inside each block, where the block's vectors stay in a near cache. One loop
    at least remains outside, for threads. */
static size_t cache_block_loops(choice *c, const node *fold, const node *copies,
                                const node *loops[], size_t most) {
  const node *stage = law_find_binder(&c->laws, c->sink, copies);
  size_t n = 0;
  if (stage->op != OP_STAGE || !is_blocked(ir_arena(c->laws.g), fold)) return 0;
  double bytes = tile_bytes(fold), free_bytes = (double)c->target->scratch - choice_array_bytes(c);
  for (size_t i = nest_count_loops(stage); i-- > 1 && n < most;) {
    const node *r = stage_range(stage)[i];
    bool moves = node_is_free_in(r, fold) && node_is_const(range_extent(r)) &&
                 nest_loads_vectors(c->laws.g, fold, r, false);
    bytes *= range_likely_trips(r);
    if (!moves || (c->target->scratch && bytes > free_bytes)) break;
    loops[n++] = r;
  }
  return n;
}

static bool move_ranges_inside(choice *c, const node *fold) {
  enum { MOST_COPIES = 8, MOST_LOOPS = 2, MOST_MOVED = MOST_COPIES + MOST_LOOPS };
  const node *copies[MOST_COPIES], *loops[MOST_LOOPS], *outer[MOST_MOVED], *own[MOST_MOVED];
  size_t n_copies = ranges_to_move(c, fold, copies, MOST_COPIES), n = 0;
  size_t n_loops = cache_block_loops(c, fold, copies[0], loops, MOST_LOOPS);
  if (n_loops) n_loops = choice_decide(c, DECISION_CACHE_BLOCK, n_loops + 1);
  while (n_loops > 0) outer[n++] = loops[--n_loops];
  for (size_t i = 0; i < n_copies; i++) outer[n++] = copies[i];
  const node *made = law_interchange(&c->laws, c->sink, fold_range(fold)[0], outer, n, own);
  if (!made) return false;
  c->sink = made;
  for (size_t i = 0; i < n; i++)
    if (range_is_unrolled(outer[i])) vectorise_partial_sums(c, fold, outer[i], own[i]);
  return true;
}

/** The outermost reduction of scalars inside of copies that was not refused; NULL: none. */
static const node *next_fold(choice *c, const map *refused) {
  node_list binders = choice_binders(c);
  for (size_t i = 0; i < binders.n; i++) {
    const node *f = binders.at[i];
    if (f->op != OP_FOLD || map_has(refused, f) || !fold_has_scalar_states(f)) continue;
    if (choice_is_tile_terms(f)) continue;
    for (uint32_t k = 0; k < f->free->n; k++)
      if (range_is_unrolled(f->free->at[k])) return f;
  }
  return NULL;
}

static bool jam(choice *c, const node *fold) {
  const node *rows = choice_tile_rows(c, fold);
  return rows ? choice_jam_tile(c, fold, rows) : move_ranges_inside(c, fold);
}

void choose_unroll_and_jam(choice *c) {
  map refused = {0};
  for (const node *f; (f = next_fold(c, &refused));)
    if (!jam(c, f)) map_set(ir_arena(c->laws.g), &refused, f, (void *)f);
}
