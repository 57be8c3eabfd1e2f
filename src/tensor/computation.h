/* Nodes of the context computed as one plan, into memory of their own or that of states. */
#ifndef TENON_TENSOR_COMPUTATION_H
#define TENON_TENSOR_COMPUTATION_H

#include "runtime/execution.h"
#include "tensor/executable_cache.h"
#include "tensor/state.h"
#include "tensor/usage.h"

/** A node to be computed. */
typedef struct result {
  const node *root;
  const cell *owner; /* the state whose storage it is to be; NULL: none's */
  size_t at;         /* its buffer */
  tn_buffer *memory; /* where the value will be */
} result;

/** What is known of a buffer of the executable before the run. */
typedef struct known_buffer {
  const node *input; /* the first BUFFER of the graph that it is; NULL: none */
  bool is_output;    /* a result is placed there */
} known_buffer;

typedef struct computation {
  tn_context *c;
  usage usage; /* of the graph of all results */
  VEC(result) results;
  map result_of; /* root → its number + 1 */
  executable_answer answer;
  known_buffer *buffers; /* of the executable */
  execution *execution;
} computation;

/** The result of a node, one for each node: its number. Raises. */
size_t computation_add(computation *k, const node *root);

/** Compiles, and finds memory. Failures here and below are set in the context's diag. */
tn_status computation_open(computation *k);

/** Runs, in the turns of all states that are read or written. */
tn_status computation_run(computation *k);

/** Whether a result of a host function is in its memory; also after a run that failed. */
bool computation_was_filled(const computation *k, size_t result);

void computation_close(computation *k);

#endif
