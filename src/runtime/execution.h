/* An execution: the memory and variable values with which an executable runs. One thread at a time
   uses it. The first run allocates; later runs allocate only where sizes grow. */
#ifndef TENON_RUNTIME_EXECUTION_H
#define TENON_RUNTIME_EXECUTION_H

#include "device/memory/buffer.h"
#include "device/queue/queue_pool.h"
#include "runtime/executable.h"
#include "runtime/input_readers.h"
#include "runtime/run_profile.h"

#include <tenon/context.h>

typedef struct execution execution;

/** Where an execution has its queues from, which it borrows for its life. */
typedef struct execution_source {
  tn_queue *queue;  /* the first of a plan on its device; NULL: none */
  queue_pool *pool; /* others; NULL: the execution opens its own */
} execution_source;

/** Opens an execution, which retains `p`. `queues` may be NULL: all queues are its own. */
tn_status execution_open(execution **out, executable *p, const execution_source *queues, diag *d);
void execution_close(execution *e); /* NULL is allowed */

/** Replaces the executable's host functions; the caller keeps them as long as the execution. */
void execution_set_host(execution *e, const executable_host *host);

/** Sets a variable for the runs to come. TN_ERR_ARGUMENT outside its bounds. */
tn_status execution_set_var(execution *e, size_t var, int64_t value, diag *d);

/** Binds the memory of an input or an output, retained until it is replaced; its size is checked by
    the next run. NULL for an output: the execution allocates it. */
tn_status execution_set_buffer(execution *e, size_t buffer, tn_buffer *memory, diag *d);

/** The bytes of a buffer with the present values of the variables. */
tn_status execution_buffer_bytes(execution *e, size_t buffer, uint64_t *bytes, diag *d);

/** The bytes of scratch memory, where buffers live between two steps, with the present values. */
tn_status execution_scratch_bytes(execution *e, uint64_t *bytes, diag *d);

/** Number of outputs and scratch buffers whose sizes runs compute. */
size_t execution_late_buffers(const execution *e);

/** Sets the callbacks, before the first run. */
void execution_set_readers(execution *e, const input_readers *r);

/** Has runs ask for the memory of outputs whose sizes they compute, which is to be set by
    execution_set_buffer. To be set before the first run. */
void execution_on_late_output(execution *e,
                              tn_status (*place)(void *user, size_t buffer, uint64_t bytes,
                                                 diag *d),
                              void *user);

/** Has the execution use scratch memory in a caller's slot, which other executions share and may
    make larger or replace; they run one at a time. To be set before the first run. */
void execution_share_scratch(execution *e, tn_buffer **slot);

/** Has runs leave out steps whose operands are those of the run before, or not any more. The
    contents of an input count as those of the last run, in the same memory, unless
    execution_touch_input was called since. Plans whose runs compute sizes run all steps. Scratch
    memory is the execution's own from then on, and larger. */
tn_status execution_set_reuse(execution *e, bool on, diag *d);
void execution_touch_input(execution *e, size_t buffer);

/** Has the next run do all steps, as results may have been overwritten. */
void execution_forget_results(execution *e);

/** Releases the memory of inputs and outputs. */
void execution_unbind(execution *e);

/** Runs and waits for the end; after a failure, which is told here alone, it may run again.
    TN_ERR_ARGUMENT names a variable or input that is unset. */
tn_status execution_run(execution *e, diag *d);

/** Hands a run over to the queue. Where that has a stream, the run goes on when this returns,
   except that host steps, profiles and reports of last reads are waited for: its buffers note it as
   a use, so that buffer_span waits for it, and returns its failure. */
tn_status execution_start(execution *e, diag *d);

/** The memory of an output after the last run, not retained; memory that the execution allocated is
    valid until the next run. */
tn_buffer *execution_buffer(execution *e, size_t buffer);

/** Tells the sizes of a root of an executable with ITEMs, −1 without: all of them after a run,
    before it those that no ITEM decides on. */
tn_status execution_root_sizes(execution *e, size_t root, size_t rank, int64_t size[], diag *d);

/** Turns timestamps of steps on or off for later runs; off costs nothing. */
tn_status execution_set_profiling(execution *e, bool on, diag *d);

/** Has runs record times, and hand them to a tracer (NULL: to none), calls of which hold a lock;
    both live as long as the execution. To be set before the first run. */
tn_status execution_set_tracer(execution *e, const tn_tracer *tracer, mutex *tracing, diag *d);

/** Asks a callback whether a loop goes on after a number of its steps, of `total` (0: unknown). */
bool execution_ask_progress(const tn_progress *progress, mutex *reporting, int64_t done,
                            int64_t total);

/** Has runs ask a callback between trips of loops, at most once in 10 ms, whether they go on: it
    gets "steps", the trips of the loop so far and their number (0: a state may end the loop). If it
    returns false the run ends with TN_ERR_CANCELLED. Calls hold a lock; callback and lock live as
    long as the execution. Without `step` nothing is called. To be set before the first run. */
void execution_set_progress(execution *e, const tn_progress *progress, mutex *reporting);

/** The slot of a watched node. */
typedef struct execution_slot {
  bool has_buffer, is_overwritten; /* as in schedule_slot */
  bool is_placed;                  /* the span is where the last run had it */
  dtype dtype;
  uint64_t offset, bytes; /* offset: in the execution's scratch memory, or in a bound buffer */
  size_t buffer;
  tn_span span;
} execution_slot;

/** Finds the slot of the i-th watched node, with the present values of variables. TN_ERR_ARGUMENT
    past the last. */
tn_status execution_slot_at(execution *e, size_t i, execution_slot *out, diag *d);

/** Kernels that runs hand over to one device one after the other. */
typedef struct execution_kernels {
  const char *device;
  size_t n;
  const char *why; /* why they are no graph, until the next run; NULL: they are one */
} execution_kernels;

/** The i-th of these after a run; false past the last. */
bool execution_kernels_at(const execution *e, size_t i, execution_kernels *out);

/** Kernels of the last run whose graph was refused, each once; false: no others. Costs next to
    nothing where no device refused one. */
bool execution_take_refusal(execution *e, execution_kernels *out);

/** The i-th step; false past the last. */
bool execution_step_at(execution *e, size_t i, execution_step *out);

/** True if a host function filled this buffer in the last run, even if a later step failed. */
bool execution_was_filled_by_host(const execution *e, size_t buffer);

#endif
