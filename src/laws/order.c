#include "laws/laws.h"

static const char *objection(const node *b) {
  if (b->op != OP_FOLD) return NULL;
  if (fold_emits(b)) return "the FOLD emits values in its order";
  for (size_t i = 0; i < fold_states(b); i++)
    if (fold_op(b, i) < 0) return "a state of the FOLD has no op";
  return NULL;
}

/** Whether every range stands after those that its extent depends on. */
static bool is_bound_in_order(size_t n, const node *const ranges[]) {
  for (size_t i = 0; i < n; i++)
    for (size_t k = i + 1; k < n; k++)
      if (node_is_free_in(ranges[k], range_extent(ranges[i]))) return false;
  return true;
}

/** Why a STAGE's ranges between two positions cannot change places. */
static const char *stage_objection(laws *l, const node *sink, const node *b, size_t from,
                                   size_t to) {
  size_t first = from < to ? from : to, last = from < to ? to : from;
  if (b->op != OP_STAGE || first == last) return NULL;
  return law_in_place_objection(l, sink, b, first, last - first + 1, false);
}

const node *law_order(laws *l, const node *sink, const node *range, size_t position) {
  const node *b = law_binder(l, sink, range), *const * ranges;
  if (!b || b->op == OP_END) return law_refuse(l, "no STAGE or FOLD binds the range");
  const char *why = objection(b);
  if (why) return law_refuse(l, why);
  size_t n = binder_ranges(b, &ranges), from = range_place(ranges, range);
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
  if (law_nests_vectors(l, made, NULL)) return law_refuse(l, "a vector would run inside a vector");
  law_args args = {.subject = range, .number = (int64_t)position};
  return law_made(l, sink, made, LAW_ORDER, &args, NULL);
}
