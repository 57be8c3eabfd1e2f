/* Proves inequalities between index expressions, by which bounds checks are dropped and divisions
   simplified. Interval bounds decide first; then terms of the difference are replaced one by one by
   bounds of their own: a range by its extent − 1, a remainder by its divisor − 1, an
   ITEM by the greatest value that its run lets pass. A minimum, maximum or choice (WHERE) is
   replaced by either side, or by both one after the other. */
#ifndef TENON_IR_INDEX_INDEX_PROOF_H
#define TENON_IR_INDEX_INDEX_PROOF_H

#include "ir/core/ir.h"

/** True if a ≥ 0, a ≤ b or a < b is proved in a limited number of steps. False proves nothing: the
    inequality may hold, and a difference that does not fit in 64 bits is not tried. */
bool ix_prove_nonnegative(ir *g, const node *a);
bool ix_prove_le(ir *g, const node *a, const node *b);
bool ix_prove_lt(ir *g, const node *a, const node *b);

/** True if each of `rank` coordinates is proved to be at least 0 and below its extent. */
bool ix_prove_in_bounds(ir *g, size_t rank, const node *const extents[],
                        const node *const coords[]);

#endif
