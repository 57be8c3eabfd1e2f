/* Owners of tensors: tn_keep, tn_own, tn_retain and tn_release. A tensor belongs to a scope until
   tn_keep moves it to the outer one, or tn_own makes it reference counted.

   tn_release does not wait for a context that is in use: the handle joins a lock-free list, and the
   holder of the context carries the releases out. A handle is in the list while its deferred.n is
   not 0. */
#include "tensor/api/scope.h"
#include "tensor/context/handle.h"
#include "tensor/state/handle_node.h"

/** True if a handle is live, so that its owner may change. Reports one that was freed. */
static bool check_movable(const tn_tensor *t, const char *op) {
  tn_context *c = t->context;
  if (t == c->handles.no_memory || t == c->handles.busy) return false;
  if (t->life == HANDLE_LIVE) return true;
  diag_set(&c->diag, TN_ERR_ARGUMENT, "the tensor was freed");
  context_fail(c, op, NULL, 0);
  return false;
}

/** Acquires the context of a handle whose owner may change; false, without the context, for others.
 */
static bool acquire_movable(tn_tensor *t, const char *op) {
  if (!t || context_acquire(t->context) != TN_OK) return false;
  if (check_movable(t, op)) return true;
  context_release(t->context);
  return false;
}

tn_tensor *tn_keep(tn_tensor *t) {
  if (!acquire_movable(t, "keep")) return t;
  scope *s = t->member.scope;
  if (s && s->outer) {
    handle_escape(s, t);
    handle_list_remove(t);
    handle_list_add(&s->outer->tensors, t);
    t->member.scope = s->outer;
  }
  context_release(t->context);
  return t;
}

tn_tensor *tn_own(tn_tensor *t) {
  if (!acquire_movable(t, "own")) return t;
  tn_context *c = t->context;
  if (t->member.scope) {
    if (c->scopes.innermost->outer) handle_escape(c->scopes.innermost, t);
    handle_list_remove(t);
    handle_list_add(&c->handles.owned, t);
    t->member.scope = NULL;
  }
  t->count++;
  context_release(c);
  return t;
}

/** True if a handle belongs to no scope; reports one that does. */
static bool is_owned(tn_tensor *t, const char *op) {
  if (!t->member.scope) return true;
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

/* ---- Releases ---- */

static void defer_release(tn_tensor *t) {
  tn_context *c = t->context;
  if (t == c->handles.no_memory || t == c->handles.busy || t->life != HANDLE_LIVE ||
      t->member.scope)
    return;
  if (atomic_fetch_add(&t->deferred.n, 1)) return;
  tn_tensor *first = atomic_load(&c->handles.deferred);
  do t->deferred.next = first;
  while (!atomic_compare_exchange_weak(&c->handles.deferred, &first, t));
}

/** Drops `n` owners, and frees a handle without any. One that is in the list stays until it is
    removed. */
static void drop_owners(tn_tensor *t, size_t n) {
  tn_context *c = t->context;
  bool is_too_many = n > t->count;
  t->count -= is_too_many ? t->count : n;
  if (!t->count && !atomic_load(&t->deferred.n)) handle_free(t);
  if (!is_too_many) return;
  diag_set(&c->diag, TN_ERR_ARGUMENT, "the tensor was freed");
  context_fail(c, "release", NULL, 0);
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
