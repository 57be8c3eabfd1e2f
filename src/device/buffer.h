/* Buffers: memory of a device, counted, allocated when first used; and views, which are parts of
   one. Any thread. */
#ifndef TENON_DEVICE_BUFFER_H
#define TENON_DEVICE_BUFFER_H

#include "device/device.h"

/** A buffer of `bytes` bytes, with a count of 1. Nothing is allocated yet, and nothing cleared. */
tn_status buffer_open(tn_device *device, uint64_t bytes, tn_buffer **buffer, diag *d);

/** Host memory as a buffer: see tn_buffer_import. */
tn_status buffer_import(tn_device *device, void *data, uint64_t bytes, void (*destroy)(void *user),
                        void *user, tn_buffer **buffer, diag *d);

/** A view: `bytes` bytes from `offset` on. TN_ERR_ARGUMENT where they are not in `base`. */
tn_status buffer_view(tn_buffer *base, uint64_t offset, uint64_t bytes, tn_buffer **buffer,
                      diag *d);

tn_buffer *buffer_retain(tn_buffer *b);

/** With the last, the memory goes back to the device's blocks at once, and may be another buffer's
    before commands that are still on their way have run. So whoever submits commands keeps the
    buffers until they are done: today every run waits for its end. When runs overlap, blocks must
    go back with the queue's signal. */
void buffer_release(tn_buffer *b);

uint64_t buffer_bytes(const tn_buffer *b);

/** Where it is; allocates. Valid while the buffer is held. */
tn_status buffer_span(tn_buffer *b, tn_span *span, diag *d);

#endif
