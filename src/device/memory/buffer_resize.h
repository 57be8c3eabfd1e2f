/* Grows buffers of device memory with the dynamic sizes of a run, and copies their contents. */
#ifndef TENON_DEVICE_MEMORY_BUFFER_RESIZE_H
#define TENON_DEVICE_MEMORY_BUFFER_RESIZE_H

#include "device/memory/buffer.h"

/** Makes *at a buffer of at least `bytes` bytes: unchanged if it is large enough, else replaced by
   a new one with undefined contents. */
tn_status buffer_reserve(tn_device *device, tn_buffer **at, uint64_t bytes, diag *d);

/** As buffer_reserve, for a queue with that timeline (buffer_span_on). */
tn_status buffer_reserve_on(tn_device *device, tn_buffer **at, uint64_t bytes,
                            const tn_signal *timeline, diag *d);

/** Copies the first `bytes` bytes, between buffers of any devices. */
tn_status buffer_copy_prefix(tn_buffer *to, tn_buffer *from, uint64_t bytes, diag *d);

#endif
