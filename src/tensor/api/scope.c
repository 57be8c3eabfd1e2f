/* Scopes and owners. A scope owns the tensors made in it. When it ends, its pending assigns and the
   tensors that outlive it are evaluated as one plan. */
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

/* Scopes. */

void tn_scope_begin(tn_context *c) {
  if (context_acquire(c) != TN_OK) return;
  scope *s = c->scopes.n_unallocated ? NULL : mem_calloc(&c->mem, 1, sizeof *s);
  if (s) {
    s->outer = c->scopes.innermost;
    c->scopes.innermost = s;
  } else {
    c->scopes.n_unallocated++;
    diag_set(&c->diag, TN_ERR_MEMORY, "out of memory");
    context_fail(c, "scope_begin", NULL, 0);
  }
  context_release(c);
}

/** Requests to realise the tensors that outlive a scope. */
typedef VEC(evaluation_request) request_list;
typedef struct scope_ending {
  tn_context *c;
  request_list requests;
} scope_ending;

static void list_escaping(void *arg) {
  scope_ending *e = arg;
  for (tn_tensor *t = e->c->scopes.innermost->escaping.first; t; t = t->next_escaping)
    if (t->node && !t->state && !t->weak)
      vec_push(&e->c->arena, &e->requests,
               (evaluation_request){.slot = &t->node, .optional = true});
}

static void refuse_unbound_assigns(void *arg) {
  const state_record *k = arg;
  refuse_unbound_graph(k->context, k->versions.newest);
}

/** Drops the assigns of the ending scope that could not run, which nothing can run any more;
    reports those that depend on inputs or variables of plans. */
static void drop_assigns(tn_context *c) {
  for (state_record *k = c->states.pending, *next; k; k = next) {
    next = k->next_pending;
    if (!state_innermost_mark(k)) continue;
    if (diag_catch(&c->diag, refuse_unbound_assigns, k) != TN_OK)
      context_fail(c, "scope_end", NULL, 0);
    state_revert_innermost(k);
    state_update_pending(k);
  }
}

/** Runs what a scope leaves to be done. Its own handles are freed first, so that its assigns may
    overwrite what nothing else reads. */
static void run_scope(tn_context *c) {
  scope_ending e = {.c = c};
  free_handles(&c->scopes.innermost->tensors);
  state_drop_unobserved(c);
  tn_status s = diag_catch(&c->diag, list_escaping, &e);
  if (s != TN_OK) e.requests.n = 0;
  if (s != TN_OK) context_fail(c, "scope_end", NULL, 0);
  if (realize(c, REALIZE_ALL_ASSIGNS, e.requests.at, e.requests.n) != TN_OK)
    context_fail(c, "scope_end", NULL, 0);
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
  if (!c->broken) run_scope(c);
  failure *f = c->broken ? c->broken : c->scopes.innermost->first_failure;
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
             c->scopes.innermost->outer ? "the body of a loop did not begin this scope"
                                        : "no scope is open");
    s = context_fail(c, "scope_end", NULL, 0);
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
  bool any = c->scopes.n_unallocated > c->scopes.floor.n_unallocated ||
             c->scopes.innermost != c->scopes.floor.innermost;
  c->scopes.n_unallocated = c->scopes.floor.n_unallocated;
  while (c->scopes.innermost != c->scopes.floor.innermost) end_innermost(c);
  c->scopes.floor = before;
  return !any;
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

/* Owners. */

/** True if a handle has an owner, which may change. Reports a handle that was freed. */
static bool check_movable(const tn_tensor *t, const char *op) {
  tn_context *c = t->context;
  if (t == c->handles.no_memory || t == c->handles.busy) return false;
  if (t->life == HANDLE_LIVE) return true;
  diag_set(&c->diag, TN_ERR_ARGUMENT, "the tensor was freed");
  context_fail(c, op, NULL, 0);
  return false;
}

/** Acquires the context of a handle whose owner may change. */
static bool acquire_movable(tn_tensor *t, const char *op) {
  if (!t || context_acquire(t->context) != TN_OK) return false;
  if (check_movable(t, op)) return true;
  context_release(t->context);
  return false;
}

tn_tensor *tn_keep(tn_tensor *t) {
  if (!acquire_movable(t, "keep")) return t;
  if (t->scope && t->scope->outer) {
    handle_escape(t->scope, t);
    scope *outer = t->scope->outer;
    handle_list_remove(t);
    handle_list_add(&outer->tensors, t);
    t->scope = outer;
  }
  context_release(t->context);
  return t;
}

tn_tensor *tn_own(tn_tensor *t) {
  if (!acquire_movable(t, "own")) return t;
  tn_context *c = t->context;
  if (t->scope) {
    if (c->scopes.innermost->outer) handle_escape(c->scopes.innermost, t);
    handle_list_remove(t);
    handle_list_add(&c->handles.owned, t);
    t->scope = NULL;
  }
  t->count++;
  context_release(c);
  return t;
}

static bool is_owned(tn_tensor *t, const char *op) {
  if (!t->scope) return true;
  diag_set(&t->context->diag, TN_ERR_ARGUMENT, "the tensor belongs to a scope: use tn_own first");
  context_fail(t->context, op, &t, 1);
  return false;
}

tn_tensor *tn_retain(tn_tensor *t) {
  if (!acquire_movable(t, "retain")) return t;
  if (is_owned(t, "retain")) t->count++;
  context_release(t->context);
  return t;
}

/* Releases. A context that is in use is not waited for: the handle joins a lock-free list, and the
   holder of the context carries the releases out. A handle is in the list while its deferred.n is
   not 0. */

static void defer_release(tn_tensor *t) {
  tn_context *c = t->context;
  if (t == c->handles.no_memory || t == c->handles.busy || t->life != HANDLE_LIVE || t->scope)
    return;
  if (atomic_fetch_add(&t->deferred.n, 1)) return;
  tn_tensor *first = atomic_load(&c->handles.deferred);
  do t->deferred.next = first;
  while (!atomic_compare_exchange_weak(&c->handles.deferred, &first, t));
}

static void refuse_freed(tn_context *c) {
  diag_set(&c->diag, TN_ERR_ARGUMENT, "the tensor was freed");
  context_fail(c, "release", NULL, 0);
}

/** Drops `n` owners, and frees a handle without any. One that is in the list stays until it is
    taken out. */
static void drop_owners(tn_tensor *t, size_t n) {
  tn_context *c = t->context;
  bool is_too_many = n > t->count;
  t->count -= is_too_many ? t->count : n;
  if (!t->count && !atomic_load(&t->deferred.n)) handle_free(t);
  if (is_too_many) refuse_freed(c);
}

void scope_release_deferred(tn_context *c) {
  tn_tensor *next;
  for (tn_tensor *t = atomic_exchange(&c->handles.deferred, NULL); t; t = next) {
    next = t->deferred.next; /* read first: the handle may join the list again */
    size_t n = atomic_exchange(&t->deferred.n, 0);
    drop_owners(t, n);
  }
}

void tn_release(tn_tensor *t) {
  if (!t) return;
  tn_context *c = t->context;
  if (!context_try_acquire(c)) {
    defer_release(t);
    return;
  }
  if (check_movable(t, "release") && is_owned(t, "release")) drop_owners(t, 1);
  context_release(c);
}
