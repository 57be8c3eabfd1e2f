/* Values whose sizes or elements follow from what the run computes before: finds the elements that
   the host must have read. */
#ifndef TENON_SCHEDULE_VALUES_LATE_VALUES_H
#define TENON_SCHEDULE_VALUES_LATE_VALUES_H

#include "schedule/values/normalise.h"
#include "schedule/values/value.h"

/** Sets `inputs.items` of all values. */
void late_values_find(ir *g, const normalised *in, values *v);

/** True if a size of a tensor mentions the variable of an ITEM. */
bool late_values_has_late_size(ir *g, const normalised *in, const node *tensor);

#endif
