/* Making plans: ports, states and values of a graph, and its executable. */
#include "tensor/plan.h"

#include "base/map.h"
#include "ir/build.h"
#include "ir/topo.h"
#include "ir/var.h"
#include "tensor/prepare.h"

#include <string.h>

typedef VEC(const node *) nodes;

typedef struct making {
  tn_context *c;
  const plan_graph *g;
  arena *work;
  diag *d;
  nodes roots; /* outputs, then new contents */
  node_list order;
  nodes sizes;
  nodes inputs;  /* the leaf of each input */
  map listed;    /* inputs of the graph's list */
  bool is_plain; /* nothing is prepared */
  prepared prepared;
  tn_progress progress;
  const schedule_label *labels;
  map state_of; /* store → its state */
  map written;  /* stores that runs give new contents */
  tn_plan *made;
} making;

static plan_leaf leaf_of_node(const making *j, const node *buffer) {
  tn_buffer *memory = map_get(&j->prepared.memory, buffer);
  return memory ? (plan_leaf){.memory = memory} : j->g->leaf(j->g->user, buffer);
}

/** A name is one size of a run; a variable's may be used again once its scope has ended. */
static void check_var(making *j, names *vars, const node *n) {
  const node *other = names_get(vars, n->text);
  if (!other) names_set(j->work, vars, n->text, (void *)n);
  if (!other || (other->ints[0] == n->ints[0] && other->ints[1] == n->ints[1])) return;
  diag_raise(j->d, TN_ERR_ARGUMENT,
             "two sizes are named %.100s, one from %lld to %lld and one from %lld to %lld: a plan "
             "knows sizes by their names",
             var_name(n->text), (long long)other->ints[0], (long long)other->ints[1],
             (long long)n->ints[0], (long long)n->ints[1]);
}

static void check_vars(making *j) {
  names vars = {0};
  node_list all = topo_sort(j->work, j->roots.at, j->roots.n, NULL, NULL);
  node_list inputs = topo_sort(j->work, j->g->inputs, j->g->n_inputs, NULL, NULL);
  for (size_t i = 0; i < inputs.n; i++) vec_push(j->work, &all, inputs.at[i]);
  for (size_t i = 0; i < all.n; i++)
    if (all.at[i]->op == OP_VAR) check_var(j, &vars, all.at[i]);
}

/** The graph that is left when what never changes is computed. */
static void prepare(making *j) {
  const plan_graph *g = j->g;
  size_t n = j->roots.n;
  schedule_label *labels = arena_alloc(j->work, (g->n_labels + 1) * sizeof *labels);
  for (size_t i = 0; i < g->n_labels; i++) vec_push(j->work, &j->roots, g->labels[i].node);
  prepare_constants(j->c, g, j->roots.at, j->roots.n, j->work, &j->prepared);
  j->roots.n = n;
  for (size_t i = 0; i < n; i++) j->roots.at[i] = j->prepared.roots[i];
  for (size_t i = 0; i < g->n_labels; i++)
    labels[i] = (schedule_label){j->prepared.roots[n + i], g->labels[i].text};
  j->labels = labels;
}

static void list_roots(making *j) {
  const plan_graph *g = j->g;
  for (size_t i = 0; i < g->n_outputs; i++) vec_push(j->work, &j->roots, g->outputs[i]);
  for (size_t i = 0; i < g->n_written; i++) vec_push(j->work, &j->roots, g->contents[i]);
  if (!j->roots.n)
    diag_raise(j->d, TN_ERR_ARGUMENT, "there is neither an output nor a pending assign");
  check_vars(j);
  j->labels = g->labels;
  if (g->ir && !j->is_plain) prepare(j);
  j->order = topo_sort(j->work, j->roots.at, j->roots.n, NULL, NULL);
}

/* Ports. */

static plan_port *new_ports(tn_plan *p, size_t n) {
  return arena_calloc(&p->arena, n + 1, sizeof(plan_port));
}

static const char *copy_name(tn_plan *p, const char *name) {
  return arena_copy(&p->arena, name, strlen(name) + 1);
}

static void set_port(making *j, plan_port *p, const char *name, const node *n) {
  if (n->rank > TN_MAX_RANK) diag_raise(j->d, TN_ERR_SHAPE, "%s has rank %d", name, (int)n->rank);
  *p = (plan_port){.name = name, .dtype = (dtype)n->dtype, .rank = n->rank, .buffer = SIZE_MAX};
  for (size_t i = 0; i < n->rank; i++) {
    p->size[i] = (port_size){.expression = j->sizes.n, .var = SIZE_MAX};
    vec_push(j->work, &j->sizes, n->dims[i]);
  }
}

static void add_name(making *j, names *of, plan_port *p, const char *what) {
  if (names_get(of, p->name))
    diag_raise(j->d, TN_ERR_ARGUMENT, "two %s are named %s", what, p->name);
  names_set(&j->made->arena, of, p->name, p);
}

static void add_input(making *j, const node *n) {
  tn_plan *p = j->made;
  set_port(j, &p->inputs[p->n_inputs], copy_name(p, leaf_of_node(j, n).input), n);
  add_name(j, &p->input_of, &p->inputs[p->n_inputs], "inputs");
  vec_push(j->work, &j->inputs, n);
  p->n_inputs++;
}

static void add_outputs(making *j) {
  tn_plan *p = j->made;
  const char *const *names = j->g->output_names;
  p->outputs = new_ports(p, j->g->n_outputs);
  for (size_t i = 0; i < j->g->n_outputs; i++, p->n_outputs++) {
    if (names && !names[i]) diag_raise(j->d, TN_ERR_ARGUMENT, "output %zu has no name", i);
    const char *name = names ? copy_name(p, names[i]) : arena_printf(&p->arena, "%zu", i);
    set_port(j, &p->outputs[i], name, j->roots.at[i]);
    add_name(j, &p->output_of, &p->outputs[i], "outputs");
  }
}

/* States and values. */

static void add_state(making *j, store *s) {
  tn_plan *p = j->made;
  if (map_has(&j->state_of, s)) return;
  map_set(j->work, &j->state_of, s, &p->states[p->n_states]);
  p->states[p->n_states++] =
      (plan_state){.store = store_retain(s), .in = SIZE_MAX, .out = SIZE_MAX};
}

static void add_leaf(making *j, const node *n) {
  tn_plan *p = j->made;
  plan_leaf l = leaf_of_node(j, n);
  if (l.input && !map_has(&j->listed, n)) add_input(j, n);
  if (l.store) add_state(j, l.store);
  if (l.memory) p->values[p->n_values++] = (plan_value){buffer_retain(l.memory), SIZE_MAX};
}

static void add_leaves(making *j) {
  tn_plan *p = j->made;
  size_t n = 0;
  for (size_t i = 0; i < j->order.n; i++) {
    n += j->order.at[i]->op == OP_BUFFER;
    p->has_custom |= j->order.at[i]->op == OP_CUSTOM;
  }
  p->inputs = new_ports(p, n + j->g->n_inputs);
  p->values = arena_calloc(&p->arena, n + 1, sizeof *p->values);
  p->states = arena_calloc(&p->arena, n + j->g->n_written + 1, sizeof *p->states);
  for (size_t i = 0; i < j->g->n_inputs; i++) {
    add_input(j, j->g->inputs[i]);
    map_set(j->work, &j->listed, j->g->inputs[i], NULL);
  }
  for (size_t i = 0; i < j->order.n; i++)
    if (j->order.at[i]->op == OP_BUFFER) add_leaf(j, j->order.at[i]);
  for (size_t i = 0; i < j->g->n_written; i++) {
    add_state(j, j->g->written[i]);
    map_set(j->work, &j->written, j->g->written[i], NULL);
  }
}

/* The executable. */

/** Only what a run gives new contents: to read a state through another plan's assign changes
    nothing. A run with a host function may fail in the middle, and then no state may have changed.
 */
static bool may_overwrite(void *user, const node *buffer) {
  making *j = user;
  store *s = leaf_of_node(j, buffer).store;
  return s && map_has(&j->written, s) && !j->made->has_custom;
}

/** Kernels that prepare are told with the plan's, as one. */
static bool tell(void *user, const char *what, uint64_t done, uint64_t total) {
  const making *j = user;
  const tn_progress *to = &j->c->progress;
  return to->step(to->user, what, j->prepared.kernels + done, j->prepared.kernels + total);
}

static void compile(making *j) {
  tn_context *c = j->c;
  j->progress = (tn_progress){tell, j, NULL};
  executable_request r = {.name = j->made->name,
                          .roots = j->roots.at,
                          .n_roots = j->roots.n,
                          .target = c->target,
                          .math = (int)c->math,
                          .may_overwrite = may_overwrite,
                          .user = j,
                          .labels = j->labels,
                          .n_labels = j->g->n_labels,
                          .sizes = j->sizes.at,
                          .n_sizes = j->sizes.n,
                          .dump = &c->dump,
                          .explanation = c->explanation,
                          .progress = c->progress.step ? &j->progress : NULL,
                          .logger = &c->logger,
                          .disk = c->disk,
                          .reports = &c->reports};
  executable **e = &j->made->executable;
  if ((j->g->host && j->g->host(j->g->user, &j->order, &r.host) != TN_OK) ||
      executable_make(e, &r, &c->mem, j->d) != TN_OK)
    diag_rethrow(j->d);
  context_log(c, TN_LOG_DEBUG, "plan %s: %zu steps, %zu kernels", j->made->name,
              executable_steps(*e), executable_kernels(*e));
}

static plan_state *state_of(const making *j, const store *s) { return map_get(&j->state_of, s); }

static void find_place(making *j, plan_state *s) {
  const executable *e = j->made->executable;
  s->is_in_place = s->out != SIZE_MAX && s->out == s->in;
  s->is_overwritten = s->in != SIZE_MAX && executable_buffer_at(e, s->in)->is_written;
  if (s->is_overwritten && s->out == SIZE_MAX)
    diag_raise(j->d, TN_ERR_INTERNAL, "a run would write a state that it does not change");
}

/** Which buffers are what. */
static void find_buffers(making *j) {
  tn_plan *p = j->made;
  size_t value = 0;
  for (size_t i = 0; i < p->n_inputs; i++) {
    const node *n = j->inputs.at[i];
    p->inputs[i].buffer = executable_input(p->executable, n->ints[0], n->ints[1]);
  }
  for (size_t i = 0; i < j->order.n; i++) {
    const node *n = j->order.at[i];
    if (n->op != OP_BUFFER) continue;
    plan_leaf l = leaf_of_node(j, n);
    size_t at = executable_input(p->executable, n->ints[0], n->ints[1]);
    if (l.store) state_of(j, l.store)->in = at;
    if (l.memory) p->values[value++].buffer = at;
  }
  for (size_t i = 0; i < j->g->n_written; i++)
    state_of(j, j->g->written[i])->out = executable_output(p->executable, p->n_outputs + i);
  for (size_t i = 0; i < p->n_states; i++) find_place(j, &p->states[i]);
  for (size_t i = 0; i < p->n_outputs; i++)
    p->outputs[i].buffer = executable_output(p->executable, i);
}

/** Outputs in a buffer that belongs to something else are copied after the run. */
static void find_shared(making *j) {
  const tn_plan *p = j->made;
  size_t n = executable_buffers(p->executable);
  bool *is_taken = arena_calloc(j->work, n + 1, sizeof *is_taken);
  for (size_t i = 0; i < n; i++)
    is_taken[i] = executable_buffer_at(p->executable, i)->role == ROLE_INPUT;
  for (size_t i = 0; i < p->n_states; i++)
    if (p->states[i].out != SIZE_MAX) is_taken[p->states[i].out] = true;
  for (size_t i = 0; i < p->n_outputs; i++) {
    bool *taken = &is_taken[p->outputs[i].buffer];
    p->outputs[i].is_shared = *taken;
    *taken = true;
  }
}

/* Variables. */

/** The variable that a run can read off an input's size, or the number that it is. */
static void find_var(const tn_plan *p, port_size *s, const node *size) {
  s->is_fixed = node_is_const(size);
  if (s->is_fixed) s->offset = node_int(size);
  if (ix_terms(size) != 1 || ix_atom(size, 0)->op != OP_VAR) return;
  s->var = executable_var(p->executable, ix_atom(size, 0)->text);
  s->offset = ix_offset(size);
  s->scale = ix_factor(size, 0);
}

static void find_vars(making *j) {
  tn_plan *p = j->made;
  size_t n = executable_vars(p->executable);
  p->vars = arena_alloc(&p->arena, (n + 1) * sizeof *p->vars);
  for (size_t v = 0; v < n; v++) p->vars[v] = (plan_var){SIZE_MAX, 0};
  for (size_t i = 0; i < p->n_inputs; i++)
    for (size_t k = 0; k < p->inputs[i].rank; k++) {
      port_size *s = &p->inputs[i].size[k];
      find_var(p, s, j->sizes.at[s->expression]);
      if (s->var != SIZE_MAX && p->vars[s->var].input == SIZE_MAX)
        p->vars[s->var] = (plan_var){i, k};
    }
}

/** Without its value no run would be possible. Of an input that nothing reads there is no trace. */
static void check_told(const making *j) {
  const tn_plan *p = j->made;
  for (size_t v = 0; v < executable_vars(p->executable); v++) {
    const char *name = executable_var_at(p->executable, v)->name;
    if (p->vars[v].input == SIZE_MAX && !var_is_trip(name))
      diag_raise(j->d, TN_ERR_ARGUMENT,
                 "no input's shape tells the size %s: nothing reads an input that has it",
                 var_name(name));
  }
}

/* All of it. */

static void make(void *arg) {
  making *j = arg;
  tn_plan *p = j->made;
  p->name = copy_name(p, j->g->name);
  list_roots(j);
  add_leaves(j);
  add_outputs(j);
  compile(j);
  find_buffers(j);
  find_shared(j);
  find_vars(j);
  check_told(j);
  if (prepare_run(&j->prepared, j->d) != TN_OK) diag_rethrow(j->d);
}

static tn_status make_one(making *j) {
  tn_context *c = j->c;
  tn_plan *p = j->made = mem_calloc(&c->mem, 1, sizeof *p);
  if (!p) return diag_set(j->d, TN_ERR_MEMORY, "out of memory");
  atomic_init(&p->count, 1);
  p->context = c;
  arena_init(&p->arena, &c->mem, j->d);
  tn_status s = diag_catch(j->d, make, j);
  prepare_release(&j->prepared);
  p->arena.diag = NULL;
  if (s != TN_OK) plan_drop(p);
  return s;
}

tn_status plan_make(tn_context *c, const plan_graph *g, arena *work, diag *d, tn_plan **out) {
  making j = {.c = c, .g = g, .work = work, .d = d}, plain = j;
  tn_status s = make_one(&j);
  /* Runs may do with less; what is explained is made once. */
  if (s == TN_ERR_MEMORY && g->ir && !c->explanation) {
    plain.is_plain = true;
    j = plain;
    s = make_one(&j);
    if (s == TN_OK)
      context_log(c, TN_LOG_WARNING, "plan %s: too little memory to prepare its constants",
                  g->name);
  }
  *out = s == TN_OK ? j.made : NULL;
  return s;
}

void plan_drop(tn_plan *p) {
  if (!p || atomic_fetch_sub_explicit(&p->count, 1, memory_order_acq_rel) > 1) return;
  for (size_t i = 0; i < p->n_states; i++) store_release(p->states[i].store);
  for (size_t i = 0; i < p->n_values; i++) buffer_release(p->values[i].memory);
  executable_release(p->executable);
  arena_free(&p->arena);
  mem_free(&p->context->mem, p, sizeof *p);
}
