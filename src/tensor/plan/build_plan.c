/* Construction of plans: copies the graph to an ir of the plan's own, numbers its BUFFERs, lists
   ports and states, finds which sizes of inputs determine its variables, and compiles it. */
#include "ir/core/affine.h"
#include "ir/core/build.h"
#include "ir/core/node_device.h"
#include "ir/core/var_names.h"
#include "ir/index/index_arithmetic.h"
#include "ir/transform/copy_graph.h"
#include "tensor/ops/computed_sizes.h"
#include "tensor/plan/late_plan.h"
#include "tensor/plan/shared_constants.h"
#include "tensor/plan/variant_table.h"

#include <stdlib.h>
#include <string.h>

typedef VEC(const node *) nodes;

typedef struct plan_builder {
  tn_context *c;
  const plan_graph *g;
  arena *work;
  diag *d;
  nodes sizes;
  map listed_inputs; /* inputs of the graph's list */
  map size_numbers;  /* size that varies → its number + 1 */
  int32_t n_size_numbers;
  map state_of; /* storage → its state */
  tn_plan *plan;
} plan_builder;

/* The graph. */

static const node *number_buffer(void *user, const node *n, const node *const src[]) {
  plan_builder *j = user;
  tn_plan *p = j->plan;
  if (n->op != OP_BUFFER) return NULL;
  plan_source s = j->g->source_of(j->g->user, n);
  if (s.storage) state_storage_retain(s.storage);
  if (s.memory) buffer_retain(s.memory);
  p->sources[p->n_sources] = s;
  int64_t ints[3] = {(int64_t)p->n_sources++, 0};
  size_t n_ints = 2 + node_device_argument(n->device, ints + 2);
  return ir_node(p->template.ir, OP_BUFFER, (dtype)n->dtype, src, n->rank, ints, n_ints);
}

static const char *copy_text(tn_plan *p, const char *text) {
  return arena_copy(&p->arena, text, strlen(text) + 1);
}

static void copy_labels(plan_builder *j) {
  plan_template *t = &j->plan->template;
  t->n_labels = j->g->n_labels;
  t->n_watched = j->g->n_watched;
  t->labels = arena_alloc(&j->plan->arena, (t->n_labels + 1) * sizeof *t->labels);
  for (size_t i = 0; i < t->n_labels; i++) t->labels[i] = copy_text(j->plan, j->g->labels[i].text);
}

/** Copies the graph. Roots of the copy are outputs, new contents, labelled nodes, then inputs. */
static void copy_graph(plan_builder *j) {
  const plan_graph *g = j->g;
  tn_plan *p = j->plan;
  plan_template *t = &p->template;
  bool is_followed = p->context->progress.step;
  size_t n_buffers = 0, n = 0;
  for (size_t i = 0; i < g->order->n; i++) n_buffers += g->order->at[i]->op == OP_BUFFER;
  for (size_t i = 0; i < g->order->n; i++) {
    op op = g->order->at[i]->op;
    t->has_host_calls |= op == OP_CUSTOM;
    t->may_fail |= op == OP_CUSTOM || op == OP_ITEM || (op == OP_LOOP && is_followed);
  }
  p->sources = arena_calloc(&p->arena, n_buffers + 1, sizeof *p->sources);
  t->n_roots = g->n_outputs + g->n_written + g->n_labels;
  const node **roots = arena_alloc(j->work, (t->n_roots + g->n_inputs + 1) * sizeof *roots);
  for (size_t i = 0; i < g->n_outputs; i++) roots[n++] = g->outputs[i];
  for (size_t i = 0; i < g->n_written; i++) roots[n++] = g->contents[i];
  for (size_t i = 0; i < g->n_labels; i++) roots[n++] = g->labels[i].node;
  for (size_t i = 0; i < g->n_inputs; i++) roots[n++] = g->inputs[i];
  t->roots = arena_alloc(ir_arena(t->ir), (n + 1) * sizeof *t->roots);
  ir_copy_sorted(t->ir, j->work, g->order, roots, n, number_buffer, j, t->roots);
  t->order = topo_sort(ir_arena(t->ir), t->roots, n, NULL, NULL);
  copy_labels(j);
}

/* Facts. */

static bool is_fact(const node *n) { return n->op == OP_VAR && !var_is_trip(n->text); }

/** Checks that a variable's bounds agree with others of its name: a run knows sizes by name, and a
    name may be used again once its scope has ended. */
static void check_var(plan_builder *j, const node *n, const node *other) {
  if (other->ints[0] == n->ints[0] && other->ints[1] == n->ints[1]) return;
  diag_raise(j->d, TN_ERR_ARGUMENT,
             "two sizes are named %.100s, one from %lld to %lld and one from %lld to %lld: a plan "
             "knows sizes by their names",
             var_user_name(n->text), (long long)other->ints[0], (long long)other->ints[1],
             (long long)n->ints[0], (long long)n->ints[1]);
}

static int compare_names(const void *a, const void *b) {
  return strcmp(((const plan_fact *)a)->name, ((const plan_fact *)b)->name);
}

static void list_facts(plan_builder *j) {
  tn_plan *p = j->plan;
  string_map vars = {0};
  for (size_t i = 0; i < p->template.order.n; i++) {
    const node *n = p->template.order.at[i];
    const node *other = is_fact(n) ? string_map_get(&vars, n->text) : NULL;
    if (other) check_var(j, n, other);
    if (is_fact(n) && !other) string_map_set(j->work, &vars, n->text, (void *)n);
  }
  p->n_facts = vars.entries.n;
  p->facts = arena_alloc(&p->arena, (p->n_facts + 1) * sizeof *p->facts);
  for (size_t i = 0; i < p->n_facts; i++) {
    const node *n = vars.entries.at[i].value;
    p->facts[i] = (plan_fact){.name = copy_text(p, n->text),
                              .min = n->ints[0],
                              .max = n->ints[1],
                              .likely = n->n_int > 2 ? n->ints[2] : 0,
                              .input = SIZE_MAX};
  }
  qsort(p->facts, p->n_facts, sizeof *p->facts, compare_names);
}

size_t plan_find_fact(const tn_plan *p, const char *name) {
  const plan_fact key = {.name = name};
  const plan_fact *found =
      p->n_facts ? bsearch(&key, p->facts, p->n_facts, sizeof key, compare_names) : NULL;
  return found ? (size_t)(found - p->facts) : SIZE_MAX;
}

/** Finds the fact that a size determines, or its fixed value. */
static void find_fact(const tn_plan *p, port_size *s, const node *size) {
  s->is_fixed = node_is_const(size);
  if (s->is_fixed) s->offset = node_int(size);
  if (ix_terms(size) != 1 || !is_fact(ix_atom(size, 0))) return;
  s->fact = plan_find_fact(p, ix_atom(size, 0)->text);
  s->offset = ix_offset(size);
  s->scale = ix_coefficient_at(size, 0);
}

/** Finds the first size that determines each fact. Without one no run is possible. */
static void locate_facts(const plan_builder *j) {
  const tn_plan *p = j->plan;
  for (size_t i = p->ports.n_inputs; i-- > 0;)
    for (size_t k = p->ports.inputs[i].rank; k-- > 0;) {
      size_t fact = p->ports.inputs[i].size[k].fact;
      if (fact == SIZE_MAX) continue;
      p->facts[fact].input = i;
      p->facts[fact].axis = k;
    }
  for (size_t i = 0; i < p->n_facts; i++)
    if (p->facts[i].input == SIZE_MAX)
      diag_raise(j->d, TN_ERR_ARGUMENT,
                 "no input's shape tells the size %s: nothing reads an input that has it",
                 var_user_name(p->facts[i].name));
}

/** Finds the facts that have one name, in the order in which inputs determine them. */
static void find_alike(const plan_builder *j) {
  tn_plan *p = j->plan;
  string_map first = {0};
  for (size_t i = 0; i < p->ports.n_inputs; i++)
    for (size_t k = 0; k < p->ports.inputs[i].rank; k++) {
      size_t n = p->ports.inputs[i].size[k].fact;
      plan_fact *f = n == SIZE_MAX ? NULL : &p->facts[n];
      if (!f || f->input != i || f->axis != k) continue;
      const plan_fact *like = string_map_get(&first, var_user_name(f->name));
      if (!like) string_map_set(j->work, &first, var_user_name(f->name), f);
      f->like = like ? (size_t)(like - p->facts) : n;
    }
}

/** Pins the facts that sizes of a KERNEL's arrays depend on. */
static void pin_facts(const plan_builder *j, const node *kernel) {
  nodes sizes = {0};
  for (uint32_t i = 0; i < kernel->n_src; i++) {
    vec_push(j->work, &sizes, kernel->src[i]);
    for (uint32_t k = 0; k < kernel->src[i]->rank; k++)
      vec_push(j->work, &sizes, kernel->src[i]->dims[k]);
  }
  node_list order = topo_sort(j->work, sizes.at, sizes.n, size_has_part, NULL);
  for (size_t i = 0; i < order.n; i++)
    if (is_fact(order.at[i]))
      j->plan->facts[plan_find_fact(j->plan, order.at[i]->text)].is_pinned = true;
}

static void pin_facts_of_kernels(const plan_builder *j) {
  const node_list *order = &j->plan->template.order;
  for (size_t i = 0; i < order->n; i++)
    if (order->at[i]->op == OP_KERNEL) pin_facts(j, order->at[i]);
}

static void compile_sizes(plan_builder *j) {
  tn_plan *p = j->plan;
  const char **names = arena_alloc(&p->arena, (p->n_facts + 1) * sizeof *names);
  for (size_t i = 0; i < p->n_facts; i++) names[i] = p->facts[i].name;
  p->ports.sizes = launch_exprs_compile(&p->arena, j->sizes.at, j->sizes.n, names, p->n_facts);
}

/* Ports. */

static plan_port *new_ports(tn_plan *p, size_t n) {
  return arena_calloc(&p->arena, n + 1, sizeof(plan_port));
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
  *p = (plan_port){.name = name,
                   .dtype = (dtype)n->dtype,
                   .rank = n->rank,
                   .first_size = j->sizes.n,
                   .source = SIZE_MAX};
  for (size_t i = 0; i < n->rank; i++) {
    p->size[i] = (port_size){.fact = SIZE_MAX,
                             .text = size_user_text(&b, n->dims[i]),
                             .min = n->dims[i]->lo,
                             .max = n->dims[i]->hi,
                             .number = size_number(j, n->dims[i])};
    bool is = p->size[i].is_computed = size_has_item(j->work, n->dims[i]);
    p->has_computed_size |= is;
    if (!is) find_fact(j->plan, &p->size[i], n->dims[i]);
    vec_push(j->work, &j->sizes, is ? ix_const(j->plan->template.ir, 0) : n->dims[i]);
  }
}

static void add_name(plan_builder *j, string_map *of, plan_port *p, const char *what) {
  if (string_map_get(of, p->name))
    diag_raise(j->d, TN_ERR_ARGUMENT, "two %s are named %s", what, p->name);
  string_map_set(&j->plan->arena, of, p->name, p);
}

static void add_input(plan_builder *j, const node *n) {
  tn_plan *p = j->plan;
  plan_port *port = &p->ports.inputs[p->ports.n_inputs];
  size_t source = (size_t)n->ints[0];
  p->sources[source].input = copy_text(p, p->sources[source].input);
  set_port(j, port, p->sources[source].input, n);
  if (port->has_computed_size)
    diag_raise(j->d, TN_ERR_SHAPE, "a size of input %s is an element of a tensor", port->name);
  port->source = source;
  const plan_late *late = j->g->late;
  port->is_late = late && late->is_free && late->is_free[p->ports.n_inputs];
  add_name(j, &p->ports.input_of, port, "inputs");
  p->ports.n_inputs++;
}

static void add_outputs(plan_builder *j) {
  tn_plan *p = j->plan;
  const char *const *names = j->g->output_names;
  p->ports.outputs = new_ports(p, j->g->n_outputs);
  for (size_t i = 0; i < j->g->n_outputs; i++, p->ports.n_outputs++) {
    if (names && !names[i]) diag_raise(j->d, TN_ERR_ARGUMENT, "output %zu has no name", i);
    const char *name = names ? copy_text(p, names[i]) : arena_printf(&p->arena, "%zu", i);
    set_port(j, &p->ports.outputs[i], name, p->template.roots[i]);
    add_name(j, &p->ports.output_of, &p->ports.outputs[i], "outputs");
  }
}

static void add_late_outputs(plan_builder *j) {
  tn_plan *p = j->plan;
  const plan_late *late = j->g->late;
  p->ports.outputs = new_ports(p, late->n_outputs);
  for (size_t i = 0; i < late->n_outputs; i++, p->ports.n_outputs++) {
    p->ports.outputs[i] = (plan_port){.name = copy_text(p, late->outputs[i]),
                                      .dtype = late->output_types[i],
                                      .first_size = j->sizes.n,
                                      .source = SIZE_MAX,
                                      .is_late = true};
    add_name(j, &p->ports.output_of, &p->ports.outputs[i], "outputs");
  }
}

/* States. */

static plan_state *add_state(plan_builder *j, state_storage *s) {
  tn_plan *p = j->plan;
  plan_state *known = map_get(&j->state_of, s);
  if (known) return known;
  plan_state *made = &p->states[p->n_states];
  map_set(j->work, &j->state_of, s, made);
  *made = (plan_state){state_storage_retain(s), SIZE_MAX, SIZE_MAX};
  p->n_states++;
  return made;
}

static void add_buffer(plan_builder *j, const node *n) {
  const plan_source *s = &j->plan->sources[n->ints[0]];
  if (s->input && !map_has(&j->listed_inputs, n)) add_input(j, n);
  if (s->storage) add_state(j, s->storage)->source = (size_t)n->ints[0];
}

static void add_buffers(plan_builder *j) {
  tn_plan *p = j->plan;
  const plan_template *t = &p->template;
  const node *const *inputs = t->roots + t->n_roots;
  p->ports.inputs = new_ports(p, p->n_sources);
  p->states = arena_calloc(&p->arena, p->n_sources + j->g->n_written + 1, sizeof *p->states);
  for (size_t i = 0; i < j->g->n_inputs; i++) {
    add_input(j, inputs[i]);
    map_set(j->work, &j->listed_inputs, inputs[i], NULL);
  }
  for (size_t i = 0; i < t->order.n; i++)
    if (t->order.at[i]->op == OP_BUFFER) add_buffer(j, t->order.at[i]);
  for (size_t i = 0; i < j->g->n_written; i++)
    add_state(j, j->g->written[i])->root = j->g->n_outputs + i;
}

/* Construction. */

static void build_parts(void *arg) {
  plan_builder *j = arg;
  tn_plan *p = j->plan;
  p->name = copy_text(p, j->g->name);
  p->title = j->g->title && *j->g->title ? copy_text(p, j->g->title) : NULL;
  p->template.folds_constants = j->g->folds_constants;
  if (!(j->g->n_outputs + j->g->n_written) && !j->g->late)
    diag_raise(j->d, TN_ERR_ARGUMENT, "there is neither an output nor a pending assign");
  copy_graph(j);
  list_facts(j);
  pin_facts_of_kernels(j);
  add_buffers(j);
  if (j->g->late)
    add_late_outputs(j);
  else
    add_outputs(j);
  locate_facts(j);
  find_alike(j);
  compile_sizes(j);
}

void plan_drop_template(tn_plan *p) {
  plan_template *t = &p->template;
  for (size_t i = 0; i < p->n_sources; i++) {
    if (p->sources[i].memory) buffer_release(p->sources[i].memory);
    p->sources[i].memory = NULL;
  }
  ir_free(t->ir);
  t->ir = NULL;
  if (t->file.release) t->file.release(t->file.user);
  t->file = (plan_file){0};
}

tn_status plan_check_variants(tn_variants policy, diag *d) {
  if ((uint32_t)policy <= TN_VARIANTS_ONE) return TN_OK;
  return diag_set(d, TN_ERR_ARGUMENT, "%d is not one of tn_variants", (int)policy);
}

static tn_status open_plan(tn_context *c, const plan_graph *g, diag *d, tn_plan **out) {
  tn_plan *p = *out = mem_calloc(&c->mem, 1, sizeof *p);
  ir *own = p ? ir_new(&c->mem, d, false) : NULL;
  if (own) {
    atomic_init(&p->count, 1);
    p->context = c;
    p->policy = g->variants;
    p->is_tunable = g->is_tunable;
    p->is_interpreted = g->is_interpreted;
    p->first_variant = g->first_variant;
    p->template.ir = own;
    p->template.host = g->host;
    p->template.file = g->file;
    arena_init(&p->arena, &c->mem, d);
    return TN_OK;
  }
  mem_free(&c->mem, p, sizeof *p);
  if (g->late) g->late->release(g->late->user);
  if (g->host.release) g->host.release(g->host.user);
  if (g->file.release) g->file.release(g->file.user);
  return diag_set(d, TN_ERR_MEMORY, "out of memory");
}

tn_status plan_build(tn_context *c, const plan_graph *g, diag *d, tn_plan **out) {
  tn_plan *p;
  tn_status s = open_plan(c, g, d, &p);
  *out = NULL;
  if (s != TN_OK) return s;
  arena work;
  arena_init(&work, &c->mem, d);
  plan_builder j = {.c = c, .g = g, .work = &work, .d = d, .plan = p};
  s = diag_catch(d, build_parts, &j);
  arena_free(&work);
  p->arena.diag = NULL;
  p->constants =
      g->constants ? shared_constants_retain(g->constants) : shared_constants_new(&c->mem);
  if (s == TN_OK && !p->constants) s = diag_set(d, TN_ERR_MEMORY, "out of memory");
  if (s != TN_OK && g->late) g->late->release(g->late->user);
  if (s == TN_OK && !g->is_uncompiled)
    s = g->late ? late_plan_open(p, g->late, d) : variant_table_open(p, d);
  if (s == TN_OK)
    *out = p;
  else
    plan_release(p);
  return s;
}

void plan_release(tn_plan *p) {
  if (!p || atomic_fetch_sub_explicit(&p->count, 1, memory_order_acq_rel) > 1) return;
  variant_table_close(p);
  late_plan_close(p);
  shared_constants_release(p->constants);
  for (size_t i = 0; i < p->n_states; i++) state_storage_release(p->states[i].storage);
  for (size_t i = 0; i < p->n_sources; i++)
    if (p->sources[i].storage) state_storage_release(p->sources[i].storage);
  plan_drop_template(p);
  if (p->template.host.release) p->template.host.release(p->template.host.user);
  arena_free(&p->arena);
  mem_free(&p->context->mem, p, sizeof *p);
}
