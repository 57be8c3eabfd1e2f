/* Chooses the memory layout, the axis that is consecutive, of each array that only kernels of the
   plan use, and rewrites the kernels for it. */
#ifndef TENON_SCHEDULE_LAYOUT_CHOOSE_LAYOUTS_H
#define TENON_SCHEDULE_LAYOUT_CHOOSE_LAYOUTS_H

#include "schedule/core/fusion_machine.h"
#include "schedule/core/schedule_types.h"

/** Chooses the axis of each intermediate array that is consecutive in memory, and rewrites the
    kernels accordingly. `m`: the machines of all devices. */
void layout_choose(ir *g, const schedule_request *r, const machine *m, schedule *s);

#endif
