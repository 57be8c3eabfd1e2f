/* Buffers: reference-counted memory of a device, allocated when first used; and views, which are
   parts of a buffer. Any thread may call the functions. */
#ifndef TENON_DEVICE_MEMORY_BUFFER_H
#define TENON_DEVICE_MEMORY_BUFFER_H

#include "device/core/device.h"
#include "device/stream/timeline_points.h"

/** A buffer of `bytes` bytes, with one reference. Its memory is allocated when first used, and not
    cleared. */
tn_status buffer_open(tn_device *device, uint64_t bytes, tn_buffer **buffer, diag *d);

/** Has the memory of a buffer, which was not used yet and is no view, set to 0 when it is
    allocated. */
void buffer_zero_first(tn_buffer *buffer);

/** A buffer whose contents `fill` writes when its memory is allocated, which fails with it.
   `destroy` gets `user` once: with the buffer, or when the call fails. */
tn_status buffer_open_filled(tn_device *device, uint64_t bytes,
                             tn_status (*fill)(void *user, const tn_span *to, diag *d),
                             void (*destroy)(void *user), void *user, tn_buffer **buffer, diag *d);

/** A buffer in memory of the host's: see tn_buffer_import. */
tn_status buffer_import(tn_device *device, void *data, uint64_t bytes, void (*destroy)(void *user),
                        void *user, tn_buffer **buffer, diag *d);

/** A view: `bytes` bytes of `base` from `offset` on. TN_ERR_ARGUMENT if they are outside it. */
tn_status buffer_view(tn_buffer *base, uint64_t offset, uint64_t bytes, tn_buffer **buffer,
                      diag *d);

tn_buffer *buffer_retain(tn_buffer *b);

/** Drops a reference. With the last, the memory goes back to the device's allocator, with the
    points at which the queues that use it are done; memory of the host's is waited for. */
void buffer_release(tn_buffer *b);

uint64_t buffer_bytes(const tn_buffer *b);
tn_device *buffer_device(const tn_buffer *b);

/** The buffer's place in memory, allocated if it was not, for the host: waits until the queues that
    use it are done, and returns the failure of those that wrote it. Valid while the buffer has a
    reference. */
tn_status buffer_span(tn_buffer *b, tn_span *span, diag *d);

/** As buffer_span, for a queue with that timeline (NULL: for the host), without waiting: the queue
    waits for what buffer_for_waits lists, and buffer_note_use says how long it uses the buffer. */
tn_status buffer_span_on(tn_buffer *b, const tn_signal *timeline, tn_span *span, diag *d);

/** Calls `add` for each point that a queue with that timeline has to wait for before it uses the
    buffer: `ends` where the point's end will do, failed or not. A queue that reads waits for its
    own writes too, as they may fail. */
void buffer_for_waits(tn_buffer *b, const tn_signal *timeline, bool reads,
                      void (*add)(void *user, tn_signal *timeline, uint64_t value, bool ends),
                      void *user);

/** Notes that a queue uses the buffer until its timeline is at `value`. */
void buffer_note_use(tn_buffer *b, tn_signal *timeline, uint64_t value, point_use use);

/** Has later reads not fail by the writes so far: those of a queue with that timeline, as their
    failure was told; NULL: all, as the whole buffer gets new contents (of a view, none). */
void buffer_forget_writes(tn_buffer *b, const tn_signal *timeline);

/** Notes that the caller knows the buffer's place, and may submit commands that use it: when the
    buffer is released, all that queues of its device were given counts as its uses. */
void buffer_expose(tn_buffer *b);

#endif
