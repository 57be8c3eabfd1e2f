/* Executions: one run's memory and values for an executable. One thread at a time; its first run
   allocates, and a later one only where sizes grow. */
#ifndef TENON_RUNTIME_EXECUTION_H
#define TENON_RUNTIME_EXECUTION_H

#include "device/buffer.h"
#include "device/queue.h"
#include "runtime/executable.h"
#include "schedule/work.h"

typedef struct execution execution;

/** `queue` is borrowed for the execution's life; NULL: it gets a queue of its own. */
tn_status execution_open(execution **out, executable *p, tn_queue *queue, diag *d);
void execution_close(execution *e); /* NULL is allowed */

/** Other host functions than the executable's, which the caller holds as long as the execution. */
void execution_set_host(execution *e, const executable_host *host);

/** A variable's value for the runs to come. TN_ERR_ARGUMENT beyond its bounds. */
tn_status execution_set_var(execution *e, size_t var, int64_t value, diag *d);

/** The memory of an input or an output (its bytes are checked when it runs); held until replaced.
    For an output NULL: the execution's own. */
tn_status execution_set_buffer(execution *e, size_t buffer, tn_buffer *memory, diag *d);

/** The bytes a buffer has with the present values of variables. */
tn_status execution_bytes(execution *e, size_t buffer, uint64_t *bytes, diag *d);

/** The values of the executable's `sizes` with the present values, until a value changes. */
tn_status execution_sizes(execution *e, const int64_t **sizes, diag *d);

/** The bytes of all that lives between two steps, with the present values. */
tn_status execution_scratch(execution *e, uint64_t *bytes, diag *d);

/** Has the runs tell of each input that is read, once, when no later step or trip reads it: `tell`
    is called between two steps, on the thread that they run on or the one that waits for them.
    Before the first run. */
void execution_watch_inputs(execution *e, void (*tell)(void *user, size_t buffer), void *user);

/** Runs and waits for the end. TN_ERR_ARGUMENT names what has no value. */
tn_status execution_run(execution *e, diag *d);

/** The memory an output of the last run is in: for an output of its own, valid until the next run.
    Not retained. */
tn_buffer *execution_buffer(execution *e, size_t buffer);

/* What is known of steps. */

typedef struct execution_step {
  const char *name;   /* what it computes; as long as the executable */
  size_t kernel;      /* its number among the different ones; SIZE_MAX: a host function, a loop */
  work_amount work;   /* all times, in the last run; 0 where that is not known */
  size_t n_steps;     /* of a loop: how many that follow are run in its trips; else 0 */
  uint64_t times;     /* it ran in the last run: in a loop once a trip; 1 before any */
  int64_t begin, end; /* ns since the last run's first step began, where it was profiled; else 0.
                         Steps of a loop: as if each ran all trips before the next one began */
} execution_step;

/** Has runs from now on note when their steps begin and end; or no more, which they then do at no
    cost. */
tn_status execution_profile(execution *e, bool on, diag *d);

/** The i-th step; false past the last. */
bool execution_step_at(execution *e, size_t i, execution_step *out);

/** Whether a host function has filled a buffer in the last run, which may have failed later on. */
bool execution_was_filled(const execution *e, size_t buffer);

#endif
