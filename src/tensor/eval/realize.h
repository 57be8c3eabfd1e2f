/* Realisation of values and of all pending assigns. Everything is evaluated as one plan; after a
   failure each part is evaluated on its own, in order, to find out what fails.

   A state whose first contents fail is from then on a failure itself (state_fail), which is
   reported but fails only its readers. Everything that does not depend on a failure happens all the
   same; a failed assign is dropped, with later assigns to the same state. Assigns that depend on
   inputs or variables of plans stay pending, and if the progress callback cancels, all do. */
#ifndef TENON_TENSOR_EVAL_REALIZE_H
#define TENON_TENSOR_EVAL_REALIZE_H

#include "tensor/eval/evaluate.h"

typedef enum realized_assigns {
  REALIZE_ALL_ASSIGNS,
  REALIZE_OUTER_ASSIGNS /* those made outside of the innermost scope */
} realized_assigns;

/** Computes pending assigns and the values of `n` requests (kind EVALUATE_VALUE). The context is
    acquired and no catch is active; the first failure is in its diag. */
tn_status realize(tn_context *c, realized_assigns assigns, const evaluation_request requests[],
                  size_t n);

#endif
