/* Declares the runtime layer below tensors: command queues, signals (timeline semaphores), device
   buffers and programs. Nothing under unstable/ is promised to stay.

   A queue is a builder: its commands are noted by calls that never block, and tn_queue_submit hands
   them to the device, which runs them in order. Order between queues, of whatever devices, is made
   by signals. What a command points to (launches, spans, values) is read when the command runs, so
   it must stay until then, and a list that is submitted again sees what is there then.

   Failures. When a command fails, the rest of its list is skipped, and the list's signals that
   come after it fail: they rise to their values, and who waits for one of these gets the failure.
   A failure that no signal of the list could tell of fails the queue: what was submitted so far is
   skipped (and its signals fail), and the next submit returns the failure, submits nothing and ends
   that state. A queue that fails with TN_ERR_DEVICE has lost its device and stays so.

   A tn_failure * may be NULL. */
#ifndef TENON_UNSTABLE_QUEUE_H
#define TENON_UNSTABLE_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tenon/context.h>
#include <tenon/dtype.h>
#include <tenon/export.h>
#include <tenon/plan.h>
#include <tenon/status.h>
#include <tenon/unstable/failure.h>
#include <tenon/unstable/ir.h>

#ifdef __cplusplus
extern "C" {
#endif

/** A device that is open. It belongs to the library. */
typedef struct tn_device tn_device;

/** The device of a name ("CPU", "CUDA:1"), opened if it is not open yet; NULL: the context's. It
    stays as long as the context: what was made on it (buffers, queues, signals, programs, lists of
    commands) is freed before tn_close. */
TN_API tn_status tn_device_open(tn_context *context, const char *name, tn_device **device,
                                tn_failure *failure);

/** "CPU:0" */
TN_API const char *tn_device_name(const tn_device *device);

/* ---- Memory ---- */

/** Part of a device's memory: `bytes` bytes from `offset` on in what its backend calls `memory`. */
typedef struct tn_span {
  tn_device *device;
  void *memory;
  uint64_t offset, bytes;
} tn_span;

/** Memory of a device, counted: opened with a count of 1. Memory comes with the first
    tn_buffer_span. */
typedef struct tn_buffer tn_buffer;

/** `bytes` bytes, not cleared. */
TN_API tn_status tn_buffer_open(tn_device *device, uint64_t bytes, tn_buffer **buffer,
                                tn_failure *failure);

/** Host memory as a buffer, not copied, on a device whose memory the host sees; else
    TN_ERR_UNSUPPORTED. `destroy`, which may be NULL, gets `user` exactly once, when the buffer is
    not needed any more, also where the call fails. */
TN_API tn_status tn_buffer_import(tn_device *device, void *data, uint64_t bytes,
                                  void (*destroy)(void *user), void *user, tn_buffer **buffer,
                                  tn_failure *failure);

/** `bytes` bytes from `offset` on of another buffer, which it keeps alive. Not copied. */
TN_API tn_status tn_buffer_view(tn_buffer *base, uint64_t offset, uint64_t bytes,
                                tn_buffer **buffer, tn_failure *failure);

/** One count more, or fewer. At 0 the memory goes back. NULL is allowed. Any thread. */
TN_API tn_buffer *tn_buffer_retain(tn_buffer *buffer);
TN_API void tn_buffer_release(tn_buffer *buffer);

/** The buffer's memory, allocated on first use. Valid as long as the buffer. */
TN_API tn_status tn_buffer_span(tn_buffer *buffer, tn_span *span, tn_failure *failure);

/** Copies `count` elements of type `from` (`to`) between the host and a span that holds elements of
    type `held`, converted as by tn_cast. More elements than fit: TN_ERR_SHAPE, and nothing is
    copied. No command may use the span meanwhile. */
TN_API tn_status tn_span_write(const tn_span *span, tn_dtype held, tn_dtype from, const void *data,
                               size_t count, tn_failure *failure);
TN_API tn_status tn_span_read(const tn_span *span, tn_dtype held, tn_dtype to, void *data,
                              size_t count, tn_failure *failure);

/** Copies bytes between spans of equal size of any devices, through the host where need be, and
    returns when that is done. They do not overlap. */
TN_API tn_status tn_span_copy(const tn_span *to, const tn_span *from, tn_failure *failure);

/* ---- Signals ---- */

/** A 64-bit counter that only rises, counted as a buffer is. All functions: any thread. */
typedef struct tn_signal tn_signal;

TN_API tn_status tn_signal_open(tn_device *device, uint64_t value, tn_signal **signal,
                                tn_failure *failure);
TN_API tn_signal *tn_signal_retain(tn_signal *signal);
TN_API void tn_signal_free(tn_signal *signal);

TN_API uint64_t tn_signal_get(tn_signal *signal);

/** Raises the signal to `value`; a signal that is there or beyond stays as it is. */
TN_API void tn_signal_set(tn_signal *signal, uint64_t value);

/** As tn_signal_set, but the values above the present one up to `value` are failures: who waits for
    one of them gets `status` and `text`. Failures that follow each other tell what the first was;
    of those with a success in between, the last is kept. */
TN_API void tn_signal_fail(tn_signal *signal, uint64_t value, tn_status status, const char *text);

/** Waits until the signal is at `value` or beyond, at most `timeout_ns` nanoseconds (negative: for
    ever; then TN_ERR_TIMEOUT). Returns the failure of what should have signalled it, if it failed.
 */
TN_API tn_status tn_signal_wait(tn_signal *signal, uint64_t value, int64_t timeout_ns,
                                tn_failure *failure);

/* ---- Programs ---- */

/** A compiled kernel, counted. Stateless: any number of queues and threads use it at once. */
typedef struct tn_program tn_program;

/** Compiles nodes of one tn_ir with the device's first renderer and compiler, whatever contexts
   say, or finds them in the cache: PROGRAM(SINK, DEVICE, LINEAR), or SINK alone, a kernel that is
   made linear first, its arithmetic exact. Nodes are verified. On failure all programs[i] are NULL.
 */
TN_API tn_status tn_program_compile(tn_device *device, tn_ir *ir, const tn_node *nodes, size_t n,
                                    tn_program *programs[], tn_failure *failure);
TN_API void tn_program_free(tn_program *program);
TN_API const char *tn_program_name(const tn_program *program);

/** Bytes of the arrays of a program's own, for each worker; 0: it has none, or no buffer for them.
 */
TN_API uint64_t tn_program_scratch(const tn_program *program);

/** Arguments of a program's run. The number of work groups or workers follows from the values,
    by the program's own expressions. */
typedef struct tn_launch {
  const tn_span *buffers; /**< by ascending PARAM slot, and last, where tn_program_scratch is not
                             0, one of so many bytes for each worker, of any contents, which no
                             other launch uses meanwhile. One that the program writes overlaps no
                             other: else results are undefined, and it is not checked */
  size_t n_buffers;
  const int64_t *values; /**< by ascending name of VARs and of core_id, whose value is not read;
                            that of core_count is how many workers share the work */
  size_t n_values;
} tn_launch;

/** Runs a program now and returns when it is done. */
TN_API tn_status tn_program_execute(tn_program *program, const tn_launch *launch,
                                    tn_failure *failure);

/* ---- Queues ---- */

typedef enum tn_queue_kind {
  TN_QUEUE_COMPUTE = 0,
  TN_QUEUE_COPY = 1, /**< for copies beside computing; not every device has one */
  TN_QUEUE_KIND_MAX_ENUM = 0x7fffffff
} tn_queue_kind;

typedef struct tn_queue tn_queue;

/** TN_ERR_UNSUPPORTED where the device has no queue of a kind. */
TN_API tn_status tn_queue_open(tn_device *device, tn_queue_kind kind, tn_queue **queue,
                               tn_failure *failure);

/** Cancels what has not run: lists that have not begun, and waits. Their signals fail with
    TN_ERR_CANCELLED. Returns when the device is done with the queue. NULL is allowed. */
TN_API void tn_queue_free(tn_queue *queue);

/* Notes a command. One thread at a time. What goes wrong is told by tn_queue_submit or
   tn_queue_record. */

/** Waits until a signal, of any device, is at `value`; in the second form at *value. */
TN_API void tn_queue_wait(tn_queue *queue, tn_signal *signal, uint64_t value);
TN_API void tn_queue_wait_at(tn_queue *queue, tn_signal *signal, const uint64_t *value);

/** Raises a signal, of any device, when all commands before are done. */
TN_API void tn_queue_signal(tn_queue *queue, tn_signal *signal, uint64_t value);
TN_API void tn_queue_signal_at(tn_queue *queue, tn_signal *signal, const uint64_t *value);

TN_API void tn_queue_exec(tn_queue *queue, tn_program *program, const tn_launch *launch);

/** As tn_span_copy. */
TN_API void tn_queue_copy(tn_queue *queue, const tn_span *to, const tn_span *from);

/** Calls a function of the host's on a thread of the library's, which may take its time. */
TN_API void tn_queue_call(tn_queue *queue, tn_status (*call)(void *user, tn_failure *failure),
                          void *user);

/** Makes writes of the commands before visible to the commands after. */
TN_API void tn_queue_memory_barrier(tn_queue *queue);

/** Writes the time at which the commands before are done to *at, in nanoseconds of the device's own
    clock: only differences between times of one device mean something. It is there when a signal
    that comes after it has risen. */
TN_API void tn_queue_stamp(tn_queue *queue, int64_t *at);

/** Submits the commands noted since the last time. May wait for room in the queue, never for
    completion. On failure (a failure that is kept, memory, a thread that cannot be started) nothing
    was submitted, and the commands are dropped. */
TN_API tn_status tn_queue_submit(tn_queue *queue, tn_failure *failure);

/** A list of commands that is submitted any number of times. */
typedef struct tn_commands tn_commands;

/** Makes a list of the commands noted since the last time, and submits nothing. */
TN_API tn_status tn_queue_record(tn_queue *queue, tn_commands **commands, tn_failure *failure);

/** Submits a list, as tn_queue_submit does, to a queue of the device where it was recorded. Any
    thread. Allocates nothing. */
TN_API tn_status tn_queue_replay(tn_queue *queue, tn_commands *commands, tn_failure *failure);

/** As tn_queue_replay, for a caller that is going to wait: may run the list on the calling thread,
    which saves two changes of threads, and then returns when it is done. */
TN_API tn_status tn_queue_run(tn_queue *queue, tn_commands *commands, tn_failure *failure);

/** Frees a list when it is not running any more; returns at once. NULL is allowed. */
TN_API void tn_commands_free(tn_commands *commands);

/** Starts a run of a binding and returns at once. It begins when `after`, of any device, is at
    `after_value`, and does what tn_binding_run does, on a thread of the library's: assigns that are
    pending then come first, and turns of states are taken then. When outputs and assigns are done
    it raises `done` to `done_value`. Either signal may be NULL. A run that fails, or whose `after`
    does, fails `done`, and the next tn_binding_run, tn_binding_start or tn_binding_read of the
    binding returns that, once.

    Until then every call on the binding, and tn_close of its context, is TN_ERR_BUSY and leaves its
    message alone, tn_binding_type is TN_UNDEFINED, and what was given as inputs and outputs is the
    run's. What is built meanwhile of several states that it writes may be of some before it and of
    others after it. tn_binding_free cancels a run that has not begun, and waits for one that has.

    On failure (one that the binding kept, a callback of the context as in tn_binding_run, memory, a
    thread that cannot be started) nothing was started and `done` stays as it is. */
TN_API tn_status tn_binding_start(tn_binding *binding, tn_signal *after, uint64_t after_value,
                                  tn_signal *done, uint64_t done_value);

/** Waits until all that was submitted before is done, or `timeout_ns` nanoseconds have passed
    (negative: for ever). Returns, and ends, the failed state of the queue. */
TN_API tn_status tn_queue_finish(tn_queue *queue, int64_t timeout_ns, tn_failure *failure);

#ifdef __cplusplus
}
#endif
#endif
