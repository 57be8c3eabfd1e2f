/* Realisation of values and of all pending assigns. Everything is evaluated as one plan; after a
   failure each part is evaluated on its own, in order, to find out what fails.

   A state whose first contents fail is from then on a failure itself (state_fail), which is
   reported but fails only its readers. Everything that does not depend on a failure happens all the
   same; a failed assign is dropped, with later assigns to the same state. Assigns that depend on
   inputs or variables of plans stay pending, and if the progress callback cancels, all do. */
#ifndef TENON_TENSOR_EVAL_REALIZE_H
#define TENON_TENSOR_EVAL_REALIZE_H

#include "tensor/eval/evaluate.h"

/** Computes the values of `requests` (kind EVALUATE_VALUE) and all pending assigns. The context is
    acquired and no catch is active; the first failure is in its diag. */
tn_status realize_nodes(tn_context *c, const evaluation_request requests[], size_t n);

/** Computes the pending assigns that were made outside of the innermost scope, likewise. */
tn_status realize_outer_assigns(tn_context *c);

#endif
