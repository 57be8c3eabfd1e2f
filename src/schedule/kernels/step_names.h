/* Names the steps of a schedule for people (profiles, explanations): by labels of the graph, or by
   ops. */
#ifndef TENON_SCHEDULE_KERNELS_STEP_NAMES_H
#define TENON_SCHEDULE_KERNELS_STEP_NAMES_H

#include "schedule/core/schedule_types.h"
#include "schedule/values/normalise.h"
#include "schedule/values/value.h"

/** Sets the name of each step: the labels of the values that it computes, or their ops. */
void step_names_set(ir *g, const schedule_request *r, const normalised *n, const values *v,
                    schedule *s);

#endif
