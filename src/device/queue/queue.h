/* Command queues: lists of commands are submitted to a device and run in order, by a stream of its
   backend (hand_over.c) or on the library's threads (run_list.c). The first failure skips what was
   submitted after it and is reported once, as unstable/queue.h says. Any thread may call the
   functions; what a queue calls itself cannot wait for the queue, and is told so by TN_ERR_BUSY. */
#ifndef TENON_DEVICE_QUEUE_QUEUE_H
#define TENON_DEVICE_QUEUE_QUEUE_H

#include "device/queue/command_list.h"

tn_status queue_open(tn_device *device, tn_queue_kind kind, tn_queue **queue, diag *d);

/** As tn_queue_free: cancels submissions that have not run, and waits for the one that runs, on
    the queue's thread or on a caller's. NULL is allowed. */
void queue_close(tn_queue *q);

/** Submits a copy of a list, and waits while the queue is full. Allocates only if more or longer
    lists are under way than before; the first submission starts the queue's thread, and fails if
    that cannot start. No command is added to the list any more. */
tn_status queue_submit(tn_queue *q, tn_commands *c, diag *d);

/** As queue_submit, for a caller that is going to wait for the list's signals: if the device has no
   streams and the queue is idle, the list runs on the calling thread, and is done on return. */
tn_status queue_run_inline(tn_queue *q, tn_commands *c, diag *d);

/** Waits until all submissions are done, `timeout_ns` at most (negative: for ever). */
tn_status queue_finish(tn_queue *q, int64_t timeout_ns, diag *d);

tn_device *queue_device(const tn_queue *q);

/** True if a stream runs the lists: handing them over without waiting gains time. */
bool queue_has_stream(const tn_queue *q);

/** The timeline of a queue with a stream, which is at a submission's number when that is done, and
    fails there if it failed; and the number of the last submission. */
tn_signal *queue_timeline(const tn_queue *q);
uint64_t queue_last_number(const tn_queue *q);

/** The list that tn_queue_wait and the like record into; NULL without memory, which
    queue_take_list reports. */
tn_commands *queue_current_list(tn_queue *q);

/** Takes that list, which then belongs to the caller; the next one is empty. */
tn_status queue_take_list(tn_queue *q, tn_commands **c, diag *d);

#endif
