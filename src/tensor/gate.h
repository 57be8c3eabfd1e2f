/* The gate of a context: who may be inside. One call at a time; a second one is refused. Runs of
   bindings that need the context wait for it, and calls wait for them, so that nobody is refused
   because of a run. Who may be inside already is not asked here: it would wait for itself. */
#ifndef TENON_TENSOR_GATE_H
#define TENON_TENSOR_GATE_H

#include "base/thread.h"

typedef enum gate_user { GATE_FREE, GATE_CALL, GATE_RUN } gate_user;

typedef struct gate {
  mutex lock; /* of what follows */
  condition left;
  gate_user user;
  size_t waiting_runs;
} gate;

void gate_init(gate *g);
void gate_free(gate *g);

/** Enters, as a call or a run; TN_ERR_BUSY where it may not. */
tn_status gate_enter(gate *g, gate_user as);
void gate_leave(gate *g);

#endif
