/* Gives a device to each value. */
#ifndef TENON_SCHEDULE_VALUES_VALUE_DEVICES_H
#define TENON_SCHEDULE_VALUES_VALUE_DEVICES_H

#include "schedule/values/normalise.h"
#include "schedule/values/value.h"

/** Sets the device of each value: that of what it reads, else that of its readers, else the
    graph's. */
void values_set_devices(ir *g, const normalised *n, const values *v);

#endif
