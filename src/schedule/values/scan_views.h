/* Stores a scan as the graph's output that is its elements in another shape. */
#ifndef TENON_SCHEDULE_VALUES_SCAN_VIEWS_H
#define TENON_SCHEDULE_VALUES_SCAN_VIEWS_H

#include "schedule/values/normalise.h"
#include "schedule/values/value.h"

/** Stores each scan, of which a root that joins axes of it, reverses them, takes their first
   elements or computes something of each element is the only reader, to that root's array. */
void scan_views_store(ir *g, const normalised *in, values *v);

#endif
