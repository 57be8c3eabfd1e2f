/* Finds the steps that mention sizes which the run computes. */
#ifndef TENON_SCHEDULE_KERNELS_ITEM_STEPS_H
#define TENON_SCHEDULE_KERNELS_ITEM_STEPS_H

#include "schedule/values/normalise.h"

/** Lists in each step the buffers of the ITEMs whose variables it mentions, so that the orders of
    steps and the lives of buffers respect them; and keeps the ITEMs in the schedule. */
void item_steps_find(ir *g, const normalised *in, schedule *s);

#endif
