#include "tensor/realize.h"

#include "base/vec.h"
#include "tensor/attempt.h"
#include "tensor/leaf.h"

/** What is to be done. */
typedef struct request {
  tn_context *c;
  const ask *asks;
  size_t n_asks;
  bool outer; /* only assigns made outside of the innermost scope */
  VEC(want) wants;
  VEC(cell *) cells;   /* held */
  const node *version; /* in the making; held */
  cell *cell;
  bool is_cancelled;
  diag first; /* the first failure that is to be returned */
} request;

/** The slot of the newest version of a state that is wanted. */
static const node **wanted_of(const request *r, cell *k) {
  cell_mark *own = r->outer ? cell_innermost(k) : NULL;
  return own ? &own->before : &k->now;
}

/* All at once. */

static void list_inits(void *arg) {
  request *r = arg;
  r->wants.n = 0;
  for (cell *k = r->c->pending; k; k = k->next_pending)
    if (k->init)
      vec_push(&r->c->arena, &r->wants, (want){.kind = WANT_INIT, .slot = &k->init, .cell = k});
}

static void list_rest(void *arg) {
  request *r = arg;
  builder b = context_builder(r->c);
  r->wants.n = 0;
  for (cell *k = r->c->pending; k; k = k->next_pending) {
    cell_refresh(&b, k);
    const node **slot = wanted_of(r, k);
    if (*slot == k->settled) continue;
    vec_push(&r->c->arena, &r->wants, (want){.kind = WANT_VERSION, .slot = slot, .cell = k});
  }
  for (size_t i = 0; i < r->n_asks; i++)
    vec_push(&r->c->arena, &r->wants,
             (want){.kind = WANT_VALUE, .slot = r->asks[i].slot, .optional = r->asks[i].optional});
}

/** Until no run beside the context is in the way. */
static attempt_outcome try_all(request *r, void (*list)(void *arg)) {
  attempt_outcome o;
  do {
    if (diag_catch(&r->c->diag, list, r) != TN_OK) return ATTEMPT_FAILED;
    o = r->wants.n ? attempt(r->c, r->wants.at, r->wants.n) : ATTEMPT_DONE;
  } while (o == ATTEMPT_OVERTAKEN);
  return o;
}

/* One by one, in their order, after a failure: what fails is known then, and what does not depend
   on it happens. */

static void note_failure(request *r) {
  if (r->first.status == TN_OK) diag_copy(&r->first, &r->c->diag);
}

static void note_cancelled(request *r) {
  r->is_cancelled = true;
  note_failure(r);
}

static void list_cells(void *arg) {
  request *r = arg;
  for (cell *k = r->c->pending; k; k = k->next_pending) {
    vec_push(&r->c->arena, &r->cells, k);
    cell_hold(k);
  }
}

static void drop_cells(request *r) {
  for (size_t i = 0; i < r->cells.n; i++) cell_drop(r->cells.at[i]);
  r->cells.n = 0;
}

static void try_init(request *r, cell *k) {
  want w = {.kind = WANT_INIT, .slot = &k->init, .cell = k};
  attempt_outcome o = attempt(r->c, &w, 1);
  if (o == ATTEMPT_CANCELLED) note_cancelled(r);
  if (o == ATTEMPT_FAILED) cell_fail(k);
}

static void revert_outer(void *arg) {
  const request *r = arg;
  builder b = context_builder(r->c);
  cell_revert_outer(&b, r->cell);
}

/** The wanted assigns of a state that have failed are forgotten: those of the innermost scope come
    after what there was before. Where memory does not suffice for that they all stay. */
static void revert(request *r, cell *k) {
  r->cell = k;
  if (r->outer && cell_innermost(k))
    (void)diag_catch(&r->c->diag, revert_outer, r);
  else
    cell_revert(k);
}

/** What was wanted alone has failed with the rest: there is no need to try it again. */
static bool has_failed_alone(request *r) {
  const want *w = r->wants.at;
  if (r->wants.n != 1) return false;
  if (w->kind == WANT_INIT) {
    cell_fail(w->cell);
    return true;
  }
  const node *version = *w->slot;
  if (w->kind == WANT_VERSION && (version->op != OP_SET || version->src[0] != w->cell->settled))
    return false;
  note_failure(r);
  if (w->kind == WANT_VERSION) revert(r, w->cell);
  return true;
}

/** Holds the oldest version of a state that is not its contents yet; NULL: all are. */
static void find_version(void *arg) {
  request *r = arg;
  builder b = context_builder(r->c);
  cell_refresh(&b, r->cell);
  const node *n = *wanted_of(r, r->cell);
  r->version = NULL;
  for (; n->op == OP_SET && !leaf_realised(r->c, n); n = n->src[0]) r->version = n;
  if (r->version) ir_retain(r->version);
}

static void end_versions(request *r, cell *k) {
  const node **slot = wanted_of(r, k), *old = *slot;
  *slot = ir_retain(k->settled);
  ir_release(r->c->ir, old);
}

/** One version more; false where there is none, or it has failed or has to wait. */
static bool try_version(request *r, cell *k) {
  r->cell = k;
  if (diag_catch(&r->c->diag, find_version, r) != TN_OK) {
    note_failure(r);
    revert(r, k);
    return false;
  }
  if (!r->version) {
    end_versions(r, k);
    return false;
  }
  want w = {.kind = WANT_VERSION, .slot = &r->version, .cell = k};
  attempt_outcome o = attempt(r->c, &w, 1);
  ir_release(r->c->ir, r->version);
  if (o == ATTEMPT_CANCELLED) note_cancelled(r);
  if (o == ATTEMPT_FAILED) {
    note_failure(r);
    revert(r, k);
  }
  return (o == ATTEMPT_DONE && !w.is_open) || o == ATTEMPT_OVERTAKEN;
}

static void try_versions(request *r, cell *k) {
  bool goes_on = true;
  while (goes_on) goes_on = try_version(r, k);
}

static void try_ask(request *r, const ask *a) {
  attempt_outcome o = ATTEMPT_OVERTAKEN;
  while (o == ATTEMPT_OVERTAKEN) {
    want w = {.kind = WANT_VALUE, .slot = a->slot, .optional = a->optional};
    o = attempt(r->c, &w, 1);
  }
  if (o == ATTEMPT_CANCELLED) note_cancelled(r);
  if (o == ATTEMPT_FAILED) note_failure(r);
}

/* In all. */

/** First contents, before anything reads them. */
static void do_inits(request *r) {
  attempt_outcome o = try_all(r, list_inits);
  if (o == ATTEMPT_CANCELLED) note_cancelled(r);
  if (o != ATTEMPT_FAILED || has_failed_alone(r)) return;
  if (diag_catch(&r->c->diag, list_cells, r) != TN_OK) note_failure(r);
  for (size_t i = 0; i < r->cells.n && !r->is_cancelled; i++)
    if (r->cells.at[i]->init) try_init(r, r->cells.at[i]);
  drop_cells(r);
}

static void do_rest(request *r) {
  attempt_outcome o = try_all(r, list_rest);
  if (o == ATTEMPT_CANCELLED) note_cancelled(r);
  if (o != ATTEMPT_FAILED || has_failed_alone(r)) return;
  if (diag_catch(&r->c->diag, list_cells, r) != TN_OK) note_failure(r);
  for (size_t i = 0; i < r->cells.n && !r->is_cancelled; i++) try_versions(r, r->cells.at[i]);
  for (size_t i = 0; i < r->n_asks && !r->is_cancelled; i++) try_ask(r, &r->asks[i]);
  drop_cells(r);
}

static void check_pending(tn_context *c) {
  for (cell *k = c->pending, *next; k; k = next) {
    next = k->next_pending;
    cell_check_pending(k);
  }
}

static tn_status run(request r) {
  tn_context *c = r.c;
  if (r.n_asks || c->pending) {
    do_inits(&r);
    if (!r.is_cancelled) do_rest(&r);
    check_pending(c);
  }
  cell_end_loans(c);
  if (r.first.status == TN_OK) context_take_refused(c, &r.first);
  return r.first.status == TN_OK ? TN_OK : diag_copy(&c->diag, &r.first);
}

tn_status realize(tn_context *c, const ask asks[], size_t n) {
  return run((request){.c = c, .asks = asks, .n_asks = n});
}

tn_status realize_outer(tn_context *c) { return run((request){.c = c, .outer = true}); }
