/* Values whose sizes or elements follow from what the run computes before: finds the elements that
   the host must have read. */
#ifndef TENON_SCHEDULE_VALUES_LATE_VALUES_H
#define TENON_SCHEDULE_VALUES_LATE_VALUES_H

#include "ir/core/guard.h"
#include "schedule/values/normalise.h"
#include "schedule/values/value.h"

/** Sets `inputs.items` of all values, and the guards under which the values mention them. */
void late_values_find(ir *g, const normalised *in, guard_table *t, values *v);

/** Adds the ITEMs that an index mentions to those of a value. */
void late_values_add(ir *g, const normalised *in, guard_table *t, const values *all, value *v,
                     const node *index);

/** True if a size of a tensor mentions the variable of an ITEM. */
bool late_values_has_late_size(ir *g, const normalised *in, const node *tensor);

#endif
