/* Internal header of executions: the state that execution.c (runs and loops), execution_memory.c
   (sizes and placement) and execution_commands.c (recorded command lists) share. Arrays are in the
   execution's arena and are indexed like the executable's buffers, steps or variables. */
#ifndef TENON_RUNTIME_EXECUTION_STATE_H
#define TENON_RUNTIME_EXECUTION_STATE_H

#include "base/vec.h"
#include "device/memory/buffer.h"
#include "device/queue/command_list.h"
#include "device/queue/queue_pool.h"
#include "runtime/custom_call.h"
#include "runtime/input_readers.h"
#include "runtime/run_profile.h"
#include "runtime/step_reuse.h"
#include "schedule/memory/memory_plan.h"

/** Values of variables, and the sizes that follow from them. */
typedef struct execution_values {
  int64_t *vars;
  bool *has_value;
  bool is_evaluated; /* `sizes` that no ITEM decides follow from `vars` */
  int64_t *sizes;    /* the executable's `sizes`; LAUNCH_NO_VALUE: one that cannot be computed */
  launch_terms terms;
  int64_t *items; /* each ITEM's element; its variable has the least value where the element is out
                     of the variable's bounds */
  bool *is_used;  /* each buffer, by a step that the run does not skip; set if there are guards */
} execution_values;

/** Owner of a slot of scratch memory: a buffer, or the extra array of a step's kernel. */
typedef struct slot_owner {
  size_t step;   /* the first that uses it */
  size_t buffer; /* SIZE_MAX: the kernel's extra array */
} slot_owner;

/** Scratch memory of a segment: the live ranges whose sizes become known with it, in one
   allocation, placed by memory_plan_place. */
typedef struct execution_scratch {
  VEC(memory_plan_slot) slots;
  VEC(slot_owner) owners; /* of each slot */
  bool is_placed;         /* the slots' offsets follow from their bytes */
  uint64_t bytes;         /* of all slots together */
  tn_buffer *memory;      /* its own */
  tn_buffer **at;         /* the one in use: that, or one that executions share */
  tn_buffer *placed; /* what was there when slots were placed: kept, so that no other is equal */
} execution_scratch;

/** Memory of the executable's buffers. */
typedef struct execution_memory {
  bool is_placed;      /* spans follow from the values, the bound buffers and scratch.placed */
  tn_buffer **buffers; /* of inputs and outputs: bound by the caller, or allocated for an output */
  bool *is_allocated;  /* by the execution */
  tn_span *spans;      /* where each buffer is */
  execution_scratch *scratch; /* of each segment, on each device */
} execution_memory;

/** Launches of kernel steps: recorded commands point to them, and each run fills them anew. */
typedef struct execution_launches {
  tn_launch *launches; /* of each step */
  tn_span **spans;     /* arguments of each step: its buffers, then its kernel's extra array */
  int64_t **values;
  launch_terms dims; /* scratch to evaluate the sizes of a kernel's arrays */
} execution_launches;

/** A section of the plan: consecutive steps in one command list, or one end of a loop. */
typedef struct command_section {
  enum { SECTION_STEPS, SECTION_LOOP_BEGIN, SECTION_LOOP_END } kind;
  size_t segment;
  size_t step;            /* the first step; of both ends of a loop, the loop's step */
  size_t n_steps;         /* SECTION_STEPS */
  size_t other_end;       /* section of the loop's other end */
  tn_commands *commands;  /* SECTION_STEPS of a plan with one queue */
  bool has_host_steps;    /* likewise */
  tn_commands **of_queue; /* SECTION_STEPS of others: of each queue, NULL where it has no step */
} command_section;

/** An input and the first and the last step that read it; the outermost loop if a loop contains
   that step. */
typedef struct input_use {
  struct execution *execution;
  size_t buffer, first, last; /* SIZE_MAX: none */
} input_use;

/** Gives an output whose size became known in a run its memory. */
typedef struct late_outputs {
  tn_status (*place)(void *user, size_t buffer, uint64_t bytes, diag *d); /* NULL: the execution */
  void *user;
} late_outputs;

/** The callback that is asked between trips of loops whether the run goes on. */
typedef struct trip_reports {
  const tn_progress *progress; /* NULL: nobody is asked */
  mutex *lock;                 /* held while it is called */
  int64_t due;                 /* when it is called next, by clock_last_tick_ns() */
} trip_reports;

/** A queue of a plan with several: runs are done when they return. */
typedef struct execution_queue {
  tn_queue *queue;
  bool owns_queue;
  tn_signal *done;  /* rises with each of its lists */
  tn_signal *steps; /* rises with each step that others wait for */
  uint64_t n_lists, n_steps;
} execution_queue;

struct execution {
  executable *p;
  arena arena;
  queue_pool *pool; /* of queues that are not its own; NULL: there is none */
  tn_queue *queue;
  bool owns_queue;
  tn_signal *done;
  uint64_t runs;  /* value of `done` after the last command list */
  uint64_t after; /* value of `done` that the next command list waits for: the one before it in the
                     same run, or 0 */
  uint64_t reads_after; /* value of the queue's timeline whose failure fails the run: the last write
                           of its inputs by the queue; 0: that is known to have ended */
  size_t n_sections_submitted; /* command lists of the present run */
  execution_values values;
  execution_memory memory;
  execution_launches launch;
  custom_call *custom_calls; /* of each step */
  executable_host host;      /* functions that they call */
  command_section *sections;
  size_t n_sections;
  bool has_commands; /* all command lists are recorded */
  int64_t *trip;     /* number of the present trip, of each step that is a loop */
  size_t segment;    /* that the present run has reached */
  late_outputs late_outputs;
  input_readers readers;
  input_use *uses; /* of each buffer; NULL: nobody is told */
  run_profile profile;
  const tn_tracer *tracer; /* NULL: runs are not traced; else they are profiled */
  mutex *tracing;          /* held while the tracer is called */
  trip_reports trips;
  step_reuse reuse;
  execution_queue *queues; /* NULL: the plan has one, which is `queue` */
  size_t refused_graphs;   /* of its devices, at the last look at which none was left to tell */
  uint64_t *step_signals;  /* of each step that others wait for: its queue's value of `steps` */
};

/** Worker threads of a device: workers that a kernel is launched with. */
static inline int64_t execution_workers(const struct execution *e, size_t device) {
  return e->p->targets[device]->device->host.threads;
}

/** True if a run may go on when it has been handed over. */
static inline bool execution_is_handed_over(const struct execution *e) {
  return !e->queues && queue_has_stream(e->queue);
}

/** The timeline of the execution's queue, for memory; NULL if runs end before they return. */
static inline tn_signal *execution_timeline(const struct execution *e) {
  return execution_is_handed_over(e) ? queue_timeline(e->queue) : NULL;
}

/** The scratch memory of a segment on a device. */
static inline execution_scratch *execution_scratch_on(const struct execution *e, size_t segment,
                                                      size_t device) {
  return &e->memory.scratch[segment * e->p->n_targets + device];
}

#endif
