/* Handles of tensors: creation, membership in the lists of scopes, and the text of their types.
   Debug builds keep the memory of the last MAX_FREED freed handles, so that use after free is
   reported. */
#include "tensor/context/handle.h"

#include "ir/core/var_names.h"
#include "tensor/context/linked_list.h"

#include <stdio.h>
#include <string.h>

/* Number of freed handles whose memory is kept. */
#ifdef NDEBUG
enum { MAX_FREED = 0 };
#else
enum { MAX_FREED = 4096 };
#endif

/* ---- Lists of handles ---- */

void handle_list_add(handle_list *l, tn_tensor *t) {
  LIST_PUSH(&l->first, t, member.next, member.link);
}

void handle_list_remove(tn_tensor *t) {
  if (t->member.link) LIST_REMOVE(t, member.next, member.link);
}

void handle_escape(scope *s, tn_tensor *t) {
  if (t->escaping.scope) return;
  t->escaping.scope = s;
  LIST_PUSH(&s->escaping.first, t, escaping.next, escaping.link);
}

void handle_cancel_escape(tn_tensor *t) {
  if (!t->escaping.scope) return;
  LIST_REMOVE(t, escaping.next, escaping.link);
  t->escaping.scope = NULL;
}

/* ---- Handles ---- */

tn_tensor *handle_new(tn_context *c) {
  tn_tensor *t = mem_calloc(&c->mem, 1, sizeof *t);
  if (!t) return c->handles.no_memory;
  t->life = HANDLE_LIVE;
  t->context = c;
  t->member.scope = c->scopes.innermost;
  handle_list_add(&c->scopes.innermost->tensors, t);
  return t;
}

void handle_set_value(tn_tensor *t, value v) {
  t->node = ir_retain(v.node);
  t->weak = v.weak;
}

void handle_set_failure(tn_tensor *t, failure *f) { t->failure = failure_retain(f); }

void handle_bury(tn_context *c, tn_tensor *t) {
  *t = (tn_tensor){.life = HANDLE_FREED, .context = c};
  *(c->handles.freed_last ? &c->handles.freed_last->member.next : &c->handles.freed_first) = t;
  c->handles.freed_last = t;
  c->handles.n_freed++;
  while (c->handles.n_freed > MAX_FREED && !c->entry.is_closing) {
    tn_tensor *oldest = c->handles.freed_first;
    c->handles.freed_first = oldest->member.next;
    if (!c->handles.freed_first) c->handles.freed_last = NULL;
    c->handles.n_freed--;
    mem_free(&c->mem, oldest, sizeof *oldest);
  }
}

void handle_free_dead(tn_context *c) {
  for (tn_tensor *t = c->handles.freed_first, *next; t; t = next) {
    next = t->member.next;
    mem_free(&c->mem, t, sizeof *t);
  }
  c->handles.freed_first = c->handles.freed_last = NULL;
  c->handles.n_freed = 0;
}

dtype handle_dtype(const tn_tensor *t) {
  if (t->weak == WEAK_NO) return (dtype)t->node->dtype;
  return t->weak == WEAK_INT ? DT_I64 : DT_F32;
}

size_t handle_describe(const tn_tensor *t, char *text, size_t n, size_t size) {
  const char *type = "NULL";
  if (t) type = t->life != HANDLE_LIVE || !t->node ? "invalid" : dtype_name(handle_dtype(t));
  n += (size_t)snprintf(text + n, size - n, "%s", type);
  if (!t || t->life != HANDLE_LIVE || !t->node) return n < size ? n : size - 1;
  for (size_t i = 0; i < t->node->rank && n + 1 < size; i++) {
    const node *d = t->node->dims[i];
    const char *open = i ? "," : "[", *close = i + 1 == t->node->rank ? "]" : "";
    if (node_is_const(d))
      n += (size_t)snprintf(text + n, size - n, "%s%lld%s", open, (long long)node_int(d), close);
    else
      n += (size_t)snprintf(text + n, size - n, "%s%.40s%s", open,
                            d->op == OP_VAR ? var_user_name(d->text) : "?", close);
  }
  return n < size ? n : size - 1;
}
