/* Gives a device to everything that is anybody's (ir/core/node_device.h) and that several devices
   need in a graph: what is computed from constants is computed on each of them. */
#ifndef TENON_SCHEDULE_DEVICES_RESOLVE_DEVICES_H
#define TENON_SCHEDULE_DEVICES_RESOLVE_DEVICES_H

#include "schedule/values/normalise.h"

/** Makes copies of what is anybody's, so that one device computes each tensor. A graph without
    named devices stays as it is. */
void resolve_devices(ir *g, const schedule_request *r, normalised *n);

#endif
