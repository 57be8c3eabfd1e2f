/* Implements PITCH: lays the rows of an array farther apart than they are long. Rows whose distance
   is a multiple of a large power of two compete for few sets of a cache; a line more for each row
   spreads them over all sets. The elements between rows are never written or read, as all places in
   a row are proved to lie inside it. */
#include "laws/law_support.h"

#include "ir/core/topo_sort.h"
#include "ir/index/index_arithmetic.h"
#include "ir/index/index_proof.h"

enum { MOST_PITCH = 1 << 24 }; /* elements: far below what overflows an address */

static const char *pitch_objection(const node *s, int64_t more) {
  if (s->op != OP_STAGE || stage_n_values(s) != 1 || stage_is_cut(s))
    return "the STAGE is not one array";
  size_t rank = stage_rank(s, 0);
  if (rank < 2) return "the array has one row";
  const node *last = stage_extents(s, 0)[rank - 1];
  if (!node_is_const(last)) return "the length of a row is not a number";
  return more > 0 && more < MOST_PITCH - node_int(last) ? NULL : "the rows would be too far apart";
}

/** An element outside of an array is 0, and no store; between rows it would be neither. */
static const char *bounds_objection(ir *g, const node *s, const node_list *order) {
  size_t rank = stage_rank(s, 0);
  const node *const *extents = stage_extents(s, 0);
  if (!ix_prove_in_bounds(g, rank, extents, stage_coords(s, 0)))
    return "the array is not proved to be stored inside its bounds";
  for (size_t i = 0; i < order->n; i++)
    if (order->at[i]->op == OP_INDEX && order->at[i]->src[0] == s &&
        !ix_prove_in_bounds(g, rank, extents, order->at[i]->src + 1))
      return "the array is not proved to be read inside its bounds";
  return NULL;
}

const node *law_pitch(laws *l, const node *sink, const node *stage, int64_t more) {
  arena *a = ir_arena(l->g);
  node_list order = law_index_of(l, sink).nodes;
  const char *why = pitch_objection(stage, more);
  if (!why) why = law_readers_objection(&order, stage);
  if (!why) why = bounds_objection(l->g, stage, &order);
  if (why) return law_refuse(l, why);
  const node **src = arena_copy(a, stage->src, stage->n_src * sizeof *src);
  const node *const *last = &stage_extents(stage, 0)[stage_rank(stage, 0) - 1];
  src[(size_t)(last - stage->src)] = ix_add_const(l->g, *last, more);
  size_t n = stage_n_ranges(stage);
  const node *made = binder_with_ranges(l->g, stage, src, n, stage_range(stage));
  made = law_replace(l, sink, stage, made);
  law_args args = {.subject = stage, .number = more};
  return law_record(l, sink, made, LAW_PITCH, &args, NULL);
}
