/* Brings kernels into a canonical form, so that equal kernels of a schedule are the same node and
   are compiled once. */
#ifndef TENON_SCHEDULE_KERNELS_CANONICALISE_KERNELS_H
#define TENON_SCHEDULE_KERNELS_CANONICALISE_KERNELS_H

#include "schedule/core/schedule_types.h"

/** Numbers the PARAMs of each step's kernel by position among the step's buffers, and its ranges by
    order. */
void kernels_canonicalise(ir *g, schedule *s);

#endif
