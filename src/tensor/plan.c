#include "tensor/plan.h"

#include "tensor/call.h"
#include "tensor/custom.h"
#include "tensor/desc.h"
#include "tensor/dims.h"
#include "tensor/leaf.h"
#include "tensor/realize.h"

#include <string.h>

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
  const plan_source *source; /* NULL: tensors, and the scope's assigns */
  nodes roots; /* outputs, then the states' newest versions; each held by what it is of, or new */
  VEC(cell *) assigned;
  node_list order;
  nodes sizes;
  nodes inputs; /* the leaf of each input */
  bool has_custom;
  plan_host host;
  tn_plan *made;
} compile_job;

static bool is_assigned_here(const tn_context *c, const cell *k) {
  return k->now != k->settled && k->scope == c->scope;
}

static void list_roots(compile_job *j) {
  arena *a = &j->c->arena;
  builder b = context_builder(j->c);
  const plan_source *s = j->source;
  for (size_t i = 0; i < j->n_out; i++)
    vec_push(a, &j->roots, s ? s->outputs[i] : handle_typed(&b, j->out[i]));
  for (cell *k = s ? NULL : j->c->pending; k; k = k->next_pending)
    if (is_assigned_here(j->c, k)) {
      vec_push(a, &j->roots, k->now);
      vec_push(a, &j->assigned, k);
    }
  if (!j->roots.n)
    diag_raise(b.diag, TN_ERR_ARGUMENT, "there is neither an output nor a pending assign");
  resolver r = {.c = j->c};
  for (size_t i = 0; i < j->roots.n; i++) j->roots.at[i] = resolver_image(&r, j->roots.at[i]);
  j->order = topo_sort(a, j->roots.at, j->roots.n, NULL, NULL);
}

static plan_port *new_ports(tn_plan *p, size_t n) {
  return arena_calloc(&p->arena, n + 1, sizeof(plan_port));
}

static const char *copy_name(tn_plan *p, const char *name) {
  return arena_copy(&p->arena, name, strlen(name) + 1);
}

static void set_port(compile_job *j, plan_port *p, const char *name, const node *n) {
  if (n->rank > TN_MAX_RANK)
    diag_raise(&j->c->diag, TN_ERR_SHAPE, "%s has rank %d", name, (int)n->rank);
  *p = (plan_port){.name = name, .dtype = (dtype)n->dtype, .rank = n->rank, .buffer = SIZE_MAX};
  for (size_t i = 0; i < n->rank; i++) {
    p->size[i] = (port_size){.expression = j->sizes.n, .var = SIZE_MAX};
    vec_push(&j->c->arena, &j->sizes, n->dims[i]);
  }
}

static void check_name(compile_job *j, const plan_port *ports, size_t n, const char *what) {
  for (size_t i = 0; i < n; i++)
    if (!strcmp(ports[i].name, ports[n].name))
      diag_raise(&j->c->diag, TN_ERR_ARGUMENT, "two %s are named %s", what, ports[n].name);
}

static void add_outputs(compile_job *j) {
  tn_plan *p = j->made;
  const char *const *names = j->source ? j->source->output_names : j->desc.outputs;
  p->outputs = new_ports(p, j->n_out);
  for (size_t i = 0; i < j->n_out; i++, p->n_outputs++) {
    if (names && !names[i]) diag_raise(&j->c->diag, TN_ERR_ARGUMENT, "output %zu has no name", i);
    const char *name = names ? copy_name(p, names[i]) : arena_printf(&p->arena, "%zu", i);
    set_port(j, &p->outputs[i], name, j->roots.at[i]);
    check_name(j, p->outputs, i, "outputs");
  }
}

static void add_state(compile_job *j, cell *k) {
  tn_plan *p = j->made;
  for (size_t i = 0; i < p->n_states; i++)
    if (p->states[i].store == k->store) return;
  p->states[p->n_states++] = (plan_state){store_retain(k->store), SIZE_MAX, SIZE_MAX};
}

static bool is_source_input(const compile_job *j, const node *n) {
  for (size_t i = 0; j->source && i < j->source->n_inputs; i++)
    if (j->source->inputs[i] == n) return true;
  return false;
}

static void add_input(compile_job *j, const node *n) {
  tn_plan *p = j->made;
  set_port(j, &p->inputs[p->n_inputs], copy_name(p, leaf_of(j->c, n)->name), n);
  check_name(j, p->inputs, p->n_inputs, "inputs");
  vec_push(&j->c->arena, &j->inputs, n);
  p->n_inputs++;
}

static void add_leaf(compile_job *j, const node *n) {
  tn_plan *p = j->made;
  leaf *l = leaf_of(j->c, n);
  if (l->kind == LEAF_INPUT) {
    if (!is_source_input(j, n)) add_input(j, n);
  } else if (l->cell) {
    add_state(j, l->cell);
  } else {
    if (!l->memory) diag_raise(&j->c->diag, TN_ERR_INTERNAL, "a BUFFER without contents");
    p->values[p->n_values++] = (plan_value){buffer_retain(l->memory), SIZE_MAX};
  }
}

static void add_leaves(compile_job *j) {
  tn_plan *p = j->made;
  size_t n = 0;
  for (size_t i = 0; i < j->order.n; i++) {
    n += j->order.at[i]->op == OP_BUFFER;
    j->has_custom |= j->order.at[i]->op == OP_CUSTOM;
  }
  size_t given = j->source ? j->source->n_inputs : 0;
  p->inputs = new_ports(p, n + given);
  p->values = arena_calloc(&p->arena, n + 1, sizeof *p->values);
  p->states = arena_calloc(&p->arena, n + j->assigned.n + 1, sizeof *p->states);
  for (size_t i = 0; i < given; i++) add_input(j, j->source->inputs[i]);
  for (size_t i = 0; i < j->order.n; i++)
    if (j->order.at[i]->op == OP_BUFFER) add_leaf(j, j->order.at[i]);
  for (size_t i = 0; i < j->assigned.n; i++) add_state(j, j->assigned.at[i]);
}

/** A run with a host function may fail in the middle, and then no state may have changed. */
static bool may_overwrite(void *user, const node *buffer) {
  compile_job *j = user;
  return leaf_of(j->c, buffer)->cell && !j->has_custom;
}

static void make_plan(compile_job *j) {
  tn_context *c = j->c;
  plan_request r = {.name = j->made->name,
                    .roots = j->roots.at,
                    .n_roots = j->roots.n,
                    .target = c->target,
                    .math = (int)c->math,
                    .may_overwrite = may_overwrite,
                    .user = j,
                    .sizes = j->sizes.at,
                    .n_sizes = j->sizes.n,
                    .dump = &c->dump,
                    .progress = c->progress.step ? &c->progress : NULL};
  if (custom_plan_host(c, &j->order, &r.host) != TN_OK ||
      plan_make(&j->made->plan, &r, &c->mem, &c->diag) != TN_OK)
    diag_rethrow(&c->diag);
  context_log(c, TN_LOG_DEBUG, "plan %s: %zu steps, %zu kernels", j->made->name,
              plan_steps(j->made->plan), plan_kernels(j->made->plan));
}

static plan_state *state_of(tn_plan *p, const cell *k) {
  plan_state *s = p->states;
  while (s->store != k->store) s++;
  return s;
}

/** Which buffers of the plan are what. */
static void find_buffers(compile_job *j) {
  tn_plan *p = j->made;
  size_t constant = 0;
  for (size_t i = 0; i < p->n_inputs; i++) {
    const node *n = j->inputs.at[i];
    p->inputs[i].buffer = plan_input(p->plan, n->ints[0], n->ints[1]);
  }
  for (size_t i = 0; i < j->order.n; i++) {
    const node *n = j->order.at[i];
    if (n->op != OP_BUFFER) continue;
    const leaf *l = leaf_of(j->c, n);
    size_t at = plan_input(p->plan, n->ints[0], n->ints[1]);
    if (l->kind == LEAF_INPUT) continue;
    if (l->cell)
      state_of(p, l->cell)->in = at;
    else
      p->values[constant++].buffer = at;
  }
  for (size_t i = 0; i < p->n_outputs; i++) p->outputs[i].buffer = plan_output(p->plan, i);
  for (size_t i = 0; i < j->assigned.n; i++)
    state_of(p, j->assigned.at[i])->out = plan_output(p->plan, p->n_outputs + i);
}

/** The variable that a run reads off an input's size. */
static void find_var(tn_plan *p, port_size *s, const node *size) {
  if (ix_terms(size) != 1 || ix_atom(size, 0)->op != OP_VAR) return;
  const node *v = ix_atom(size, 0);
  for (size_t i = 0; i < plan_vars(p->plan); i++)
    if (!strcmp(plan_var_at(p->plan, i)->name, v->text)) s->var = i;
  s->offset = ix_offset(size);
  s->scale = ix_factor(size, 0);
}

static void find_vars(compile_job *j) {
  tn_plan *p = j->made;
  for (size_t i = 0; i < p->n_inputs; i++)
    for (size_t k = 0; k < p->inputs[i].rank; k++) {
      port_size *s = &p->inputs[i].size[k];
      find_var(p, s, j->sizes.at[s->expression]);
    }
}

static void compile(void *arg) {
  compile_job *j = arg;
  tn_plan *p = j->made;
  const char *name = j->source ? j->source->name : j->desc.name;
  p->name = copy_name(p, name ? name : "plan");
  list_roots(j);
  add_leaves(j);
  add_outputs(j);
  make_plan(j);
  find_buffers(j);
  find_vars(j);
}

static tn_status open_plan(tn_context *c, tn_plan **out) {
  tn_plan *p = mem_calloc(&c->mem, 1, sizeof *p);
  *out = p;
  if (!p) return diag_set(&c->diag, TN_ERR_MEMORY, "out of memory");
  atomic_init(&p->count, 1);
  p->context = c;
  arena_init(&p->arena, &c->mem, &c->diag);
  return TN_OK;
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
    cell_revert(j->assigned.at[i]);
    cell_check_pending(j->assigned.at[i]);
  }
}

static tn_status compile_plan(compile_job *j, const tn_plan_desc *desc) {
  tn_context *c = j->c;
  tn_status s = desc_read(&c->diag, &j->desc, desc, sizeof j->desc, "tn_plan_desc");
  if (s == TN_OK) s = realize(c, NULL, 0, REALIZE_BEFORE);
  if (s == TN_OK) s = open_plan(c, &j->made);
  if (s == TN_OK) s = diag_catch(&c->diag, compile, j);
  return s;
}

tn_status plan_compile_source(tn_context *c, const plan_source *source, tn_plan **out) {
  compile_job j = {.c = c, .n_out = source->n_outputs, .source = source};
  tn_status s = open_plan(c, &j.made);
  if (s == TN_OK) s = diag_catch(&c->diag, compile, &j);
  if (s != TN_OK) plan_drop(j.made);
  *out = s == TN_OK ? j.made : NULL;
  return s;
}

tn_status tn_plan_compile(tn_context *c, tn_tensor *const out[], size_t n, const tn_plan_desc *desc,
                          tn_plan **plan) {
  if (plan) *plan = NULL;
  if (!plan) return TN_ERR_ARGUMENT;
  for (size_t i = 0; i < n; i++)
    if (!out[i]) return TN_ERR_ARGUMENT;
  tn_status s = context_enter(c);
  if (s != TN_OK) return s;
  compile_job j = {.c = c, .out = out, .n_out = n, .desc = TN_PLAN_DESC_INIT};
  failure *f = call_check(c, "plan_compile", out, n);
  if (f) {
    s = f->status;
    failure_drop(c, f);
  } else {
    s = compile_plan(&j, desc);
    if (s != TN_OK) context_fail(c, "plan_compile", out, n);
  }
  if (s == TN_OK) {
    take_assigns(&j);
    publish(j.made);
    *plan = j.made;
  } else {
    plan_drop(j.made);
  }
  context_leave(c);
  return s;
}

/* Lifetime. */

void plan_drop(tn_plan *p) {
  if (!p || atomic_fetch_sub_explicit(&p->count, 1, memory_order_acq_rel) > 1) return;
  for (size_t i = 0; i < p->n_states; i++) store_release(p->states[i].store);
  for (size_t i = 0; i < p->n_values; i++) buffer_release(p->values[i].memory);
  plan_release(p->plan);
  arena_free(&p->arena);
  mem_free(&p->context->mem, p, sizeof *p);
}

void tn_plan_free(tn_plan *p) {
  if (!p) return;
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
