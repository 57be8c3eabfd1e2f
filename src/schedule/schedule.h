/* Schedules a tensor graph: decides which values share a kernel (fusion), builds these kernels, and
   puts them into an order with lifetimes for the buffers between them. pipeline.c lists the passes
   in order. */
#ifndef TENON_SCHEDULE_SCHEDULE_H
#define TENON_SCHEDULE_SCHEDULE_H

#include "schedule/core/schedule_types.h"

/** Schedules `r->roots`. The schedule and its kernels live in `g`, a scratch ir, which raises what
    cannot be scheduled: TN_ERR_UNSUPPORTED for limits of the target, TN_ERR_MEMORY. */
schedule *schedule_make(ir *g, const schedule_request *r);

#endif
