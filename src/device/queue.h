/* Queues, and lists of commands to submit to them. What the functions do, and how failures are
   told, stands in unstable/queue.h. A list is made by one thread; lists and queues are used by any.
 */
#ifndef TENON_DEVICE_QUEUE_H
#define TENON_DEVICE_QUEUE_H

#include "device/program.h"
#include "device/signal.h"

/* ---- Lists ----

   A list holds its signals and programs; launches, spans, values and what calls get are read when
   the command runs, and belong to the caller. Adding never fails: a failure is kept and told by
   queue_submit. */

/** An empty list for queues of a device, counted; NULL without memory. */
tn_commands *commands_open(tn_device *device);
tn_commands *commands_retain(tn_commands *c);
void commands_release(tn_commands *c); /* NULL is allowed */

void commands_wait(tn_commands *c, tn_signal *s, uint64_t value);
void commands_wait_at(tn_commands *c, tn_signal *s, const uint64_t *value);
void commands_signal(tn_commands *c, tn_signal *s, uint64_t value);
void commands_signal_at(tn_commands *c, tn_signal *s, const uint64_t *value);
void commands_exec(tn_commands *c, tn_program *program, const tn_launch *launch);
void commands_copy(tn_commands *c, const tn_span *to, const tn_span *from);
void commands_call(tn_commands *c, tn_status (*call)(void *user, tn_failure *failure), void *user);
void commands_barrier(tn_commands *c);
void commands_stamp(tn_commands *c, int64_t *at);

/** The failure of a command that could not be added, which stays with the list. */
tn_status commands_status(const tn_commands *c, diag *d);

/* ---- Queues ---- */

tn_status queue_open(tn_device *device, tn_queue_kind kind, tn_queue **queue, diag *d);
void queue_close(tn_queue *q); /* tn_queue_free */

/** Submits a list; allocates nothing, but the first may start the queue's thread, and fails where
    that cannot start; waits for room at most. A list may be submitted again while
    it runs; it is not added to any more. */
tn_status queue_submit(tn_queue *q, tn_commands *c, diag *d);

/** As queue_submit, for a caller that is going to wait for the list's signals: if nothing is before
    it, the list runs on the calling thread, and is done on return. */
tn_status queue_run(tn_queue *q, tn_commands *c, diag *d);

tn_status queue_finish(tn_queue *q, int64_t timeout_ns, diag *d);

/** The list that the queue's own builder functions add to; NULL without memory, which queue_take
    then tells. */
tn_commands *queue_building(tn_queue *q);

/** Takes that list, which then belongs to the caller; the next one is empty. */
tn_status queue_take(tn_queue *q, tn_commands **c, diag *d);

/** Runs all commands of a submission on the calling thread, but for tn_submission_done. */
void submission_run(const tn_submission *s);

/** The library's own queues, for backends that have none. */
extern const tn_queue_functions host_queue;

#endif
