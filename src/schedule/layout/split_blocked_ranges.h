/* Strip-mines the ranges by which arrays in blocks (such as prepacked weights) are
   indexed, so that the inner range can be vectorised. */
#ifndef TENON_SCHEDULE_LAYOUT_SPLIT_BLOCKED_RANGES_H
#define TENON_SCHEDULE_LAYOUT_SPLIT_BLOCKED_RANGES_H

#include "schedule/core/schedule_types.h"

/** Splits each range r by which an element is indexed as [… r / B …][… r % B …], where a block of B
    is at least a vector, into two ranges, in all kernels of a schedule. */
void layout_split_blocked_ranges(ir *g, const schedule_request *r, schedule *s);

#endif
