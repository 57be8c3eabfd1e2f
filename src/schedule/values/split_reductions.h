/* Splits long reductions to few results into partial reductions that run in parallel (split-K). */
#ifndef TENON_SCHEDULE_VALUES_SPLIT_REDUCTIONS_H
#define TENON_SCHEDULE_VALUES_SPLIT_REDUCTIONS_H

#include "schedule/core/fusion_machine.h"
#include "schedule/values/normalise.h"

/** Reduces in parts, one axis more, where a reduction has fewer results than the machine of its
   device has cores and `math` (a math_mode) allows another order. The roots and the labelled nodes
   change. */
void split_reductions(ir *g, const machine *m, int math, normalised *n, size_t n_labels);

#endif
