/* Values that not every run needs: those whose readers are all on sides that are not taken. */
#ifndef TENON_SCHEDULE_VALUES_GUARDED_VALUES_H
#define TENON_SCHEDULE_VALUES_GUARDED_VALUES_H

#include "ir/core/guard.h"
#include "schedule/values/normalise.h"
#include "schedule/values/value.h"

/** Sets the guards of all values and ITEMs, and the ITEMs (`inputs.items`) that sizes and guards of
    each value follow from. */
void guarded_values_find(ir *g, const normalised *in, values *v);

/** The index that is 1 where a guard holds, and 0 elsewhere; NULL: the guard has no literals. */
const node *guarded_values_condition(ir *g, const guard *guard);

#endif
