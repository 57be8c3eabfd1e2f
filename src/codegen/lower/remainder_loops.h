/* Splits remainder loops off loops of vectors that the end of their range may cut short. */
#ifndef TENON_CODEGEN_LOWER_REMAINDER_LOOPS_H
#define TENON_CODEGEN_LOWER_REMAINDER_LOOPS_H

#include "ir/core/ir.h"

/** A lowered graph without vectors of varying length: the loop of such vectors becomes one of whole
    vectors and a scalar one for the remainder; or all of it is scalar, where whole vectors do not
   come first. */
const node *remainder_loops_separate(ir *g, const node *sink);

#endif
