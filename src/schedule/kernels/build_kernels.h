/* Builds the IR kernel of each fusion group, the buffers between kernels, and the steps of the
   schedule. */
#ifndef TENON_SCHEDULE_KERNELS_BUILD_KERNELS_H
#define TENON_SCHEDULE_KERNELS_BUILD_KERNELS_H

#include "schedule/core/schedule_types.h"
#include "schedule/fuse/fusion_group.h"
#include "schedule/values/normalise.h"

/** The steps of a schedule and its buffers; the PARAMs of their kernels are numbered as
    the buffers. A kernel that needs more than `arguments` buffers (0: any number) is refused. */
void kernels_build(ir *g, const normalised *in, const values *v, const groups *groups,
                   size_t arguments, schedule *s);

#endif
