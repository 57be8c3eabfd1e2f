/* Inspects schedules, the steps that a plan becomes, before anything is compiled or run, and finds
   where runs have the values of tensors. Nothing under unstable/ is promised to stay. */
#ifndef TENON_UNSTABLE_SCHEDULE_H
#define TENON_UNSTABLE_SCHEDULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tenon/context.h>
#include <tenon/dtype.h>
#include <tenon/export.h>
#include <tenon/plan.h>
#include <tenon/status.h>
#include <tenon/tensor.h>
#include <tenon/unstable/queue.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The schedule of a plan: immutable. */
typedef struct tn_schedule tn_schedule;

/** Schedules `n` outputs, and the pending assignments of the innermost scope, which stay pending,
    as tn_plan_compile does with that desc, with all sizes open that inputs leave open. Nothing of
    it is compiled or run; pending assignments of outer scopes are, as by tn_plan_compile. The
    schedule belongs to the context until it is freed. On failure *schedule is NULL, and the status
    as that of tn_plan_compile. */
TN_API tn_status tn_schedule_make(tn_context *context, tn_tensor *const out[], size_t n,
                                  const tn_plan_desc *desc, tn_schedule **schedule);

/** Frees a schedule. NULL is allowed. */
TN_API void tn_schedule_free(tn_schedule *schedule);

/* Strings and lists in the structs below live as long as the schedule. */

/** A step, in order of execution. */
typedef struct tn_scheduled_step {
  size_t size;           /**< sizeof(tn_scheduled_step), set by the caller */
  const char *name;      /**< what it computes, as in tn_step */
  int64_t kernel;        /**< number of its kernel, which several steps may share; -1: none */
  const char *what;      /**< kind of a step without a kernel: "a host function" */
  const size_t *buffers; /**< numbers of the buffers it uses: of a kernel those it writes first */
  size_t n_buffers;
  size_t n_outputs;   /**< of a kernel or a loop: buffers that it writes */
  size_t steps;       /**< of a loop: number of the following steps that make up its body */
  const char *device; /**< where it runs: "CPU:0" */
} tn_scheduled_step;

#define TN_SCHEDULED_STEP_INIT \
  { sizeof(tn_scheduled_step), NULL, -1, NULL, NULL, 0, 0, 0, NULL }

/** A kernel, as it is before its own schedule is chosen. */
typedef struct tn_scheduled_kernel {
  size_t size;         /**< sizeof(tn_scheduled_kernel), set by the caller */
  const char *name;    /**< name of its SINK; "": none */
  const char *text;    /**< the IR, which tn_ir_parse takes: PARAM slots are positions among the
                          buffers of a step */
  size_t steps;        /**< steps that run it */
  const char *library; /**< the library that computes it, as was measured to be faster
                          (tn_open_desc's `vendor`); NULL: it is compiled */
} tn_scheduled_kernel;

#define TN_SCHEDULED_KERNEL_INIT \
  { sizeof(tn_scheduled_kernel), NULL, NULL, 0, NULL }

/** A buffer of a schedule. */
typedef struct tn_scheduled_buffer {
  size_t size;      /**< sizeof(tn_scheduled_buffer), set by the caller */
  const char *kind; /**< "input" (also values and states), "output", "scratch" (the plan's own
                       memory), "state" of a loop, or "view": a part of another buffer */
  tn_dtype dtype;
  int64_t elements;   /**< -1: they vary */
  uint64_t bytes;     /**< 0 if they vary */
  size_t first, last; /**< steps between which it is used, both included */
  int64_t within;     /**< of a view: the buffer that it is a part of; -1: none */
  bool has_offset;    /**< a scratch buffer that is used, if all sizes are numbers; and a view */
  uint64_t offset;    /**< in bytes: in the plan's own memory, or of a view in its buffer */
} tn_scheduled_buffer;

#define TN_SCHEDULED_BUFFER_INIT \
  { sizeof(tn_scheduled_buffer), NULL, TN_UNDEFINED, 0, 0, 0, 0, -1, false, 0 }

/* Describe the `i`-th step, kernel or buffer. TN_ERR_ARGUMENT past the last; the struct is then
   unchanged, so that a loop can end there. Any thread. */
TN_API tn_status tn_schedule_step(const tn_schedule *schedule, size_t i, tn_scheduled_step *step);
TN_API tn_status tn_schedule_kernel(const tn_schedule *schedule, size_t i,
                                    tn_scheduled_kernel *kernel);
TN_API tn_status tn_schedule_buffer(const tn_schedule *schedule, size_t i,
                                    tn_scheduled_buffer *buffer);

/** Returns the bytes of the plan's own memory, without the arrays that kernels need for themselves;
    0 if sizes vary. */
TN_API uint64_t tn_schedule_bytes(const tn_schedule *schedule);

/** Where a plan has the value of a tensor: its slot. */
typedef struct tn_slot {
  size_t size;     /**< sizeof(tn_slot), set by the caller */
  bool has_buffer; /**< false: no memory holds the whole value as an array of the tensor's shape,
                      as it is computed in its readers or stored in another order; all below is 0 */
  bool is_overwritten; /**< another value takes the memory over in place while it is still used */
  tn_dtype dtype;
  uint64_t bytes;  /**< of the value; 0 in a schedule whose sizes vary */
  uint64_t offset; /**< in the plan's own memory, or in the buffer of an input or output */
  size_t buffer;   /**< number of the schedule's buffer */
  tn_span span; /**< of a binding, after a run: the memory. tn_span_read and tn_span_write convert
                   to and from it, on any device. Valid until the next call on the binding */
} tn_slot;

#define TN_SLOT_INIT                                                           \
  {                                                                            \
    sizeof(tn_slot), false, false, TN_UNDEFINED, 0, 0, 0, { NULL, NULL, 0, 0 } \
  }

/** Describes the slot of the `i`-th watched tensor (`watched` of tn_plan_desc) in a schedule.
    TN_ERR_ARGUMENT past the last. Any thread. */
TN_API tn_status tn_schedule_slot(const tn_schedule *schedule, size_t i, tn_slot *slot);

/** Describes the slot of the `i`-th watched tensor of a binding's plan, with the present inputs;
    compiles as tn_binding_prepare does. A later step of the run may have stored another value in
    the same memory, unless runs leave out steps (tn_binding_reuse) and `is_overwritten` is false.
    TN_ERR_ARGUMENT past the last, with the message; TN_ERR_UNSUPPORTED for an interpreted plan. */
TN_API tn_status tn_binding_slot(tn_binding *binding, size_t i, tn_slot *slot);

/** Kernels that a run hands over to a device one after the other, without anything between them
   that the host, a copy or another device takes part in. */
typedef struct tn_kernel_run {
  size_t size;        /**< sizeof(tn_kernel_run), set by the caller */
  const char *device; /**< "CUDA:0" */
  size_t kernels;
  bool is_graph;   /**< they were handed over as one piece (tn_graph_functions) */
  const char *why; /**< why they were not: "its backend has no graphs"; "": they were */
} tn_kernel_run;

#define TN_KERNEL_RUN_INIT \
  { sizeof(tn_kernel_run), NULL, 0, false, NULL }

/** Describes the `i`-th of these of a binding's last run; the second run with the same plan makes
    graphs. Texts live until the next call on the binding. TN_ERR_ARGUMENT past the last, and before
    the first run. */
TN_API tn_status tn_binding_kernel_run(tn_binding *binding, size_t i, tn_kernel_run *run);

#ifdef __cplusplus
}
#endif
#endif
