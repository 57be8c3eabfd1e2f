#include "tensor/scope.h"

#include "base/vec.h"
#include "tensor/dims.h"
#include "tensor/handle.h"
#include "tensor/realize.h"
#include "tensor/resolver.h"

/* Lists of handles. */

void scope_add(handle_list *l, tn_tensor *t) {
  t->next = l->first;
  t->link = &l->first;
  if (l->first) l->first->link = &t->next;
  l->first = t;
}

void scope_remove(tn_tensor *t) {
  if (!t->link) return;
  *t->link = t->next;
  if (t->next) t->next->link = t->link;
  t->link = NULL;
  t->next = NULL;
}

static void leave_with(scope *s, tn_tensor *t) {
  if (t->leaving) return;
  t->leaving = s;
  t->next_leaving = s->leaving.first;
  t->link_leaving = &s->leaving.first;
  if (t->next_leaving) t->next_leaving->link_leaving = &t->next_leaving;
  s->leaving.first = t;
}

void scope_stay(tn_tensor *t) {
  if (!t->leaving) return;
  *t->link_leaving = t->next_leaving;
  if (t->next_leaving) t->next_leaving->link_leaving = t->link_leaving;
  t->leaving = NULL;
  t->next_leaving = NULL;
  t->link_leaving = NULL;
}

static void free_handles(handle_list *l) {
  while (l->first) handle_free(l->first);
}

/* Scopes. */

void tn_scope_begin(tn_context *c) {
  if (context_take(c) != TN_OK) return;
  scope *s = c->lost_scopes ? NULL : mem_calloc(&c->mem, 1, sizeof *s);
  if (s) {
    s->outer = c->scope;
    c->scope = s;
  } else {
    c->lost_scopes++;
    diag_set(&c->diag, TN_ERR_MEMORY, "out of memory");
    context_fail(c, "scope_begin", NULL, 0);
  }
  context_leave(c);
}

/** What outlives a scope: slots of nodes to be realised. */
typedef VEC(ask) ask_list;
typedef struct ending {
  tn_context *c;
  ask_list asks;
} ending;

static void list_leaving(void *arg) {
  ending *e = arg;
  for (tn_tensor *t = e->c->scope->leaving.first; t; t = t->next_leaving)
    if (t->node && !t->cell && !t->weak) vec_push(&e->c->arena, &e->asks, (ask){&t->node, true});
}

static void refuse_open(void *arg) {
  const cell *k = arg;
  resolver_refuse_open(k->context, k->now);
}

/** Assigns of the scope that ends which nothing can run any more. */
static void forget_assigns(tn_context *c) {
  for (cell *k = c->pending, *next; k; k = next) {
    next = k->next_pending;
    if (!cell_innermost(k)) continue;
    if (diag_catch(&c->diag, refuse_open, k) != TN_OK) context_fail(c, "scope_end", NULL, 0);
    cell_revert_innermost(k);
    cell_check_pending(k);
  }
}

/** The scope's own handles go first, so that nothing reads what its assigns may overwrite. */
static void run_scope(tn_context *c) {
  ending e = {.c = c};
  free_handles(&c->scope->tensors);
  cell_drop_unseen(c);
  tn_status s = diag_catch(&c->diag, list_leaving, &e);
  if (s != TN_OK) e.asks.n = 0;
  if (s != TN_OK) context_fail(c, "scope_end", NULL, 0);
  if (realize(c, e.asks.at, e.asks.n) != TN_OK) context_fail(c, "scope_end", NULL, 0);
  forget_assigns(c);
}

static void close_scope(tn_context *c) {
  scope *s = c->scope;
  free_handles(&s->tensors);
  while (s->leaving.first) scope_stay(s->leaving.first);
  c->scope = s->outer;
  dims_free_scope(c, s);
  failure_drop(c, s->first);
  context_drop_refused(c, s);
  mem_free(&c->mem, s, sizeof *s);
}

/** The first failure, which is the message again. */
static tn_status first_failure(tn_context *c) {
  return c->scope->first ? context_repeat(c, c->scope->first) : TN_OK;
}

static tn_status end_innermost(tn_context *c) {
  if (!c->broken) run_scope(c);
  tn_status s = c->broken ? context_repeat(c, c->broken) : first_failure(c);
  close_scope(c);
  return s;
}

tn_status tn_scope_end(tn_context *c) {
  tn_status s = context_take(c);
  if (s != TN_OK) return s;
  if (c->lost_scopes > c->floor.lost) {
    c->lost_scopes--;
    s = context_repeat(c, &c->no_memory);
  } else if (c->scope == c->floor.innermost) {
    diag_set(&c->diag, TN_ERR_ARGUMENT, "%s",
             c->scope->outer ? "the body of a loop did not begin this scope" : "no scope is open");
    s = context_fail(c, "scope_end", NULL, 0);
  } else {
    s = end_innermost(c);
  }
  context_leave(c);
  return s;
}

scope_floor scope_set_floor(tn_context *c) {
  scope_floor before = c->floor;
  c->floor = (scope_floor){c->scope, c->lost_scopes};
  return before;
}

bool scope_end_to_floor(tn_context *c, scope_floor before) {
  bool any = c->lost_scopes > c->floor.lost || c->scope != c->floor.innermost;
  c->lost_scopes = c->floor.lost;
  while (c->scope != c->floor.innermost) end_innermost(c);
  c->floor = before;
  return !any;
}

void scope_free_all(tn_context *c) {
  while (c->scope->outer) close_scope(c);
  free_handles(&c->root.tensors);
  free_handles(&c->owned);
  cell_forget_pending(c);
  handle_forget(c);
  failure_drop(c, c->root.first);
  c->root.first = NULL;
  context_drop_refused(c, &c->root);
}

/* Owners. */

/** Takes the context of a handle that can be moved. Freed handles are told. */
static bool enter(tn_tensor *t, const char *op) {
  if (!t || context_take(t->context) != TN_OK) return false;
  tn_context *c = t->context;
  bool has_owner = t != c->nobody && t != c->busy;
  if (t->life == HANDLE_LIVE && has_owner) return true;
  if (has_owner) {
    diag_set(&c->diag, TN_ERR_ARGUMENT, "the tensor was freed");
    context_fail(c, op, NULL, 0);
  }
  context_leave(c);
  return false;
}

tn_tensor *tn_keep(tn_tensor *t) {
  if (!enter(t, "keep")) return t;
  if (t->scope && t->scope->outer) {
    leave_with(t->scope, t);
    scope *outer = t->scope->outer;
    scope_remove(t);
    scope_add(&outer->tensors, t);
    t->scope = outer;
  }
  context_leave(t->context);
  return t;
}

tn_tensor *tn_own(tn_tensor *t) {
  if (!enter(t, "own")) return t;
  tn_context *c = t->context;
  if (t->scope) {
    if (c->scope->outer) leave_with(c->scope, t);
    scope_remove(t);
    scope_add(&c->owned, t);
    t->scope = NULL;
  }
  t->count++;
  context_leave(c);
  return t;
}

static bool is_owned(tn_tensor *t, const char *op) {
  if (!t->scope) return true;
  diag_set(&t->context->diag, TN_ERR_ARGUMENT, "the tensor belongs to a scope: use tn_own first");
  context_fail(t->context, op, &t, 1);
  return false;
}

tn_tensor *tn_retain(tn_tensor *t) {
  if (!enter(t, "retain")) return t;
  if (is_owned(t, "retain")) t->count++;
  context_leave(t->context);
  return t;
}

void tn_release(tn_tensor *t) {
  if (!enter(t, "release")) return;
  tn_context *c = t->context;
  if (is_owned(t, "release") && !--t->count) handle_free(t);
  context_leave(c);
}
