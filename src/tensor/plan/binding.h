/* Bindings: the inputs, outputs and memory of a plan's runs. The inside of bindings, for binding.c,
   binding_run.c, binding_variant.c and binding_async.c. */
#ifndef TENON_TENSOR_PLAN_BINDING_H
#define TENON_TENSOR_PLAN_BINDING_H

#include "runtime/execution.h"
#include "tensor/plan/plan_variant.h"

#include <tenon/profile.h>

typedef struct bound_input {
  bool is_set;   /* by tn_binding_input */
  bool is_fresh; /* and no run has succeeded since */
  const void *data;
  dtype dtype; /* of `data` */
  size_t rank;
  int64_t size[TN_MAX_RANK];
  uint64_t count;
  tn_buffer *imported;       /* the caller's memory, if the device can use it as it is */
  tn_buffer *copy;           /* else a copy, */
  bool is_copied;            /* of `data` as it was set */
  size_t carried_output;     /* the output that it takes over (tn_binding_carry) + 1; 0: none */
  tn_buffer *carried_memory; /* of that output in the last run */
} bound_input;

typedef struct bound_output {
  void *data;  /* the caller's memory; NULL: none */
  dtype dtype; /* of `data` */
  size_t bytes;
  dtype type; /* this and what follows: in the last run, or the one at hand */
  size_t rank;
  int64_t size[TN_MAX_RANK];
  uint64_t count;
  tn_buffer *memory;   /* of the last run */
  tn_buffer *previous; /* of the run before, for a new value while an input reads the old one */
} bound_output;

/** Failures of a binding. */
typedef struct binding_failures {
  tn_failure first;   /* since the last run, which the next run returns */
  bool first_is_run;  /* `first` is that of an asynchronous run */
  tn_failure message; /* of tn_binding_message */
} binding_failures;

/** Asynchronous runs (tn_binding_start). */
typedef struct binding_async {
  tn_queue *queue;     /* NULL: no run was started so far */
  tn_signal *finished; /* reaches n_started when the last run is over; NULL like `queue` */
  atomic_uint_fast64_t n_started;
  bool is_uncollected; /* the outcome of the last run was not collected yet */
} binding_async;

/** A variant that runs took, and its execution. */
typedef struct variant_use {
  plan_variant *variant;
  execution *execution;
} variant_use;

/** Time of runs on the variant in use. */
typedef struct binding_time {
  bool is_counted;  /* to be reported to the plan's table */
  int64_t left_ns;  /* until it is to be reported at the latest */
  int64_t spent_ns; /* not reported so far */
  int64_t best_ns;  /* of one run */
  int trials;       /* runs that are still measured because the variant is new */
} binding_time;

struct tn_binding {
  tn_context *context;
  tn_plan *plan; /* in use: of a late plan the one for the values that inputs had last, if any */
  tn_plan *late; /* NULL: the plan is not late */
  tn_binding *next, **link; /* in the context's list, under its lock */
  atomic_bool is_entered;
  variant_use *uses;
  size_t n_uses, cap_uses;
  plan_variant *variant; /* in use; NULL: none so far */
  execution *execution;  /* of the variant */
  execution *ran;        /* of the last run that did not fail */
  bool is_chosen;        /* the variant is that of: */
  int64_t *chosen;       /* these facts, */
  uint64_t n_changes;    /* and of the plan's table then */
  binding_time time;
  tn_queue *queue;    /* of executions */
  tn_buffer *scratch; /* likewise */
  bool is_profiled;
  bool reuses;          /* runs leave out steps whose operands did not change */
  int64_t last_variant; /* number of the last run's; -1: none */
  int64_t *facts;       /* by fact: of the last run, or the one at hand */
  int64_t *sizes;       /* of all inputs and outputs, by the facts */
  int64_t *terms;       /* scratch to evaluate them */
  bool has_sizes;       /* these follow from the facts */
  bool wants_exact;     /* the plan is to be for the values of inputs alone */
  tn_status misfit; /* the failure of a shared plan in this call, which another plan may not have */
  diag diag;        /* of the call at hand */
  binding_failures failures;
  bool has_run; /* and the last run did not fail */
  bound_input *inputs;
  bound_output *outputs;
  tn_buffer **spares; /* by state: memory for its next contents */
  storage_turn *turns;
  binding_async async;
};

/** Opens a binding that is in no list of the context, so that its opener closes it; and closes it,
    where nobody uses it. Any thread. */
tn_status binding_open(tn_plan *p, diag *d, tn_binding **out);
void binding_close(tn_binding *b); /* NULL is allowed */

/** Enters a binding. TN_ERR_ARGUMENT for NULL; TN_ERR_BUSY during another call on it or while it
    runs. */
tn_status binding_enter(tn_binding *b);
void binding_leave(tn_binding *b);

/** Makes the first failure since the last run the message, and forgets it. Returns its status. */
tn_status binding_take_failure(tn_binding *b);

/** The plan that describes the ports, the same for all runs. */
static inline const tn_plan *binding_ports(const tn_binding *b) {
  return b->late ? b->late : b->plan;
}

/** The numbers of a binding of a plan: facts, those of the chosen variant, sizes and terms. */
static inline size_t binding_numbers(const tn_plan *p) {
  return 2 * p->n_facts + p->ports.sizes.n_results + p->ports.sizes.n_terms;
}

/** Divides the block of numbers. */
static inline void binding_set_numbers(tn_binding *b, int64_t *numbers) {
  b->facts = numbers;
  b->chosen = b->facts + b->plan->n_facts;
  b->sizes = b->chosen + b->plan->n_facts;
  b->terms = b->sizes + b->plan->ports.sizes.n_results;
}

/** Refuses unless an input may take over an output of a plan: of its type and, unless it takes any,
    its rank. */
tn_status binding_check_carry(tn_binding *b, const tn_plan *p, size_t output, size_t input);

/** Reads an input's elements as those of a type, through a buffer, which converts them. */
tn_status binding_read_input(tn_binding *b, size_t input, dtype to, void *out);

/** Of a late plan: takes the plan for the values that inputs have now. */
tn_status binding_choose_plan(tn_binding *b);

static inline void binding_set_memory(tn_buffer **slot, tn_buffer *with) {
  if (*slot) buffer_release(*slot);
  *slot = with;
}

/** Checks the shape of an input against the port, and counts its elements. TN_ERR_SHAPE names all
    sizes that do not fit. */
tn_status binding_check_shape(tn_binding *b, const plan_port *p, tn_shape shape, size_t bytes,
                              uint64_t *count);

/** Places an output whose size a run has computed; `user`: the binding, which runs. */
tn_status binding_place_late_output(void *user, size_t buffer, uint64_t bytes, diag *d);

/** Finds the facts and all sizes from the shapes of the inputs. TN_ERR_SHAPE names all sizes that
    contradict others. */
tn_status binding_find_sizes(tn_binding *b);

/** The number of elements of a shape; false if a size is no number, or there are too many. */
bool binding_element_count(tn_shape s, size_t bytes, uint64_t *count);

/** Makes the variant for the facts at hand the one in use; compiles it if there is none. */
tn_status binding_choose_variant(tn_binding *b);

/** Measure a run of the variant in use. */
int64_t binding_run_begins(const tn_binding *b);
void binding_run_ended(tn_binding *b, int64_t begin);

/** Forgets the variant in use, and closes all executions. */
void binding_leave_plan(tn_binding *b);

/** Frees the executions. */
void binding_close_uses(tn_binding *b);

/** Makes the variant for the inputs at hand the one in use. */
tn_status binding_prepare(tn_binding *b);

/** Copies an output, whose memory holds a value, to the caller's memory. Failures here and below
   are set in the binding's diag. */
tn_status binding_copy_output(tn_binding *b, size_t output, dtype to, void *data);

/** The memory that runs need (tn_binding_memory). */
tn_status binding_memory(tn_binding *b, tn_memory *m);

/** Reserves memory on a device for an output, which does not overwrite what an input takes over. */
tn_status binding_reserve_output(tn_binding *b, size_t i, tn_device *v);

/** Computes the outputs of an interpreted plan, and their sizes that runs compute; inputs and other
    sizes are known. */
tn_status binding_interpret(tn_binding *b);

/** Runs, in an entered binding or asynchronously. */
tn_status binding_run(tn_binding *b);

/** Puts the model's name before the message of the failure in the binding's diag, if `s` is one. */
tn_status binding_name_failure(tn_binding *b, tn_status s);

/** Names a failure, if `s` is one, and makes it the binding's message. */
tn_status binding_show_failure(tn_binding *b, tn_status s);

/** TN_ERR_BUSY in a callback of the context if a run would wait for the calling thread. */
tn_status binding_check_caller(tn_binding *b);

/* Asynchronous runs. */

/** True while one goes on. Any thread. */
bool binding_is_running(const tn_binding *b);

/** Keeps the failure of the last run, which is over. */
void binding_collect_run(tn_binding *b);

/** Cancels a run that waits for its signal, waits for one that is under way, and frees the queue.
 */
void binding_end_async(tn_binding *b);

#endif
