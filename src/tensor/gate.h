/* The gate of a context: who may be inside. One call at a time; a second one is refused. Runs of
   bindings that need the context wait for it, and calls wait for them, so that nobody is refused
   because of a run. A callback is refused, for it would wait for itself: threads that are inside,
   or in a callback, are known. */
#ifndef TENON_TENSOR_GATE_H
#define TENON_TENSOR_GATE_H

#include "base/thread.h"

#include <stdatomic.h>

typedef enum gate_user { GATE_FREE, GATE_CALL, GATE_RUN } gate_user;

/** A thread that is inside of the context, or in a function that was called for it. */
typedef struct gate_visit {
  struct gate_visit *next;
  thread thread;
} gate_visit;

typedef struct gate {
  mutex lock; /* of what follows */
  condition left;
  gate_user user;
  size_t waiting_runs;
  gate_visit inside; /* of the user */
  gate_visit *visits;
  atomic_size_t n_visits;
} gate;

void gate_init(gate *g);
void gate_free(gate *g);

/** Enters, as a call or a run; TN_ERR_BUSY where it may not. */
tn_status gate_enter(gate *g, gate_user as);
void gate_leave(gate *g);

/** Around a callback that may come from another thread than the one inside. */
void gate_begin_callback(gate *g, gate_visit *v);
void gate_end_callback(gate *g, gate_visit *v);

/** Whether the calling thread is inside or in a callback. Takes nothing where nobody is. */
bool gate_has_me(gate *g);

#endif
