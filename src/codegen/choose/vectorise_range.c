/* Puts a range of a STAGE's nest in vectors: of full width, the last of which overlaps the one
   before where that is legal, or is cut short; else in ever narrower vectors for the remainder, and
   at last in scalars. vectorise.c chooses the range, and the copies of packed operands and padded
   tiles have vectors of their own. */
#include "codegen/choose/choice.h"
#include "codegen/choose/nest_analysis.h"
#include "ir/core/topo_sort.h"

#include "base/map.h"

int64_t choice_fit_lanes(const node *range, int64_t lanes) {
  while (lanes > 1 && (double)lanes > range_likely_trips(range)) lanes /= 2;
  return lanes;
}

/** Splits vectors of `lanes` off a range, innermost in the nest, but for loops that copy a FOLD's
    array to where it lies already; false: a law refused. */
static bool split_vectors(choice *c, const node *range, int64_t lanes) {
  laws *l = &c->laws;
  const node *inner, *vector, *const *ranges;
  const node *made = choice_tile_range(c, c->sink, range, lanes, &inner);
  if (made) {
    const node *binder = law_find_binder(l, made, inner);
    size_t last = binder_ranges(binder, &ranges) - 1;
    while (last && nest_copies_along(binder, ranges[last])) last--;
    made = law_order(l, made, inner, last);
  }
  if (made) made = law_kind(l, made, inner, KIND_VECTOR, &vector);
  return choice_take(c, made);
}

/** Vectorises a range and its remainders in ever narrower vectors, where vectors may not overlap.
   The remainder of a varying size is unknown: it stays scalar. */
static void vectorise_with_remainders(choice *c, const node *range, int64_t lanes) {
  while (range) {
    const node *extent = range_extent(range), *whole, *rest, *before = c->sink;
    lanes = choice_fit_lanes(range, lanes);
    if (lanes < 2 || !choice_split_remainder(c, range, lanes, &whole, &rest)) return;
    if (!split_vectors(c, whole, lanes)) {
      c->sink = before;
      return;
    }
    if (!node_is_const(extent)) {
      map_set(ir_arena(c->laws.g), &c->vector_remainders, rest, (void *)whole);
      return;
    }
    range = rest;
  }
}

/** True if a nest builds arrays for indices of its other ranges, which a nest for whole vectors and
    one for the remainder would both build, and none along this range. The vectors are cut short by
    the end of the range then. */
static bool builds_only_across(choice *c, const node *range) {
  const node *stage = law_find_binder(&c->laws, c->sink, range);
  node_list nest = nest_nodes(ir_arena(c->laws.g), stage);
  bool builds = false;
  for (size_t i = 0; i < nest.n; i++) {
    if (!node_is_binder(nest.at[i])) continue;
    if (node_is_free_in(range, nest.at[i])) return false;
    builds |= nest.at[i]->free->n > 0;
  }
  return builds;
}

void choice_vectorise_range(choice *c, const node *range, int64_t lanes) {
  lanes = choice_fit_lanes(range, lanes);
  if (lanes < 2 || map_has(&c->vector_remainders, range)) return;
  if (law_may_overlap(&c->laws, c->sink, range, lanes) || builds_only_across(c, range))
    split_vectors(c, range, lanes);
  else
    vectorise_with_remainders(c, range, lanes);
}
