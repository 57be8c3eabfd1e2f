/* One attempt at computing nodes that slots hold: all of them, or nothing happens. */
#ifndef TENON_TENSOR_ATTEMPT_H
#define TENON_TENSOR_ATTEMPT_H

#include "tensor/state.h"

typedef enum want_kind {
  WANT_VALUE,   /* a node */
  WANT_INIT,    /* a state's first contents */
  WANT_VERSION, /* a version of a state, which becomes its contents */
  WANT_CUSTOM   /* a host function's result that something else reads; the attempt's own */
} want_kind;

/** A slot whose node is to be computed. It holds the BUFFER with the value afterwards (of INIT it
    is NULL); after a failure it is as it was. */
typedef struct want {
  want_kind kind;
  const node **slot; /* CUSTOM: NULL */
  cell *cell;        /* INIT, VERSION */
  bool optional;     /* VALUE: may depend on inputs or variables of plans; a VERSION always may */
  bool is_open;      /* it does, and is as it was: versions below it that do not are run */
} want;

typedef enum attempt_outcome {
  ATTEMPT_DONE,
  ATTEMPT_OVERTAKEN, /* a run beside the context has changed a state: it is to be done again */
  ATTEMPT_CANCELLED, /* while it was compiled */
  ATTEMPT_FAILED
} attempt_outcome;

/** Tries. In a taken context and not under its catch; a failure is in its diag. Results of host
    functions that have run are kept, whatever follows. */
attempt_outcome attempt(tn_context *c, want wants[], size_t n);

#endif
