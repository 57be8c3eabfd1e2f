/* Chooses which values are stored in memory by the modelled time of the kernels that result. */
#ifndef TENON_SCHEDULE_GROUPING_CHOOSE_STORES_H
#define TENON_SCHEDULE_GROUPING_CHOOSE_STORES_H

#include "schedule/core/schedule_types.h"
#include "schedule/values/value.h"

/** Makes the kernels of groupings, and estimates their costs. */
typedef struct grouping_trials {
  /** The schedule that follows from the values' wishes, with canonical kernels, and the values'
      placements. */
  schedule *(*make)(void *user);
  void *user;
  const kernel_estimates *estimates;
} grouping_trials;

/** Sets the wishes of values to those of the cheapest grouping that is found. They begin as those
    of the fusion search's own candidates. */
void grouping_choose_stores(ir *g, const grouping_trials *t, values *v);

#endif
