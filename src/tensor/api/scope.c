/* Scopes: tn_scope_begin and tn_scope_end. A scope owns the tensors made in it and frees them when
   it ends. Its pending assigns and the tensors that outlive it (ownership.c) are then evaluated as
   one plan, so that what they share is computed once. */
#include "tensor/api/scope.h"

#include "base/vec.h"
#include "tensor/context/handle.h"
#include "tensor/context/symbolic_dims.h"
#include "tensor/eval/realize.h"
#include "tensor/eval/substitute_values.h"
#include "tensor/state/handle_node.h"

static void free_handles(handle_list *l) {
  while (l->first) handle_free(l->first);
}

void tn_scope_begin(tn_context *c) {
  if (context_acquire(c) != TN_OK) return;
  scope *s = c->scopes.n_unallocated ? NULL : mem_calloc(&c->mem, 1, sizeof *s);
  if (s) {
    s->outer = c->scopes.innermost;
    c->scopes.innermost = s;
  } else {
    c->scopes.n_unallocated++;
    diag_set(&c->diag, TN_ERR_MEMORY, "out of memory");
    context_fail_call(c, "scope_begin");
  }
  context_release(c);
}

typedef VEC(evaluation_request) request_list;

/** Argument and result of list_escaping. */
typedef struct scope_ending {
  tn_context *c;
  request_list requests; /* to realise the tensors that outlive the scope */
} scope_ending;

static void list_escaping(void *arg) {
  scope_ending *e = arg;
  for (tn_tensor *t = e->c->scopes.innermost->escaping.first; t; t = t->escaping.next)
    if (t->node && !t->state && !t->weak)
      vec_push(&e->c->arena, &e->requests,
               (evaluation_request){.slot = &t->node, .optional = true});
}

static void refuse_unbound_assigns(void *arg) {
  const state_record *k = arg;
  refuse_unbound_graph(k->context, k->versions.newest);
}

/** Drops the assigns of the ending scope that did not run, as nothing can run them later; reports
    those that depend on inputs or variables of plans. */
static void drop_assigns(tn_context *c) {
  for (state_record *k = c->states.pending, *next; k; k = next) {
    next = k->next_pending;
    if (!state_innermost_mark(k)) continue;
    if (diag_catch(&c->diag, refuse_unbound_assigns, k) != TN_OK) context_fail_call(c, "scope_end");
    state_revert_innermost(k);
    state_update_pending(k);
  }
}

/** Runs the assigns of the innermost scope and realises the tensors that outlive it. The scope's
    own handles are freed first, so that assigns may overwrite contents that nothing else reads. */
static void run_scope(tn_context *c) {
  scope_ending e = {.c = c};
  free_handles(&c->scopes.innermost->tensors);
  state_drop_unobserved(c);
  tn_status s = diag_catch(&c->diag, list_escaping, &e);
  if (s != TN_OK) e.requests.n = 0;
  if (s != TN_OK) context_fail_call(c, "scope_end");
  if (realize(c, REALIZE_ALL_ASSIGNS, e.requests.at, e.requests.n) != TN_OK)
    context_fail_call(c, "scope_end");
  drop_assigns(c);
}

static void free_scope(tn_context *c) {
  scope *s = c->scopes.innermost;
  free_handles(&s->tensors);
  while (s->escaping.first) handle_cancel_escape(s->escaping.first);
  c->scopes.innermost = s->outer;
  dims_free_scope(c, s);
  failure_release(c, s->first_failure);
  context_drop_assign_failure(c, s);
  mem_free(&c->mem, s, sizeof *s);
}

/** Runs and frees the innermost scope. Its first failure is reported again, so that it is the
    message, and its status returned. */
static tn_status end_innermost(tn_context *c) {
  failure *broken = c->failures.of_open;
  if (!broken) run_scope(c);
  failure *f = broken ? broken : c->scopes.innermost->first_failure;
  tn_status s = f ? context_report_again(c, f) : TN_OK;
  free_scope(c);
  return s;
}

tn_status tn_scope_end(tn_context *c) {
  tn_status s = context_acquire(c);
  if (s != TN_OK) return s;
  if (c->scopes.n_unallocated > c->scopes.floor.n_unallocated) {
    c->scopes.n_unallocated--;
    s = context_report_again(c, &c->failures.no_memory);
  } else if (c->scopes.innermost == c->scopes.floor.innermost) {
    diag_set(&c->diag, TN_ERR_ARGUMENT, "%s",
             c->scopes.innermost->outer
                 ? "the body of a loop cannot end a scope that it did not begin"
                 : "no scope is open");
    s = context_fail_call(c, "scope_end");
  } else {
    s = end_innermost(c);
  }
  context_release(c);
  return s;
}

scope_floor scope_set_floor(tn_context *c) {
  scope_floor before = c->scopes.floor;
  c->scopes.floor = (scope_floor){c->scopes.innermost, c->scopes.n_unallocated};
  return before;
}

bool scope_end_to_floor(tn_context *c, scope_floor before) {
  bool any_open = c->scopes.n_unallocated > c->scopes.floor.n_unallocated ||
                  c->scopes.innermost != c->scopes.floor.innermost;
  c->scopes.n_unallocated = c->scopes.floor.n_unallocated;
  while (c->scopes.innermost != c->scopes.floor.innermost) end_innermost(c);
  c->scopes.floor = before;
  return !any_open;
}

void scope_free_all(tn_context *c) {
  while (c->scopes.innermost->outer) free_scope(c);
  free_handles(&c->scopes.root.tensors);
  free_handles(&c->handles.owned);
  state_release_pending(c);
  failure_release(c, c->scopes.root.first_failure);
  c->scopes.root.first_failure = NULL;
  context_drop_assign_failure(c, &c->scopes.root);
}
