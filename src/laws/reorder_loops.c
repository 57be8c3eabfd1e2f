/* Implements ORDER, loop reordering (permutation) inside one STAGE (array builder) or FOLD
   (reduction and scan):

     for …, a, b, r, …   →   for …, r, a, b, …

   A FOLD may be reordered where every state has an op: the order of a reduction is free. No extent
   may depend on a range that would be inside it, no VECTOR may end up inside another, and a STAGE
   that updates a buffer in place must not read elements that other iterations store. */
#include "laws/law_support.h"

static const char *fold_objection(const node *b) {
  if (b->op != OP_FOLD) return NULL;
  if (fold_n_emits(b)) return "the FOLD emits values in its order";
  for (size_t i = 0; i < fold_n_states(b); i++)
    if (fold_op(b, i) < 0) return "a state of the FOLD has no op";
  return NULL;
}

/** True if every range comes after those that its extent depends on. */
static bool is_bound_in_order(size_t n, const node *const ranges[]) {
  for (size_t i = 0; i < n; i++)
    for (size_t k = i + 1; k < n; k++)
      if (node_is_free_in(ranges[k], range_extent(ranges[i]))) return false;
  return true;
}

/** Objection to permuting a STAGE's ranges between two positions. */
static const char *stage_objection(laws *l, const node *sink, const node *b, size_t from,
                                   size_t to) {
  size_t first = from < to ? from : to, last = from < to ? to : from;
  if (b->op != OP_STAGE || first == last) return NULL;
  return law_in_place_objection(l, sink, b, first, last - first + 1, false);
}

const node *law_order(laws *l, const node *sink, const node *range, size_t position) {
  const node *b = law_find_binder(l, sink, range), *const * ranges;
  if (!b || b->op == OP_END) return law_refuse(l, "no STAGE or FOLD binds the range");
  const char *why = fold_objection(b);
  if (why) return law_refuse(l, why);
  size_t n = binder_ranges(b, &ranges), from = range_position(ranges, range);
  if (position >= n) return law_refuse(l, "the binder has no such position");
  why = stage_objection(l, sink, b, from, position);
  if (why) return law_refuse(l, why);
  const node **all = arena_copy(ir_arena(l->g), ranges, n * sizeof *all);
  for (; from < position; from++) all[from] = all[from + 1];
  for (; from > position; from--) all[from] = all[from - 1];
  all[position] = range;
  if (!is_bound_in_order(n, all))
    return law_refuse(l, "the extent of a range depends on one that would be inside it");
  const node *made = law_replace(l, sink, b, binder_with_ranges(l->g, b, b->src, n, all));
  if (law_has_nested_vectors(l, made, NULL))
    return law_refuse(l, "a vector would run inside a vector");
  law_args args = {.subject = range, .number = (int64_t)position};
  return law_record(l, sink, made, LAW_ORDER, &args, NULL);
}
