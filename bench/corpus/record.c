/* Records times of kernels for the test of the cost model (corpus.h): of each kernel of networks
   that takes over 20 µs, the schedule that the search finds, eight that differ from it in one
   decision, and sixteen that differ in two. They run on the operands of the tuner's trials, in
   rounds, of which the shortest counts. Code is kept in the disk cache: recording again, on a quiet
   machine, compiles nothing.

     corpus_record MOST NAME MODEL [NAME MODEL …] > FILE     MOST kernels of each network at most
     corpus_record --terms FILE                              what fit.py reads */
#include "bench/corpus/corpus.h"

#include "compile/compile_kernels.h"
#include "ir/text/parse.h"
#include "ir/text/print.h"
#include "ir/text/sink_text.h"
#include "target/hardware.h"
#include "tune/kernel_candidates.h"
#include "tune/kernel_trial.h"
#include "tune/network_runs.h"

#include <tenon/model.h>

#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { NEIGHBOURS = 8, OTHERS = 16, MOST = 1 + NEIGHBOURS + OTHERS, ROUNDS = 6, PROFILE_RUNS = 5 };

static const double least_kernel_ns = 20e3, least_ns = 1.5e6;

/** A network that is being recorded. */
typedef struct recording {
  const char *name;
  size_t most;
  tn_context *context;
  tn_binding *binding;
  diag *diag;
  arena *arena, *all; /* of this network, and of all */
  string_map *seen;   /* texts of kernels, of all networks */
  kernel_copies copies;
  network network;
  kernel_share *shares;
} recording;

/** A kernel that is being recorded, with its schedules. */
typedef struct kernel_recording {
  recording *r;
  size_t number;
  recorded_kernel kernel; /* without schedules */
  ir *ir;                 /* of the parsed kernel and the code */
  const node *sink;
  size_t n;
  recorded_schedule at[MOST];
  trial_program programs[MOST];
  bool agrees[MOST];
  kernel_trial *trial;
} kernel_recording;

static const char *plain_text(recording *r, const node *sink) {
  str s = str_new(r->all);
  print_graph(&s, &sink, 1);
  return str_text(&s);
}

static codegen_options options_of(const recording *r) {
  return (codegen_options){.target = r->context->target->target, .math = (int)r->context->math};
}

/* Schedules of a kernel. */

/** Adds a schedule whose code is none of those before. */
static void add_schedule(kernel_recording *k, const char *decisions) {
  recording *r = k->r;
  const codegen_options o = options_of(r);
  corpus_schedule s;
  ir *g = ir_new(&r->context->mem, r->diag, false);
  bool is_new = g && corpus_schedule_of(g, &k->kernel, decisions, &o, &s, NULL);
  ir_free(g);
  for (size_t i = 0; i < k->n && is_new; i++) is_new = strcmp(k->at[i].hash, s.hash) != 0;
  if (!is_new) return;
  k->at[k->n++] = (recorded_schedule){arena_printf(r->arena, "%s", decisions),
                                      arena_printf(r->arena, "%s", s.hash), 1e300};
}

static void add_candidates(kernel_recording *k, kernel_candidates *from, size_t n) {
  kernel_candidate next;
  candidate_answer answer = CANDIDATE_SOUGHT;
  for (size_t end = k->n + n; k->n < end && answer != CANDIDATE_NONE;) {
    answer = kernel_candidates_next(from, &next);
    if (answer == CANDIDATE_GIVEN) add_schedule(k, next.text);
  }
}

static void list_schedules(kernel_recording *k) {
  const codegen_options o = options_of(k->r);
  kernel_candidates c;
  kernel_candidate usual;
  if (!kernel_candidates_begin(&c, k->r->arena, k->sink, &o, &usual)) return;
  add_schedule(k, usual.text);
  if (!k->n) return;
  add_candidates(k, &c, NEIGHBOURS);
  c.queue.n = 0; /* random ones from here on */
  add_candidates(k, &c, OTHERS);
}

static void compile_schedules(kernel_recording *k) {
  const recording *r = k->r;
  const tn_context *c = r->context;
  const compile_options o = {.target = c->target, .math = (int)c->math, .disk = c->disk};
  const node *code[MOST];
  tn_program *programs[MOST];
  for (size_t i = 0; i < k->n; i++)
    diag_require(r->diag,
                 compile_generate(&o, k->ir, k->sink, k->at[i].decisions, &code[i], r->diag));
  diag_require(r->diag, compile_kernels(&o, k->ir, code, k->n, programs, r->diag));
  for (size_t i = 0; i < k->n; i++) k->programs[i].program = programs[i];
}

/* Times. */

static void measure(kernel_recording *k) {
  int64_t calls[MOST];
  for (size_t i = 0; i < k->n; i++) {
    k->agrees[i] = kernel_trial_agrees(k->trial, &k->programs[i]);
    double ns = kernel_trial_time(k->trial, &k->programs[i], 1);
    calls[i] = 1 + (int64_t)(least_ns / ns);
  }
  for (int round = 0; round < ROUNDS; round++)
    for (size_t i = 0; i < k->n; i++) {
      double ns = kernel_trial_time(k->trial, &k->programs[i], calls[i]) / (double)calls[i];
      if (ns < k->at[i].ns) k->at[i].ns = ns;
    }
}

static void print(const kernel_recording *k) {
  printf("kernel %s %zu\n%s", k->r->name, k->number, k->kernel.text);
  for (size_t i = 0; i < k->n; i++)
    if (k->agrees[i])
      printf("schedule %s %s %.0f\n", k->at[i].decisions, k->at[i].hash, k->at[i].ns);
  fflush(stdout);
}

static void record_kernel(void *arg) {
  kernel_recording *k = arg;
  recording *r = k->r;
  const tn_hardware known = hardware_with_defaults(&r->context->target->target.hardware);
  uint64_t most = 2 * known.l2_bytes, bytes = network_bytes(&r->network, r->diag);
  k->sink = parse_graph(k->ir, r->arena, k->kernel.text, strlen(k->kernel.text)).at[0];
  list_schedules(k);
  if (k->n < 2) return;
  compile_schedules(k);
  diag_require(r->diag,
               kernel_trial_open(&k->trial, r->network.execution, r->shares[k->number].step,
                                 most < bytes ? most : bytes, r->diag));
  kernel_trial_prepare(k->trial, k->programs, k->n);
  measure(k);
  print(k);
}

static bool begin_kernel(kernel_recording *k) {
  recording *r = k->r;
  size_t bytes;
  const node *sink = r->copies.at[k->number];
  if (sink_schedule(sink, &bytes)) return false;
  k->kernel.text = plain_text(r, sink);
  if (string_map_get(r->seen, k->kernel.text)) return false;
  string_map_set(r->all, r->seen, k->kernel.text, r->seen);
  k->ir = ir_new(&r->context->mem, r->diag, false);
  return k->ir != NULL;
}

static void run_kernel(recording *r, size_t number) {
  kernel_recording k = {.r = r, .number = number};
  if (!begin_kernel(&k)) return;
  if (diag_catch(r->diag, record_kernel, &k))
    fprintf(stderr, "%s: kernel %zu: %s\n", r->name, number, r->diag->text);
  diag_clear(r->diag);
  kernel_trial_close(k.trial);
  for (size_t i = 0; i < k.n; i++) program_release(k.programs[i].program);
  ir_free(k.ir);
}

/* Networks. */

/** Binds zeros to all inputs. */
static void bind_inputs(recording *r, const tn_model *m) {
  tn_port p = TN_PORT_INIT;
  for (size_t i = 0; !tn_model_port(m, TN_PORT_INPUT, i, &p); i++) {
    size_t bytes = tn_dtype_size(p.type.dtype);
    tn_shape s = p.type.shape;
    for (int32_t k = 0; k < s.rank; k++) {
      if (s.size[k] < 0) s.size[k] = 1;
      bytes *= (size_t)s.size[k];
    }
    tn_binding_input_at(r->binding, i, s, p.type.dtype, arena_calloc(r->arena, bytes, 1), bytes);
  }
}

static void open_network(recording *r) {
  tn_binding *b = r->binding;
  plan_variant *v;
  diag_require(r->diag, binding_run(b));
  r->copies.ir = ir_new(&b->context->mem, r->diag, false);
  const variant_request q = {
      .form = b->variant->form, .facts = b->variant->likely, .kernels = &r->copies};
  diag_require(r->diag, plan_variant_build(b->plan, &q, r->diag, &v));
  diag_require(r->diag, network_open(&r->network, b, v));
  network_run(&r->network, r->diag);
  r->shares = network_profile(&r->network, PROFILE_RUNS, r->arena);
}

static void record_body(void *arg) {
  recording *r = arg;
  bool *done;
  open_network(r);
  done = arena_calloc(r->arena, r->copies.n + 1, sizeof *done);
  for (size_t times = 0; times < r->most; times++) {
    size_t best = SIZE_MAX;
    for (size_t i = 0; i < r->copies.n; i++) {
      const kernel_share *s = &r->shares[i];
      bool is_long = s->ns && (double)s->step_ns >= least_kernel_ns;
      if (is_long && !done[i] && (best == SIZE_MAX || s->ns > r->shares[best].ns)) best = i;
    }
    if (best == SIZE_MAX) break;
    done[best] = true;
    run_kernel(r, best);
  }
}

static void record_network(recording *r, const char *path) {
  tn_model_desc desc = TN_MODEL_DESC_INIT;
  tn_model *m;
  desc.tunable = true;
  if (tn_model_load(r->context, path, &desc, &m) || tn_model_bind(m, &r->binding)) {
    fprintf(stderr, "%s: %s\n", path, tn_message(r->context));
    exit(1);
  }
  arena a;
  arena_init(&a, &r->context->mem, &r->binding->diag);
  r->diag = &r->binding->diag;
  r->arena = &a;
  bind_inputs(r, m);
  if (diag_catch(r->diag, record_body, r)) fprintf(stderr, "%s: %s\n", r->name, r->diag->text);
  network_close(&r->network);
  ir_free(r->copies.ir);
  arena_free(&a);
  tn_binding_free(r->binding);
  tn_model_free(m);
}

/* Terms. */

static void print_terms(const recorded_kernel *k, const recorded_schedule *s,
                        const codegen_options *o) {
  diag d = {0};
  ir *g = ir_new(&mem_system, &d, false);
  corpus_schedule now;
  kernel_summary summary;
  if (g && corpus_schedule_of(g, k, s->decisions, o, &now, &summary) &&
      !strcmp(now.hash, s->hash)) {
    const kernel_cost *c = &now.cost;
    printf("%s %s %s %.0f %.9g %.9g %.9g %.9g %.9g", k->network, k->name, s->decisions, s->ns,
           c->total, c->core, c->memory[0], c->memory[1], c->memory[2]);
    for (size_t i = 0; i < summary.loops.n; i++) {
      const summary_loop *l = &summary.loops.at[i];
      if (!l->runs) continue;
      printf(" %.9g,%.9g,%.9g,%.9g,%.9g,%.9g,%.9g,%.9g,%d", l->runs, l->operations, l->loads,
             l->stores, l->scalars, l->lanes_moved, l->chain, l->steps, l->depth > 0);
    }
    printf("\n");
  }
  ir_free(g);
}

static char *read_file(arena *a, const char *path) {
  str text = str_new(a);
  char block[1 << 16];
  FILE *f = fopen(path, "r");
  for (size_t n; f && (n = fread(block, 1, sizeof block, f)) > 0;) str_add_bytes(&text, block, n);
  if (f) fclose(f);
  return text.at ? text.at : arena_calloc(a, 1, 1);
}

static int show_terms(const char *path) {
  diag d = {0};
  arena a;
  arena_init(&a, &mem_system, &d);
  corpus c = corpus_read(&a, read_file(&a, path));
  for (size_t i = 0; i < c.kernels.n; i++)
    for (size_t k = 0; k < c.kernels.at[i].schedules.n; k++)
      print_terms(&c.kernels.at[i], &c.kernels.at[i].schedules.at[k], &c.options);
  arena_free(&a);
  return 0;
}

/* The whole. */

static void print_head(const tn_context *c) {
  char name[128] = "unknown", day[32], line[256];
  time_t now = time(NULL);
  FILE *f = fopen("/proc/cpuinfo", "r");
  while (f && fgets(line, sizeof line, f))
    if (sscanf(line, "model name : %127[^\n]", name) == 1) break;
  if (f) fclose(f);
  strftime(day, sizeof day, "%Y-%m-%d", gmtime(&now));
  printf("machine %s, %s\n", name, day);
  corpus_write_target(stdout, &(codegen_options){c->target->target, (int)c->math, {0}, {0}, NULL});
}

int main(int n, char **args) {
  tn_open_desc how = TN_OPEN_DESC_INIT;
  tn_context *c;
  if (n == 3 && !strcmp(args[1], "--terms")) return show_terms(args[2]);
  how.threads = 1;
  if (n < 4) {
    fprintf(stderr, "usage: corpus_record MOST NAME MODEL [NAME MODEL …]\n");
    return 2;
  }
  c = tn_open(&how);
  if (!c) {
    fprintf(stderr, "%s\n", tn_message(NULL));
    return 1;
  }
  diag d = {0};
  arena all;
  string_map seen = {0};
  arena_init(&all, &mem_system, &d);
  print_head(c);
  for (int i = 2; i + 1 < n; i += 2) {
    recording r = {.name = args[i],
                   .most = (size_t)strtoul(args[1], NULL, 10),
                   .context = c,
                   .all = &all,
                   .seen = &seen};
    record_network(&r, args[i + 1]);
  }
  arena_free(&all);
  tn_close(c);
  return 0;
}
