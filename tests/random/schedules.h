/* Random schedules: lists of laws that happen to be legal. */
#ifndef TENON_TESTS_RANDOM_SCHEDULES_H
#define TENON_TESTS_RANDOM_SCHEDULES_H

#include "ir/core/ir.h"
#include "random.h"

/** A kernel (SINK at stage K) after some laws that did not refuse; counts those in *applied. */
const node *random_schedule(ir *g, rng *r, const node *sink, bool reorders, size_t *applied);

#endif
