/* Opens and closes devices. A device's memory allocator is allocated in one block with the device.
   The registry calls both functions and keeps devices open until it is closed itself. */
#ifndef TENON_DEVICE_REGISTRY_OPEN_DEVICE_H
#define TENON_DEVICE_REGISTRY_OPEN_DEVICE_H

#include "device/core/device.h"

/** Opens device `index` of a backend, in memory `m`, which lives as long as the device. The message
    of a failure names the device. */
tn_status device_open(tn_device **device, registry *r, const mem *m, const tn_backend *b,
                      int32_t index, const tn_host *host, diag *d);

/** Closes a device with its targets and compilers. No program may be loaded on it. */
void device_close(tn_device *device);

#endif
