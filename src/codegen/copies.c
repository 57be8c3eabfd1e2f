/* Copies inside of reductions. Where a reduction is inside of copies or lanes, INTERCHANGE puts
   these inside of its loops: each element is read once for all of them. */
#include "codegen/choice.h"
#include "ir/weigh.h"

#include "base/map.h"

/** Whether vectors are loaded along a range: what differs along other copies is used up meanwhile.
 */
static bool loads_vectors(ir *g, const node *fold, const node *range) {
  node_list nest = weigh_nest(ir_arena(g), fold);
  const node *lanes = weigh_lanes(g, fold, &nest);
  for (size_t i = 0; i < nest.n && lanes; i++)
    if (weigh_is_read(nest.at[i]) && node_is_free_in(lanes, nest.at[i]) &&
        node_is_free_in(range, nest.at[i]))
      return true;
  return false;
}

/** The ranges that a FOLD is inside of and that are copies or lanes: inner ones are those along
    which vectors are loaded, and at last the lanes. */
static size_t copies_of(choice *c, const node *fold, const node *outer[], size_t most) {
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

/** Partial results of a reduction, which are copies around it, become its lanes. */
static void put_in_lanes(choice *c, const node *fold, const node *outer, const node *own) {
  const node *b = law_binder(&c->laws, c->sink, outer), *vector;
  node_list nest = weigh_nest(ir_arena(c->laws.g), fold);
  if (!b || b->op != OP_FOLD || !weigh_has_streams(c->laws.g, &nest, outer)) return;
  const node *made = law_kind(&c->laws, c->sink, own, KIND_VECTOR, &vector);
  if (made) c->sink = made;
}

static bool interchange(choice *c, const node *fold) {
  enum { MOST = 8 };
  const node *outer[MOST], *own[MOST];
  size_t n = copies_of(c, fold, outer, MOST);
  const node *made = law_interchange(&c->laws, c->sink, fold_range(fold)[0], outer, n, own);
  if (!made) return false;
  c->sink = made;
  for (size_t i = 0; i < n; i++)
    if (range_is_copies(outer[i])) put_in_lanes(c, fold, outer[i], own[i]);
  return true;
}

/** The outermost reduction inside of copies that is not refused yet. */
static const node *next_fold(choice *c, const map *refused) {
  node_list binders = choice_binders(c);
  for (size_t i = 0; i < binders.n; i++) {
    const node *f = binders.at[i];
    if (f->op != OP_FOLD || map_has(refused, f) || !fold_is_of_scalars(f)) continue;
    for (uint32_t k = 0; k < f->free->n; k++)
      if (range_is_copies(f->free->at[k])) return f;
  }
  return NULL;
}

void choose_copies(choice *c) {
  map refused = {0};
  for (const node *f; (f = next_fold(c, &refused));)
    if (!interchange(c, f)) map_set(ir_arena(c->laws.g), &refused, f, (void *)f);
}
