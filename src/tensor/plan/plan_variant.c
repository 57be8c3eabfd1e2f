/* Construction of variants: copies the plan's graph with numbers for the facts that a form fixes,
   folds constants, compiles the executable, and finds which of its buffers are what and which facts
   its variables are. */
#include "tensor/plan/plan_variant.h"

#include "ir/core/var_names.h"
#include "ir/index/index_arithmetic.h"
#include "ir/transform/copy_graph.h"
#include "runtime/build_executable.h"
#include "tensor/context/fill_build_request.h"
#include "tensor/plan/plan_constants.h"
#include "tensor/plan/variant_progress.h"

#include <math.h>
#include <string.h>

typedef struct variant_builder {
  tn_context *c;
  tn_plan *p;
  const variant_request *request;
  diag *d;
  ir *ir; /* of the copy */
  const node **roots;
  schedule_label *labels;
  bool folds_constants;
  plan_constants constants;
  explanation *explanation; /* requested of this variant; NULL: none */
  plan_variant *v;
} variant_builder;

/* The graph. */

/** The fact's number, or its variable with the bounds and the likely value of the variant. */
static const node *replace_fact(void *user, const node *n, const node *const src[]) {
  (void)src;
  const variant_builder *j = user;
  size_t fact = n->op == OP_VAR ? plan_find_fact(j->p, n->text) : SIZE_MAX;
  if (fact == SIZE_MAX) return NULL;
  if (j->v->form[fact] == FACT_LIKE) fact = j->p->facts[fact].like;
  if (!fact_is_open(j->v->form[fact])) return ix_const(j->ir, j->v->form[fact]);
  const char *name = j->p->facts[fact].name;
  const int64_t numbers[] = {j->v->least[fact], j->v->most[fact], j->v->likely[fact]};
  return ir_make(j->ir, &(node_spec){.op = OP_VAR,
                                     .dtype = DT_INDEX,
                                     .ints = numbers,
                                     .n_int = 2 + (j->v->likely[fact] != 0),
                                     .text = name,
                                     .n_text = strlen(name)});
}

static void copy_graph(variant_builder *j) {
  const plan_template *t = &j->p->template;
  arena *a = ir_arena(j->ir);
  j->roots = arena_alloc(a, (t->n_roots + 1) * sizeof *j->roots);
  ir_copy_sorted(j->ir, a, &t->order, t->roots, t->n_roots, replace_fact, j, j->roots);
  if (j->folds_constants) {
    plan_constants_build(j->p, j->ir, j->roots, t->n_roots, j->request->background, &j->constants);
    j->roots = j->constants.roots;
  }
  size_t first = t->n_roots - t->n_labels;
  j->labels = arena_alloc(a, (t->n_labels + 1) * sizeof *j->labels);
  for (size_t i = 0; i < t->n_labels; i++)
    j->labels[i] = (schedule_label){j->roots[first + i], t->labels[i]};
}

/* The executable. */

static const plan_source *source_of(const variant_builder *j, const node *buffer) {
  bool is_source = (uint64_t)buffer->ints[0] < j->p->n_sources;
  return is_source ? &j->p->sources[buffer->ints[0]] : NULL;
}

/** True if a run may overwrite a BUFFER: the contents of a state that the run gives new ones;
    reading a state through another plan's assign must change nothing. Never where a run may fail in
    the middle, as it must not have changed a state then. */
static bool may_overwrite(void *user, const node *buffer) {
  const variant_builder *j = user;
  const plan_source *s = source_of(j, buffer);
  bool is_written = false;
  for (size_t i = 0; s && s->storage && i < j->p->n_states; i++)
    is_written |= j->p->states[i].storage == s->storage && j->p->states[i].root != SIZE_MAX;
  return is_written && !j->p->template.may_fail;
}

static executable_request request_of(variant_builder *j) {
  const plan_template *t = &j->p->template;
  executable_request r =
      context_executable_request(j->c, j->p->name, j->roots, t->n_roots - t->n_labels);
  r.may_overwrite = may_overwrite;
  r.user = j;
  r.labels = j->labels;
  r.n_labels = t->n_labels;
  r.n_watched = t->n_watched;
  return r;
}

static void compile_executable(variant_builder *j) {
  tn_context *c = j->c;
  const plan_template *t = &j->p->template;
  executable_request r = request_of(j);
  variant_progress progress = {.caller = &c->progress,
                               .background = j->request->background,
                               .before = j->constants.n_kernels};
  r.host = t->host;
  r.host.release = NULL; /* the plan keeps it */
  r.explanation = j->explanation;
  r.kernels = j->request->kernels;
  size_t n_tuned = 0;
  r.tuned.trial = j->request->trial;
  r.tuned.used = &n_tuned;
  r.tuned.is_tunable = j->p->is_tunable;
  variant_progress_attach(&progress, &r);
  if (executable_build(&j->v->executable, &r, &c->mem, j->d) != TN_OK) diag_rethrow(j->d);
  size_t steps = executable_steps(j->v->executable), kernels = executable_kernels(j->v->executable);
  context_log(c, TN_LOG_DEBUG, "plan %s: %zu step%s, %zu kernel%s", j->p->name, steps,
              steps == 1 ? "" : "s", kernels, kernels == 1 ? "" : "s");
  if (!tuned_choice_is_empty(&r.tuned))
    context_log(c, TN_LOG_INFO, "plan %s: tuned schedules for %zu of %zu kernel%s", j->p->name,
                n_tuned, kernels, kernels == 1 ? "" : "s");
}

/* Buffers. */

static size_t input_buffer(const plan_variant *v, size_t source) {
  return source == SIZE_MAX ? SIZE_MAX : executable_input(v->executable, (int64_t)source, 0);
}

static void find_state(const variant_builder *j, size_t i) {
  const executable *e = j->v->executable;
  const plan_state *from = &j->p->states[i];
  variant_state *s = &j->v->states[i];
  s->in = input_buffer(j->v, from->source);
  s->out = from->root == SIZE_MAX ? SIZE_MAX : executable_output(e, from->root);
  s->is_in_place = s->out != SIZE_MAX && s->out == s->in;
  s->is_overwritten = s->in != SIZE_MAX && executable_buffer_at(e, s->in)->is_written;
  if (s->is_overwritten && s->out == SIZE_MAX)
    diag_raise(j->d, TN_ERR_INTERNAL, "a run would write a state that it does not change");
}

static void add_value(variant_builder *j, tn_buffer *memory, size_t buffer) {
  if (buffer == SIZE_MAX) return;
  j->v->values[j->v->n_values++] = (variant_value){buffer_retain(memory), buffer};
}

static void find_values(variant_builder *j) {
  const tn_plan *p = j->p;
  const map *constants = &j->constants.memory;
  j->v->values =
      arena_alloc(&j->v->arena, (p->n_sources + constants->n + 1) * sizeof *j->v->values);
  for (size_t i = 0; i < p->n_sources; i++)
    if (p->sources[i].memory) add_value(j, p->sources[i].memory, input_buffer(j->v, i));
  for (size_t i = 0; i < constants->n; i++) {
    const node *leaf = constants->at[i].key;
    size_t buffer = executable_input(j->v->executable, leaf->ints[0], leaf->ints[1]);
    add_value(j, constants->at[i].value, buffer);
  }
}

/** The sizes of an output that runs of other variants compute and this one fixes, as where an array
    has no elements, or both branches have equal sizes; NULL: a run tells them. */
static const int64_t *known_sizes(const variant_builder *j, size_t i) {
  const node *root = j->roots[i];
  if (!j->p->ports.outputs[i].has_computed_size) return NULL;
  int64_t *sizes = arena_alloc(&j->v->arena, (root->rank + 1) * sizeof *sizes);
  for (size_t k = 0; k < root->rank; k++) {
    if (!node_is_const(root->dims[k])) return NULL;
    sizes[k] = node_int(root->dims[k]);
  }
  return sizes;
}

/** Finds the executable's buffers of inputs, values, states and outputs. */
static void find_buffers(variant_builder *j) {
  const tn_plan *p = j->p;
  plan_variant *v = j->v;
  arena *a = &v->arena;
  v->inputs = arena_calloc(a, p->ports.n_inputs + 1, sizeof *v->inputs);
  v->outputs = arena_calloc(a, p->ports.n_outputs + 1, sizeof *v->outputs);
  v->states = arena_calloc(a, p->n_states + 1, sizeof *v->states);
  for (size_t i = 0; i < p->ports.n_inputs; i++)
    v->inputs[i].buffer = input_buffer(v, p->ports.inputs[i].source);
  for (size_t i = 0; i < p->n_states; i++) find_state(j, i);
  for (size_t i = 0; i < p->ports.n_outputs; i++)
    v->outputs[i] = (variant_port){executable_output(v->executable, i), false, known_sizes(j, i)};
  find_values(j);
}

/** Marks outputs in a buffer that is also something else, which are copied after the run. */
static void find_shared_outputs(variant_builder *j) {
  plan_variant *v = j->v;
  size_t n = executable_buffers(v->executable);
  bool *is_used = arena_calloc(ir_arena(j->ir), n + 1, sizeof *is_used);
  for (size_t i = 0; i < n; i++)
    is_used[i] = executable_buffer_at(v->executable, i)->role == BUFFER_ROLE_INPUT;
  for (size_t i = 0; i < j->p->n_states; i++)
    if (v->states[i].out != SIZE_MAX) is_used[v->states[i].out] = true;
  for (size_t i = 0; i < j->p->ports.n_outputs; i++) {
    bool *used = &is_used[v->outputs[i].buffer];
    v->outputs[i].is_shared = *used;
    *used = true;
  }
}

static void find_variables(variant_builder *j) {
  plan_variant *v = j->v;
  size_t n = executable_vars(v->executable);
  v->fact_of_var = arena_alloc(&v->arena, (n + 1) * sizeof *v->fact_of_var);
  for (size_t i = 0; i < n; i++) {
    const char *name = executable_var_at(v->executable, i)->name;
    v->fact_of_var[i] = var_is_trip(name) ? SIZE_MAX : plan_find_fact(j->p, name);
  }
}

/* Construction. */

/** Takes the references to shared constants. */
static void take_shared_constants(variant_builder *j) {
  plan_constants *from = &j->constants;
  plan_variant *v = j->v;
  v->constants = arena_copy(&v->arena, from->shared.at, from->shared.n * sizeof *from->shared.at);
  v->n_constants = from->shared.n;
  from->shared.n = 0;
}

/** The power of two next to a size: variants and kernels that are made fast for about the same
   sizes are the same. */
static int64_t nearest_power(int64_t n) {
  int64_t power = 1;
  while (power <= n / 2) power *= 2;
  return (double)n / (double)power > sqrt(2) ? 2 * power : power;
}

/** The value that a variant is made fast for where it leaves a fact open: the caller's, else about
    that of the run. The text of a kernel has variables without one. */
static int64_t choose_likely(const variant_builder *j, size_t fact) {
  const plan_fact *f = &j->p->facts[fact];
  int64_t least = j->v->least[fact], n = f->likely;
  if (f->is_pinned) return 0;
  if (!n && j->request->facts && j->request->facts[fact])
    n = nearest_power(j->request->facts[fact]);
  if (!n) return 0;
  int64_t most = j->v->most[fact];
  return n < least ? least : n > most ? most : n;
}

/** Keeps a variable within the bounds of all facts that it stands for: what was proved of one of
   them by its bounds, as that a window fits, must hold of the variable. */
static void join_bounds(plan_variant *v, size_t fact, size_t like) {
  if (v->form[fact] != FACT_LIKE) return;
  if (v->least[fact] > v->least[like]) v->least[like] = v->least[fact];
  if (v->most[fact] < v->most[like]) v->most[like] = v->most[fact];
}

/** Sets the form. Facts that vary are 1 or more, as laws that peel and rescale need it, unless the
    variant is the only one. */
static void set_form(variant_builder *j) {
  const tn_plan *p = j->p;
  plan_variant *v = j->v;
  int64_t least = p->policy == TN_VARIANTS_ONE ? INT64_MIN : 1;
  v->form = arena_copy(&v->arena, j->request->form, p->n_facts * sizeof *v->form);
  v->least = arena_alloc(&v->arena, (p->n_facts + 1) * sizeof *v->least);
  v->most = arena_alloc(&v->arena, (p->n_facts + 1) * sizeof *v->most);
  v->likely = arena_alloc(&v->arena, (p->n_facts + 1) * sizeof *v->likely);
  for (size_t i = 0; i < p->n_facts; i++) {
    const plan_fact *f = &p->facts[i];
    v->least[i] = f->min > least || f->is_pinned ? f->min : least;
    v->most[i] = f->max;
    v->n_open += fact_is_open(v->form[i]) && !f->is_pinned;
  }
  for (size_t i = 0; i < p->n_facts; i++) join_bounds(v, i, p->facts[i].like);
  for (size_t i = 0; i < p->n_facts; i++) v->likely[i] = choose_likely(j, i);
}

static void build_parts(void *arg) {
  variant_builder *j = arg;
  set_form(j);
  copy_graph(j);
  compile_executable(j);
  find_buffers(j);
  find_shared_outputs(j);
  find_variables(j);
  if (plan_constants_run(&j->constants, j->d) != TN_OK) diag_rethrow(j->d);
  take_shared_constants(j);
}

static plan_variant *open_variant(tn_plan *p, diag *d) {
  const mem *m = &p->context->mem;
  plan_variant *v = mem_calloc(m, 1, sizeof *v);
  if (!v) return NULL;
  atomic_init(&v->count, 1);
  atomic_init(&v->is_dropped, false);
  v->mem = m;
  v->plan = p;
  arena_init(&v->arena, m, d);
  return v;
}

static tn_status build_once(variant_builder *j) {
  const mem *m = &j->c->mem;
  j->v = open_variant(j->p, j->d);
  j->ir = j->v ? ir_new(m, j->d, false) : NULL;
  tn_status s =
      j->ir ? diag_catch(j->d, build_parts, j) : diag_set(j->d, TN_ERR_MEMORY, "out of memory");
  plan_constants_release(&j->constants);
  ir_free(j->ir);
  if (j->v) j->v->arena.diag = NULL;
  if (s != TN_OK) plan_variant_release(j->v);
  return s;
}

tn_status plan_variant_build(tn_plan *p, const variant_request *request, diag *d,
                             plan_variant **out) {
  tn_context *c = p->context;
  variant_builder j = {.c = c, .p = p, .request = request, .d = d}, plain = j;
  if (!request->background && atomic_load(&c->explaining_thread) == thread_number())
    j.explanation = atomic_exchange(&c->explanation, NULL);
  j.folds_constants = p->template.folds_constants;
  bool may_do_without = j.folds_constants && !j.explanation; /* an explanation is made once */
  tn_status s = build_once(&j);
  if (s == TN_ERR_MEMORY && may_do_without) { /* runs may need less memory */
    j = plain;
    s = build_once(&j);
    if (s == TN_OK)
      context_log(c, TN_LOG_WARNING, "plan %s: too little memory to prepare its constants",
                  p->name);
  }
  *out = s == TN_OK ? j.v : NULL;
  return s;
}

/* Schedules. */

typedef struct view_job {
  variant_builder builder;
  struct schedule_view *view;
} view_job;

static void view_parts(void *arg) {
  view_job *k = arg;
  variant_builder *j = &k->builder;
  set_form(j);
  copy_graph(j);
  executable_request r = request_of(j);
  r.view = k->view;
  r.disk = NULL;
  if (executable_view(&r, &j->c->mem, j->d) != TN_OK) diag_rethrow(j->d);
}

tn_status plan_variant_view(tn_plan *p, struct schedule_view *view, diag *d) {
  const mem *m = &p->context->mem;
  int64_t *form = mem_alloc(m, (p->n_facts + 1) * sizeof *form);
  variant_request request = {.form = form};
  view_job k = {{.c = p->context, .p = p, .request = &request, .d = d}, view};
  variant_builder *j = &k.builder;
  for (size_t i = 0; form && i < p->n_facts; i++) form[i] = FACT_OPEN;
  j->v = form ? open_variant(p, d) : NULL;
  j->ir = j->v ? ir_new(m, d, false) : NULL;
  tn_status s = j->ir ? diag_catch(d, view_parts, &k) : diag_set(d, TN_ERR_MEMORY, "out of memory");
  ir_free(j->ir);
  plan_variant_release(j->v);
  mem_free(m, form, (p->n_facts + 1) * sizeof *form);
  return s;
}

plan_variant *plan_variant_retain(plan_variant *v) {
  atomic_fetch_add_explicit(&v->count, 1, memory_order_relaxed);
  return v;
}

void plan_variant_release(plan_variant *v) {
  if (!v || atomic_fetch_sub_explicit(&v->count, 1, memory_order_acq_rel) > 1) return;
  for (size_t i = 0; i < v->n_values; i++) buffer_release(v->values[i].memory);
  for (size_t i = 0; i < v->n_constants; i++) shared_constant_release(v->plan, v->constants[i]);
  executable_release(v->executable);
  arena_free(&v->arena);
  mem_free(v->mem, v, sizeof *v);
}
