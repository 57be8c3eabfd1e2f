/* Laws that only pay together, applied to values before the search: it takes one step at a time and
   would have to climb over a hill. They are found in what is computed, however it was spelt. */
#ifndef TENON_SCHEDULE_LAW_GROUPS_H
#define TENON_SCHEDULE_LAW_GROUPS_H

#include "schedule/prices.h"

/** factor.c: Σ(x·y) and Σ(x/y) become (Σx)·y and (Σx)/y, where that is safe and less to do. */
void schedule_factor(ir *g, values *v);

/** rescale.c: m = max s and sums of e^(s − m)·v become one pass over blocks, in which what was
    summed is scaled as m grows, where what one row needs exceeds its cache. */
void schedule_rescale(ir *g, const machine *m, values *v);

#endif
