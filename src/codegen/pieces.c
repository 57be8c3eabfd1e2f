/* Pieces: where what is written comes from elsewhere as soon as an index reaches a number, as in a
   concatenation, the nest becomes one for each piece. What is known of an index decides the choice
   then: nothing is computed or loaded to be left out. */
#include "codegen/choice.h"

#include "ir/binder.h"

enum {
  LEAST_ROW = 16,  /* indices of the innermost range, along which vectors are made */
  MOST_PIECES = 32 /* nests of a kernel */
};

/** The index of a range from which on a comparison is decided otherwise; 0: there is none. */
static int64_t turn_of(ir *g, const node *compare, const node *range) {
  bool compares = compare->op == OP_LT && compare->src[0]->dtype == DT_INDEX;
  const node *gap = compares ? ix_gap(g, compare->src[0], compare->src[1]) : NULL; /* > 0 */
  int64_t step = gap ? ix_coefficient(gap, range) : 0;
  if (step != 1 && step != -1) return 0;
  const node *rest = ix_sub(g, gap, ix_scale(g, range, step));
  if (!node_is_const(rest)) return 0;
  return step < 0 ? node_int(rest) : 1 - node_int(rest);
}

/** Whether parts of a nest would each have to build what does not depend on the range. */
static bool shares_binders(const node_list *nest, const node *range) {
  for (size_t i = 0; i < nest->n; i++)
    if (node_is_binder(nest->at[i]) && !node_is_free_in(range, nest->at[i])) return true;
  return false;
}

/** Where to cut a nest along one of its ranges first; 0: nowhere. */
static int64_t first_turn(ir *g, const node *stage, const node *range) {
  size_t n = stage_ranges(stage);
  int64_t least = range == stage_range(stage)[n - 1] ? LEAST_ROW : 1, first = 0;
  if (!node_is_const(range_extent(range))) return 0;
  node_list nest = topo_sort(ir_arena(g), stage->src, stage_values(stage), NULL, NULL);
  for (size_t i = 0; i < nest.n; i++) {
    int64_t at = turn_of(g, nest.at[i], range);
    bool fits = at >= least && node_int(range_extent(range)) - at >= least;
    if (fits && (!first || at < first)) first = at;
  }
  return first && !shares_binders(&nest, range) ? first : 0;
}

static bool cut_one(choice *c, const node *stage) {
  for (size_t i = 0; i < stage_ranges(stage); i++) {
    const node *range = stage_range(stage)[i], *low, *high, *made;
    int64_t at = first_turn(c->laws.g, stage, range);
    if (!at) continue;
    made = law_partition(&c->laws, c->sink, range, (law_point){at, false}, &low, &high);
    if (!made) continue;
    c->sink = made;
    return true;
  }
  return false;
}

void choose_pieces(choice *c) {
  for (bool again = true; again && c->sink->n_src < MOST_PIECES && !choice_is_full(c);) {
    again = false;
    for (uint32_t i = 0; i < c->sink->n_src && !again; i++) {
      const node *out = c->sink->src[i];
      again = cut_one(c, out->src[out->n_src - 1]);
    }
  }
}
