/* Interface of absorbed scans: absorb_scans.c. */
#ifndef TENON_SCHEDULE_VALUES_ABSORB_SCANS_H
#define TENON_SCHEDULE_VALUES_ABSORB_SCANS_H

#include "schedule/core/fusion_machine.h"
#include "schedule/values/normalise.h"
#include "schedule/values/value.h"

/** Computes scans in the kernels of the distinct updates that alone read them. */
void absorb_scans(ir *g, const machine *m, const normalised *in, values *v);

#endif
