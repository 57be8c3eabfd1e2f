/* One-shot marks in a backend's streams, with reference counts: a mark is shared by the queue that
   made it, the signals that it promises to raise, and the queues that look for such a promise. Any
   thread may call the functions. */
#ifndef TENON_DEVICE_STREAM_STREAM_MARK_H
#define TENON_DEVICE_STREAM_STREAM_MARK_H

#include "device/core/device.h"

#include <stdatomic.h>

typedef struct stream_mark {
  atomic_size_t count; /* references */
  tn_device *device;
  void *handle; /* the backend's */
} stream_mark;

/** Makes a mark, with one reference, which is done when all earlier works of a stream are. */
tn_status stream_mark_make(stream_mark **mark, tn_device *device, void *stream, bool timed,
                           tn_failure *failure);

stream_mark *stream_mark_retain(stream_mark *m);
void stream_mark_release(stream_mark *m); /* NULL is allowed */

/** Waits until a mark is done. TN_ERR_DEVICE if the device was lost. */
tn_status stream_mark_sync(const stream_mark *m, tn_failure *failure);

#endif
