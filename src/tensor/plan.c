/* Plans of the public kind: inputs, and what tn_plan_compile makes of a context's graph. */
#include "tensor/plan.h"

#include "tensor/call.h"
#include "tensor/custom_host.h"
#include "tensor/desc.h"
#include "tensor/dims.h"
#include "tensor/leaf.h"
#include "tensor/realize.h"
#include "tensor/resolver.h"

/* Inputs. */

typedef struct input_job {
  const char *name;
  tn_shape shape;
  tn_dtype dtype;
} input_job;

static value build_input(builder *b, const value in[], size_t n, const void *options) {
  (void)in, (void)n;
  const input_job *j = options;
  const node *sizes[TN_MAX_RANK + 1], *made;
  tn_context *c = b->context;
  if (!j->name || !*j->name) diag_raise(b->diag, TN_ERR_ARGUMENT, "an input needs a name");
  dtype t = dims_dtype(b, j->dtype);
  dims_nodes(b, j->shape, sizes);
  if (leaf_open(c, LEAF_INPUT, t, (size_t)j->shape.rank, sizes, &made) != TN_OK)
    diag_rethrow(b->diag);
  ir_release(b->ir, made); /* it is new, and so held until the call ends */
  leaf_of(c, made)->name = mem_strdup(&c->mem, j->name);
  if (!leaf_of(c, made)->name) diag_raise(b->diag, TN_ERR_MEMORY, "out of memory");
  return (value){made, WEAK_NO};
}

tn_tensor *tn_input(tn_context *c, const char *name, tn_shape shape, tn_dtype dtype) {
  return tensor_call_in(c, "input", build_input, &(input_job){name, shape, dtype});
}

/* Compiling. */

typedef VEC(const node *) nodes;

typedef struct compile_job {
  tn_context *c;
  tn_tensor *const *out;
  size_t n_out;
  tn_plan_desc desc;
  nodes outputs, contents; /* each held by what it is of, or new */
  VEC(cell *) assigned;
  VEC(store *) written;
  tn_plan *made;
} compile_job;

/** The outputs, and the newest versions of states that were assigned to in this scope. */
static void list_graph(void *arg) {
  compile_job *j = arg;
  arena *a = &j->c->arena;
  builder b = context_builder(j->c);
  resolver r = {.c = j->c, .for_runs = true};
  for (size_t i = 0; i < j->n_out; i++) vec_push(a, &j->outputs, handle_typed(&b, j->out[i]));
  for (size_t i = 0; i < j->n_out; i++) j->outputs.at[i] = resolver_image(&r, j->outputs.at[i]);
  for (cell *k = j->c->pending; k; k = k->next_pending) {
    if (!cell_innermost(k)) continue;
    vec_push(a, &j->contents, resolver_image(&r, k->now));
    vec_push(a, &j->assigned, k);
    vec_push(a, &j->written, k->store);
  }
}

static plan_leaf leaf_in_plan(void *user, const node *buffer) {
  tn_context *c = user;
  const leaf *l = leaf_of(c, buffer);
  if (l->kind == LEAF_INPUT) return (plan_leaf){.input = l->name};
  if (l->cell) return (plan_leaf){.store = l->cell->store};
  if (!l->memory) diag_raise(&c->diag, TN_ERR_INTERNAL, "a BUFFER without contents");
  if (l->left && store_wait(c, l->left, &c->diag) != TN_OK) diag_rethrow(&c->diag);
  return (plan_leaf){.memory = l->memory};
}

static tn_status host_of(void *user, const node_list *order, executable_host *out) {
  return custom_host_of(user, order, NULL, out);
}

static tn_status make_plan(compile_job *j) {
  tn_context *c = j->c;
  tn_status s = diag_catch(&c->diag, list_graph, j);
  plan_graph g = {.name = j->desc.name ? j->desc.name : "plan",
                  .outputs = j->outputs.at,
                  .output_names = j->desc.outputs,
                  .n_outputs = j->n_out,
                  .contents = j->contents.at,
                  .written = j->written.at,
                  .n_written = j->written.n,
                  .leaf = leaf_in_plan,
                  .host = host_of,
                  .user = c};
  return s == TN_OK ? plan_make(c, &g, &c->arena, &c->diag, &j->made) : s;
}

static void publish(tn_plan *p) {
  tn_context *c = p->context;
  mutex_lock(&c->lock);
  p->next = c->plans;
  p->link = &c->plans;
  if (p->next) p->next->link = &p->next;
  c->plans = p;
  mutex_unlock(&c->lock);
}

/** The assigns are the plan's now. */
static void take_assigns(compile_job *j) {
  for (size_t i = 0; i < j->assigned.n; i++) {
    cell_revert_innermost(j->assigned.at[i]);
    cell_check_pending(j->assigned.at[i]);
  }
}

static tn_status compile_plan(compile_job *j, const tn_plan_desc *desc) {
  tn_context *c = j->c;
  tn_status s = desc_read(&c->diag, &j->desc, desc, sizeof j->desc, "tn_plan_desc");
  if (s == TN_OK) s = realize_outer(c);
  if (s == TN_OK) s = make_plan(j);
  if (s != TN_OK) return s;
  take_assigns(j);
  publish(j->made);
  return s;
}

tn_status tn_plan_compile(tn_context *c, tn_tensor *const out[], size_t n, const tn_plan_desc *desc,
                          tn_plan **plan) {
  if (plan) *plan = NULL;
  tn_status s = context_enter(c);
  if (s != TN_OK) return s;
  compile_job j = {.c = c, .out = out, .n_out = n, .desc = TN_PLAN_DESC_INIT};
  failure *f = call_check(c, "plan_compile", out, n, 0);
  if (f) {
    s = context_return(c, f);
  } else if (!plan) {
    diag_set(&c->diag, TN_ERR_ARGUMENT, "the place for the plan is NULL");
    s = context_fail(c, "plan_compile", NULL, 0);
  } else {
    s = compile_plan(&j, desc);
    if (s != TN_OK) context_fail(c, "plan_compile", out, n);
    *plan = j.made;
  }
  context_leave(c);
  return s;
}

void plan_free(tn_plan *p) {
  tn_context *c = p->context;
  mutex_lock(&c->lock);
  bool listed = p->link != NULL;
  if (listed) {
    *p->link = p->next;
    if (p->next) p->next->link = p->link;
    p->link = NULL;
  }
  mutex_unlock(&c->lock);
  if (listed) plan_drop(p);
}

void tn_plan_free(tn_plan *p) {
  tn_context *c = p ? p->context : NULL;
  if (!p || context_begin_beside(c, VISIT_NONE) != TN_OK) return;
  plan_free(p);
  context_end_beside(c);
}
