/* Implements the bounds of comparisons: a < b holds where b − a = rest ± range is above 0. */
#include "ir/index/comparison_bound.h"

#include "ir/index/index_arithmetic.h"

const node *comparison_bound(ir *g, const node *compare, const node *range, bool *is_upper) {
  bool compares = compare->op == OP_LT && compare->src[0]->dtype == DT_INDEX;
  const node *gap = compares ? ix_difference_or_null(g, compare->src[0], compare->src[1]) : NULL;
  int64_t step = gap ? ix_coefficient(gap, range) : 0;
  if (step != 1 && step != -1) return NULL;
  const node *rest = ix_sub(g, gap, ix_scale(g, range, step));
  if (node_is_free_in(range, rest)) return NULL;
  *is_upper = step < 0;
  return *is_upper ? rest : ix_sub(g, ix_const(g, 1), rest);
}
