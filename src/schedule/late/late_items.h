/* Sizes that a run computes: takes the ITEMs out of a graph. Each becomes a variable, and its
   element, as an i64, one more root of the graph, which the host reads in the middle of the run. */
#ifndef TENON_SCHEDULE_LATE_LATE_ITEMS_H
#define TENON_SCHEDULE_LATE_LATE_ITEMS_H

#include "schedule/values/normalise.h"

/** Raises TN_ERR_UNSUPPORTED for an ITEM that the body of a loop computes. */
void late_items_check(ir *g, const schedule_request *r, const normalised *n);

/** Replaces the ITEMs of a normalised graph. */
void late_items_extract(ir *g, const schedule_request *r, normalised *n);

#endif
