/* Builds an executable: schedules the graph into plan steps, compiles the distinct kernels, and
   turns steps, buffers and sizes into lists that hold no IR. It may load the whole plan from the
   disk cache instead, if nobody observes the compilation. */
#include "runtime/build_executable.h"

#include "base/log.h"
#include "device/core/output.h"
#include "ir/core/node_device.h"
#include "ir/core/pass_names.h"
#include "ir/core/topo_sort.h"
#include "ir/core/var_names.h"
#include "ir/transform/copy_graph.h"
#include "ir/transform/liftable_scalars.h"
#include "runtime/kernel_costs.h"
#include "runtime/plan_cache.h"
#include "runtime/schedule_view.h"

#include <stdlib.h>
#include <string.h>

typedef struct build_state {
  const executable_request *request;
  executable *p; /* under construction */
  ir *g;
  diag *d;
  schedule *schedule;
  map *program_of;       /* of each device: kernel → index + 1 */
  node_list kernels;     /* the distinct ones */
  VEC(size_t) devices;   /* of each of these */
  size_t present_device; /* whose kernels are being compiled */
  size_t n_before;       /* kernels of the devices before it */
  size_t present_kernel; /* index of the kernel that passes run on */
  size_t n_loops;        /* loops among the steps added so far */
  size_t n_guards;       /* guards, likewise, */
  size_t first_guard;    /* which are sizes from this one on */
  kernel_costs *costs;   /* of each device */
  size_t n_estimated;    /* kernels, as often as they were */
} build_state;

static size_t program_of(const build_state *m, size_t device, const node *kernel) {
  return (size_t)(uintptr_t)map_get(&m->program_of[device], kernel) - 1;
}

/* Observers of the compilation: dumps, explanations, progress, log. */

static void lock_reports(const build_state *m) {
  if (m->request->reports) mutex_lock(m->request->reports);
}

static void unlock_reports(const build_state *m) {
  if (m->request->reports) mutex_unlock(m->request->reports);
}

static void dump_pass(build_state *m, const char *pass, const node *const roots[], size_t n) {
  dump *u = m->request->dump;
  if (!u || !dump_is_enabled(u, pass)) return;
  lock_reports(m);
  tn_status s = dump_after(u, pass, m->request->name, roots, n, m->p->mem, m->d);
  unlock_reports(m);
  if (s != TN_OK) diag_rethrow(m->d);
}

static void after_schedule(void *user, const char *pass, const node *const roots[], size_t n) {
  build_state *m = user;
  if (m->request->explanation) explanation_end_pass(m->request->explanation, m->g, pass, SIZE_MAX);
  dump_pass(m, pass, roots, n);
}

/** PASS_KERNEL is the first pass of a kernel and shows it as it was scheduled. */
static void after_codegen(void *user, const char *pass, const node *root) {
  build_state *m = user;
  explanation *x = m->request->explanation;
  bool begins = !strcmp(pass, pass_name(PASS_KERNEL));
  if (begins) m->present_kernel = program_of(m, m->present_device, root);
  if (x && begins) explanation_begin_kernel(x);
  if (x && !begins) explanation_end_pass(x, m->g, pass, m->present_kernel);
  dump_pass(m, pass, &root, 1);
}

static void after_choice(void *user, const char *pass, const node *root) {
  dump_pass(user, pass, &root, 1);
}

static void report_decision(void *user, const schedule_decision *d) {
  explanation_add_decision(((build_state *)user)->request->explanation, d);
}

static void report_tuned(void *user) {
  explanation_add_tuned(((build_state *)user)->request->explanation);
}

static void report_law(void *user, const char *line) {
  explanation_add_law(((build_state *)user)->request->explanation, line);
}

static void report_cost(void *user, const kernel_cost *cost) {
  explanation_add_cost(((build_state *)user)->request->explanation, cost);
}

static void report_source_text(void *user, const node *kernel, const char *source) {
  build_state *m = user;
  size_t number = program_of(m, m->present_device, kernel);
  explanation_end_pass(m->request->explanation, m->g, "render", number);
  explanation_add_source(m->request->explanation, number, source);
}

/** Raises TN_ERR_CANCELLED if the callback asks to stop. */
static void report_units(build_state *m, const char *what, size_t done, size_t total) {
  const tn_progress *p = m->request->progress;
  if (!p || !p->step) return;
  lock_reports(m);
  bool goes_on = p->step(p->user, what, done, total);
  unlock_reports(m);
  if (!goes_on) diag_raise(m->d, TN_ERR_CANCELLED, "%s was cancelled", m->request->name);
}

static void report_kernels(build_state *m, size_t done, size_t total) {
  report_units(m, "kernels", done, total);
}

/** Reports kernels of the present device as part of those of all. */
static void report_progress(void *user, size_t done, size_t total) {
  build_state *m = user;
  (void)total;
  report_kernels(m, m->n_before + done, m->kernels.n);
}

/** Estimates the cost of a kernel of a grouping, of which nobody knows how many there will be. */
static double estimate_kernel(void *user, size_t device, const node *kernel, bool is_searched) {
  build_state *m = user;
  stop_check(m->d);
  report_units(m, "schedules", ++m->n_estimated, 0);
  return kernel_costs_estimate(&m->costs[device], device, kernel, is_searched);
}

static void log_kernel(void *user, const char *name, size_t n, int64_t ns) {
  const executable_request *r = ((build_state *)user)->request;
  double ms = (double)ns * 1e-6;
  if (n > 1)
    log_line(r->logger, r->reports, TN_LOG_DEBUG, "kernel %.160s: one of %zu compiled in %.1f ms",
             name, n, ms);
  else
    log_line(r->logger, r->reports, TN_LOG_DEBUG, "kernel %.160s: compiled in %.1f ms", name, ms);
}

/* Kernels. */

static void collect_kernels(build_state *m) {
  arena *a = ir_arena(m->g);
  for (size_t i = 0; i < m->schedule->steps.n; i++) {
    const schedule_step *step = &m->schedule->steps.at[i];
    map *known = &m->program_of[step->device];
    if (!step->kernel || map_has(known, step->kernel)) continue;
    vec_push(a, &m->kernels, step->kernel);
    vec_push(a, &m->devices, step->device);
    map_set(a, known, step->kernel, (void *)(uintptr_t)m->kernels.n);
  }
}

static void copy_kernels(const build_state *m, kernel_copies *to) {
  to->n = m->kernels.n;
  to->at = arena_alloc(ir_arena(to->ir), (to->n + 1) * sizeof *to->at);
  ir_copy(to->ir, ir_arena(to->ir), m->kernels.at, to->n, NULL, NULL, to->at);
}

/** Explains what stands before the sources of kernels. */
static void explain_language(const build_state *m, explanation *x) {
  const device_target *t = m->request->target;
  const tn_renderer *r = t->renderer;
  bool has_prelude = r->size == sizeof *r && r->prelude;
  tn_output text = output_new(t->device->mem);
  diag_clear(m->d);
  tn_status s = has_prelude ? r->prelude(&t->caps, &text, &m->d->failure) : TN_OK;
  diag_complete(m->d, s);
  if (s == TN_OK) s = output_check(&text, m->d);
  const char *copy = s == TN_OK ? arena_printf(ir_arena(m->g), "%s", output_text(&text)) : "";
  output_free(&text);
  if (s != TN_OK) diag_rethrow(m->d);
  explanation_set_language(x, r->name, copy);
}

static node_list kernels_of_device(const build_state *m, size_t device) {
  node_list kernels = {0};
  for (size_t i = 0; i < m->kernels.n; i++)
    if (m->devices.at[i] == device) vec_push(ir_arena(m->g), &kernels, m->kernels.at[i]);
  return kernels;
}

/** Compiles the kernels of a device; one that has none needs no compiler. */
static void compile_for_device(build_state *m, compile_options *o, size_t device) {
  executable *p = m->p;
  const node_list kernels = kernels_of_device(m, device);
  size_t n_compiled = 0, at = 0;
  if (!kernels.n) return;
  tn_program **programs = arena_calloc(ir_arena(m->g), kernels.n + 1, sizeof *programs);
  m->present_device = device;
  o->target = p->targets[device];
  o->found = &m->costs[device].found;
  o->n_compiled = &n_compiled;
  if (compile_kernels(o, m->g, kernels.at, kernels.n, programs, m->d) != TN_OK) diag_rethrow(m->d);
  for (size_t i = 0; i < m->kernels.n; i++)
    if (m->devices.at[i] == device) p->programs[i] = programs[at++];
  p->n_compiled += n_compiled;
  m->n_before += kernels.n;
}

static void compile_programs(build_state *m) {
  executable *p = m->p;
  size_t n = m->kernels.n;
  p->programs = arena_calloc(&p->arena, n, sizeof *p->programs);
  p->program_devices = arena_calloc(&p->arena, n + 1, sizeof *p->program_devices);
  for (size_t i = 0; i < n; i++) p->program_devices[i] = m->devices.at[i];
  p->n_programs = n;
  compile_options o = {.math = m->request->math,
                       .report_progress = report_progress,
                       .user = m,
                       .background = m->request->background,
                       .tuned = m->request->tuned,
                       .disk = m->request->explanation ? NULL : m->request->disk};
  o.observer.user = m;
  if (m->request->logger && m->request->logger->log) o.report_compiled = log_kernel;
  const explanation *x = m->request->explanation;
  if (x || (m->request->dump && m->request->dump->pass)) o.observer.after = after_codegen;
  if (m->request->dump && m->request->dump->pass) o.observer.after_choice = after_choice;
  if (x) o.report_source = report_source_text;
  if (x) o.observer.tuned = report_tuned;
  if (x && x->reasons) explain_language(m, m->request->explanation);
  bool has_teams = m->request->target->caps.team_workers; /* the model is of processors */
  if (x && x->reasons) o.observer.law = report_law;
  if (x && x->reasons && !has_teams) o.observer.cost = report_cost;
  for (size_t i = 0; i < p->n_targets; i++) compile_for_device(m, &o, i);
  for (size_t i = 0; x && i < n; i++)
    m->request->explanation->kernels.at[i].library = p->programs[i]->library;
  if (x) explanation_end_pass(m->request->explanation, m->g, "compiler", SIZE_MAX);
  report_kernels(m, n, n);
}

/* Steps. */

/** Resolves a launch slot to a buffer; checked because a code record may come from the disk. */
static size_t launch_buffer(const build_state *m, const schedule_step *step, int64_t slot) {
  if (slot >= 0 && (uint64_t)slot < step->n_buffers) return step->buffers[slot];
  diag_raise(m->d, TN_ERR_INTERNAL, "%s: a kernel has no buffer %lld", m->p->name, (long long)slot);
}

/** Resolves a launch value to a variable: a lifted scalar stands for the step's own variable. */
static size_t launch_var(const build_state *m, const schedule_step *step, const char *name) {
  size_t number = lifted_var_number(name, LIFTED_VAR_OF_KERNEL);
  size_t var;
  if (number < step->scalars.n) name = step->scalars.at[number]->text;
  if (executable_resolve_value(m->p, name, &var)) return var;
  diag_raise(m->d, TN_ERR_INTERNAL, "%s: the value %s of a kernel is not a variable", m->p->name,
             var_user_name(name));
}

static void add_loop(build_state *m, executable_step *to, const schedule_step *from) {
  const schedule_loop *loop = from->loop;
  to->n_steps = loop->n_steps;
  to->trips = m->p->n_buffers + m->n_loops++;
  to->trip = executable_var(m->p, loop->trip->text);
  to->states = arena_copy(&m->p->arena, loop->states, loop->n_states * sizeof *loop->states);
  to->n_states = loop->n_states;
  to->until = loop->until;
}

static void add_launch(build_state *m, executable_step *to, const schedule_step *from) {
  arena *a = &m->p->arena;
  to->program = program_of(m, from->device, from->kernel);
  const tn_program_facts *f = &m->p->programs[to->program]->facts;
  size_t *buffers = arena_alloc(a, (f->n_globals + 1) * sizeof *buffers);
  size_t *values = arena_alloc(a, (f->n_values + 1) * sizeof *values);
  for (size_t i = 0; i < f->n_globals; i++) buffers[i] = launch_buffer(m, from, f->globals[i]);
  for (size_t i = 0; i < f->n_values; i++) values[i] = launch_var(m, from, f->value_names[i]);
  to->buffers = buffers;
  to->values = values;
  to->n_buffers = f->n_globals;
  to->scratch = f->scratch;
}

static void add_step(build_state *m, executable_step *to, const schedule_step *from) {
  arena *a = &m->p->arena;
  *to = (executable_step){.kind = from->kind, .guard = SIZE_MAX, .device = from->device};
  if (from->guard) to->guard = m->first_guard + m->n_guards++;
  to->name = arena_copy(a, from->name, strlen(from->name) + 1);
  to->n_buffers = from->n_buffers;
  to->buffers = arena_copy(a, from->buffers, from->n_buffers * sizeof *from->buffers);
  switch (from->kind) {
  case STEP_CUSTOM:
    to->uid = from->custom->ints[0];
    to->output = from->custom->ints[1];
    break;
  case STEP_LOOP: add_loop(m, to, from); break;
  case STEP_KERNEL: add_launch(m, to, from); break; /* its own order of buffers */
  case STEP_COPY: break;
  }
}

static void add_steps(build_state *m) {
  executable *p = m->p;
  p->n_steps = m->schedule->steps.n;
  p->steps = arena_alloc(&p->arena, (p->n_steps + 1) * sizeof *p->steps);
  for (size_t i = 0; i < p->n_steps; i++) add_step(m, &p->steps[i], &m->schedule->steps.at[i]);
  executable_link_loops(p);
  arena_mark here = arena_save(ir_scratch(m->g));
  if (!executable_link_items(p, ir_scratch(m->g)))
    diag_raise(m->d, TN_ERR_INTERNAL, "%s: a step comes before a size that it needs", p->name);
  arena_rewind(ir_scratch(m->g), here);
  executable_link_queues(p);
}

static buffer_role buffer_role_of(const schedule_buffer *b) {
  if (b->within) return BUFFER_ROLE_VIEW;
  if (b->is_double_buffered) return BUFFER_ROLE_STATE;
  if (b->origin) return BUFFER_ROLE_INPUT;
  return b->is_output ? BUFFER_ROLE_OUTPUT : BUFFER_ROLE_SCRATCH;
}

static void add_buffers(build_state *m) {
  executable *p = m->p;
  const schedule *s = m->schedule;
  p->n_buffers = s->buffers.n;
  p->buffers = arena_calloc(&p->arena, p->n_buffers, sizeof *p->buffers);
  for (size_t i = 0; i < p->n_buffers; i++) {
    const schedule_buffer *b = &s->buffers.at[i];
    p->buffers[i] = (executable_buffer){.dtype = b->dtype,
                                        .role = buffer_role_of(b),
                                        .is_written = b->is_written,
                                        .uid = b->origin ? b->origin->ints[0] : 0,
                                        .version = b->origin ? b->origin->ints[1] : 0,
                                        .first = b->first,
                                        .last = b->last,
                                        .within = schedule_storage(s, i),
                                        .start = (uint64_t)b->start,
                                        .device = b->device};
  }
  executable_index_inputs(p);
  p->n_slots = m->request->n_watched;
  p->slots =
      arena_copy(&p->arena, s->slots + s->n_slots - p->n_slots, p->n_slots * sizeof *p->slots);
  p->outputs = arena_copy(&p->arena, s->outputs, m->request->n_roots * sizeof *p->outputs);
}

/* Variables and sizes. */

static void add_vars(build_state *m, const node *const roots[], size_t n) {
  executable *p = m->p;
  node_list order = topo_sort(ir_arena(m->g), roots, n, NULL, NULL);
  VEC(tn_program_var) vars = {0};
  for (size_t i = 0; i < order.n; i++) {
    const node *v = order.at[i];
    if (v->op != OP_VAR || lifted_var_number(v->text, LIFTED_VAR_OF_KERNEL) != SIZE_MAX) continue;
    char *name = arena_copy(&p->arena, v->text, v->n_text + 1);
    vec_push(&p->arena, &vars, (tn_program_var){name, v->ints[0], v->ints[1]});
  }
  if (vars.n) qsort(vars.at, vars.n, sizeof *vars.at, executable_compare_vars);
  size_t n_unique = 0; /* two nodes may be one variable */
  for (size_t i = 0; i < vars.n; i++) {
    tn_program_var *last = n_unique ? &vars.at[n_unique - 1] : NULL, *v = &vars.at[i];
    if (!last || strcmp(last->name, v->name)) {
      vars.at[n_unique++] = *v;
    } else if (last->min != v->min || last->max != v->max) {
      diag_raise(m->d, TN_ERR_ARGUMENT, "%s: variable %s is used with different bounds",
                 m->request->name, var_user_name(v->name));
    }
  }
  vars.n = n_unique;
  p->vars = vars.at;
  p->n_vars = vars.n;
}

static const char **var_names(const executable *p, arena *a) {
  const char **names = arena_alloc(a, (p->n_vars + 1) * sizeof *names);
  for (size_t i = 0; i < p->n_vars; i++) names[i] = p->vars[i].name;
  return names;
}

/** Adds the ITEMs; their guards are sizes from `guard` on, followed by their bounds and the sizes
   of roots. */
static void add_items(build_state *m, const schedule *s, size_t guard) {
  executable *p = m->p;
  const schedule_items *items = s->items;
  p->n_items = items->at.n;
  p->items = arena_calloc(&p->arena, p->n_items, sizeof *p->items);
  for (size_t i = 0; i < p->n_items; i++) {
    const schedule_item *from = &items->at.at[i];
    p->items[i] = (executable_item){.name = arena_printf(&p->arena, "%s", from->name),
                                    .buffer = s->outputs[items->first + i],
                                    .var = executable_var(p, from->var->text),
                                    .min = from->min,
                                    .guard = s->item_guards[i] ? guard++ : SIZE_MAX};
  }
  for (size_t i = 0; i < p->n_items; i++) p->items[i].most = guard + i;
  executable_set_root_sizes(p, m->request->roots, m->request->n_roots, guard + p->n_items);
}

/** Collects the variables of all kernels and sizes, and compiles the sizes of buffers and the trip
    counts. */
static void add_sizes(build_state *m) {
  executable *p = m->p;
  const schedule *s = m->schedule;
  arena *a = ir_arena(m->g);
  node_list all = {0};
  for (size_t i = 0; i < s->buffers.n; i++) vec_push(a, &all, s->buffers.at[i].size);
  for (size_t i = 0; i < s->steps.n; i++)
    if (s->steps.at[i].loop) vec_push(a, &all, s->steps.at[i].loop->trips);
  m->first_guard = all.n;
  for (size_t i = 0; i < s->steps.n; i++)
    if (s->steps.at[i].guard) vec_push(a, &all, s->steps.at[i].guard);
  size_t first_item_guard = all.n;
  for (size_t i = 0; s->items && i < s->items->at.n; i++)
    if (s->item_guards[i]) vec_push(a, &all, s->item_guards[i]);
  for (size_t i = 0; s->items && i < s->items->at.n; i++)
    vec_push(a, &all, s->items->at.at[i].most);
  for (size_t i = 0; s->items && i < s->items->sizes.n; i++)
    vec_push(a, &all, s->items->sizes.at[i]);
  size_t n = all.n;
  for (size_t i = 0; s->items && i < s->items->at.n; i++) vec_push(a, &all, s->items->at.at[i].var);
  for (size_t i = 0; i < s->steps.n; i++) {
    const schedule_step *step = &s->steps.at[i];
    if (step->kernel) vec_push(a, &all, step->kernel);
    for (size_t k = 0; k < step->scalars.n; k++) vec_push(a, &all, step->scalars.at[k]);
  }
  add_vars(m, all.at, all.n);
  const char **names = var_names(p, a);
  p->sizes = launch_exprs_compile(&p->arena, all.at, n, names, p->n_vars);
  if (s->items) add_items(m, s, first_item_guard);
}

/** Counts operations and bytes of each kernel; sizes in the counts stay expressions. */
static void add_kernel_counts(build_state *m) {
  executable *p = m->p;
  arena *a = ir_arena(m->g);
  node_list sizes = {0};
  p->kernel_counts = arena_alloc(&p->arena, (p->n_programs + 1) * sizeof *p->kernel_counts);
  for (size_t i = 0; i < p->n_programs; i++) {
    kernel_count_terms w = kernel_counts_of(a, m->kernels.at[i]);
    const kernel_count_term *items = arena_copy(&p->arena, w.items.at, w.items.n * sizeof *items);
    p->kernel_counts[i] = (executable_kernel_counts){items, w.items.n, sizes.n};
    for (size_t k = 0; k < w.sizes.n; k++) vec_push(a, &sizes, w.sizes.at[k]);
  }
  const char **names = var_names(p, a);
  p->count_sizes = launch_exprs_compile(&p->arena, sizes.at, sizes.n, names, p->n_vars);
}

static schedule_target schedule_target_for(const device_target *t) {
  return (schedule_target){.vector = t->target.vector_bytes,
                           .arguments = t->target.arguments,
                           .scratch = t->target.scratch,
                           .rows = target_rows(&t->target),
                           .teams = t->target.team_workers > 0,
                           .hardware = t->target.hardware};
}

static void schedule_graph(build_state *m) {
  const executable_request *r = m->request;
  const explanation *x = r->explanation;
  size_t n_more = m->p->n_targets - 1;
  schedule_target *more = arena_alloc(ir_arena(m->g), (n_more + 1) * sizeof *more);
  for (size_t i = 0; i < n_more; i++) more[i] = schedule_target_for(m->p->targets[i + 1]);
  m->schedule = schedule_make(
      m->g, &(schedule_request){.roots = r->roots,
                                .n_roots = r->n_roots,
                                .may_overwrite = r->may_overwrite,
                                .user = r->user,
                                .observer.after = after_schedule,
                                .observer.decided = x && x->reasons ? report_decision : NULL,
                                .observer.user = m,
                                .labels = r->labels,
                                .n_labels = r->n_labels,
                                .math = r->math,
                                .estimates = {estimate_kernel, m},
                                .target = schedule_target_for(r->target),
                                .more = more,
                                .n_more = n_more});
  collect_kernels(m);
}

static void schedule_and_compile(build_state *m) {
  const executable_request *r = m->request;
  explanation *x = r->explanation;
  if (x) explanation_begin(x, m->g);
  schedule_graph(m);
  if (r->kernels) copy_kernels(m, r->kernels);
  if (x)
    explanation_add_steps(x, m->schedule, &m->kernels, m->program_of, m->p->targets,
                          &m->request->host);
  compile_programs(m);
  add_buffers(m);
  add_sizes(m);
  add_kernel_counts(m);
  add_steps(m);
}

/* Building. */

/** False if an observer must see the compilation, or the compiler's output does not outlive the
    process. */
static bool may_use_disk(const executable_request *r) {
  return r->disk && r->target->compiler->lasting && !r->explanation && !r->kernels &&
         !r->n_watched && !(r->dump && r->dump->pass);
}

/** Finds the plan on disk, of the target or an alternative; *graph is the target's. */
static bool find_plan(build_state *m, plan_cache_graph *graph) {
  executable_request r = *m->request;
  for (; r.target; r.target = r.target->alternative) {
    plan_cache_graph g = plan_cache_graph_of(ir_arena(m->g), &r);
    if (r.target == m->request->target) *graph = g;
    if (plan_cache_find(m->p, &r, &g)) return true;
  }
  return false;
}

/** The number of devices that the graph names, or 1. */
static size_t count_devices(const build_state *m) {
  const executable_request *r = m->request;
  arena_mark here = arena_save(ir_scratch(m->g));
  node_list order = topo_sort(ir_scratch(m->g), r->roots, r->n_roots, NULL, NULL);
  size_t n = node_count_devices(order.at, order.n);
  arena_rewind(ir_scratch(m->g), here);
  return n;
}

static void open_devices(build_state *m) {
  executable *p = m->p;
  executable_set_targets(p, m->request, count_devices(m));
  m->program_of = arena_calloc(ir_arena(m->g), p->n_targets, sizeof *m->program_of);
  m->costs = arena_calloc(ir_arena(m->g), p->n_targets, sizeof *m->costs);
  for (size_t i = 0; i < p->n_targets; i++)
    kernel_costs_init(&m->costs[i], m->g, &p->targets[i]->target, m->request->math);
}

static void build_body(void *arg) {
  build_state *m = arg;
  const executable_request *r = m->request;
  bool uses_disk = may_use_disk(r);
  plan_cache_graph graph = {0};
  m->p->name = arena_copy(&m->p->arena, r->name, strlen(r->name) + 1);
  open_devices(m);
  if (uses_disk && find_plan(m, &graph)) {
    log_line(r->logger, r->reports, TN_LOG_DEBUG, "plan %.160s: found on disk", r->name);
    report_kernels(m, m->p->n_programs, m->p->n_programs);
    return;
  }
  schedule_and_compile(m);
#ifdef TENON_VERIFY
  plan_cache_check_round_trip(m->p, r, ir_arena(m->g));
#endif
  if (uses_disk) plan_cache_store(m->p, r, &graph);
}

/* Schedules without executables. */

/** Tells the view which kernels of a device are calls of its library. */
static void view_libraries(const build_state *m, size_t device) {
  const executable_request *r = m->request;
  const node_list kernels = kernels_of_device(m, device);
  size_t n = 0;
  const char **names = arena_calloc(ir_arena(m->g), kernels.n + 1, sizeof *names);
  const compile_options o = {
      .target = m->p->targets[device], .math = r->math, .tuned = r->tuned, .disk = r->disk};
  if (compile_list_libraries(&o, m->g, kernels.at, kernels.n, names, m->d)) diag_rethrow(m->d);
  for (size_t i = 0; i < m->kernels.n; i++)
    if (m->devices.at[i] == device) r->view->kernels.at[i].library = names[n++];
}

static void view_body(void *arg) {
  build_state *m = arg;
  open_devices(m);
  schedule_graph(m);
  schedule_view_fill(m->request->view, m->schedule, &m->kernels, m->program_of, m->p->targets,
                     m->request->n_watched);
  const tuned_choice *tuned = &m->request->tuned;
  bool may_call = tuned->libraries && !tuned_choice_is_empty(tuned);
  for (size_t i = 0; i < m->p->n_targets && may_call; i++) view_libraries(m, i);
}

tn_status executable_view(const executable_request *r, const mem *m, diag *d) {
  executable shell = {.name = (char *)r->name};
  build_state k = {.request = r, .p = &shell, .d = d, .g = ir_new(m, d, false)};
  if (!k.g) return diag_set(d, TN_ERR_MEMORY, "out of memory");
  shell.mem = m;
  arena_init(&shell.arena, m, d);
  r->view->arena.diag = d;
  tn_status s = diag_catch(d, view_body, &k);
  for (size_t i = 0; k.costs && i < shell.n_targets; i++) kernel_costs_free(&k.costs[i]);
  ir_free(k.g);
  arena_free(&shell.arena);
  r->view->arena.diag = NULL;
  return s;
}

tn_status executable_build(executable **out, const executable_request *r, const mem *m, diag *d) {
  *out = NULL;
  build_state k = {.request = r, .d = d};
  k.p = mem_calloc(m, 1, sizeof *k.p);
  k.g = k.p ? ir_new(m, d, false) : NULL;
  if (!k.g) {
    mem_free(m, k.p, sizeof *k.p);
    if (r->host.release) r->host.release(r->host.user);
    return diag_set(d, TN_ERR_MEMORY, "out of memory");
  }
  k.p->count = 1;
  k.p->mem = m;
  k.p->target = r->target;
  k.p->host = r->host;
  arena_init(&k.p->arena, m, d);
  if (r->explanation) r->explanation->arena.diag = d;
  stop_condition stop = r->stop;
  const stop_condition *outer = d->stop;
  stop.cancelled = r->background;
  d->stop = &stop;
  tn_status s = diag_catch(d, build_body, &k);
  d->stop = outer;
  if (s == TN_ERR_TIMEOUT)
    diag_prefix(d, "compiling %s, %zu nodes by now", r->name, ir_node_count(k.g));
  if (r->explanation) r->explanation->arena.diag = NULL;
  for (size_t i = 0; k.costs && i < k.p->n_targets; i++) kernel_costs_free(&k.costs[i]);
  ir_free(k.g);
  k.p->arena.diag = NULL;
  if (s != TN_OK)
    executable_release(k.p);
  else
    *out = k.p;
  return s;
}
