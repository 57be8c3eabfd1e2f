/* Nodes behind handles. A handle of a state, or of a movement of one, holds a node over the state's
   view base; reading it substitutes the newest version. */
#include "tensor/state/handle_node.h"

#include "tensor/context/symbolic_dims.h"
#include "tensor/state/state.h"

void handle_set_state(tn_tensor *t, state_record *of, const node *over_base) {
  t->node = ir_retain(over_base);
  t->state = state_retain(of);
}

void handle_free(tn_tensor *t) {
  tn_context *c = t->context;
  handle_list_remove(t);
  handle_cancel_escape(t);
  ir_release(c->ir, t->mapped);
  ir_release(c->ir, t->node);
  state_release(t->state);
  failure_release(c, t->failure);
  handle_bury(c, t);
}

const node *handle_node(builder *b, const tn_tensor *t) {
  return t->state ? state_current_node(b, t->state, t->node) : t->node;
}

const node *handle_typed_node(builder *b, const tn_tensor *t) {
  return ir_cast(b->ir, handle_node(b, t), handle_dtype(t));
}

/** Arguments and result of find_type. The handle is valid, and its context acquired. */
typedef struct type_job {
  const tn_tensor *t;
  tn_type type;
} type_job;

static void find_type(void *arg) {
  type_job *j = arg;
  builder b = context_builder(j->t->context);
  j->type.shape = dims_from_node(&b, j->t->node);
  j->type.dtype = (tn_dtype)handle_dtype(j->t);
}

tn_type tn_type_of(const tn_tensor *t) {
  type_job j = {.t = t};
  if (!t || t->life != HANDLE_LIVE || context_acquire(t->context) != TN_OK) return j.type;
  if (t->node && diag_catch(&t->context->diag, find_type, &j) != TN_OK) {
    j.type = (tn_type){TN_UNDEFINED, {0, {0}}};
    context_fail(t->context, "type_of", NULL, 0);
  }
  context_release(t->context);
  return j.type;
}
