/* Checks one tensor graph differentially: schedules it, interprets each kernel after every pass of
   code generation, and compares bits with the pass before and outputs with the expected values
   (expect.h). Also applies random schedules to the kernels, and repeats the check with other fusion
   decisions. Two copies of memory go through the plan: one is written by the kernels as scheduled,
   the other by their linear programs for a real target; buffers hold garbage outside their live
   ranges. */
#include "check.h"

#include "../ir/alike.h"
#include "codegen/codegen.h"
#include "ir/core/binder.h"
#include "ir/core/var_names.h"
#include "ir/text/print.h"
#include "ir/transform/liftable_scalars.h"
#include "ir/verify/verify_graph.h"
#include "laws/laws.h"
#include "laws/team_digits.h"
#include "random.h"
#include "runtime/kernel_costs.h"
#include "schedule/schedule.h"
#include "schedules.h"
#include "support/interp_kernel.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

size_t check_laws_applied, check_team_laws_applied, check_places_by_cost, check_places_at_random;
size_t check_slots_private, check_slots_shared, check_copies_ahead;
size_t check_skipped_steps;
size_t check_rows_applied[TENSOR_ROWS];

/* Reports. */

void report_stage(report *r, const char *format, ...) {
  va_list list;
  va_start(list, format);
  vsnprintf(r->stage, sizeof r->stage, format, list);
  va_end(list);
}

void report_fail(report *r, const char *format, ...) {
  va_list list;
  if (r->failed) return;
  r->failed = true;
  va_start(list, format);
  vsnprintf(r->text, sizeof r->text, format, list);
  va_end(list);
}

static void print_number(char out[64], dtype t, uint64_t bits) {
  if (dtype_is_float(t))
    snprintf(out, 64, "%.17g (0x%llx)", scalar_to_double(t, bits), (unsigned long long)bits);
  else if (dtype_is_signed(t))
    snprintf(out, 64, "%lld", (long long)bits);
  else
    snprintf(out, 64, "%llu", (unsigned long long)bits);
}

void report_element(report *r, const char *what, size_t element, dtype t, uint64_t want,
                    uint64_t got) {
  char w[64], v[64];
  print_number(w, t, want);
  print_number(v, t, got);
  report_fail(r, "%s: element %zu of type %s is %s and should be %s", what, element, dtype_name(t),
              v, w);
}

bool check_roots(report *r, const graph *g, const expected *e, void *const data[]) {
  for (size_t i = 0; i < g->n_roots && !r->failed; i++) {
    size_t at = expect_differs(&e[i], data[i]);
    if (at == SIZE_MAX) continue;
    dtype t = e[i].value.dtype;
    char what[96];
    snprintf(what, sizeof what, "root %zu (bound %g)", i, e[i].bound ? e[i].bound[at] : 0);
    report_element(r, what, at, t,
                   scalar_load(t, (const char *)e[i].value.data + at * dtype_bytes(t)),
                   scalar_load(t, (const char *)data[i] + at * dtype_bytes(t)));
  }
  return !r->failed;
}

/* A run: two sets of memory go through the steps, one by kernels as scheduled, one by the linear
   programs of the real target. */

typedef struct world {
  char **memory; /* of each buffer of the schedule */
} world;

typedef struct capture {
  const char *pass;
  const node *root;
} capture;

typedef struct run {
  const graph *g;
  const target *lowered;
  report *r;
  ir *k; /* kernels */
  arena *a;
  diag *d;
  const expected *expected;
  schedule *s;
  size_t *bytes; /* of each buffer */
  world kernels, programs;
  VEC(capture) captures;
  str lines; /* chosen laws as text */
  rng rng;
  rng costs;             /* of kernels */
  kernel_costs *built;   /* those of an executable's build; NULL: random ones, or none */
  VEC(interp_var) trips; /* indices of the open loops */
  bool has_loops;
  void **results;  /* programs_body */
  int policy;      /* fusion policy */
  bool is_program; /* programs alone run */
  bool without;    /* no array lies inside of another */
} run;

static bool failed(const run *x) { return x->r->failed; }

static void check_status(run *x, tn_status s) {
  if (s != TN_OK) report_fail(x->r, "%s", x->d->text);
}

static void check_verified(run *x, const node *const roots[], size_t n, enum stage stage) {
  check_status(x, verify_graph(roots, n, stage, ir_mem(x->k), x->d));
}

/* Tensor graphs. */

/** The environment in which the graph's BUFFERs are PARAMs. */
static interp_env params_env(run *x) {
  interp_env e = graph_env(x->g);
  node_list order = topo_sort(x->a, x->g->roots, x->g->n_roots, NULL, NULL);
  interp_array *params = arena_calloc(x->a, order.n + 1, sizeof *params);
  for (size_t i = 0; i < order.n; i++) { /* slots are numbered in order of appearance */
    const node *n = order.at[i];
    if (n->op == OP_BUFFER) params[e.n_params++] = *e.buffer(e.user, n->ints[0], n->ints[1]);
  }
  e.params = params;
  return e;
}

static void check_tensors(run *x, const char *pass, const node *const roots[], size_t n) {
  interp_env e = params_env(x);
  report_stage(x->r, "%s", pass);
  check_verified(x, roots, n, LEVEL_TENSOR);
  interp_array *results = arena_alloc(x->a, n * sizeof *results);
  void **data = arena_alloc(x->a, n * sizeof *data);
  if (!failed(x)) check_status(x, interp_tensor(&e, roots, n, results, x->a));
  for (size_t i = 0; i < n && !failed(x); i++) data[i] = results[i].data;
  if (!failed(x)) check_roots(x->r, x->g, x->expected, data);
}

typedef struct tensor_pass {
  const char *pass;
  const node *const *roots;
  size_t n;
} tensor_pass;

typedef struct tensor_passes {
  arena *a;
  VEC(tensor_pass) all;
} tensor_passes;

static void after_schedule(void *user, const char *pass, const node *const roots[], size_t n) {
  tensor_passes *p = user;
  const node **copy = arena_copy(p->a, roots, n * sizeof *copy);
  vec_push(p->a, &p->all, (tensor_pass){pass, copy, n});
}

/** Returns the bytes of a kernel's own arrays; those of FOLDs that lie in outputs are none. */
static double scratch_of(run *x, const node *kernel) {
  double all = 0;
  const node *lowered = codegen_lower(x->k, kernel);
  node_list order = topo_sort(x->a, &lowered, 1, NULL, NULL);
  for (size_t i = 0; i < order.n; i++) {
    const node *n = order.at[i];
    if (n->op == OP_ALLOC) all += (double)n->src[0]->hi * (double)dtype_bytes((dtype)n->dtype);
  }
  return all;
}

static void check_limits(run *x) {
  for (size_t i = 0; i < x->s->steps.n; i++) {
    const schedule_step *step = &x->s->steps.at[i];
    double scratch = step->kernel ? scratch_of(x, step->kernel) : 0;
    if (x->lowered->scratch && scratch > (double)x->lowered->scratch)
      report_fail(x->r, "step %zu has %.0f bytes of its own", i, scratch);
  }
}

/** Any cost: groupings are legal whatever kernels cost. */
static double random_cost(void *user, size_t device, const node *kernel, bool is_searched) {
  (void)device;
  run *x = user;
  (void)kernel, (void)is_searched;
  return (double)rng_below(&x->costs, 1000000);
}

/** Executables group by the costs of their kernels. */
static kernel_estimates pricing_of(run *x) {
  if (x->built) return (kernel_estimates){kernel_costs_estimate, x->built};
  return (kernel_estimates){x->g->seed % 2 ? random_cost : NULL, x};
}

/** Sets the variables of the schedule's ITEMs, which only the kernels' own reads decide in a plan:
    to what the interpreter computes, in order. */
static void find_items(run *x) {
  graph *g = (graph *)x->g;
  size_t n = 0;
  while (n < g->vars.n && !var_is_late(g->vars.at[n].name)) n++;
  g->vars.n = n;
  for (size_t i = 0; x->s->items && i < x->s->items->at.n && !failed(x); i++) {
    const schedule_item *item = &x->s->items->at.at[i];
    interp_array result = {0};
    interp_env e = params_env(x);
    check_status(x, interp_tensor(&e, &item->value, 1, &result, x->a));
    int64_t value = failed(x) ? 0 : (int64_t)scalar_load(DT_I64, result.data);
    vec_push(g->a, &g->vars, (interp_var){arena_printf(g->a, "%s", item->var->text), value});
    if (!failed(x) && (value < item->min || value > graph_size(g, item->most)))
      report_fail(x->r, "item %zu is %lld", i, (long long)value);
  }
}

static void make_schedule(run *x) {
  tensor_passes passes = {.a = x->a};
  node_list order = topo_sort(x->a, x->g->roots, x->g->n_roots, NULL, NULL);
  for (size_t i = 0; i < order.n; i++) x->has_loops |= order.at[i]->op == OP_LOOP;
  report_stage(x->r, "schedule");
  x->s = schedule_make(x->k, &(schedule_request){.roots = x->g->roots,
                                                 .n_roots = x->g->n_roots,
                                                 .may_overwrite = graph_may_overwrite,
                                                 .observer.after = after_schedule,
                                                 .observer.user = &passes,
                                                 .math = x->g->math,
                                                 .estimates = pricing_of(x),
                                                 .target.vector = x->lowered->vector_bytes,
                                                 .target.arguments = x->lowered->arguments,
                                                 .target.scratch = x->lowered->scratch,
                                                 .target.rows = target_rows(x->lowered),
                                                 .target.hardware = x->lowered->hardware,
                                                 .search.policy = x->policy,
                                                 .search.seed = x->g->seed,
                                                 .search.is_without_places = x->without});
  find_items(x);
  for (size_t i = 0; i < x->s->buffers.n; i++)
    *(x->policy == FUSION_RANDOM ? &check_places_at_random : &check_places_by_cost) +=
        x->s->buffers.at[i].n_places;
  check_limits(x);
  for (size_t i = 0; i < passes.all.n && !failed(x); i++) {
    const tensor_pass *p = &passes.all.at[i];
    bool is_whole = !strcmp(p->pass, "normalise") || !strcmp(p->pass, "items") ||
                    !strcmp(p->pass, "devices") || (!strcmp(p->pass, "versions") && !x->has_loops);
    if (is_whole && x->expected) check_tensors(x, p->pass, p->roots, p->n);
  }
}

/* Memory. */

static const interp_array *input_of(const run *x, size_t i) {
  const node *origin = x->s->buffers.at[i].origin;
  interp_env e = graph_env(x->g);
  return origin ? e.buffer(e.user, origin->ints[0], origin->ints[1]) : NULL;
}

static char *fresh(run *x, size_t i) {
  char *m = arena_alloc(x->a, x->bytes[i] + 64);
  memset(m, 0xa5, x->bytes[i] + 64);
  if (input_of(x, i)) memcpy(m, input_of(x, i)->data, x->bytes[i]);
  return m;
}

/** The memory of a buffer in a table by number: of a view, a part of another one's. */
static char *memory_of(const run *x, size_t i, char *const memory[]) {
  const schedule_buffer *b = &x->s->buffers.at[i];
  return b->within ? memory[b->within - 1] + (size_t)b->start * dtype_bytes(b->dtype) : memory[i];
}

static void make_memory(run *x) {
  size_t n = x->s->buffers.n;
  x->bytes = arena_alloc(x->a, (n + 1) * sizeof *x->bytes);
  x->kernels.memory = arena_calloc(x->a, n + 1, sizeof(char *));
  x->programs.memory = arena_calloc(x->a, n + 1, sizeof(char *));
  for (size_t i = 0; i < n; i++) {
    const schedule_buffer *b = &x->s->buffers.at[i];
    if (!b->size) continue;
    x->bytes[i] = (size_t)graph_size(x->g, b->size) * dtype_bytes(b->dtype);
    x->kernels.memory[i] = b->within ? memory_of(x, i, x->kernels.memory) : fresh(x, i);
    x->programs.memory[i] = b->within ? memory_of(x, i, x->programs.memory) : fresh(x, i);
    size_t of = schedule_storage(x->s, i);
    if (x->kernels.memory[i] + x->bytes[i] > x->kernels.memory[of] + x->bytes[of])
      report_fail(x->r, "buffer %zu is not within its storage", i);
  }
}

/** Fills memory that is not in use between two steps with garbage. */
static void poison(run *x, size_t step) {
  for (size_t i = 0; i < x->s->buffers.n; i++) {
    const schedule_buffer *b = &x->s->buffers.at[i];
    if (!b->size || b->origin || b->is_output || b->is_double_buffered || b->within ||
        (step >= b->first && step <= b->last))
      continue;
    memset(x->kernels.memory[i], 0x5a, x->bytes[i]);
    memset(x->programs.memory[i], 0x5a, x->bytes[i]);
  }
}

/* Kernels. */

/** Adds the graph's variables and the loop indices that a step's kernel uses. */
static void add_scalars(run *x, const schedule_step *step, interp_env *e) {
  interp_var *vars = arena_alloc(x->a, (e->n_vars + step->scalars.n + 1) * sizeof *vars);
  memcpy(vars, e->vars, e->n_vars * sizeof *vars);
  for (size_t i = 0; i < step->scalars.n; i++) {
    char name[LIFTED_VAR_NAME_BYTES];
    lifted_var_name(name, LIFTED_VAR_OF_KERNEL, i);
    interp_var *v = &vars[e->n_vars + i];
    *v = (interp_var){arena_copy(x->a, name, sizeof name), 0};
    for (size_t k = 0; k < e->n_vars; k++)
      if (!strcmp(e->vars[k].name, step->scalars.at[i]->text)) v->value = e->vars[k].value;
  }
  e->vars = vars;
  e->n_vars += step->scalars.n;
}

static interp_env env_of(run *x, const schedule_step *step, char *const memory[]) {
  interp_env e = graph_env(x->g);
  interp_array *params = arena_calloc(x->a, step->n_buffers + 1, sizeof *params);
  node_list order = topo_sort(x->a, &step->kernel, 1, NULL, NULL);
  for (size_t i = 0; i < order.n; i++) {
    const node *p = order.at[i];
    if (p->op != OP_PARAM) continue;
    size_t b = step->buffers[p->ints[0]];
    interp_array *to = &params[p->ints[0]];
    *to = (interp_array){(dtype)p->dtype, .rank = p->rank, .data = memory[b], .bytes = x->bytes[b]};
    for (size_t k = 0; k < p->rank; k++) to->dims[k] = graph_size(x->g, p->dims[k]);
  }
  e.params = params;
  e.n_params = step->n_buffers;
  interp_var *vars = arena_alloc(x->a, (e.n_vars + x->trips.n + 1) * sizeof *vars);
  for (size_t i = 0; i < e.n_vars; i++) vars[i] = e.vars[i];
  for (size_t i = 0; i < x->trips.n; i++) vars[e.n_vars++] = x->trips.at[i];
  e.vars = vars;
  if (step->scalars.n) add_scalars(x, step, &e);
  return e;
}

/** Copies a step's buffers into a table by number. */
static char **copies(run *x, const schedule_step *step, char *const memory[]) {
  char **to = arena_calloc(x->a, x->s->buffers.n, sizeof *to);
  for (size_t i = 0; i < step->n_buffers; i++) {
    size_t b = step->buffers[i], of = schedule_storage(x->s, b);
    if (!to[of]) to[of] = arena_copy(x->a, memory[of], x->bytes[of] + 1);
    to[b] = memory_of(x, b, to);
  }
  return to;
}

/** Compares the buffers of a step by bits (NaN for NaN). */
static void check_same(run *x, const schedule_step *step, char *const want[], char *const got[],
                       const char *what) {
  for (size_t i = 0; i < step->n_buffers && !failed(x); i++) {
    size_t b = step->buffers[i];
    dtype t = x->s->buffers.at[b].dtype;
    if (!memcmp(want[b], got[b], x->bytes[b])) continue;
    for (size_t k = 0; k < x->bytes[b] / dtype_bytes(t); k++) {
      uint64_t w = scalar_load(t, want[b] + k * dtype_bytes(t));
      uint64_t v = scalar_load(t, got[b] + k * dtype_bytes(t));
      char where[96];
      snprintf(where, sizeof where, "%s, buffer %zu", what, b);
      if (!same_scalar(t, w, v)) report_element(x->r, where, k, t, w, v);
    }
  }
}

static void run_kernel(run *x, const schedule_step *step, const node *sink, char *const memory[]) {
  interp_env e = env_of(x, step, memory);
  check_status(x, interp_kernel(&e, sink, ir_mem(x->k), x->d));
}

/** Runs all workers, the last one first. */
static void run_linear(run *x, const schedule_step *step, const node *linear, char *const memory[],
                       int64_t workers) {
  interp_env e = env_of(x, step, memory);
  for (int64_t w = workers; w-- > 0 && !failed(x);)
    check_status(x, interp_linear(&e, linear, w, workers, ir_mem(x->k), x->d));
}

/* Stages of a kernel. */

/** Keeps the result of a pass. All passes run again where scratch memory did not suffice; the first
    results are forgotten then. */
static void after_codegen(void *user, const char *pass, const node *root) {
  run *x = user;
  if (!strcmp(pass, "kernel")) {
    x->captures.n = 0;
    x->lines = str_new(x->a);
  }
  vec_push(x->a, &x->captures, (capture){pass, root});
}

static void note_law(void *user, const char *line) { alike_note(&((run *)user)->lines, line); }

static enum stage stage_of(const node *root) {
  if (root->op == OP_LINEAR) return LEVEL_LINEAR;
  return root->n_src && root->src[0]->op == OP_OUT ? LEVEL_KERNEL : LEVEL_LOWERED;
}

/** With TENON_PASSES set, shows all stages. */
static void print_stage(run *x, const node *root) {
  if (!getenv("TENON_PASSES")) return;
  str s = str_new(x->a);
  print_graph(&s, &root, 1);
  printf("; %s\n%s\n", x->r->stage, str_text(&s));
}

static void run_stage(run *x, const schedule_step *step, const node *root, char *const memory[],
                      int64_t workers) {
  enum stage stage = stage_of(root);
  check_verified(x, &root, 1, stage);
  if (failed(x)) return;
  if (stage == LEVEL_KERNEL) {
    run_kernel(x, step, root, memory);
    return;
  }
  const node *linear = stage == LEVEL_LINEAR ? root : codegen_linearise(x->k, root);
  if (linear != root) print_stage(x, linear);
  run_linear(x, step, linear, memory, workers);
}

static bool has_op(run *x, const node *root, op o) {
  node_list order = topo_sort(x->a, &root, 1, NULL, NULL);
  for (size_t i = 0; i < order.n; i++)
    if (order.at[i]->op == o) return true;
  return false;
}

static const node *captured(const run *x, const char *pass) {
  size_t i = 0;
  while (strcmp(x->captures.at[i].pass, pass) != 0) i++;
  return x->captures.at[i].root;
}

/** True if a scan is computed in vectors, whose lanes the pass "expand" adds in another order. */
static bool has_vector_scans(const run *x) { return captured(x, "scans") != captured(x, "lower"); }

/** True if a pass may change bits: later stages are then compared with its result. */
static bool has_licence(run *x, const schedule_step *step, const char *pass, bool decomposes) {
  bool simplifies = !strcmp(pass, "simplify");
  if (!strcmp(pass, "decompose")) return decomposes || (x->g->math & MATH_CONTRACT);
  if (simplifies && has_op(x, step->kernel, OP_POW)) return true;
  bool reorders = !strcmp(pass, "choose") || (!strcmp(pass, "expand") && has_vector_scans(x));
  return (simplifies && (x->g->math & MATH_CONTRACT)) || (reorders && (x->g->math & MATH_REORDER));
}

/** Runs a step's stages from `first` on, each on fresh copies, the last one in `memory`. */
static void run_stages(run *x, size_t number, const target *t, char *memory[], const char *first,
                       bool decomposes) {
  const schedule_step *step = &x->s->steps.at[number];
  codegen_options o = {.target = *t,
                       .math = x->g->math,
                       .observer = {.after = after_codegen, .law = note_law, .user = x}};
  char **baseline = NULL, **now = NULL;
  const node *last = NULL;
  report_stage(x->r, "code generation, step %zu%s", number, decomposes ? ", decomposing" : "");
  codegen_run(x->k, step->kernel, "CPU", &o);
  alike_replay(x->k, captured(x, "simplify"), &x->lines, captured(x, "choose"));
  bool reached = false;
  for (size_t i = 0; i < x->captures.n && !failed(x); i++) {
    const capture *c = &x->captures.at[i];
    reached |= !strcmp(c->pass, first);
    if (!reached || (c->root == last && i + 1 < x->captures.n)) continue;
    last = c->root;
    report_stage(x->r, "%s, step %zu%s", c->pass, number, decomposes ? ", decomposed" : "");
    now = copies(x, step, memory);
    print_stage(x, c->root);
    run_stage(x, step, c->root, now, 1);
    if (!baseline || has_licence(x, step, c->pass, decomposes)) baseline = now;
    if (!failed(x)) check_same(x, step, baseline, now, c->pass);
  }
  bool shares = !failed(x) && has_op(x, last, OP_SPECIAL); /* otherwise one worker */
  for (int64_t workers = 2; workers <= 3 && shares && !failed(x); workers++) {
    char **shared = copies(x, step, memory);
    report_stage(x->r, "%lld workers, step %zu", (long long)workers, number);
    run_stage(x, step, last, shared, workers);
    if (!failed(x)) check_same(x, step, baseline, shared, "workers");
  }
  for (size_t i = 0; i < step->n_buffers && !failed(x); i++) {
    size_t b = schedule_storage(x->s, step->buffers[i]);
    memcpy(memory[b], now[b], x->bytes[b]);
  }
}

/** True if all values are small: random groupings and schedules recompute values inside others'
    loops, which the interpreter would take minutes for otherwise. */
static bool is_small(const graph *g) {
  enum { MOST_ELEMENTS = 50000 };
  node_list order = topo_sort(g->a, g->roots, g->n_roots, NULL, NULL);
  for (size_t i = 0; i < order.n; i++) {
    double elements = 1;
    for (size_t k = 0; k < order.at[i]->rank; k++) elements *= (double)order.at[i]->dims[k]->hi;
    if (elements > MOST_ELEMENTS) return false;
  }
  return true;
}

static uint16_t random_registers(run *x) {
  static const uint16_t registers[] = {0, 4, 16, 32};
  return registers[rng_below(&x->rng, 4)];
}

enum { MOST_COMPUTED = 1 << 27 };

/** Applies random laws to a step's kernel; each stage must give the kernel's bits, or with
    reordered sums those of the scheduled kernel. Kernels that recompute arrays in all loops of
    others are skipped, as interpreting them may take hours. */
static void run_schedule(run *x, size_t number, char *const memory[]) {
  const schedule_step *step = &x->s->steps.at[number];
  char **want = copies(x, step, memory);
  report_stage(x->r, "scheduling, step %zu", number);
  print_stage(x, step->kernel);
  run_kernel(x, step, step->kernel, want);
  bool reorders = x->g->math & MATH_REORDER;
  const node *sink = random_schedule(x->k, &x->rng, step->kernel, reorders, &check_laws_applied);
  target plain = {.index32 = rng_chance(&x->rng, 50),
                  .registers = random_registers(x),
                  .hardware = x->lowered->hardware};
  codegen_options lanes = {.target = {.vector_bytes = number % 2 ? 8 : 16}}; /* exact: integers */
  const node *last = NULL;
  if (law_expanded_nodes(x->a, sink, true) > MOST_COMPUTED) return;
  if (reorders) run_kernel(x, step, last = sink, want = copies(x, step, memory));
  for (int stage = 0; stage < 10 && !failed(x); stage++) {
    static const char *const names[] = {"schedule",    "lower",      "scans",    "expand",
                                        "registers",   "streams",    "prefetch", "threads",
                                        "short_loops", "index_width"};
    report_stage(x->r, "random schedule: %s, step %zu", names[stage], number);
    sink = stage == 0   ? sink
           : stage == 1 ? codegen_lower(x->k, sink)
           : stage == 2 ? codegen_vector_scans(x->k, sink, &lanes)
           : stage == 3 ? codegen_expand(x->k, sink)
           : stage == 4 ? codegen_promote_registers(x->k, sink, &plain)
           : stage == 5 ? codegen_nontemporal_stores(x->k, sink, &plain)
           : stage == 6 ? codegen_prefetch(x->k, sink, &plain)
           : stage == 7 ? codegen_parallel_loops(x->k, sink, &plain)
           : stage == 8 ? codegen_short_loops(x->k, sink)
                        : codegen_index_width(x->k, sink, &plain);
    if (sink == last) continue;
    last = sink;
    print_stage(x, sink);
    int64_t workers = stage > 6 && has_op(x, sink, OP_SPECIAL) ? 3 : 1;
    char **now = copies(x, step, memory);
    run_stage(x, step, sink, now, workers);
    if (!failed(x)) check_same(x, step, want, now, names[stage]);
  }
}

/** Counts the arrays in slots of a lowered kernel, or its stores that copy ahead. */
static void count_slots(run *x, const node *sink, bool copies) {
  node_list order = topo_sort(x->a, &sink, 1, NULL, NULL);
  for (size_t i = 0; i < order.n; i++) {
    const node *n = order.at[i];
    bool is_ahead = n->op == OP_STORE && n->n_int && n->ints[0] == STORE_AHEAD;
    bool has_slots = n->op == OP_ALLOC && n->n_int > 2;
    if (copies) check_copies_ahead += is_ahead;
    if (!copies && has_slots)
      *(space_is_shared(n->ints[1]) ? &check_slots_shared : &check_slots_private) += 1;
  }
}

/** The same for teams of workers, whose programs must not race either. */
static void run_team_schedule(run *x, size_t number, char *const memory[]) {
  const schedule_step *step = &x->s->steps.at[number];
  rng own = x->rng;
  char **want = copies(x, step, memory);
  report_stage(x->r, "scheduling for teams, step %zu", number);
  bool reorders = x->g->math & MATH_REORDER;
  const node *sink =
      random_team_schedule(x->k, &own, step->kernel, reorders, &check_team_laws_applied);
  if (!sink) return;
  node_list nodes = topo_sort(x->a, &sink, 1, NULL, NULL);
  team_digits digits = team_digits_of(x->k, &nodes);
  if (!node_is_const(digits.groups)) return;
  /* Every worker runs the loops that no digit divides. */
  double workers = (double)node_int(digits.groups) * (double)digits.workers;
  if (law_expanded_nodes(x->a, sink, true) * workers > MOST_COMPUTED) return;
  run_kernel(x, step, reorders ? sink : step->kernel, want);
  target plain = {.index32 = rng_chance(&own, 50),
                  .registers = rng_chance(&own, 50) ? 16 : 4,
                  .copy_bytes = rng_chance(&own, 70) ? 4 | 8 | 16 : 0};
  interp_teams teams = {.groups = node_int(digits.groups),
                        .workers = digits.workers,
                        .warp = digits.warp,
                        .seed = rng_next(&own)};
  print_stage(x, sink);
  check_verified(x, &sink, 1, LEVEL_KERNEL);
  for (int stage = 0; stage < 6 && !failed(x); stage++) {
    static const char *const names[] = {"lower",       "expand",      "registers",
                                        "short_loops", "index_width", "copies"};
    report_stage(x->r, "random schedule for teams: %s, step %zu", names[stage], number);
    sink = stage == 0   ? codegen_lower(x->k, sink)
           : stage == 1 ? codegen_expand(x->k, sink)
           : stage == 2 ? codegen_promote_registers(x->k, sink, &plain)
           : stage == 3 ? codegen_short_loops(x->k, sink)
           : stage == 4 ? codegen_index_width(x->k, sink, &plain)
                        : codegen_copies_ahead(x->k, sink, &plain);
    if (!stage || stage == 5) count_slots(x, sink, stage);
    print_stage(x, sink);
    check_verified(x, &sink, 1, LEVEL_LOWERED);
    if (failed(x)) return;
    const node *linear = codegen_barriers(x->k, codegen_linearise(x->k, sink));
    print_stage(x, linear);
    if (stage >= 4) check_verified(x, &linear, 1, LEVEL_LINEAR);
    char **now = copies(x, step, memory);
    interp_env e = env_of(x, step, now);
    check_status(x, interp_linear_in_teams(&e, linear, &teams, ir_mem(x->k), x->d));
    if (!failed(x)) check_same(x, step, want, now, names[stage]);
  }
}

/* Steps. */

static void run_custom_in(run *x, const schedule_step *step, char *const memory[]) {
  const void *data[16];
  size_t counts[16], n = step->n_buffers - 1, into = step->buffers[n];
  for (size_t i = 0; i < n && i < 16; i++) {
    size_t b = step->buffers[i];
    data[i] = memory[b];
    counts[i] = x->bytes[b] / dtype_bytes(x->s->buffers.at[b].dtype);
  }
  dtype t = x->s->buffers.at[into].dtype;
  graph_custom(step->custom->ints[0], step->custom->ints[1], n, data, counts, t, memory[into],
               x->bytes[into] / dtype_bytes(t));
}

/* Loops: the step function is called once per trip. */

typedef void (*step_fn)(run *x, size_t i);

/** True if the guard of a step does not hold. */
static bool is_skipped(const run *x, const schedule_step *step) {
  return step->guard && !graph_size(x->g, step->guard);
}

/** True if a guard keeps a run from computing an element. */
static bool is_never_written(const run *x, size_t buffer) {
  for (size_t i = 0; i < x->s->steps.n; i++) {
    const schedule_step *step = &x->s->steps.at[i];
    for (size_t k = 0; k < step->n_outputs; k++)
      if (step->buffers[k] == buffer) return is_skipped(x, step);
  }
  return false;
}

/** Checks that the elements of the ITEMs that a step mentions were computed before. */
static void check_items(run *x, const schedule_step *step) {
  for (size_t k = 0; k < step->n_items && !failed(x); k++) {
    const schedule_items *items = x->s->items;
    size_t i = 0;
    if (is_never_written(x, step->items[k])) continue;
    while (x->s->outputs[items->first + i] != step->items[k]) i++;
    const world *w = x->is_program ? &x->programs : &x->kernels;
    int64_t found = (int64_t)scalar_load(DT_I64, w->memory[step->items[k]]);
    int64_t want = graph_size(x->g, items->at.at[i].var);
    if (found != want) report_fail(x->r, "a step comes before item %zu is known", i);
  }
}

static void begin_trip(run *x, const schedule_loop *loop, int64_t trip, int64_t trips, world *w) {
  for (size_t i = 0; i < loop->n_states; i++) {
    const schedule_state *s = &loop->states[i];
    if (s->now == s->next) {
      if (!trip) memcpy(w->memory[s->result], w->memory[s->init], x->bytes[s->result]);
      continue;
    }
    size_t into = (trips - 1 - trip) % 2 ? s->spare : s->result;
    w->memory[s->now] = w->memory[!trip ? s->init : into == s->spare ? s->result : s->spare];
    w->memory[s->next] = w->memory[into];
  }
}

static void run_steps(run *x, size_t first, size_t n, step_fn run_one);

static void run_loop(run *x, size_t at, step_fn run_one) {
  const schedule_loop *loop = x->s->steps.at[at].loop;
  int64_t trips = graph_size(x->g, loop->trips);
  world *all[] = {&x->kernels, &x->programs};
  poison(x, at);
  int64_t t = 0;
  bool ends =
      loop->until != SIZE_MAX && *all[x->is_program]->memory[loop->states[loop->until].init];
  for (; t < trips && !ends && !failed(x); t++) {
    for (int w = 0; w < 2; w++) begin_trip(x, loop, t, trips, all[w]);
    vec_push(x->a, &x->trips, (interp_var){loop->trip->text, t});
    run_steps(x, at + 1, loop->n_steps, run_one);
    x->trips.n--;
    ends = loop->until != SIZE_MAX && *all[x->is_program]->memory[loop->states[loop->until].next];
  }
  for (size_t i = 0; i < loop->n_states && !failed(x); i++) {
    const schedule_state *s = &loop->states[i];
    size_t last = !t ? s->init : s->now == s->next ? s->result : s->next;
    for (int w = 0; w < 2; w++)
      if (all[w]->memory[s->result] != all[w]->memory[last])
        memcpy(all[w]->memory[s->result], all[w]->memory[last], x->bytes[s->result]);
  }
}

static void run_steps(run *x, size_t first, size_t n, step_fn run_one) {
  for (size_t i = first; i < first + n && !failed(x); i++) {
    const schedule_loop *loop = x->s->steps.at[i].loop;
    if (is_skipped(x, &x->s->steps.at[i])) {
      if (loop) i += loop->n_steps;
      check_skipped_steps++;
      continue;
    }
    check_items(x, &x->s->steps.at[i]);
    if (!loop && !failed(x)) run_one(x, i);
    if (!loop) continue;
    run_loop(x, i, run_one);
    i += loop->n_steps;
  }
}

static void run_copy(run *x, const schedule_step *step, char *const memory[]) {
  size_t to = step->buffers[0], from = step->buffers[1];
  memcpy(memory[to], memory[from], x->bytes[to]);
}

static void run_step(run *x, size_t i) {
  const schedule_step *step = &x->s->steps.at[i];
  poison(x, i);
  if (step->kind == STEP_COPY) {
    run_copy(x, step, x->kernels.memory);
    run_copy(x, step, x->programs.memory);
    return;
  }
  if (step->kind == STEP_CUSTOM) {
    run_custom_in(x, step, x->kernels.memory);
    run_custom_in(x, step, x->programs.memory);
    return;
  }
  static const uint16_t vectors[] = {0, 16, 32, 64};
  target plain = {.vector_bytes = vectors[rng_below(&x->rng, 4)],
                  .registers = random_registers(x),
                  .threads = rng_chance(&x->rng, 80),
                  .index32 = rng_chance(&x->rng, 50),
                  .hardware = x->lowered->hardware,
                  .rules = {.f16 = true, .bf16 = true}};
  if (is_small(x->g)) run_team_schedule(x, i, x->kernels.memory);
  if (is_small(x->g) && !failed(x)) run_schedule(x, i, x->kernels.memory);
  if (failed(x)) return;
  run_stages(x, i, &plain, x->kernels.memory, "kernel", false);
  if (!failed(x)) run_stages(x, i, x->lowered, x->programs.memory, "decompose", true);
}

static void check_outputs(run *x, const world *w, const char *what) {
  void **data = arena_alloc(x->a, (x->g->n_roots + 1) * sizeof *data);
  report_stage(x->r, "%s", what);
  for (size_t i = 0; i < x->g->n_roots; i++) data[i] = w->memory[x->s->outputs[i]];
  check_roots(x->r, x->g, x->expected, data);
}

static void check_inputs(run *x, const world *w) {
  for (size_t i = 0; i < x->s->buffers.n; i++) {
    const schedule_buffer *b = &x->s->buffers.at[i];
    const interp_array *input = input_of(x, i);
    if (!input) continue;
    if (b->is_written && !graph_may_overwrite(NULL, b->origin))
      report_fail(x->r, "buffer %zu is written and may not be", i);
    if (!b->is_written && memcmp(input->data, w->memory[i], x->bytes[i]))
      report_fail(x->r, "buffer %zu has changed", i);
  }
}

static void count_rows(run *x) {
  for (size_t i = 0; i < x->s->steps.n; i++) {
    const node *kernel = x->s->steps.at[i].kernel;
    for (size_t k = 0; kernel && k < TENSOR_ROWS; k++)
      check_rows_applied[k] += has_op(x, kernel, tensor_rows[k].op);
  }
}

static void check_body(void *arg) {
  run *x = arg;
  report_stage(x->r, "the graph as it is");
  check_verified(x, x->g->roots, x->g->n_roots, LEVEL_TENSOR);
  if (failed(x)) return;
  x->expected = expect(x->g);
  make_schedule(x);
  if (failed(x)) return;
  count_rows(x);
  make_memory(x);
  run_steps(x, 0, x->s->steps.n, run_step);
  if (!failed(x)) check_outputs(x, &x->kernels, "kernels");
  if (!failed(x)) check_outputs(x, &x->programs, "programs");
  if (!failed(x)) check_inputs(x, &x->kernels);
  if (!failed(x)) check_inputs(x, &x->programs);
}

static void run_all(run *x, void (*body)(void *arg)) {
  arena work;
  arena_init(&work, x->g->a->mem, x->d);
  x->a = &work;
  x->k = ir_new(x->g->a->mem, x->d, false);
  if (!x->k) report_fail(x->r, "out of memory");
  if (x->k && diag_catch(x->d, body, x) != TN_OK) report_fail(x->r, "%s", x->d->text);
  ir_free(x->k);
  arena_free(&work);
}

/* Other groupings. */

static void run_grouped(run *x, size_t i) {
  const schedule_step *step = &x->s->steps.at[i];
  poison(x, i);
  report_stage(x->r, "grouping %d, step %zu", x->policy, i);
  if (step->kind == STEP_CUSTOM)
    run_custom_in(x, step, x->kernels.memory);
  else if (step->kind == STEP_COPY)
    run_copy(x, step, x->kernels.memory);
  else
    check_verified(x, &step->kernel, 1, LEVEL_KERNEL);
  if (step->kind == STEP_KERNEL && !failed(x)) run_kernel(x, step, step->kernel, x->kernels.memory);
}

static void grouping_body(void *arg) {
  run *x = arg;
  make_schedule(x);
  if (failed(x)) return;
  make_memory(x);
  run_steps(x, 0, x->s->steps.n, run_grouped);
  if (!failed(x)) check_outputs(x, &x->kernels, "kernels");
  if (!failed(x)) check_inputs(x, &x->kernels);
}

static void check_grouping(const graph *g, const target *lowered, const expected *e, int policy,
                           bool without, report *r) {
  run x = {.g = g,
           .lowered = lowered,
           .r = r,
           .d = g->a->diag,
           .expected = e,
           .policy = policy,
           .without = without};
  if (!r->failed && e) run_all(&x, grouping_body);
}

const expected *check_graph(const graph *g, const target *lowered, report *r) {
  run x = {
      .g = g, .lowered = lowered, .r = r, .d = g->a->diag, .rng = {g->seed}, .costs = {g->seed}};
  size_t places = check_places_by_cost;
  *r = (report){0};
  run_all(&x, check_body);
  check_grouping(g, lowered, x.expected, FUSION_NONE, false, r);
  if (check_places_by_cost > places)
    check_grouping(g, lowered, x.expected, FUSION_BY_COST, true, r);
  if (is_small(g)) check_grouping(g, lowered, x.expected, FUSION_RANDOM, false, r);
  return x.expected;
}

/* Programs alone. */

static void run_program(run *x, size_t i) {
  const schedule_step *step = &x->s->steps.at[i];
  poison(x, i);
  report_stage(x->r, "linear program, step %zu", i);
  if (step->kind == STEP_CUSTOM) {
    run_custom_in(x, step, x->programs.memory);
    return;
  }
  if (step->kind == STEP_COPY) {
    run_copy(x, step, x->programs.memory);
    return;
  }
  codegen_options o = {.target = *x->lowered, .math = x->g->math};
  run_linear(x, step, codegen_run(x->k, step->kernel, "CPU", &o), x->programs.memory, 1);
}

static void programs_body(void *arg) {
  run *x = arg;
  kernel_costs costs;
  kernel_costs_init(&costs, x->k, x->lowered, x->g->math);
  x->built = &costs;
  make_schedule(x);
  kernel_costs_free(&costs);
  if (failed(x)) return;
  make_memory(x);
  run_steps(x, 0, x->s->steps.n, run_program);
  for (size_t i = 0; i < x->g->n_roots && !failed(x); i++) {
    size_t b = x->s->outputs[i];
    x->results[i] = arena_copy(x->g->a, x->programs.memory[b], x->bytes[b] + 1);
  }
  if (!failed(x)) check_inputs(x, &x->programs);
  report_stage(x->r, "programs");
  if (!failed(x) && x->expected) check_roots(x->r, x->g, x->expected, x->results);
}

void check_programs(const graph *g, const target *lowered, const expected *e, void *results[],
                    report *r) {
  run x = {.g = g, .lowered = lowered, .r = r, .d = g->a->diag, .expected = e, .results = results};
  x.is_program = true;
  *r = (report){0};
  run_all(&x, programs_body);
}
