/* The inside of bindings, for binding.c and binding_run.c. */
#ifndef TENON_TENSOR_BINDING_H
#define TENON_TENSOR_BINDING_H

#include "tensor/plan.h"

#include <tenon/profile.h>

typedef struct bound_input {
  bool given; /* by tn_binding_input */
  const void *data;
  dtype from;
  int64_t size[TN_MAX_RANK];
  uint64_t count;
  tn_buffer *imported; /* the caller's memory, where the device can use it as it is */
  tn_buffer *own;      /* else a copy */
  size_t carry;        /* the output that it takes over + 1 */
  tn_buffer *carried;  /* what that output was in the last run */
} bound_input;

typedef struct bound_output {
  void *data; /* the caller's; NULL: none */
  dtype to;
  size_t bytes;
  int64_t size[TN_MAX_RANK]; /* in the last run, or the one at hand */
  uint64_t count;
  tn_buffer *memory; /* of the last run */
  tn_buffer *other;  /* the one before, for a new value while an input reads the old one */
} bound_output;

struct tn_binding {
  tn_context *context;
  tn_plan *plan;
  tn_binding *next, **link; /* under the context's lock */
  atomic_bool entered;
  execution *execution;
  diag diag;        /* of the call at hand */
  diag kept;        /* the first failure since the last run */
  bool kept_is_run; /* it is that of a run that was started */
  diag message;
  bool has_run; /* and the last run did not fail */
  bound_input *inputs;
  bound_output *outputs;
  tn_buffer **spares; /* of each state: memory for its next contents */
  turn *turns;
  tn_queue *starts;    /* what runs those that are started; NULL: none was so far */
  tn_signal *finished; /* at `started` when the last of them is over; NULL like `starts` */
  atomic_uint_fast64_t started;
  bool is_untold; /* nobody asked yet how the last of them ended */
};

/** Enters a binding: TN_ERR_ARGUMENT for NULL, TN_ERR_BUSY in another call or while it runs. */
tn_status binding_enter(tn_binding *b);
void binding_leave(tn_binding *b);

/** The failure kept since the last run, as the message, and forgets it. */
tn_status binding_take_kept(tn_binding *b);

static inline void binding_set_memory(tn_buffer **slot, tn_buffer *with) {
  if (*slot) buffer_release(*slot);
  *slot = with;
}

/** The value of the variable that a size, which is a number, tells; false if there is none that
    gives it. */
bool binding_solve(const tn_plan *p, const port_size *s, int64_t size, int64_t *value);

/** Says that a size of an input gives its variable no value. */
tn_status binding_refuse_size(tn_binding *b, const plan_port *p, size_t axis, int64_t size);

/** The number of elements of a shape with sizes that are numbers; false if they are none, or too
    many. */
bool binding_count(tn_shape s, size_t bytes, uint64_t *count);

/** Copies an output out; its memory holds a value. Failures here and below are set in the binding's
    diag. */
tn_status binding_give(tn_binding *b, size_t output, dtype to, void *data);

/** The memory that runs need, as tn_binding_memory says. */
tn_status binding_memory(tn_binding *b, tn_memory *m);

/** A run, in an entered binding or a started one. */
tn_status binding_run(tn_binding *b);

/** TN_ERR_BUSY in a callback of the context where a run would wait for itself. */
tn_status binding_check_caller(tn_binding *b);

/* Runs that are started. */

/** Whether one goes on. Any thread. */
bool binding_is_running(const tn_binding *b);

/** Keeps the failure of the last one, which is over. */
void binding_collect(tn_binding *b);

/** Cancels one that waits for its signal, waits for one that runs, and frees what is theirs. */
void binding_end_started(tn_binding *b);

#endif
