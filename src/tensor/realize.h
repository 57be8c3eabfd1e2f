/* Realising: values and pending assigns computed as one plan. */
#ifndef TENON_TENSOR_REALIZE_H
#define TENON_TENSOR_REALIZE_H

#include "tensor/state.h"

/** A node to be realised. The slot holds a reference to it; afterwards it holds the BUFFER with its
    value instead. */
typedef struct ask {
  const node **slot;
  bool optional; /* left as it is if it depends on inputs or variables of plans */
} ask;

/* Both run in a taken context and not under its catch; the first failure is in its diag. A state
   whose first contents fail is from then on a failure itself (cell_fail), which is told but does
   not fail what does not read it. Of all else, what does not depend on a failure happens all the
   same; an assign that fails is forgotten, with those that follow it on the same state. Assigns
   that depend on inputs or variables of plans stay pending, and where progress cancels all do. */

/** Computes nodes, with all pending assigns. */
tn_status realize(tn_context *c, const ask asks[], size_t n);

/** The pending assigns that were made outside of the innermost scope. */
tn_status realize_outer(tn_context *c);

#endif
