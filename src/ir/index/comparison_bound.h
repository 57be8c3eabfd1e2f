/* Finds the index of a range at which a comparison of index expressions changes its result: loops
   are split there, so that it is a constant in each part. */
#ifndef TENON_IR_INDEX_COMPARISON_BOUND_H
#define TENON_IR_INDEX_COMPARISON_BOUND_H

#include "ir/core/ir.h"

/** The bound, free of the range and not limited to its indices: the comparison is true below it
    (`*is_upper`), or from it on. NULL: no comparison a < b in which the range has stride ±1, or one
    whose difference does not fit in 64 bits. */
const node *comparison_bound(ir *g, const node *compare, const node *range, bool *is_upper);

#endif
