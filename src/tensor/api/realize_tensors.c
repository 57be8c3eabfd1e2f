/* tn_realize: computes tensors now, all as one plan, so that what they share is computed once. A
   value keeps its result; a state has its own, and only reports why there is none. */
#include "base/vec.h"
#include "tensor/context/call.h"
#include "tensor/eval/realize.h"
#include "tensor/state/state.h"

typedef VEC(evaluation_request) request_list;

typedef struct realize_job {
  tn_context *c;
  tn_tensor *const *tensors;
  size_t n;
  request_list requests;
} realize_job;

static void list_requests(void *arg) {
  realize_job *j = arg;
  for (size_t i = 0; i < j->n; i++)
    if (!j->tensors[i]->state && !j->tensors[i]->weak)
      vec_push(&j->c->arena, &j->requests, (evaluation_request){.slot = &j->tensors[i]->node});
}

/** Refreshes states, which have no slot to be realised; raises the failure of one without contents.
 */
static void refresh_states(void *arg) {
  realize_job *j = arg;
  builder b = context_builder(j->c);
  for (size_t i = 0; i < j->n; i++)
    if (j->tensors[i]->state) state_refresh(&b, j->tensors[i]->state);
}

tn_status tn_realize(tn_context *c, tn_tensor *const tensors[], size_t n) {
  tn_status s = context_acquire_valid(c);
  if (s != TN_OK) return s;
  realize_job j = {.c = c, .tensors = tensors, .n = n};
  failure *f = call_check(c, "realize", tensors, n, 0);
  if (f) {
    s = context_return_failure(c, f);
  } else {
    s = diag_catch(&c->diag, list_requests, &j);
    if (s == TN_OK) s = realize(c, REALIZE_ALL_ASSIGNS, j.requests.at, j.requests.n);
    if (s == TN_OK) s = diag_catch(&c->diag, refresh_states, &j);
    if (s != TN_OK) context_fail(c, "realize", tensors, n);
  }
  context_release(c);
  return s;
}
