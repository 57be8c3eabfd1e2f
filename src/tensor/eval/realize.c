/* Realisation: first contents of states, then pending assigns and values, each first as one
   evaluation. After a failure they are evaluated one by one, in order, so that everything which
   does not depend on the failing part happens all the same. */
#include "tensor/eval/realize.h"

#include "base/vec.h"
#include "tensor/eval/evaluate.h"
#include "tensor/state/graph_input.h"

/** A call of realize, and its progress. */
typedef struct realisation {
  tn_context *c;
  const evaluation_request *requests;
  size_t n_requests;
  realized_assigns assigns;
  VEC(evaluation_request) batch;
  VEC(state_record *) states; /* retained */
  const node *version;        /* being evaluated; retained */
  state_record *state;
  bool is_cancelled;
  tn_failure first; /* the first failure, which is returned */
} realisation;

/** The slot of the newest version of a state that is to be realised. */
static const node **wanted_version(const realisation *r, state_record *k) {
  state_scope_mark *own = r->assigns == REALIZE_OUTER_ASSIGNS ? state_innermost_mark(k) : NULL;
  return own ? &own->before : &k->versions.newest;
}

/* As one evaluation. */

static void list_inits(void *arg) {
  realisation *r = arg;
  r->batch.n = 0;
  for (state_record *k = r->c->states.pending; k; k = k->next_pending)
    if (k->versions.init)
      vec_push(&r->c->arena, &r->batch,
               (evaluation_request){.kind = EVALUATE_INIT, .slot = &k->versions.init, .state = k});
}

static void list_versions_and_values(void *arg) {
  realisation *r = arg;
  builder b = context_builder(r->c);
  r->batch.n = 0;
  for (state_record *k = r->c->states.pending; k; k = k->next_pending) {
    state_refresh(&b, k);
    const node **slot = wanted_version(r, k);
    if (*slot == k->versions.committed) continue;
    vec_push(&r->c->arena, &r->batch,
             (evaluation_request){.kind = EVALUATE_VERSION, .slot = slot, .state = k});
  }
  for (size_t i = 0; i < r->n_requests; i++)
    vec_push(&r->c->arena, &r->batch,
             (evaluation_request){.kind = EVALUATE_VALUE,
                                  .slot = r->requests[i].slot,
                                  .optional = r->requests[i].optional});
}

static void record_failure(realisation *r) {
  if (r->first.status == TN_OK) r->first = r->c->diag.failure;
}

static void record_cancelled(realisation *r) {
  r->is_cancelled = true;
  record_failure(r);
}

static void list_pending(void *arg) {
  realisation *r = arg;
  for (state_record *k = r->c->states.pending; k; k = k->next_pending) {
    vec_push(&r->c->arena, &r->states, k);
    state_retain(k);
  }
}

static void release_listed(realisation *r) {
  for (size_t i = 0; i < r->states.n; i++) state_release(r->states.at[i]);
  r->states.n = 0;
}

static void evaluate_init(realisation *r, state_record *k) {
  evaluation_request w = {.kind = EVALUATE_INIT, .slot = &k->versions.init, .state = k};
  evaluation_outcome o = evaluate(r->c, &w, 1);
  if (o == EVALUATION_CANCELLED) record_cancelled(r);
  if (o == EVALUATION_FAILED) state_fail(k);
}

static void revert_outer(void *arg) {
  const realisation *r = arg;
  builder b = context_builder(r->c);
  state_revert_outer(&b, r->state);
}

/** Drops the failed assigns of a state; assigns of the innermost scope that are not to be realised
    stay, over the contents before. Without memory for that all stay. */
static void drop_failed_assigns(realisation *r, state_record *k) {
  r->state = k;
  if (r->assigns == REALIZE_OUTER_ASSIGNS && state_innermost_mark(k))
    (void)diag_catch(&r->c->diag, revert_outer, r);
  else
    state_revert(k);
}

/** Evaluates a list of requests, again while concurrent runs overtake it. */
static evaluation_outcome evaluate_together(realisation *r, void (*list)(void *arg)) {
  evaluation_outcome o;
  do {
    if (diag_catch(&r->c->diag, list, r) != TN_OK) return EVALUATION_FAILED;
    o = r->batch.n ? evaluate(r->c, r->batch.at, r->batch.n) : EVALUATION_DONE;
  } while (o == EVALUATION_OVERTAKEN);
  if (o == EVALUATION_CANCELLED) record_cancelled(r);
  return o;
}

/* One by one, in order, after a failure. */

/** True if the failed evaluation had a single request, whose failure is then recorded: evaluating
    it alone would fail again. */
static bool record_single_failure(realisation *r) {
  const evaluation_request *w = r->batch.at;
  if (r->batch.n != 1) return false;
  if (w->kind == EVALUATE_INIT) {
    state_fail(w->state);
    return true;
  }
  const node *version = *w->slot;
  if (w->kind == EVALUATE_VERSION &&
      (version->op != OP_SET || version->src[0] != w->state->versions.committed))
    return false;
  record_failure(r);
  if (w->kind == EVALUATE_VERSION) drop_failed_assigns(r, w->state);
  return true;
}

/** Finds and retains the oldest version of a state that has not run; NULL: all have. */
static void find_oldest_version(void *arg) {
  realisation *r = arg;
  builder b = context_builder(r->c);
  state_refresh(&b, r->state);
  const node *n = *wanted_version(r, r->state);
  r->version = NULL;
  for (; n->op == OP_SET && !computed_value_of(r->c, n); n = n->src[0]) r->version = n;
  if (r->version) ir_retain(r->version);
}

static void release_versions(realisation *r, state_record *k) {
  const node **slot = wanted_version(r, k), *old = *slot;
  *slot = ir_retain(k->versions.committed);
  ir_release(r->c->ir, old);
}

/** Evaluates the next version of a state. False if there is none, or it failed or depends on inputs
    of a plan. */
static bool evaluate_next_version(realisation *r, state_record *k) {
  r->state = k;
  if (diag_catch(&r->c->diag, find_oldest_version, r) != TN_OK) {
    record_failure(r);
    drop_failed_assigns(r, k);
    return false;
  }
  if (!r->version) {
    release_versions(r, k);
    return false;
  }
  evaluation_request w = {.kind = EVALUATE_VERSION, .slot = &r->version, .state = k};
  evaluation_outcome o = evaluate(r->c, &w, 1);
  ir_release(r->c->ir, r->version);
  if (o == EVALUATION_CANCELLED) record_cancelled(r);
  if (o == EVALUATION_FAILED) {
    record_failure(r);
    drop_failed_assigns(r, k);
  }
  return (o == EVALUATION_DONE && !w.is_unbound) || o == EVALUATION_OVERTAKEN;
}

static void evaluate_value(realisation *r, const evaluation_request *a) {
  evaluation_outcome o = EVALUATION_OVERTAKEN;
  while (o == EVALUATION_OVERTAKEN) {
    evaluation_request w = {.kind = EVALUATE_VALUE, .slot = a->slot, .optional = a->optional};
    o = evaluate(r->c, &w, 1);
  }
  if (o == EVALUATION_CANCELLED) record_cancelled(r);
  if (o == EVALUATION_FAILED) record_failure(r);
}

static void evaluate_inits_singly(realisation *r) {
  if (record_single_failure(r)) return;
  if (diag_catch(&r->c->diag, list_pending, r) != TN_OK) record_failure(r);
  for (size_t i = 0; i < r->states.n && !r->is_cancelled; i++)
    if (r->states.at[i]->versions.init) evaluate_init(r, r->states.at[i]);
  release_listed(r);
}

static void evaluate_versions_and_values_singly(realisation *r) {
  if (record_single_failure(r)) return;
  if (diag_catch(&r->c->diag, list_pending, r) != TN_OK) record_failure(r);
  for (size_t i = 0; i < r->states.n && !r->is_cancelled; i++)
    while (evaluate_next_version(r, r->states.at[i])) continue;
  for (size_t i = 0; i < r->n_requests && !r->is_cancelled; i++) evaluate_value(r, &r->requests[i]);
  release_listed(r);
}

tn_status realize(tn_context *c, realized_assigns assigns, const evaluation_request requests[],
                  size_t n) {
  realisation r = {.c = c, .assigns = assigns, .requests = requests, .n_requests = n};
  if (n || c->states.pending) {
    if (evaluate_together(&r, list_inits) == EVALUATION_FAILED) evaluate_inits_singly(&r);
    if (!r.is_cancelled && evaluate_together(&r, list_versions_and_values) == EVALUATION_FAILED)
      evaluate_versions_and_values_singly(&r);
    for (state_record *k = c->states.pending, *next; k; k = next) {
      next = k->next_pending;
      state_update_pending(k);
    }
  }
  state_end_copy_on_write(c);
  if (r.first.status == TN_OK) context_take_assign_failures(c, &r.first);
  if (r.first.status != TN_OK) c->diag.failure = r.first;
  return r.first.status;
}
