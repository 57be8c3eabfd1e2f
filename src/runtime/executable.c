#include "runtime/executable.h"

#include "base/log.h"
#include "ir/pass.h"
#include "ir/scalars.h"
#include "ir/topo.h"
#include "ir/var.h"
#include "runtime/inside.h"
#include "runtime/kept.h"

#include <stdlib.h>
#include <string.h>

typedef struct making {
  const executable_request *request;
  executable *p;
  ir *g;
  diag *d;
  schedule *schedule;
  map program_of;    /* kernel → number + 1 */
  node_list kernels; /* the different ones */
  size_t at;         /* the one that code is generated for */
  size_t n_loops;    /* whose steps are there */
} making;

static size_t program_of(const making *m, const node *kernel) {
  return (size_t)(uintptr_t)map_get(&m->program_of, kernel) - 1;
}

/* What passes leave, for whoever asked for it. */

static void lock_reports(const making *m) {
  if (m->request->reports) mutex_lock(m->request->reports);
}

static void unlock_reports(const making *m) {
  if (m->request->reports) mutex_unlock(m->request->reports);
}

static void dump_pass(making *m, const char *pass, const node *const roots[], size_t n) {
  dump *u = m->request->dump;
  if (!u || !dump_wants(u, pass)) return;
  lock_reports(m);
  tn_status s = dump_after(u, pass, m->request->name, roots, n, m->p->mem, m->d);
  unlock_reports(m);
  if (s != TN_OK) diag_rethrow(m->d);
}

static void after_schedule(void *user, const char *pass, const node *const roots[], size_t n) {
  making *m = user;
  if (m->request->explanation) explanation_pass(m->request->explanation, m->g, pass, SIZE_MAX);
  dump_pass(m, pass, roots, n);
}

/** The first pass of a kernel gives it as it was scheduled. */
static void after_codegen(void *user, const char *pass, const node *root) {
  making *m = user;
  explanation *x = m->request->explanation;
  bool begins = !strcmp(pass, pass_name(PASS_KERNEL));
  if (begins) m->at = program_of(m, root);
  if (x && begins) explanation_begin_kernel(x);
  if (x && !begins) explanation_pass(x, m->g, pass, m->at);
  dump_pass(m, pass, &root, 1);
}

static void decided(void *user, const schedule_decision *d) {
  explanation_decided(((making *)user)->request->explanation, d);
}

static void law_applied(void *user, const char *line) {
  explanation_law(((making *)user)->request->explanation, line);
}

static void rendered(void *user, const node *kernel, const char *source) {
  making *m = user;
  explanation_pass(m->request->explanation, m->g, "render", program_of(m, kernel));
  explanation_rendered(m->request->explanation, program_of(m, kernel), source);
}

/** Raises if the work is to end. */
static void tell(void *user, size_t done, size_t total) {
  making *m = user;
  const tn_progress *p = m->request->progress;
  if (!p || !p->step) return;
  lock_reports(m);
  bool goes_on = p->step(p->user, "kernels", done, total);
  unlock_reports(m);
  if (!goes_on) diag_raise(m->d, TN_ERR_CANCELLED, "%s was cancelled", m->request->name);
}

static void log_kernel(void *user, const char *name, size_t n, int64_t ns) {
  const executable_request *r = ((making *)user)->request;
  double ms = (double)ns * 1e-6;
  if (n > 1)
    log_line(r->logger, r->reports, TN_LOG_DEBUG, "kernel %.160s: one of %zu compiled in %.1f ms",
             name, n, ms);
  else
    log_line(r->logger, r->reports, TN_LOG_DEBUG, "kernel %.160s: compiled in %.1f ms", name, ms);
}

/* Kernels. */

static void collect(making *m) {
  arena *a = ir_arena(m->g);
  for (size_t i = 0; i < m->schedule->steps.n; i++) {
    const node *kernel = m->schedule->steps.at[i].kernel;
    if (!kernel || map_has(&m->program_of, kernel)) continue;
    vec_push(a, &m->kernels, kernel);
    map_set(a, &m->program_of, kernel, (void *)(uintptr_t)m->kernels.n);
  }
}

static void compile(making *m) {
  executable *p = m->p;
  size_t n = m->kernels.n;
  p->programs = arena_calloc(&p->arena, n, sizeof *p->programs);
  program_options o = {.target = m->request->target,
                       .math = m->request->math,
                       .tell = tell,
                       .user = m,
                       .disk = m->request->explanation ? NULL : m->request->disk};
  o.watch.user = m;
  if (m->request->logger && m->request->logger->log) o.made = log_kernel;
  const explanation *x = m->request->explanation;
  if (x || (m->request->dump && m->request->dump->pass)) o.watch.after = after_codegen;
  if (x) o.rendered = rendered;
  if (x && x->reasons) o.watch.law = law_applied;
  if (program_compile(&o, m->g, m->kernels.at, n, p->programs, m->d) != TN_OK) diag_rethrow(m->d);
  p->n_programs = n;
  if (x) explanation_pass(m->request->explanation, m->g, "compiler", SIZE_MAX);
  tell(m, n, n);
}

/* Steps. */

/** What the code says of its launch comes from the disk, it may be. */
static size_t buffer_at(const making *m, const schedule_step *step, int64_t slot) {
  if (slot >= 0 && (uint64_t)slot < step->n_buffers) return step->buffers[slot];
  diag_raise(m->d, TN_ERR_INTERNAL, "%s: a kernel has no buffer %lld", m->p->name, (long long)slot);
}

/** The variable behind a value of a program. */
static size_t var_of(const making *m, const schedule_step *step, const char *name) {
  size_t number = scalar_number(name, SCALAR_OF_KERNEL);
  size_t var;
  if (number < step->scalars.n) name = step->scalars.at[number]->text;
  if (executable_find_value(m->p, name, &var)) return var;
  diag_raise(m->d, TN_ERR_INTERNAL, "%s: a kernel has a value %s, which is no variable", m->p->name,
             var_name(name));
}

static void add_loop(making *m, executable_step *to, const schedule_step *from) {
  arena *a = &m->p->arena;
  const schedule_loop *loop = from->loop;
  to->n_buffers = from->n_buffers;
  to->buffers = arena_copy(a, from->buffers, from->n_buffers * sizeof *from->buffers);
  to->n_steps = loop->n_steps;
  to->trips = m->p->n_buffers + m->request->n_sizes + m->n_loops++;
  to->trip = executable_var(m->p, loop->trip->text);
  to->states = arena_copy(a, loop->states, loop->n_states * sizeof *loop->states);
  to->n_states = loop->n_states;
}

static void add_step(making *m, executable_step *to, const schedule_step *from) {
  arena *a = &m->p->arena;
  *to = (executable_step){.kind = from->kind};
  to->name = arena_copy(a, from->name, strlen(from->name) + 1);
  if (from->kind == STEP_CUSTOM) {
    to->uid = from->custom->ints[0];
    to->output = from->custom->ints[1];
    to->n_buffers = from->n_buffers;
    to->buffers = arena_copy(a, from->buffers, from->n_buffers * sizeof *from->buffers);
    return;
  }
  if (from->kind == STEP_LOOP) {
    add_loop(m, to, from);
    return;
  }
  to->program = program_of(m, from->kernel);
  const tn_program_facts *f = &m->p->programs[to->program]->facts;
  size_t *buffers = arena_alloc(a, (f->n_globals + 1) * sizeof *buffers);
  size_t *values = arena_alloc(a, (f->n_values + 1) * sizeof *values);
  for (size_t i = 0; i < f->n_globals; i++) buffers[i] = buffer_at(m, from, f->globals[i]);
  for (size_t i = 0; i < f->n_values; i++) values[i] = var_of(m, from, f->value_names[i]);
  to->buffers = buffers;
  to->values = values;
  to->n_buffers = f->n_globals;
  to->scratch = f->scratch;
}

void executable_find_loops(executable *p) {
  size_t open = SIZE_MAX;
  for (size_t i = 0; i < p->n_steps; i++) {
    while (open != SIZE_MAX && i > open + p->steps[open].n_steps) open = p->steps[open].around;
    p->steps[i].around = open;
    if (p->steps[i].kind == STEP_LOOP) open = i;
  }
}

static void add_steps(making *m) {
  executable *p = m->p;
  p->n_steps = m->schedule->steps.n;
  p->steps = arena_alloc(&p->arena, (p->n_steps + 1) * sizeof *p->steps);
  for (size_t i = 0; i < p->n_steps; i++) add_step(m, &p->steps[i], &m->schedule->steps.at[i]);
  executable_find_loops(p);
}

static executable_role role_of(const schedule_buffer *b) {
  if (b->is_by_turns) return ROLE_STATE;
  if (b->origin) return ROLE_INPUT;
  return b->is_output ? ROLE_OUTPUT : ROLE_SCRATCH;
}

static void add_buffers(making *m) {
  executable *p = m->p;
  const schedule *s = m->schedule;
  p->n_buffers = s->buffers.n;
  p->buffers = arena_calloc(&p->arena, p->n_buffers, sizeof *p->buffers);
  for (size_t i = 0; i < p->n_buffers; i++) {
    const schedule_buffer *b = &s->buffers.at[i];
    p->buffers[i] = (executable_buffer){.dtype = b->dtype,
                                        .role = role_of(b),
                                        .is_written = b->is_written,
                                        .uid = b->origin ? b->origin->ints[0] : 0,
                                        .version = b->origin ? b->origin->ints[1] : 0,
                                        .first = b->first,
                                        .last = b->last};
  }
  executable_list_inputs(p);
  p->outputs = arena_copy(&p->arena, s->outputs, m->request->n_roots * sizeof *p->outputs);
}

/* Variables and sizes. */

static int by_name(const void *a, const void *b) {
  return strcmp(((const tn_program_var *)a)->name, ((const tn_program_var *)b)->name);
}

static void add_vars(making *m, const node *const roots[], size_t n) {
  executable *p = m->p;
  node_list order = topo_sort(ir_arena(m->g), roots, n, NULL, NULL);
  VEC(tn_program_var) vars = {0};
  for (size_t i = 0; i < order.n; i++) {
    const node *v = order.at[i];
    if (v->op != OP_VAR || scalar_number(v->text, SCALAR_OF_KERNEL) != SIZE_MAX) continue;
    char *name = arena_copy(&p->arena, v->text, v->n_text + 1);
    vec_push(&p->arena, &vars, (tn_program_var){name, v->ints[0], v->ints[1]});
  }
  if (vars.n) qsort(vars.at, vars.n, sizeof *vars.at, by_name);
  size_t kept = 0; /* sizes asked for come from another ir: one variable may be two nodes */
  for (size_t i = 0; i < vars.n; i++) {
    tn_program_var *last = kept ? &vars.at[kept - 1] : NULL, *v = &vars.at[i];
    if (!last || strcmp(last->name, v->name)) {
      vars.at[kept++] = *v;
    } else if (last->min != v->min || last->max != v->max) {
      diag_raise(m->d, TN_ERR_ARGUMENT, "%s: variable %s has two bounds", m->request->name,
                 var_name(v->name));
    }
  }
  vars.n = kept;
  p->vars = vars.at;
  p->n_vars = vars.n;
}

static const char **var_names(const executable *p, arena *a) {
  const char **names = arena_alloc(a, (p->n_vars + 1) * sizeof *names);
  for (size_t i = 0; i < p->n_vars; i++) names[i] = p->vars[i].name;
  return names;
}

/** Everything whose value depends on variables: the kernels, and the sizes of buffers. */
static void add_sizes(making *m) {
  executable *p = m->p;
  const schedule *s = m->schedule;
  arena *a = ir_arena(m->g);
  node_list all = {0};
  for (size_t i = 0; i < s->buffers.n; i++) vec_push(a, &all, s->buffers.at[i].size);
  for (size_t i = 0; i < m->request->n_sizes; i++) vec_push(a, &all, m->request->sizes[i]);
  for (size_t i = 0; i < s->steps.n; i++)
    if (s->steps.at[i].loop) vec_push(a, &all, s->steps.at[i].loop->trips);
  size_t n = all.n;
  for (size_t i = 0; i < s->steps.n; i++) {
    const schedule_step *step = &s->steps.at[i];
    if (step->kernel) vec_push(a, &all, step->kernel);
    for (size_t k = 0; k < step->scalars.n; k++) vec_push(a, &all, step->scalars.at[k]);
  }
  add_vars(m, all.at, all.n);
  const char **names = var_names(p, a);
  p->sizes = launch_compile(&p->arena, all.at, n, names, p->n_vars);
}

/** What kernels do: their sizes are computed for who asks. */
static void add_work(making *m) {
  executable *p = m->p;
  arena *a = ir_arena(m->g);
  node_list sizes = {0};
  p->works = arena_alloc(&p->arena, (p->n_programs + 1) * sizeof *p->works);
  for (size_t i = 0; i < p->n_programs; i++) {
    work w = work_of(a, m->kernels.at[i]);
    const work_item *items = arena_copy(&p->arena, w.items.at, w.items.n * sizeof *items);
    p->works[i] = (executable_work){items, w.items.n, sizes.n};
    for (size_t k = 0; k < w.sizes.n; k++) vec_push(a, &sizes, w.sizes.at[k]);
  }
  const char **names = var_names(p, a);
  p->work_sizes = launch_compile(&p->arena, sizes.at, sizes.n, names, p->n_vars);
}

static void schedule_all(making *m) {
  const executable_request *r = m->request;
  explanation *x = r->explanation;
  if (x) explanation_begin(x, m->g);
  m->schedule = schedule_make(m->g, &(schedule_request){.roots = r->roots,
                                                        .n_roots = r->n_roots,
                                                        .may_overwrite = r->may_overwrite,
                                                        .user = r->user,
                                                        .after = after_schedule,
                                                        .decided = x && x->reasons ? decided : NULL,
                                                        .watcher = m,
                                                        .labels = r->labels,
                                                        .n_labels = r->n_labels,
                                                        .math = r->math,
                                                        .vector = r->target->target.vector_bytes,
                                                        .arguments = r->target->target.arguments,
                                                        .scratch = r->target->target.scratch,
                                                        .hardware = r->target->target.hardware});
  collect(m);
  if (x) explanation_scheduled(x, m->schedule, &m->kernels, &m->program_of);
  compile(m);
  add_buffers(m);
  add_sizes(m);
  add_work(m);
  add_steps(m);
}

/* In all. */

/** What somebody watches is done. */
static bool may_be_kept(const executable_request *r) {
  return r->disk && r->target->compiler->lasting && !r->explanation && !(r->dump && r->dump->pass);
}

static void make(void *arg) {
  making *m = arg;
  const executable_request *r = m->request;
  bool is_kept = may_be_kept(r);
  kept_graph kept;
  m->p->name = arena_copy(&m->p->arena, r->name, strlen(r->name) + 1);
  if (is_kept) kept = kept_graph_of(ir_arena(m->g), r);
  if (is_kept && kept_find(m->p, r, &kept)) {
    log_line(r->logger, r->reports, TN_LOG_DEBUG, "plan %.160s: found on disk", r->name);
    tell(m, m->p->n_programs, m->p->n_programs);
    return;
  }
  schedule_all(m);
#ifdef TENON_VERIFY
  kept_check(m->p, r, ir_arena(m->g));
#endif
  if (is_kept) kept_write(m->p, r, &kept);
}

tn_status executable_make(executable **out, const executable_request *r, const mem *m, diag *d) {
  *out = NULL;
  making k = {.request = r, .d = d};
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
  tn_status s = diag_catch(d, make, &k);
  if (r->explanation) r->explanation->arena.diag = NULL;
  ir_free(k.g);
  k.p->arena.diag = NULL;
  if (s != TN_OK)
    executable_release(k.p);
  else
    *out = k.p;
  return s;
}

executable *executable_retain(executable *p) {
  atomic_fetch_add(&p->count, 1);
  return p;
}

void executable_release(executable *p) {
  if (!p || atomic_fetch_sub(&p->count, 1) > 1) return;
  for (size_t i = 0; i < p->n_programs; i++) program_release(p->programs[i]);
  if (p->host.release) p->host.release(p->host.user);
  arena_free(&p->arena);
  mem_free(p->mem, p, sizeof *p);
}

size_t executable_buffers(const executable *p) { return p->n_buffers; }
const executable_buffer *executable_buffer_at(const executable *p, size_t i) {
  return &p->buffers[i];
}
size_t executable_output(const executable *p, size_t root) { return p->outputs[root]; }
size_t executable_steps(const executable *p) { return p->n_steps; }
size_t executable_kernels(const executable *p) { return p->n_programs; }
size_t executable_vars(const executable *p) { return p->n_vars; }
const tn_program_var *executable_var_at(const executable *p, size_t i) { return &p->vars[i]; }

size_t executable_input(const executable *p, int64_t uid, int64_t version) {
  return executable_find_place(p->inputs, p->n_inputs, uid, version);
}

size_t executable_var(const executable *p, const char *name) {
  const tn_program_var key = {.name = name};
  const tn_program_var *v =
      p->n_vars ? bsearch(&key, p->vars, p->n_vars, sizeof key, by_name) : NULL;
  return v ? (size_t)(v - p->vars) : SIZE_MAX;
}

bool executable_find_value(const executable *p, const char *name, size_t *var) {
  *var = executable_var(p, name);
  return *var != SIZE_MAX || !strcmp(name, "core_id") || !strcmp(name, "core_count");
}
