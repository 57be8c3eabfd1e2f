/* Implements the tuner. Kernels are taken by their share of the network's time, times measured by
   predicted time, less for those of which much was measured in vain. A few schedules of a kernel
   are compiled at once and measured beside its present one (kernel_bench.h); one that is faster
   becomes the present one. Each measurement is in the store before the next one begins. In the end
   the network with all new schedules is measured beside the one before (verify_winners.c): until
   then nothing else uses them. */
#include "tune/tuner.h"

#include "compile/compile_kernels.h"
#include "ir/text/sink_text.h"
#include "ir/transform/copy_graph.h"
#include "target/hardware.h"
#include "tune/kernel_bench.h"
#include "tune/tuner_state.h"
#include "tune/verify_winners.h"

#include <stdio.h>
#include <string.h>

/** Schedules of a kernel that are compiled at once. */
enum { BATCH = 4 };

/** Runs for the first profile. */
enum { PROFILE_RUNS = 5 };

static void raise_if(tuner *t, tn_status s) {
  if (s != TN_OK) diag_rethrow(t->diag);
}

/* Time. */

static double seconds_since(int64_t start) { return (double)(clock_now_ns() - start) * 1e-9; }

/** The seconds that the last measurement of whole runs is going to take, roughly. */
static double verification_seconds(const tuner *t) {
  enum { RUNS = 60 };
  double run = t->whole_ns > 5e6 ? t->whole_ns : 5e6;
  return 0.5 + RUNS * run * 1e-9;
}

/** Reports the state; false: time is over, or the caller ends the tuning. */
static bool goes_on(tuner *t) {
  const tn_tune_desc *o = t->desc;
  double gained = 0, spent = seconds_since(t->start);
  t->info->predicted = 0;
  for (size_t i = 0; i < t->n_kernels; i++) {
    gained += t->kernels[i].gained_ns;
    t->info->predicted += t->kernels[i].candidates.n_predicted;
  }
  t->info->after_ms = (t->whole_ns - gained) * 1e-6;
  t->info->seconds_left = o->seconds > spent ? o->seconds - spent : 0;
  if (!t->has_ended && o->progress) t->has_ended = !o->progress(o->user, t->info);
  if (o->seconds > 0 && t->info->seconds_left < verification_seconds(t)) t->has_ended = true;
  return !t->has_ended;
}

/* Kernels. */

static compile_options compile_options_of(const tuner *t) {
  const tn_context *c = t->binding->context;
  return (compile_options){.target = c->target, .math = (int)c->math, .disk = c->disk};
}

/** Adds a kernel if it has schedules to choose from; with the one that it is compiled with now. */
static void add_kernel(tuner *t, size_t number, const char *key) {
  const tn_context *c = t->binding->context;
  const codegen_options o = {.target = c->target->target, .math = (int)c->math};
  tuned_kernel *k = &t->kernels[t->n_kernels];
  const node *sink = t->copies.at[number];
  size_t bytes;
  *k = (tuned_kernel){.number = number, .sink = sink, .key = key, .share = t->shares[number]};
  if (!k->share.ns || sink_schedule(sink, &bytes)) return;
  if (!kernel_candidates_begin(&k->candidates, &t->arena, sink, &o, &k->present)) return;
  const char *kept = tuned_choice_find(&(tuned_choice){c->tuned, NULL}, key);
  if (kept) kernel_candidates_take(&k->candidates, kept, &k->present);
  k->first = k->present;
  t->n_kernels++;
}

static void add_kernels(tuner *t) {
  size_t n = t->copies.n;
  const compile_options o = compile_options_of(t);
  const char **keys = arena_alloc(&t->arena, (n + 1) * sizeof *keys);
  raise_if(t, compile_tuned_keys(&o, t->copies.ir, t->copies.at, n, &t->arena, keys, t->diag));
  t->kernels = arena_calloc(&t->arena, n + 1, sizeof *t->kernels);
  for (size_t i = 0; i < n; i++) add_kernel(t, i, keys[i]);
  t->info->kernels = t->n_kernels;
}

/** Takes over what an earlier tuning measured. */
static void recall_record(void *user, const tuned_record *r) {
  tuner *t = user;
  for (size_t i = 0; i < t->n_kernels; i++) {
    tuned_kernel *k = &t->kernels[i];
    if (strcmp(k->key, r->key)) continue;
    const char *text = arena_printf(&t->arena, "%s", r->schedule.decisions);
    if (strcmp(text, "-")) kernel_candidates_skip(&k->candidates, text);
    if (r->verdict == TUNED_FASTER) k->winner = text;
    if (r->verdict == TUNED_KEPT || r->verdict == TUNED_DROPPED) k->winner = NULL;
  }
}

/** Makes schedules that were faster, but not measured in whole runs, the present ones. */
static void recall_winners(tuner *t) {
  raise_if(t, tuned_store_read(t->binding->context->tuned, recall_record, t, t->diag));
  for (size_t i = 0; i < t->n_kernels; i++) {
    tuned_kernel *k = &t->kernels[i];
    if (k->winner && !kernel_candidates_take(&k->candidates, k->winner, &k->present))
      k->winner = NULL;
    if (k->winner && !strcmp(k->winner, k->first.text)) k->winner = NULL;
    t->info->faster += k->winner != NULL;
  }
}

/** The kernel with the most to gain; NULL: none has any schedule left. */
static tuned_kernel *choose_kernel(const tuner *t) {
  tuned_kernel *best = NULL;
  double most = 0;
  for (size_t i = 0; i < t->n_kernels; i++) {
    tuned_kernel *k = &t->kernels[i];
    double time = (double)k->share.ns - k->gained_ns, per_call = time / (double)k->share.calls;
    double weight = time * per_call / k->present.predicted / (1 + k->n_in_vain);
    if (k->is_exhausted || (best && weight <= most)) continue;
    best = k;
    most = weight;
  }
  return best;
}

/* Programs. */

typedef struct source_hash {
  uint64_t hash[2];
} source_hash;

static void hash_source(void *user, const node *kernel, const char *source) {
  (void)kernel;
  cache_keys_hash(source, strlen(source), ((source_hash *)user)->hash);
}

typedef struct source_task {
  const compile_options *options;
  ir *g;
  const node *sink;
} source_task;

static void make_source(void *arg) {
  source_task *s = arg;
  diag *d = ir_diag(s->g);
  ir_copy(s->g, ir_arena(s->g), &s->sink, 1, NULL, NULL, &s->sink);
  if (compile_sources(s->options, s->g, &s->sink, 1, d)) diag_rethrow(d);
}

/** Hashes the source of a schedule; false: there is none. */
static bool find_source(tuner *t, const tuned_kernel *k, const char *text, char hash[36]) {
  source_hash found = {{0}};
  compile_options o = compile_options_of(t);
  ir *g = ir_new(&t->binding->context->mem, t->diag, false);
  if (!g) diag_raise(t->diag, TN_ERR_MEMORY, "out of memory");
  o.decisions = &text;
  o.report_source = hash_source;
  o.user = &found;
  tn_status s = diag_catch(t->diag, make_source, &(source_task){&o, g, k->sink});
  ir_free(g);
  if (s == TN_ERR_MEMORY) diag_rethrow(t->diag);
  snprintf(hash, 36, "%016llx%016llx", (unsigned long long)found.hash[0],
           (unsigned long long)found.hash[1]);
  return s == TN_OK;
}

/** Compiles schedules of a kernel; all programs are NULL where one cannot be compiled. */
static tn_status compile(tuner *t, const tuned_kernel *k, const char *const texts[], size_t n,
                         tn_program *programs[]) {
  compile_options o = compile_options_of(t);
  const node *sinks[BATCH];
  for (size_t i = 0; i < n; i++) sinks[i] = k->sink;
  o.decisions = texts;
  tn_status s = compile_kernels(&o, t->copies.ir, sinks, n, programs, t->diag);
  if (s == TN_ERR_MEMORY) diag_rethrow(t->diag);
  return s;
}

/* Measurements. */

static void record(tuner *t, const tuned_kernel *k, tuned_verdict verdict,
                   const kernel_candidate *c, double ns, double other_ns) {
  const tuned_record r = {k->key,
                          verdict,
                          {c->text, c->predicted, ns},
                          {k->present.text, k->present.predicted, other_ns}};
  raise_if(t, tuned_store_append(t->binding->context->tuned, &r, t->diag));
}

/** Finds the program of a kernel's present schedule: that of the network, or a winner of an earlier
    tuning. */
static void find_program(tuner *t, tuned_kernel *k) {
  char hash[36];
  if (k->winner)
    raise_if(t, compile(t, k, &k->present.text, 1, &k->program));
  else
    k->program = program_retain(t->before.variant->executable->programs[k->number]);
  if (find_source(t, k, k->present.text, hash))
    string_map_set(&t->arena, &k->sources, arena_printf(&t->arena, "%s", hash), k);
}

/** Opens the bench of a kernel. */
static void begin_kernel(tuner *t, tuned_kernel *k) {
  const tn_hardware known = hardware_with_defaults(&t->binding->context->target->target.hardware);
  uint64_t most = 2 * known.l2_bytes;
  if (t->benched == k) return;
  kernel_bench_close(t->bench);
  t->benched = NULL;
  t->bench = NULL;
  if (!k->program) find_program(t, k);
  if (t->network_bytes < most) most = t->network_bytes;
  raise_if(t, kernel_bench_open(&t->bench, t->before.execution, k->share.step, most, t->diag));
  t->benched = k;
}

static void accept(tuner *t, tuned_kernel *k, const kernel_candidate *c, tn_program **program,
                   const bench_result *r) {
  double left = (double)k->share.ns - k->gained_ns;
  if (!kernel_candidates_take(&k->candidates, c->text, &k->present)) return;
  program_release(k->program);
  k->program = *program;
  *program = NULL;
  k->gained_ns += left * (1 - r->candidate_ns / r->incumbent_ns);
  t->info->faster += k->winner == NULL;
  k->winner = k->present.text;
}

/** Measures a compiled schedule; returns whether it is faster. */
static bool measure(tuner *t, tuned_kernel *k, const kernel_candidate *c, tn_program **program) {
  static const tuned_verdict verdicts[] = {[BENCH_FASTER] = TUNED_FASTER,
                                           [BENCH_SLOWER] = TUNED_SLOWER,
                                           [BENCH_WRONG] = TUNED_WRONG,
                                           [BENCH_FAILED] = TUNED_FAILED};
  bench_result r;
  t->info->measured++;
  raise_if(t, kernel_bench_compare(t->bench, k->program, *program, &r, t->diag));
  record(t, k, verdicts[r.verdict], c, r.candidate_ns, r.incumbent_ns);
  if (r.verdict == BENCH_FASTER) accept(t, k, c, program, &r);
  return r.verdict == BENCH_FASTER;
}

/** Takes schedules of a kernel whose sources are new, as many as are compiled at once. */
static size_t take_batch(tuner *t, tuned_kernel *k, kernel_candidate batch[BATCH]) {
  size_t n = 0;
  char hash[36];
  while (n < BATCH && kernel_candidates_next(&k->candidates, &batch[n])) {
    bool is_made = find_source(t, k, batch[n].text, hash);
    bool is_known = is_made && string_map_get(&k->sources, hash);
    if (!is_made || is_known)
      record(t, k, is_made ? TUNED_EQUAL : TUNED_FAILED, &batch[n], 0, 0);
    else
      string_map_set(&t->arena, &k->sources, arena_printf(&t->arena, "%s", hash), k);
    n += is_made && !is_known;
    if (!goes_on(t)) break;
  }
  k->is_exhausted = !n;
  return n;
}

typedef struct batch_run {
  tuner *t;
  tuned_kernel *k;
  const kernel_candidate *batch;
  size_t n;
  tn_program *programs[BATCH]; /* owned */
} batch_run;

/** Measures a batch, compiled together or, where one of it cannot be compiled, one by one. */
static void run_batch(void *arg) {
  batch_run *r = arg;
  tuner *t = r->t;
  const char *texts[BATCH];
  bool gains = false;
  for (size_t i = 0; i < r->n; i++) texts[i] = r->batch[i].text;
  bool compiled = compile(t, r->k, texts, r->n, r->programs) == TN_OK;
  for (size_t i = 0; i < r->n && goes_on(t); i++) {
    if (compiled || compile(t, r->k, &texts[i], 1, &r->programs[i]) == TN_OK)
      gains |= measure(t, r->k, &r->batch[i], &r->programs[i]);
    else
      record(t, r->k, TUNED_FAILED, &r->batch[i], 0, 0);
  }
  r->k->n_in_vain = gains ? 0 : r->k->n_in_vain + 1;
}

static void measure_batch(tuner *t, tuned_kernel *k) {
  kernel_candidate batch[BATCH];
  begin_kernel(t, k);
  batch_run r = {t, k, batch, take_batch(t, k, batch), {NULL}};
  tn_status s = r.n ? diag_catch(t->diag, run_batch, &r) : TN_OK;
  for (size_t i = 0; i < r.n; i++) program_release(r.programs[i]);
  raise_if(t, s);
}

/* The whole. */

static void check_plan(tuner *t) {
  const tn_binding *b = t->binding;
  const tn_plan *p = b->plan;
  if (!b->context->tuned)
    diag_raise(t->diag, TN_ERR_IO,
               "%s: there is no file of tuned schedules, as it or the disk cache is off", p->name);
  t->info->file = tuned_store_path(b->context->tuned);
  if (!p->template.ir)
    diag_raise(t->diag, TN_ERR_ARGUMENT, "%s: it was not made to be tunable", p->name);
  if (p->n_states || p->template.has_host_calls)
    diag_raise(t->diag, TN_ERR_UNSUPPORTED, "%s: a plan with %s cannot be tuned", p->name,
               p->n_states ? "states" : "functions of the host");
  for (size_t i = 0; i < p->ports.n_inputs; i++)
    if (b->inputs[i].carried_output)
      diag_raise(t->diag, TN_ERR_UNSUPPORTED,
                 "%s: a binding that carries output %s over to input %s cannot be tuned", p->name,
                 p->ports.outputs[b->inputs[i].carried_output - 1].name, p->ports.inputs[i].name);
}

/** Opens the network as it runs now, and copies of its kernels. */
static void open_network(tuner *t) {
  tn_binding *b = t->binding;
  plan_variant *v;
  int64_t ns;
  raise_if(t, binding_run(b));
  t->copies.ir = ir_new(&b->context->mem, t->diag, false);
  if (!t->copies.ir) diag_raise(t->diag, TN_ERR_MEMORY, "out of memory");
  const variant_request r = {
      .form = b->variant->form, .facts = b->variant->likely, .kernels = &t->copies};
  raise_if(t, plan_variant_build(b->plan, &r, t->diag, &v));
  raise_if(t, network_open(&t->before, b, v));
  raise_if(t, network_run(&t->before, &ns, t->diag));
  t->shares = arena_calloc(&t->arena, t->copies.n + 1, sizeof *t->shares);
  raise_if(t, network_profile(&t->before, PROFILE_RUNS, t->shares, t->diag));
  raise_if(t, network_run(&t->before, &ns, t->diag));
  t->whole_ns = (double)ns;
  t->info->before_ms = t->info->after_ms = t->whole_ns * 1e-6;
  raise_if(t, network_bytes(&t->before, &t->network_bytes, t->diag));
}

static void tune_body(void *arg) {
  tuner *t = arg;
  check_plan(t);
  raise_if(t, tuned_store_check_writable(t->binding->context->tuned, t->diag));
  open_network(t);
  add_kernels(t);
  recall_winners(t);
  for (tuned_kernel *k; goes_on(t) && (k = choose_kernel(t));) measure_batch(t, k);
  kernel_bench_close(t->bench);
  t->bench = NULL;
  verify_winners(t);
  t->info->seconds_left = 0;
}

tn_status tuner_run(tn_binding *b, const tn_tune_desc *desc, tn_tuning *info) {
  tuner t = {.binding = b, .desc = desc, .info = info, .diag = &b->diag};
  t.start = clock_now_ns();
  arena_init(&t.arena, &b->context->mem, t.diag);
  tn_status s = diag_catch(t.diag, tune_body, &t);
  for (size_t i = 0; i < t.n_kernels; i++) program_release(t.kernels[i].program);
  kernel_bench_close(t.bench);
  network_close(&t.after);
  network_close(&t.before);
  ir_free(t.copies.ir);
  arena_free(&t.arena);
  return s;
}
