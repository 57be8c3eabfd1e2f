#include "tensor/handle.h"

#include "ir/var.h"
#include "tensor/dims.h"
#include "tensor/scope.h"
#include "tensor/state.h"

#include <stdio.h>
#include <string.h>

/* How many freed handles are kept, so that their use is told instead of being another tensor's. */
#ifdef NDEBUG
enum { MOST_DEAD = 0 };
#else
enum { MOST_DEAD = 4096 };
#endif

tn_tensor *handle_new(tn_context *c) {
  tn_tensor *t = mem_calloc(&c->mem, 1, sizeof *t);
  if (!t) return c->nobody;
  t->life = HANDLE_LIVE;
  t->context = c;
  t->scope = c->scope;
  scope_add(&c->scope->tensors, t);
  return t;
}

void handle_set_value(tn_tensor *t, value v) {
  t->node = ir_retain(v.node);
  t->weak = v.weak;
}

void handle_set_cell(tn_tensor *t, cell *of, const node *over_base) {
  t->node = ir_retain(over_base);
  t->cell = cell_hold(of);
}

void handle_set_failure(tn_tensor *t, failure *f) { t->failure = failure_hold(f); }

static void bury(tn_context *c, tn_tensor *t) {
  *t = (tn_tensor){.life = HANDLE_FREED, .context = c};
  *(c->dead_last ? &c->dead_last->next : &c->dead_first) = t;
  c->dead_last = t;
  c->dead++;
  while (c->dead > MOST_DEAD) {
    tn_tensor *oldest = c->dead_first;
    c->dead_first = oldest->next;
    if (!c->dead_first) c->dead_last = NULL;
    c->dead--;
    mem_free(&c->mem, oldest, sizeof *oldest);
  }
}

void handle_forget(tn_context *c) {
  for (tn_tensor *t = c->dead_first, *next; t; t = next) {
    next = t->next;
    mem_free(&c->mem, t, sizeof *t);
  }
  c->dead_first = c->dead_last = NULL;
  c->dead = 0;
}

void handle_free(tn_tensor *t) {
  tn_context *c = t->context;
  scope_remove(t);
  scope_stay(t);
  ir_release(c->ir, t->shown);
  ir_release(c->ir, t->node);
  cell_drop(t->cell);
  failure_drop(c, t->failure);
  bury(c, t);
}

tn_status handle_check(tn_context *c, tn_tensor *t, const char *op) {
  tn_status s = TN_OK;
  if (t->life != HANDLE_LIVE)
    s = diag_set(&c->diag, TN_ERR_ARGUMENT, "the tensor was freed");
  else if (t->context != c)
    s = diag_set(&c->diag, TN_ERR_ARGUMENT, "the tensor is of another context");
  if (s != TN_OK) return context_fail(c, op, NULL, 0);
  if (!t->failure) return TN_OK;
  context_repeat(c, t->failure);
  return context_return(c, failure_hold(t->failure));
}

const node *handle_node(builder *b, const tn_tensor *t) {
  return t->cell ? cell_now(b, t->cell, t->node) : t->node;
}

dtype handle_dtype(const tn_tensor *t) {
  if (t->weak == WEAK_NO) return (dtype)t->node->dtype;
  return t->weak == WEAK_INT ? DT_I64 : DT_F32;
}

const node *handle_typed(builder *b, const tn_tensor *t) {
  return ir_cast(b->ir, handle_node(b, t), handle_dtype(t));
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
                            d->op == OP_VAR ? var_name(d->text) : "?", close);
  }
  return n < size ? n : size - 1;
}

/** The type of a handle that is valid and whose context is taken. */
typedef struct type_job {
  const tn_tensor *t;
  tn_type type;
} type_job;

static void find_type(void *arg) {
  type_job *j = arg;
  builder b = context_builder(j->t->context);
  j->type.shape = dims_shape(&b, j->t->node);
  j->type.dtype = (tn_dtype)handle_dtype(j->t);
}

tn_type tn_type_of(const tn_tensor *t) {
  type_job j = {.t = t};
  if (!t || t->life != HANDLE_LIVE || context_take(t->context) != TN_OK) return j.type;
  if (t->node && diag_catch(&t->context->diag, find_type, &j) != TN_OK) {
    j.type = (tn_type){TN_UNDEFINED, {0, {0}}};
    context_fail(t->context, "type_of", NULL, 0);
  }
  context_leave(t->context);
  return j.type;
}
