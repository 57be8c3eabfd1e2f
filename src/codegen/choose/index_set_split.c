/* Splits index sets: where a nest selects by comparing an index with a constant, as concatenations
   and paddings do, it becomes one nest for each side of the constant (law PARTITION). The
   comparison folds then, so that nothing is computed or loaded only to be dropped. */
#include "codegen/choose/choice.h"

#include "ir/core/affine.h"
#include "ir/core/binder.h"
#include "target/kernel_estimates.h"

/** True if the nests of both sides would build the same arrays or reductions. */
static bool has_common_binders(const node_list *nest, const node *range) {
  for (size_t i = 0; i < nest->n; i++)
    if (node_is_binder(nest->at[i]) && !node_is_free_in(range, nest->at[i])) return true;
  return false;
}

/** The first index at which a nest is split along one of its ranges; 0: none. */
static int64_t first_split_point(ir *g, const node *stage, const node *range) {
  size_t n = stage_n_ranges(stage);
  int64_t least = range == stage_range(stage)[n - 1] ? MACHINE_VECTOR_ROW_LEAST : 1, first = 0;
  if (!node_is_const(range_extent(range))) return 0;
  node_list nest = topo_sort(ir_arena(g), stage->src, stage_n_values(stage), NULL, NULL);
  for (size_t i = 0; i < nest.n; i++) {
    int64_t at = comparison_change_point(g, nest.at[i], range);
    bool fits = at >= least && node_int(range_extent(range)) - at >= least;
    if (fits && (!first || at < first)) first = at;
  }
  return first && !has_common_binders(&nest, range) ? first : 0;
}

static bool split_nest(choice *c, const node *stage) {
  for (size_t i = 0; i < stage_n_ranges(stage); i++) {
    const node *range = stage_range(stage)[i], *low, *high, *made;
    int64_t at = first_split_point(c->laws.g, stage, range);
    if (!at) continue;
    made = law_partition(&c->laws, c->sink, range, (law_point){at, false}, &low, &high);
    if (!made) continue;
    c->sink = made;
    return true;
  }
  return false;
}

void choose_index_set_split(choice *c) {
  for (bool changed = true;
       changed && c->sink->n_src < MACHINE_INDEX_SPLIT_NESTS && !choice_at_node_limit(c);) {
    changed = false;
    for (uint32_t i = 0; i < c->sink->n_src && !changed; i++) {
      const node *out = c->sink->src[i];
      changed = split_nest(c, out->src[out->n_src - 1]);
    }
  }
}
