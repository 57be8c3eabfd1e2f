/* Schedules the bodies of outlined loops and inserts their steps behind the steps of their loops,
   over one list of buffers. */
#ifndef TENON_SCHEDULE_LOOPS_SPLICE_LOOPS_H
#define TENON_SCHEDULE_LOOPS_SPLICE_LOOPS_H

#include "schedule/loops/outline_loops.h"

/** Schedules the body of a loop that has `depth` loops around it and itself. */
typedef schedule *(*loops_body_scheduler)(ir *g, const schedule_request *r, normalised *n,
                                          size_t depth);

/** Schedules the body of each loop of `s` by `make` and inserts its steps behind the loop's. The
    lifetimes of buffers are out of date afterwards (liveness_set_ranges). */
void loops_splice(ir *g, const schedule_request *r, schedule *s, loops_body_scheduler make);

#endif
