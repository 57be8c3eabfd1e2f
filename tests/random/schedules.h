/* Draws random legal schedules of a kernel: a few laws (schedule transformations) that do not
   refuse it, with random arguments. */
#ifndef TENON_TESTS_RANDOM_SCHEDULES_H
#define TENON_TESTS_RANDOM_SCHEDULES_H

#include "ir/core/ir.h"
#include "random.h"

/** Applies random legal laws to a kernel (SINK at stage K); adds their number to *applied. */
const node *random_schedule(ir *g, rng *r, const node *sink, bool reorders, size_t *applied);

enum { RANDOM_WORKERS = 12, RANDOM_WARP = 4 };

/** The same for teams of up to RANDOM_WORKERS workers, in warps of RANDOM_WARP, with ranges that
   are digits of the numbers of groups and workers; NULL if there are none. Reductions that round
   get no digits, as a tree has another order. */
const node *random_team_schedule(ir *g, rng *r, const node *sink, bool reorders, size_t *applied);

#endif
