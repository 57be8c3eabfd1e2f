/* What lowering does with vectors that may be cut short. */
#ifndef TENON_CODEGEN_TAILS_H
#define TENON_CODEGEN_TAILS_H

#include "ir/ir.h"

/** A lowered graph without vectors of a size that varies: their loops in parts, or, where the whole
    ones are not the first, element by element. */
const node *tails_apart(ir *g, const node *sink);

#endif
