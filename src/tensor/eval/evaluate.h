/* Evaluation of nodes that slots hold: one transaction, of which everything happens or nothing. */
#ifndef TENON_TENSOR_EVAL_EVALUATE_H
#define TENON_TENSOR_EVAL_EVALUATE_H

#include "tensor/state/state.h"

typedef enum evaluation_request_kind {
  EVALUATE_VALUE,    /* a node */
  EVALUATE_INIT,     /* a state's first contents */
  EVALUATE_VERSION,  /* a version of a state, which is committed */
  EVALUATE_HOST_CALL /* a host function's result that something else reads; internal to evaluate */
} evaluation_request_kind;

/** A node to be computed. After a failure its slot is as it was. */
typedef struct evaluation_request {
  evaluation_request_kind kind;
  const node **slot; /* holds a reference to the node; the BUFFER with its value afterwards, of INIT
                        NULL. HOST_CALL: NULL */
  state_record *state; /* INIT, VERSION */
  bool optional;       /* VALUE: skipped if it depends on inputs or variables of plans, as a VERSION
                          always is */
  bool is_unbound;     /* result: it does depend on them and was skipped. Of a VERSION, the versions
                          before it that do not were run */
} evaluation_request;

typedef enum evaluation_outcome {
  EVALUATION_DONE,
  EVALUATION_OVERTAKEN, /* a concurrent run has changed a state: evaluate again */
  EVALUATION_CANCELLED, /* by the progress callback */
  EVALUATION_FAILED
} evaluation_outcome;

/** Evaluates the requests as one plan. The context is acquired, and no catch is active; a failure
   is in its diag. Results of host functions that have run are kept, whatever follows. */
evaluation_outcome evaluate(tn_context *c, evaluation_request requests[], size_t n);

/** As evaluate, of elements of ITEMs: those that they depend on have been evaluated before, where
    that is possible. */
evaluation_outcome evaluate_of_items(tn_context *c, evaluation_request requests[], size_t n);

#endif
