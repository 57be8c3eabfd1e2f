/* Finds and applies in-place reuse: a result stored over an operand that dies in the same step. */
#ifndef TENON_SCHEDULE_MEMORY_IN_PLACE_REUSE_H
#define TENON_SCHEDULE_MEMORY_IN_PLACE_REUSE_H

#include "schedule/memory/liveness.h"

/** Finds for each step which results its index maps allow to be written over an operand. */
void in_place_reuse_find(ir *g, const schedule *s, lives *l);

/** Merges dying operands with the results written over them into one buffer, where that makes the
    plan smaller (or `always`). Other buffers keep their numbers. */
void in_place_reuse_apply(ir *g, const lives *l, bool always, schedule *s);

#endif
