/* Nodes of the context computed by one executable, into memory of their own or that of states. */
#ifndef TENON_TENSOR_EVAL_COMPUTATION_H
#define TENON_TENSOR_EVAL_COMPUTATION_H

#include "runtime/execution.h"
#include "tensor/eval/executable_cache.h"
#include "tensor/eval/reference_counts.h"
#include "tensor/state/state.h"

/** A node to be computed. */
typedef struct computation_result {
  const node *root;
  const state_record *owner; /* state whose storage the result becomes; NULL: none's */
  size_t buffer;             /* of the executable */
  tn_buffer *memory;         /* where the value is written */
} computation_result;

/** A buffer of the executable before the run. */
typedef struct computation_buffer {
  const node *input; /* the first BUFFER of the graph that it is; NULL: none */
  bool is_output;    /* a result is placed there */
} computation_buffer;

typedef struct computation {
  tn_context *c;
  reference_counts counts; /* of the graph of all results */
  VEC(computation_result) results;
  map result_of; /* root → its index + 1 */
  executable_cache_result compiled;
  computation_buffer *buffers; /* of the executable */
  execution *execution;
} computation;

/** Adds a node unless it was added before; returns the index of its result. Raises. */
size_t computation_add(computation *k, const node *root);

/** Compiles, and allocates memory. Failures here and below are set in the context's diag. */
tn_status computation_open(computation *k);

/** Runs. The turns of all states that are read or written have come. */
tn_status computation_run(computation *k);

/** True if a host function's result is in its memory, which holds after a failed run too. */
bool computation_was_written(const computation *k, size_t result);

void computation_close(computation *k);

#endif
