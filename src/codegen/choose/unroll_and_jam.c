/* Unrolls and jams: copies and lanes that a reduction is inside of move inside of its loop (law
   INTERCHANGE), so that an operand is loaded once for all of them. Copies along which vectors are
   loaded come inside of others, and lanes innermost, which keeps the live ranges of loaded vectors
   short. */
#include "codegen/choose/choice.h"
#include "codegen/choose/nest_analysis.h"

#include "base/map.h"

/** True if a vector load depends on a range. */
static bool loads_vectors(ir *g, const node *fold, const node *range) {
  node_list nest = nest_nodes(ir_arena(g), fold);
  const node *lanes = nest_lane_range(g, fold, &nest);
  for (size_t i = 0; i < nest.n && lanes; i++)
    if (nest_is_array_read(nest.at[i]) && node_is_free_in(lanes, nest.at[i]) &&
        node_is_free_in(range, nest.at[i]))
      return true;
  return false;
}

/** Lists the ranges of copies and lanes around a FOLD in their new order, outer ones first. */
static size_t ranges_to_move(choice *c, const node *fold, const node *outer[], size_t most) {
  enum { COPIES, OF_VECTORS, LANES, CLASSES };
  size_t n = 0;
  for (int wanted = 0; wanted < CLASSES; wanted++)
    for (uint32_t i = 0; i < fold->free->n && n < most; i++) {
      const node *r = fold->free->at[i];
      range_kind kind = range_kind_of(r);
      int own = kind == KIND_VECTOR                 ? LANES
                : kind != KIND_UNROLL               ? CLASSES
                : loads_vectors(c->laws.g, fold, r) ? OF_VECTORS
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
  if (!b || b->op != OP_FOLD || !nest_has_unit_stride_read(c->laws.g, &nest, outer)) return;
  const node *made = law_kind(&c->laws, c->sink, own, KIND_VECTOR, &vector);
  if (made) c->sink = made;
}

static bool move_ranges_inside(choice *c, const node *fold) {
  enum { MOST_MOVED = 8 };
  const node *outer[MOST_MOVED], *own[MOST_MOVED];
  size_t n = ranges_to_move(c, fold, outer, MOST_MOVED);
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
    for (uint32_t k = 0; k < f->free->n; k++)
      if (range_is_unrolled(f->free->at[k])) return f;
  }
  return NULL;
}

void choose_unroll_and_jam(choice *c) {
  map refused = {0};
  for (const node *f; (f = next_fold(c, &refused));)
    if (!move_ranges_inside(c, f)) map_set(ir_arena(c->laws.g), &refused, f, (void *)f);
}
