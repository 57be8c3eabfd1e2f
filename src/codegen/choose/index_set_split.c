/* Splits index sets: where a nest selects by comparing an index with a constant, as concatenations
   and paddings do, it becomes one nest for each side of the constant (law PARTITION). The
   comparison folds then, so that nothing is computed or loaded only to be dropped. Blocks of which
   one is not whole, as the last of an axis, are split likewise: where a comparison of an index in
   blocks, b · B + r, is decided by r in one of the blocks alone, all others are apart from it. */
#include "codegen/choose/choice.h"

#include "ir/core/affine.h"
#include "ir/core/binder.h"
#include "ir/index/index_arithmetic.h"
#include "target/kernel_estimates.h"

enum { MOST_BLOCK = 1 << 30 }; /* indices of a block */

/** True if the nests of both sides would build the same arrays or reductions. */
static bool has_common_binders(const node_list *nest, const node *range) {
  for (size_t i = 0; i < nest->n; i++)
    if (node_is_binder(nest->at[i]) && !node_is_free_in(range, nest->at[i])) return true;
  return false;
}

/** The index of blocks, from which on or below which a comparison is true whatever the index in a
    block, where it is undecided in one block only; 0: none. */
static int64_t whole_blocks_point(ir *g, const node *compare, const node *range) {
  bool compares = compare->op == OP_LT && compare->src[0]->dtype == DT_INDEX;
  const node *gap = compares ? ix_difference_or_null(g, compare->src[0], compare->src[1]) : NULL;
  int64_t step = gap ? ix_coefficient(gap, range) : 0; /* gap = step · range + rest > 0 */
  if (step < -MOST_BLOCK || step > MOST_BLOCK) return 0;
  int64_t block = step < 0 ? -step : step;
  if (block < MACHINE_VECTOR_ROW_LEAST) return 0; /* another op, or the steps of a window */
  const node *rest = ix_sub(g, gap, ix_scale(g, range, step));
  bool is_bounded = rest->lo > -INT64_MAX / 2 && rest->hi < INT64_MAX / 2;
  if (node_is_free_in(range, rest) || !is_bounded || rest->hi - rest->lo >= block) return 0;
  int64_t undecided = step < 0 ? (rest->lo + block - 1) / block : (block - rest->lo) / block;
  return undecided > 0 ? undecided : 0;
}

/** The index at which a range is split for a comparison; 0: none. Both sides of the last range,
   along which elements may be consecutive, are long enough for vectors; elements of blocks lie
   apart. */
static int64_t split_point(ir *g, const node *compare, const node *range, bool is_last) {
  int64_t at = comparison_change_point(g, compare, range), extent = node_int(range_extent(range));
  int64_t least = at && is_last ? MACHINE_VECTOR_ROW_LEAST : 1;
  if (!at) at = whole_blocks_point(g, compare, range);
  return at >= least && extent - at >= least ? at : 0;
}

/** The first index at which a nest is split along one of its ranges; 0: none. */
static int64_t first_split_point(ir *g, const node *stage, const node *range) {
  bool is_last = range == stage_range(stage)[stage_n_ranges(stage) - 1];
  int64_t first = 0;
  if (!node_is_const(range_extent(range))) return 0;
  node_list nest = topo_sort(ir_arena(g), stage->src, stage_n_values(stage), NULL, NULL);
  for (size_t i = 0; i < nest.n; i++) {
    int64_t at = split_point(g, nest.at[i], range, is_last);
    if (at && (!first || at < first)) first = at;
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
