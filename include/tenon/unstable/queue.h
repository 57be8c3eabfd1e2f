/* Declares the runtime layer below tensors: command queues, signals (timeline semaphores), device
   buffers and programs. Nothing under unstable/ is promised to stay.

   A queue is a command builder: calls record commands without blocking, and tn_queue_submit hands
   them to the device, which runs them in order. Signals order queues of any devices among one
   another, and a value may be awaited before anybody is to raise it. Objects that a command points
   to (launches, spans, values) are copied when its list is submitted, whatever the list waits for;
   a list that is submitted again sees their current contents.

   Failures. When a command fails, the rest of its list is skipped and the list's later signals
   fail: they rise to their values, and waiting for these returns the failure. A failure without a
   later signal in its list fails the queue: everything submitted so far is skipped (its signals
   fail), and the next submit returns the failure, submits nothing and resets the queue. A queue
   that fails with TN_ERR_DEVICE has lost its device and stays failed.

   Any tn_failure * may be NULL. */
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

/** An open device; owned by the library. */
typedef struct tn_device tn_device;

/** Opens the device of a name ("CPU", "OPENCL:1"), or finds it if it is open already; NULL: the
    context's device. The device lives as long as the context: everything made on it (buffers,
    queues, signals, programs, command lists) must be freed before tn_close. */
TN_API tn_status tn_device_open(tn_context *context, const char *name, tn_device **device,
                                tn_failure *failure);

/** Returns the device's full name: "CPU:0". Lives as long as the device. */
TN_API const char *tn_device_name(const tn_device *device);

/* ---- Memory ---- */

/** Frees the device's freed memory that is kept for reuse (`cached_bytes` of tn_open_desc), the
    least recently used first, until at most `bytes` bytes of it are left; what queues still use
    stays. Returns the bytes that are kept then; 0 for NULL. Any thread. */
TN_API uint64_t tn_device_trim(tn_device *device, uint64_t bytes);

/** A range of a device's memory: `bytes` bytes from `offset` in the backend's `memory`. */
typedef struct tn_span {
  tn_device *device;
  void *memory;
  uint64_t offset, bytes;
} tn_span;

/** Reference-counted memory of a device, opened with a count of 1. It is allocated by the first
    tn_buffer_span. */
typedef struct tn_buffer tn_buffer;

/** Opens a buffer of `bytes` uninitialised bytes. */
TN_API tn_status tn_buffer_open(tn_device *device, uint64_t bytes, tn_buffer **buffer,
                                tn_failure *failure);

/** Opens a buffer of `bytes` bytes that are 0 when it is first used. */
TN_API tn_status tn_buffer_open_zeroed(tn_device *device, uint64_t bytes, tn_buffer **buffer,
                                       tn_failure *failure);

/** Opens a buffer of host memory without a copy, on a device whose memory the host can access, else
    TN_ERR_UNSUPPORTED; TN_ERR_ARGUMENT if `data` is NULL. `destroy` (NULL: none) gets `user`
    exactly once: when the buffer is not needed any more, or when the call fails. */
TN_API tn_status tn_buffer_import(tn_device *device, void *data, uint64_t bytes,
                                  void (*destroy)(void *user), void *user, tn_buffer **buffer,
                                  tn_failure *failure);

/** Opens a view of `bytes` bytes from `offset` of another buffer, which it keeps alive. */
TN_API tn_status tn_buffer_view(tn_buffer *base, uint64_t offset, uint64_t bytes,
                                tn_buffer **buffer, tn_failure *failure);

/** Increment and decrement the reference count; at 0 the memory is freed, when all that was
    submitted to queues of its device until then is done. NULL is allowed. Any thread. */
TN_API tn_buffer *tn_buffer_retain(tn_buffer *buffer);
TN_API void tn_buffer_release(tn_buffer *buffer);

/** Returns the buffer's memory, allocating it on first use. Valid as long as the buffer. */
TN_API tn_status tn_buffer_span(tn_buffer *buffer, tn_span *span, tn_failure *failure);

/** Copy `count` elements of type `from` (`to`) between host memory and a span with elements of type
    `held`, converted as by tn_cast. TN_ERR_SHAPE, and nothing is copied, for more elements than
    fit. No command may use the span meanwhile. */
TN_API tn_status tn_span_write(const tn_span *span, tn_dtype held, tn_dtype from, const void *data,
                               size_t count, tn_failure *failure);
TN_API tn_status tn_span_read(const tn_span *span, tn_dtype held, tn_dtype to, void *data,
                              size_t count, tn_failure *failure);

/** Copies bytes between spans of equal size on any devices, through the host if necessary, and
    returns when done. The spans must not overlap. */
TN_API tn_status tn_span_copy(const tn_span *to, const tn_span *from, tn_failure *failure);

/* ---- Signals ---- */

/** A 64-bit counter that only rises (a timeline semaphore); reference-counted. All functions: any
    thread. */
typedef struct tn_signal tn_signal;

/** Opens a signal with an initial value and a count of 1. */
TN_API tn_status tn_signal_open(tn_device *device, uint64_t value, tn_signal **signal,
                                tn_failure *failure);
/** Increment and decrement the reference count. NULL is allowed. */
TN_API tn_signal *tn_signal_retain(tn_signal *signal);
TN_API void tn_signal_free(tn_signal *signal);

/** Returns the current value. */
TN_API uint64_t tn_signal_get(tn_signal *signal);

/** Raises the signal to `value`; a signal at `value` or beyond is unchanged. */
TN_API void tn_signal_set(tn_signal *signal, uint64_t value);

/** Raises the signal to `value` like tn_signal_set, and marks the values above the current one as
    failed: waiting for one of them returns `status` and `text`, or the status's own text where it
    is "" or NULL. Consecutive failures keep the first one's message; after a success in between,
    the later failure is kept. Of more than 64 failures with successes in between, values between
    the oldest ones fail too. */
TN_API void tn_signal_fail(tn_signal *signal, uint64_t value, tn_status status, const char *text);

/** Waits until the signal is at `value` or beyond, for at most `timeout_ns` nanoseconds (negative:
    no limit), then TN_ERR_TIMEOUT. Returns the failure if the value was marked as failed. */
TN_API tn_status tn_signal_wait(tn_signal *signal, uint64_t value, int64_t timeout_ns,
                                tn_failure *failure);

/* ---- Programs ---- */

/** A compiled kernel; reference-counted. Stateless: any number of queues and threads use it at
    once. */
typedef struct tn_program tn_program;

/** Compiles nodes of one tn_ir with the device's first renderer and compiler, whatever the
    contexts' options, or finds them in the cache. A node is a PROGRAM(SINK, DEVICE, LINEAR), or a
    SINK, which is linearised first with exact arithmetic. Nodes are verified. On failure all
    programs[i] are NULL. */
TN_API tn_status tn_program_compile(tn_device *device, tn_ir *ir, const tn_node *nodes, size_t n,
                                    tn_program *programs[], tn_failure *failure);
/** Decrements the reference count. NULL is allowed. */
TN_API void tn_program_free(tn_program *program);
/** Returns the kernel's name. Lives as long as the program. */
TN_API const char *tn_program_name(const tn_program *program);

/** Returns the bytes of a program's scratch buffer per worker; 0 if a launch needs none. */
TN_API uint64_t tn_program_scratch(const tn_program *program);

/** Arguments of a program's execution. The numbers of work groups or workers follow from the
    values, by the program's own expressions. */
typedef struct tn_launch {
  const tn_span *buffers; /**< by ascending PARAM slot, then, if tn_program_scratch is not 0, the
                             scratch buffer: that many bytes per worker, of any contents, used by no
                             other launch meanwhile. A buffer that the program writes must not
                             overlap another; this is not checked, and results are undefined */
  size_t n_buffers;
  const int64_t *values; /**< by ascending name of VARs and of core_id, whose value is ignored; the
                            value of core_count is the number of workers that share the work */
  size_t n_values;
} tn_launch;

/** Runs a program and returns when it is done. */
TN_API tn_status tn_program_execute(tn_program *program, const tn_launch *launch,
                                    tn_failure *failure);

/* ---- Queues ---- */

/** Kinds of queues. */
typedef enum tn_queue_kind {
  TN_QUEUE_COMPUTE = 0,
  TN_QUEUE_COPY = 1, /**< copies that overlap with computation; not every device has one */
  TN_QUEUE_KIND_MAX_ENUM = 0x7fffffff
} tn_queue_kind;

/** A command builder and the device's queue behind it. */
typedef struct tn_queue tn_queue;

/** Opens a queue. TN_ERR_UNSUPPORTED where the device has none of this kind, TN_ERR_ARGUMENT for a
    kind that is none. */
TN_API tn_status tn_queue_open(tn_device *device, tn_queue_kind kind, tn_queue **queue,
                               tn_failure *failure);

/** Cancels waits and lists that have not begun (their signals fail with TN_ERR_CANCELLED), waits
    for the device to finish, and frees the queue. Must not be called by a function that this queue
    calls (tn_queue_call). NULL is allowed. */
TN_API void tn_queue_free(tn_queue *queue);

/* Functions that record a command; one thread at a time. Their failures are returned by
   tn_queue_submit or tn_queue_record. */

/** Record a wait until a signal, of any device, is at `value` or beyond; tn_queue_wait_at reads
 *value when the list is submitted. */
TN_API void tn_queue_wait(tn_queue *queue, tn_signal *signal, uint64_t value);
TN_API void tn_queue_wait_at(tn_queue *queue, tn_signal *signal, const uint64_t *value);

/** Record raising a signal, of any device, when all earlier commands are done; tn_queue_signal_at
    reads *value when the list is submitted. */
TN_API void tn_queue_signal(tn_queue *queue, tn_signal *signal, uint64_t value);
TN_API void tn_queue_signal_at(tn_queue *queue, tn_signal *signal, const uint64_t *value);

/** Records the execution of a program. */
TN_API void tn_queue_exec(tn_queue *queue, tn_program *program, const tn_launch *launch);

/** Records a copy as by tn_span_copy. */
TN_API void tn_queue_copy(tn_queue *queue, const tn_span *to, const tn_span *from);

/** Records setting all bytes of a span, of the queue's device, to `byte`. */
TN_API void tn_queue_fill(tn_queue *queue, const tn_span *to, uint8_t byte);

/** Records a call of a host function on one of the library's threads, or on the one that
    tn_queue_run was called on; it may block, but not for this queue, which goes on when it returns:
    in it, tn_queue_finish, and a submission to this queue while it is full, is TN_ERR_BUSY. */
TN_API void tn_queue_call(tn_queue *queue, tn_status (*call)(void *user, tn_failure *failure),
                          void *user);

/** Records a barrier: earlier commands' writes are visible to later commands. */
TN_API void tn_queue_memory_barrier(tn_queue *queue);

/** Records a time stamp: when the earlier commands are done, *at becomes the time in nanoseconds of
    the device's clock. Only differences between times of one device are meaningful. The value is
    available when a later signal has risen. */
TN_API void tn_queue_stamp(tn_queue *queue, int64_t *at);

/** Submits the commands recorded since the last submission. May wait for room in the queue, never
    for completion. On failure (the queue's kept failure, memory, a thread that cannot be started)
    nothing is submitted and the commands are dropped. */
TN_API tn_status tn_queue_submit(tn_queue *queue, tn_failure *failure);

/** A list of commands that can be submitted any number of times. */
typedef struct tn_commands tn_commands;

/** Makes a list of the commands recorded since the last submission; submits nothing. */
TN_API tn_status tn_queue_record(tn_queue *queue, tn_commands **commands, tn_failure *failure);

/** Submits a list, as tn_queue_submit does, to a queue of the device where it was recorded. Any
    thread. Allocates nothing. */
TN_API tn_status tn_queue_replay(tn_queue *queue, tn_commands *commands, tn_failure *failure);

/** Submits a list as tn_queue_replay does, for a caller that will wait for it. May run the list on
    the calling thread, which saves two thread switches, and then returns when it is done. */
TN_API tn_status tn_queue_run(tn_queue *queue, tn_commands *commands, tn_failure *failure);

/** Frees a list once it does not run any more; returns at once. NULL is allowed. */
TN_API void tn_commands_free(tn_commands *commands);

/** Starts a run of a binding and returns at once. The run waits until `after`, of any device, is at
    `after_value`, does what tn_binding_run does, on one of the library's threads (pending
    assignments and turns of states included), and raises `done` to `done_value` when outputs and
    assignments are done. Either signal may be NULL. If the run or `after` fails, `done` fails, and
    the next tn_binding_run, tn_binding_start or tn_binding_read of the binding returns the failure,
    once.

    Until then inputs and outputs belong to the run, tn_binding_type is TN_UNDEFINED, and every
    other call on the binding, and tn_close of its context, is TN_ERR_BUSY with an unchanged
    message. Expressions built meanwhile from several states that the run writes may mix contents
    from before and after it. tn_binding_free cancels a run that has not begun and waits for one
    that has.

    On failure (the binding's kept failure, a callback of the context as in tn_binding_run, memory,
    a thread that cannot be started) nothing is started and `done` is unchanged. */
TN_API tn_status tn_binding_start(tn_binding *binding, tn_signal *after, uint64_t after_value,
                                  tn_signal *done, uint64_t done_value);

/** Waits until everything submitted so far is done, for at most `timeout_ns` nanoseconds (negative:
    no limit). Returns the queue's failure, if it has one, and resets it. */
TN_API tn_status tn_queue_finish(tn_queue *queue, int64_t timeout_ns, tn_failure *failure);

#ifdef __cplusplus
}
#endif
#endif
