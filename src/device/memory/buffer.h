/* Buffers: reference-counted memory of a device, allocated when first used; and views, which are
   parts of a buffer. Any thread may call the functions. */
#ifndef TENON_DEVICE_MEMORY_BUFFER_H
#define TENON_DEVICE_MEMORY_BUFFER_H

#include "device/core/device.h"

/** A buffer of `bytes` bytes, with one reference. Its memory is allocated when first used, and not
    cleared. */
tn_status buffer_open(tn_device *device, uint64_t bytes, tn_buffer **buffer, diag *d);

/** A buffer in memory of the host's: see tn_buffer_import. */
tn_status buffer_import(tn_device *device, void *data, uint64_t bytes, void (*destroy)(void *user),
                        void *user, tn_buffer **buffer, diag *d);

/** A view: `bytes` bytes of `base` from `offset` on. TN_ERR_ARGUMENT if they are outside it. */
tn_status buffer_view(tn_buffer *base, uint64_t offset, uint64_t bytes, tn_buffer **buffer,
                      diag *d);

tn_buffer *buffer_retain(tn_buffer *b);

/** Drops a reference. With the last, the memory goes back to the device's allocator at once, and
   may become another buffer's before commands that were submitted have run. So callers that submit
    commands keep the buffers until these are done: today every run waits for its end. If runs
    overlap one day, memory must go back with the queue's signal. */
void buffer_release(tn_buffer *b);

uint64_t buffer_bytes(const tn_buffer *b);

/** The buffer's place in memory, allocated if it was not. Valid while the buffer has a reference.
 */
tn_status buffer_span(tn_buffer *b, tn_span *span, diag *d);

#endif
