/* Construction of plans: folds constants, lists ports, states and values of the graph, compiles the
   executable, and finds which of its buffers are what and which sizes determine its variables. */
#include "tensor/plan/plan.h"

#include "base/map.h"
#include "ir/core/affine.h"
#include "ir/core/build.h"
#include "ir/core/topo_sort.h"
#include "ir/core/var_names.h"
#include "runtime/build_executable.h"
#include "tensor/context/fill_build_request.h"
#include "tensor/ops/operators.h"
#include "tensor/plan/plan_constants.h"

#include <string.h>

typedef VEC(const node *) nodes;

typedef struct plan_builder {
  tn_context *c;
  const plan_graph *g;
  arena *work;
  diag *d;
  nodes roots; /* outputs, then new contents of states */
  node_list order;
  nodes sizes;
  nodes inputs;           /* the BUFFER of each input */
  map listed_inputs;      /* inputs of the graph's list */
  bool without_constants; /* no constants are folded */
  plan_constants constants;
  tn_progress progress;
  const schedule_label *labels;
  explanation *explanation; /* requested of this plan; NULL: none */
  map size_numbers;         /* size that varies → its number + 1 */
  int32_t n_size_numbers;
  map state_of; /* storage → its state */
  map written;  /* storages that runs give new contents */
  tn_plan *plan;
} plan_builder;

static plan_graph_input input_of_node(const plan_builder *j, const node *buffer) {
  tn_buffer *memory = map_get(&j->constants.memory, buffer);
  return memory ? (plan_graph_input){.memory = memory} : j->g->input_of(j->g->user, buffer);
}

/** Checks that a variable's bounds agree with others of its name: a run knows sizes by name, and a
    name may be used again once its scope has ended. */
static void check_var(plan_builder *j, string_map *vars, const node *n) {
  const node *other = string_map_get(vars, n->text);
  if (!other) string_map_set(j->work, vars, n->text, (void *)n);
  if (!other || (other->ints[0] == n->ints[0] && other->ints[1] == n->ints[1])) return;
  diag_raise(j->d, TN_ERR_ARGUMENT,
             "two sizes are named %.100s, one from %lld to %lld and one from %lld to %lld: a plan "
             "knows sizes by their names",
             var_user_name(n->text), (long long)other->ints[0], (long long)other->ints[1],
             (long long)n->ints[0], (long long)n->ints[1]);
}

static void check_vars(plan_builder *j) {
  string_map vars = {0};
  node_list all = topo_sort(j->work, j->roots.at, j->roots.n, NULL, NULL);
  node_list inputs = topo_sort(j->work, j->g->inputs, j->g->n_inputs, NULL, NULL);
  for (size_t i = 0; i < inputs.n; i++) vec_push(j->work, &all, inputs.at[i]);
  for (size_t i = 0; i < all.n; i++)
    if (all.at[i]->op == OP_VAR) check_var(j, &vars, all.at[i]);
}

/** Folds constants: the remaining graph replaces the one given. */
static void fold_constants(plan_builder *j) {
  const plan_graph *g = j->g;
  size_t n = j->roots.n;
  schedule_label *labels = arena_alloc(j->work, (g->n_labels + 1) * sizeof *labels);
  for (size_t i = 0; i < g->n_labels; i++) vec_push(j->work, &j->roots, g->labels[i].node);
  plan_constants_build(j->c, g, j->roots.at, j->roots.n, j->work, &j->constants);
  j->roots.n = n;
  for (size_t i = 0; i < n; i++) j->roots.at[i] = j->constants.roots[i];
  for (size_t i = 0; i < g->n_labels; i++)
    labels[i] = (schedule_label){j->constants.roots[n + i], g->labels[i].text};
  j->labels = labels;
}

static void list_roots(plan_builder *j) {
  const plan_graph *g = j->g;
  for (size_t i = 0; i < g->n_outputs; i++) vec_push(j->work, &j->roots, g->outputs[i]);
  for (size_t i = 0; i < g->n_written; i++) vec_push(j->work, &j->roots, g->contents[i]);
  if (!j->roots.n)
    diag_raise(j->d, TN_ERR_ARGUMENT, "there is neither an output nor a pending assign");
  check_vars(j);
  j->labels = g->labels;
  if (g->ir && !j->without_constants) fold_constants(j);
  j->order = topo_sort(j->work, j->roots.at, j->roots.n, NULL, NULL);
}

/* Ports. */

static plan_port *new_ports(tn_plan *p, size_t n) {
  return arena_calloc(&p->arena, n + 1, sizeof(plan_port));
}

static const char *copy_name(tn_plan *p, const char *name) {
  return arena_copy(&p->arena, name, strlen(name) + 1);
}

/** The number of a varying size among those of the plan, -1 for a constant. Equal sizes are one
    node, as the graph is interned. */
static int32_t size_number(plan_builder *j, const node *size) {
  if (node_is_const(size)) return -1;
  uintptr_t known = (uintptr_t)map_get(&j->size_numbers, size);
  if (known) return (int32_t)known - 1;
  map_set(j->work, &j->size_numbers, size, (void *)(uintptr_t)++j->n_size_numbers);
  return j->n_size_numbers - 1;
}

static void set_port(plan_builder *j, plan_port *p, const char *name, const node *n) {
  builder b = {.arena = &j->plan->arena, .diag = j->d};
  if (n->rank > TN_MAX_RANK) diag_raise(j->d, TN_ERR_SHAPE, "%s has rank %d", name, (int)n->rank);
  *p = (plan_port){.name = name, .dtype = (dtype)n->dtype, .rank = n->rank, .buffer = SIZE_MAX};
  for (size_t i = 0; i < n->rank; i++) {
    p->size[i] = (port_size){.expression = j->sizes.n,
                             .var = SIZE_MAX,
                             .text = size_user_text(&b, n->dims[i]),
                             .min = n->dims[i]->lo,
                             .max = n->dims[i]->hi,
                             .number = size_number(j, n->dims[i])};
    vec_push(j->work, &j->sizes, n->dims[i]);
  }
}

static void add_name(plan_builder *j, string_map *of, plan_port *p, const char *what) {
  if (string_map_get(of, p->name))
    diag_raise(j->d, TN_ERR_ARGUMENT, "two %s are named %s", what, p->name);
  string_map_set(&j->plan->arena, of, p->name, p);
}

static void add_input(plan_builder *j, const node *n) {
  tn_plan *p = j->plan;
  set_port(j, &p->ports.inputs[p->ports.n_inputs], copy_name(p, input_of_node(j, n).input), n);
  add_name(j, &p->ports.input_of, &p->ports.inputs[p->ports.n_inputs], "inputs");
  vec_push(j->work, &j->inputs, n);
  p->ports.n_inputs++;
}

static void add_outputs(plan_builder *j) {
  tn_plan *p = j->plan;
  const char *const *names = j->g->output_names;
  p->ports.outputs = new_ports(p, j->g->n_outputs);
  for (size_t i = 0; i < j->g->n_outputs; i++, p->ports.n_outputs++) {
    if (names && !names[i]) diag_raise(j->d, TN_ERR_ARGUMENT, "output %zu has no name", i);
    const char *name = names ? copy_name(p, names[i]) : arena_printf(&p->arena, "%zu", i);
    set_port(j, &p->ports.outputs[i], name, j->roots.at[i]);
    add_name(j, &p->ports.output_of, &p->ports.outputs[i], "outputs");
  }
}

/* States and values. */

static void add_state(plan_builder *j, state_storage *s) {
  tn_plan *p = j->plan;
  if (map_has(&j->state_of, s)) return;
  map_set(j->work, &j->state_of, s, &p->states[p->n_states]);
  p->states[p->n_states++] =
      (plan_state){.storage = state_storage_retain(s), .in = SIZE_MAX, .out = SIZE_MAX};
}

static void add_buffer(plan_builder *j, const node *n) {
  tn_plan *p = j->plan;
  plan_graph_input l = input_of_node(j, n);
  if (l.input && !map_has(&j->listed_inputs, n)) add_input(j, n);
  if (l.storage) add_state(j, l.storage);
  if (l.memory) p->values[p->n_values++] = (plan_value){buffer_retain(l.memory), SIZE_MAX};
}

static void add_buffers(plan_builder *j) {
  tn_plan *p = j->plan;
  size_t n = 0;
  for (size_t i = 0; i < j->order.n; i++) {
    n += j->order.at[i]->op == OP_BUFFER;
    p->has_host_calls |= j->order.at[i]->op == OP_CUSTOM;
  }
  p->ports.inputs = new_ports(p, n + j->g->n_inputs);
  p->values = arena_calloc(&p->arena, n + 1, sizeof *p->values);
  p->states = arena_calloc(&p->arena, n + j->g->n_written + 1, sizeof *p->states);
  for (size_t i = 0; i < j->g->n_inputs; i++) {
    add_input(j, j->g->inputs[i]);
    map_set(j->work, &j->listed_inputs, j->g->inputs[i], NULL);
  }
  for (size_t i = 0; i < j->order.n; i++)
    if (j->order.at[i]->op == OP_BUFFER) add_buffer(j, j->order.at[i]);
  for (size_t i = 0; i < j->g->n_written; i++) {
    add_state(j, j->g->written[i]);
    map_set(j->work, &j->written, j->g->written[i], NULL);
  }
}

/* The executable. */

/** True if a run may overwrite a BUFFER: the contents of a state that the run gives new ones;
    reading a state through another plan's assign must change nothing. Never with host functions, as
    a run that fails in the middle must not have changed a state. */
static bool may_overwrite(void *user, const node *buffer) {
  plan_builder *j = user;
  state_storage *s = input_of_node(j, buffer).storage;
  return s && map_has(&j->written, s) && !j->plan->has_host_calls;
}

/** Reports the kernels of constants and those of the plan as one count. */
static bool report_progress(void *user, const char *what, uint64_t done, uint64_t total) {
  const plan_builder *j = user;
  const tn_progress *to = &j->c->progress;
  return to->step(to->user, what, j->constants.n_kernels + done, j->constants.n_kernels + total);
}

static void compile_executable(plan_builder *j) {
  tn_context *c = j->c;
  j->progress = (tn_progress){report_progress, j, NULL};
  executable_request r = context_executable_request(c, j->plan->name, j->roots.at, j->roots.n);
  r.may_overwrite = may_overwrite;
  r.user = j;
  r.labels = j->labels;
  r.n_labels = j->g->n_labels;
  r.sizes = j->sizes.at;
  r.n_sizes = j->sizes.n;
  r.explanation = j->explanation;
  if (r.progress) r.progress = &j->progress;
  executable **e = &j->plan->executable;
  if ((j->g->host && j->g->host(j->g->user, &j->order, &r.host) != TN_OK) ||
      executable_build(e, &r, &c->mem, j->d) != TN_OK)
    diag_rethrow(j->d);
  context_log(c, TN_LOG_DEBUG, "plan %s: %zu steps, %zu kernels", j->plan->name,
              executable_steps(*e), executable_kernels(*e));
}

static plan_state *state_of(const plan_builder *j, const state_storage *s) {
  return map_get(&j->state_of, s);
}

static void find_state_writes(plan_builder *j, plan_state *s) {
  const executable *e = j->plan->executable;
  s->is_in_place = s->out != SIZE_MAX && s->out == s->in;
  s->is_overwritten = s->in != SIZE_MAX && executable_buffer_at(e, s->in)->is_written;
  if (s->is_overwritten && s->out == SIZE_MAX)
    diag_raise(j->d, TN_ERR_INTERNAL, "a run would write a state that it does not change");
}

/** Finds the executable's buffers of inputs, values, states and outputs. */
static void find_buffers(plan_builder *j) {
  tn_plan *p = j->plan;
  size_t value = 0;
  for (size_t i = 0; i < p->ports.n_inputs; i++) {
    const node *n = j->inputs.at[i];
    p->ports.inputs[i].buffer = executable_input(p->executable, n->ints[0], n->ints[1]);
  }
  for (size_t i = 0; i < j->order.n; i++) {
    const node *n = j->order.at[i];
    if (n->op != OP_BUFFER) continue;
    plan_graph_input l = input_of_node(j, n);
    size_t at = executable_input(p->executable, n->ints[0], n->ints[1]);
    if (l.storage) state_of(j, l.storage)->in = at;
    if (l.memory) p->values[value++].buffer = at;
  }
  for (size_t i = 0; i < j->g->n_written; i++)
    state_of(j, j->g->written[i])->out = executable_output(p->executable, p->ports.n_outputs + i);
  for (size_t i = 0; i < p->n_states; i++) find_state_writes(j, &p->states[i]);
  for (size_t i = 0; i < p->ports.n_outputs; i++)
    p->ports.outputs[i].buffer = executable_output(p->executable, i);
}

/** Marks outputs in a buffer that is also something else, which are copied after the run. */
static void find_shared_outputs(plan_builder *j) {
  const tn_plan *p = j->plan;
  size_t n = executable_buffers(p->executable);
  bool *is_used = arena_calloc(j->work, n + 1, sizeof *is_used);
  for (size_t i = 0; i < n; i++)
    is_used[i] = executable_buffer_at(p->executable, i)->role == BUFFER_ROLE_INPUT;
  for (size_t i = 0; i < p->n_states; i++)
    if (p->states[i].out != SIZE_MAX) is_used[p->states[i].out] = true;
  for (size_t i = 0; i < p->ports.n_outputs; i++) {
    bool *used = &is_used[p->ports.outputs[i].buffer];
    p->ports.outputs[i].is_shared = *used;
    *used = true;
  }
}

/* Variables. */

/** Finds the variable that a size of an input determines, or its fixed value. */
static void find_var(const tn_plan *p, port_size *s, const node *size) {
  s->is_fixed = node_is_const(size);
  if (s->is_fixed) s->offset = node_int(size);
  if (ix_terms(size) != 1 || ix_atom(size, 0)->op != OP_VAR) return;
  s->var = executable_var(p->executable, ix_atom(size, 0)->text);
  s->offset = ix_offset(size);
  s->scale = ix_coefficient_at(size, 0);
}

static void find_vars(plan_builder *j) {
  tn_plan *p = j->plan;
  size_t n = executable_vars(p->executable);
  p->ports.vars = arena_alloc(&p->arena, (n + 1) * sizeof *p->ports.vars);
  for (size_t v = 0; v < n; v++) p->ports.vars[v] = (plan_var){SIZE_MAX, 0};
  for (size_t i = 0; i < p->ports.n_inputs; i++)
    for (size_t k = 0; k < p->ports.inputs[i].rank; k++) {
      port_size *s = &p->ports.inputs[i].size[k];
      find_var(p, s, j->sizes.at[s->expression]);
      if (s->var != SIZE_MAX && p->ports.vars[s->var].input == SIZE_MAX)
        p->ports.vars[s->var] = (plan_var){i, k};
    }
}

/** Checks that the inputs' sizes determine every variable, without which no run is possible. Inputs
    that nothing reads are no part of the executable. */
static void check_vars_known(const plan_builder *j) {
  const tn_plan *p = j->plan;
  for (size_t v = 0; v < executable_vars(p->executable); v++) {
    const char *name = executable_var_at(p->executable, v)->name;
    if (p->ports.vars[v].input == SIZE_MAX && !var_is_trip(name))
      diag_raise(j->d, TN_ERR_ARGUMENT,
                 "no input's shape tells the size %s: nothing reads an input that has it",
                 var_user_name(name));
  }
}

/* Construction. */

static void build_parts(void *arg) {
  plan_builder *j = arg;
  tn_plan *p = j->plan;
  p->name = copy_name(p, j->g->name);
  list_roots(j);
  add_buffers(j);
  add_outputs(j);
  compile_executable(j);
  find_buffers(j);
  find_shared_outputs(j);
  find_vars(j);
  check_vars_known(j);
  if (plan_constants_run(&j->constants, j->d) != TN_OK) diag_rethrow(j->d);
}

static tn_status build_once(plan_builder *j) {
  tn_context *c = j->c;
  tn_plan *p = j->plan = mem_calloc(&c->mem, 1, sizeof *p);
  if (!p) return diag_set(j->d, TN_ERR_MEMORY, "out of memory");
  atomic_init(&p->count, 1);
  p->context = c;
  arena_init(&p->arena, &c->mem, j->d);
  tn_status s = diag_catch(j->d, build_parts, j);
  plan_constants_release(&j->constants);
  p->arena.diag = NULL;
  if (s != TN_OK) plan_release(p);
  return s;
}

tn_status plan_build(tn_context *c, const plan_graph *g, arena *work, diag *d, tn_plan **out) {
  plan_builder j = {.c = c, .g = g, .work = work, .d = d}, plain = j;
  j.explanation = atomic_exchange(&c->explanation, NULL);
  tn_status s = build_once(&j);
  /* runs may need less memory; an explanation is made once */
  if (s == TN_ERR_MEMORY && g->ir && !j.explanation) {
    plain.without_constants = true;
    j = plain;
    s = build_once(&j);
    if (s == TN_OK)
      context_log(c, TN_LOG_WARNING, "plan %s: too little memory to prepare its constants",
                  g->name);
  }
  *out = s == TN_OK ? j.plan : NULL;
  return s;
}

void plan_release(tn_plan *p) {
  if (!p || atomic_fetch_sub_explicit(&p->count, 1, memory_order_acq_rel) > 1) return;
  for (size_t i = 0; i < p->n_states; i++) state_storage_release(p->states[i].storage);
  for (size_t i = 0; i < p->n_values; i++) buffer_release(p->values[i].memory);
  executable_release(p->executable);
  arena_free(&p->arena);
  mem_free(&p->context->mem, p, sizeof *p);
}
