/* tn_input, tn_plan_compile and tn_plan_free: a plan of a context's graph takes its outputs and the
   pending assigns of the innermost scope; assigns of outer scopes are run before. */
#include "tensor/plan/plan.h"

#include "tensor/context/call.h"
#include "tensor/context/descriptor.h"
#include "tensor/context/linked_list.h"
#include "tensor/context/symbolic_dims.h"
#include "tensor/eval/evaluate_items.h"
#include "tensor/eval/host_calls.h"
#include "tensor/eval/realize.h"
#include "tensor/eval/substitute_values.h"
#include "tensor/ops/op_call.h"
#include "tensor/state/graph_input.h"
#include "tensor/state/handle_node.h"

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
  dtype t = dims_check_dtype(b, j->dtype);
  dims_to_nodes(b, j->shape, sizes);
  if (graph_input_open(c, GRAPH_INPUT_PLAN, 1, t, (size_t)j->shape.rank, sizes, &made) != TN_OK)
    diag_rethrow(b->diag);
  ir_release(b->ir, made); /* new nodes are kept until the call ends */
  graph_input_of(c, made)->name = mem_strdup(&c->mem, j->name);
  if (!graph_input_of(c, made)->name) diag_raise(b->diag, TN_ERR_MEMORY, "out of memory");
  return (value){made, WEAK_NO};
}

tn_tensor *tn_input(tn_context *c, const char *name, tn_shape shape, tn_dtype dtype) {
  return op_call_in(c, "input", build_input, &(input_job){name, shape, dtype});
}

/* Compiling. */

typedef VEC(const node *) nodes;

typedef struct compile_job {
  tn_context *c;
  tn_tensor *const *out;
  size_t n_out;
  tn_plan_desc desc;
  nodes handled;           /* the nodes of `out` */
  nodes outputs, contents; /* new, or retained by what they belong to */
  VEC(schedule_label) watched;
  bool compiles;
  VEC(state_record *) assigned;
  VEC(state_storage *) written;
  node_list order;
  tn_plan *plan;
} compile_job;

static void list_handles(void *arg) {
  compile_job *j = arg;
  for (size_t i = 0; i < j->n_out; i++)
    if (!j->out[i]->weak) vec_push(&j->c->arena, &j->handled, j->out[i]->node);
}

/** Lists the outputs, and the newest versions of states that the innermost scope assigned to. */
static void list_graph(void *arg) {
  compile_job *j = arg;
  arena *a = &j->c->arena;
  builder b = context_builder(j->c);
  value_substitution r = {.c = j->c, .for_plan = true};
  for (size_t i = 0; i < j->n_out; i++) vec_push(a, &j->outputs, handle_typed_node(&b, j->out[i]));
  for (size_t i = 0; i < j->n_out; i++) j->outputs.at[i] = substitute_values(&r, j->outputs.at[i]);
  for (size_t i = 0; i < j->desc.n_watched; i++)
    vec_push(
        a, &j->watched,
        (schedule_label){substitute_values(&r, handle_typed_node(&b, j->desc.watched[i])), ""});
  for (state_record *k = j->c->states.pending; k; k = k->next_pending) {
    if (!state_innermost_mark(k)) continue;
    vec_push(a, &j->contents, substitute_values(&r, k->versions.newest));
    vec_push(a, &j->assigned, k);
    vec_push(a, &j->written, k->storage);
  }
}

static plan_source source_of_buffer(void *user, const node *buffer) {
  tn_context *c = user;
  const graph_input *l = graph_input_of(c, buffer);
  if (l->kind == GRAPH_INPUT_PLAN) return (plan_source){.input = l->name};
  if (l->state) return (plan_source){.storage = l->state->storage};
  if (!l->memory) diag_raise(&c->diag, TN_ERR_INTERNAL, "a BUFFER without contents");
  if (l->former_storage && state_storage_wait(c, l->former_storage, &c->diag) != TN_OK)
    diag_rethrow(&c->diag);
  return (plan_source){.memory = l->memory};
}

static void sort_graph(void *arg) {
  compile_job *j = arg;
  arena *a = &j->c->arena;
  nodes roots = {0};
  for (size_t i = 0; i < j->outputs.n; i++) vec_push(a, &roots, j->outputs.at[i]);
  for (size_t i = 0; i < j->contents.n; i++) vec_push(a, &roots, j->contents.at[i]);
  j->order = topo_sort(a, roots.at, roots.n, NULL, NULL);
  for (size_t i = 0; i < j->watched.n; i++)
    if (!nodes_contain(j->order.at, j->order.n, j->watched.at[i].node))
      diag_raise(&j->c->diag, TN_ERR_ARGUMENT, "no output is computed of watched tensor %zu", i);
}

static tn_status build_plan_of_graph(compile_job *j) {
  tn_context *c = j->c;
  evaluated_items items = {.c = c};
  tn_status s = diag_catch(&c->diag, list_handles, j);
  if (s == TN_OK) s = evaluated_items_open(&items, j->handled.at, j->handled.n);
  if (s == TN_OK) s = diag_catch(&c->diag, list_graph, j);
  if (s == TN_OK) s = diag_catch(&c->diag, sort_graph, j);
  evaluated_items_close(&items);
  plan_graph g = {.name = j->desc.name ? j->desc.name : "plan",
                  .order = &j->order,
                  .outputs = j->outputs.at,
                  .output_names = j->desc.outputs,
                  .n_outputs = j->n_out,
                  .labels = j->watched.at,
                  .n_labels = j->watched.n,
                  .n_watched = j->watched.n,
                  .is_uncompiled = !j->compiles,
                  .contents = j->contents.at,
                  .written = j->written.at,
                  .n_written = j->written.n,
                  .variants = j->desc.variants,
                  .is_tunable = j->desc.tunable,
                  .source_of = source_of_buffer,
                  .user = c};
  if (s == TN_OK) s = host_calls_of_graph(c, &j->order, NULL, &g.host);
  return s == TN_OK ? plan_build(c, &g, &c->diag, &j->plan) : s;
}

/** Drops the assigns, which the plan's runs make from now on. */
static void revert_assigns(compile_job *j) {
  for (size_t i = 0; i < j->assigned.n; i++) {
    state_revert_innermost(j->assigned.at[i]);
    state_update_pending(j->assigned.at[i]);
  }
}

/** Refuses watched tensors that are NULL or invalid. */
static tn_status check_watched(const compile_job *j) {
  tn_context *c = j->c;
  if (j->desc.n_watched && !j->desc.watched)
    return diag_set(&c->diag, TN_ERR_ARGUMENT, "the list of watched tensors is NULL");
  for (size_t i = 0; i < j->desc.n_watched; i++) {
    const tn_tensor *t = j->desc.watched[i];
    if (!t || t->failure || t->context != c)
      return diag_set(&c->diag, TN_ERR_ARGUMENT, "watched tensor %zu is %s", i,
                      !t           ? "NULL"
                      : t->failure ? "invalid"
                                   : "of another context");
  }
  return TN_OK;
}

static tn_status make_plan(compile_job *j, const tn_plan_desc *desc) {
  tn_context *c = j->c;
  tn_status s = descriptor_read(&c->diag, &j->desc, desc, sizeof j->desc, "tn_plan_desc");
  if (s == TN_OK) s = plan_check_variants(j->desc.variants, &c->diag);
  if (s == TN_OK) s = check_watched(j);
  if (s == TN_OK) s = realize(c, REALIZE_OUTER_ASSIGNS, NULL, 0);
  return s == TN_OK ? build_plan_of_graph(j) : s;
}

tn_status plan_of_tensors(tn_context *c, tn_tensor *const out[], size_t n, const tn_plan_desc *desc,
                          bool compiles, tn_plan **plan) {
  compile_job j = {.c = c, .out = out, .n_out = n, .desc = TN_PLAN_DESC_INIT, .compiles = compiles};
  tn_status s = make_plan(&j, desc);
  *plan = s == TN_OK ? j.plan : NULL;
  return s;
}

static tn_status compile_plan(compile_job *j, const tn_plan_desc *desc) {
  tn_context *c = j->c;
  tn_status s = make_plan(j, desc);
  if (s != TN_OK) return s;
  revert_assigns(j);
  mutex_lock(&c->lock);
  LIST_PUSH(&c->plans, j->plan, next, link);
  mutex_unlock(&c->lock);
  return s;
}

tn_status tn_plan_compile(tn_context *c, tn_tensor *const out[], size_t n, const tn_plan_desc *desc,
                          tn_plan **plan) {
  if (plan) *plan = NULL;
  tn_status s = context_acquire_valid(c);
  if (s != TN_OK) return s;
  compile_job j = {.c = c, .out = out, .n_out = n, .desc = TN_PLAN_DESC_INIT, .compiles = true};
  failure *f = call_check(c, "plan_compile", out, n, 0);
  if (f) {
    s = context_return_failure(c, f);
  } else if (!plan) {
    diag_set(&c->diag, TN_ERR_ARGUMENT, "the place for the plan is NULL");
    s = context_fail(c, "plan_compile", NULL, 0);
  } else {
    s = compile_plan(&j, desc);
    if (s != TN_OK) context_fail(c, "plan_compile", out, n);
    *plan = j.plan;
  }
  context_release(c);
  return s;
}

void plan_free(tn_plan *p) {
  tn_context *c = p->context;
  mutex_lock(&c->lock);
  bool listed = p->link != NULL;
  if (listed) LIST_REMOVE(p, next, link);
  mutex_unlock(&c->lock);
  if (listed) plan_release(p);
}

void tn_plan_free(tn_plan *p) {
  tn_context *c = p ? p->context : NULL;
  if (!p || context_begin_concurrent(c, REENTRANCY_NONE) != TN_OK) return;
  plan_free(p);
  context_end_concurrent(c);
}
