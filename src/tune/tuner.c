/* Implements the tuner. The next kernel is that with the largest product of its time in the network
   and the ratio of measured to predicted time, divided by one more than the number of its batches
   in a row that gained nothing. A few schedules of a kernel are compiled at once, their programs
   kept in no cache, and measured beside its present one (kernel_bench.h); one that is faster
   becomes the present one. Each measurement is in the store before the next one begins. In the end
   the network with all new schedules is measured beside the one before (verify_winners.c): until
   then nothing else uses them. */
#include "tune/tuner.h"

#include "compile/cache_keys.h"
#include "compile/compile_kernels.h"
#include "ir/text/sink_text.h"
#include "ir/transform/copy_graph.h"
#include "target/hardware.h"
#include "tune/kernel_bench.h"
#include "tune/tuner_state.h"
#include "tune/verify_winners.h"

#include <stdio.h>
#include <string.h>

/** The most schedules of a kernel that are compiled at once. */
enum { BATCH = 4 };

/** Runs for the first profile. */
enum { PROFILE_RUNS = 5 };

/* Time. */

static double seconds_since(int64_t start) { return (double)(clock_now_ns() - start) * 1e-9; }

/** The seconds that the last measurement of whole runs is going to take, roughly. */
static double verification_seconds(const tuner *t) {
  enum { RUNS = 60, BUILDS = 2 }; /* with all winners, and with those that gain in the network */
  double run = t->whole_ns > 5e6 ? t->whole_ns : 5e6;
  double compile = t->n_compiled ? t->compile_seconds / (double)t->n_compiled : 0;
  return 0.5 + RUNS * run * 1e-9 + BUILDS * t->build_seconds + compile * (double)t->info->faster;
}

/** The time of a run as it would be with the winners so far, by measurements of kernels. */
static double estimate_after_ms(const tuner *t) {
  double gained = 0;
  for (size_t i = 0; i < t->n_kernels; i++) gained += t->kernels[i].gained_ns;
  return (t->whole_ns - gained) * 1e-6;
}

/** Reports the state to the caller, unless it has stopped the tuning, which it may do now. */
static void report(tuner *t) {
  const tn_tune_desc *o = t->desc;
  double spent = seconds_since(t->start);
  t->info->predicted = 0;
  for (size_t i = 0; i < t->n_kernels; i++)
    t->info->predicted += t->kernels[i].candidates.n_predicted;
  t->info->seconds_left = o->seconds > spent ? o->seconds - spent : 0;
  if (!t->is_stopped && o->progress) t->is_stopped = !o->progress(o->user, t->info);
}

/** Reports the state; false: time is over, or the caller ends the tuning. */
static bool goes_on(tuner *t) {
  if (t->has_ended) return false;
  t->info->after_ms = estimate_after_ms(t);
  report(t);
  bool is_over = t->desc->seconds > 0 && t->info->seconds_left < verification_seconds(t);
  if (is_over && !t->is_stopped) t->info->ran_out = true;
  t->has_ended = t->is_stopped || is_over;
  return !t->has_ended;
}

bool tuner_may_build(tuner *t) {
  bool was_stopped = t->is_stopped;
  report(t);
  bool is_over = t->desc->seconds > 0 && !t->info->seconds_left;
  if (is_over) t->info->ran_out = true;
  return !is_over && t->is_stopped == was_stopped;
}

/* Kernels. */

static compile_options compile_options_of(const tuner *t) {
  const tn_context *c = t->binding->context;
  return (compile_options){
      .target = c->target, .math = (int)c->math, .tuned = {.libraries = c->options.libraries}};
}

/** Decisions that stand for a call of the device's library in place of a kernel; NULL: none can. */
static const char *library_decisions(tuner *t, const node *sink) {
  const compile_options o = compile_options_of(t);
  const char *name = compile_library_for(&o, t->copies.ir, sink);
  if (name) t->info->library = name;
  return name ? tuned_library_decisions(&t->arena, name) : NULL;
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
  const char *library = library_decisions(t, sink);
  if (!kernel_candidates_begin(&k->candidates, &t->arena, sink, &o, library, &k->present)) return;
  const tuned_choice choice = {.store = c->tuned,
                               .libraries = library ? c->options.libraries : LIBRARIES_OFF};
  const char *kept = tuned_choice_find(&choice, key);
  if (!kept || !kernel_candidates_take(&k->candidates, kept, &k->present))
    kernel_candidates_skip(&k->candidates, k->present.text);
  k->first = k->present;
  k->same = string_map_get(&t->by_key, key);
  string_map_set(&t->arena, &t->by_key, key, k);
  t->n_kernels++;
}

static void add_kernels(tuner *t) {
  size_t n = t->copies.n;
  const compile_options o = compile_options_of(t);
  const char **keys = arena_alloc(&t->arena, (n + 1) * sizeof *keys);
  diag_require(t->diag,
               compile_tuned_keys(&o, t->copies.ir, t->copies.at, n, &t->arena, keys, t->diag));
  t->kernels = arena_calloc(&t->arena, n + 1, sizeof *t->kernels);
  for (size_t i = 0; i < n; i++) add_kernel(t, i, keys[i]);
  t->info->kernels = t->n_kernels;
}

/** Takes over what an earlier tuning measured by this build: code of others may be slower. */
static void recall_record(void *user, const tuned_record *r) {
  tuner *t = user;
  if (r->is_foreign) return;
  for (tuned_kernel *k = string_map_get(&t->by_key, r->key); k; k = k->same) {
    const char *text = arena_printf(&t->arena, "%s", r->schedule.decisions);
    if (strcmp(text, "-")) kernel_candidates_skip(&k->candidates, text);
    if (r->verdict == TUNED_FASTER)
      k->winner = text;
    else if (k->winner && !strcmp(k->winner, text))
      k->winner = NULL; /* whole runs were measured with it */
  }
}

/** Makes schedules that were faster, but not measured in whole runs, the present ones. */
static void recall_winners(tuner *t) {
  diag_require(t->diag, tuned_store_read(t->binding->context->tuned, recall_record, t, t->diag));
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
    double predicted = k->present.predicted > 0 ? k->present.predicted : 1; /* teams: none is */
    double weight = time * per_call / predicted / (1 + k->n_idle);
    if (k->is_exhausted || (best && weight <= most)) continue;
    best = k;
    most = weight;
  }
  return best;
}

void tuner_record(tuner *t, const tuned_kernel *k, tuned_verdict verdict, const kernel_candidate *c,
                  double ns, const kernel_candidate *other, double other_ns) {
  const tuned_record r = {.key = k->key,
                          .verdict = verdict,
                          .schedule = {c->text, c->predicted, ns},
                          .other = {other->text, other->predicted, other_ns}};
  diag_require(t->diag, tuned_store_append(t->binding->context->tuned, &r, t->diag));
}

/* Code. */

/** Schedules of a kernel that are compiled at once. */
typedef struct batch {
  tuner *t;
  tuned_kernel *k;
  ir *ir; /* of the code */
  size_t n;
  kernel_candidate at[BATCH];
  const node *code[BATCH];
  tn_program *programs[BATCH]; /* owned */
} batch;

/** Generates the code of a schedule; NULL, with the failure in the diag, if there is none. That of
   a call of a library is the kernel itself, as what a trial compiles so. */
static const node *generate(const batch *b, const kernel_candidate *c) {
  const compile_options o = compile_options_of(b->t);
  const node *code;
  if (tuned_library_of(c->text)) {
    ir_copy(b->ir, ir_arena(b->ir), &b->k->sink, 1, NULL, NULL, &code);
    return code;
  }
  if (compile_generate(&o, b->ir, b->k->sink, c->text, &code, b->t->diag) == TN_ERR_MEMORY)
    diag_rethrow(b->t->diag);
  return code;
}

/** Remembers code of the kernel; false if it had the same before. */
static bool is_new(const batch *b, const node *code) {
  uint64_t hash[2];
  const int math = (int)b->t->binding->context->math;
  const kernel_graph_key key = kernel_graph_key_make(ir_arena(b->ir), math, code);
  cache_keys_hash(key.data, key.bytes, hash);
  const char *text = arena_printf(&b->t->arena, "%016llx%016llx", (unsigned long long)hash[0],
                                  (unsigned long long)hash[1]);
  if (string_map_get(&b->k->code, text)) return false;
  string_map_set(&b->t->arena, &b->k->code, text, b->k);
  return true;
}

static tn_status compile(const batch *b, const node *const code[], size_t n,
                         tn_program *programs[]) {
  tuner *t = b->t;
  int64_t start = clock_now_ns();
  string_map calls = {0};
  compile_options o = compile_options_of(t);
  if (b->k->candidates.library)
    string_map_set(&t->arena, &calls, b->k->key, (void *)b->k->candidates.library);
  o.is_trial = true;
  o.tuned.trial = &calls; /* of kernels that are not code */
  tn_status s = compile_kernels(&o, b->ir, code, n, programs, t->diag);
  if (s == TN_ERR_MEMORY) diag_rethrow(t->diag);
  t->compile_seconds += seconds_since(start);
  t->n_compiled += n;
  return s;
}

/** Compiles some schedules of a batch; false, without programs, if one of them cannot be. Raises a
    failure that the schedule of the beginning has as well: the compiler's, not theirs. */
static bool compile_some(batch *b, size_t first, size_t n) {
  tn_program *program;
  if (compile(b, &b->code[first], n, &b->programs[first]) == TN_OK) return true;
  const node *code = generate(b, &b->k->first);
  if (!code || compile(b, &code, 1, &program) != TN_OK) diag_rethrow(b->t->diag);
  program_release(program);
  return false;
}

/* Measurements. */

static void record(const batch *b, tuned_verdict verdict, const kernel_candidate *c, double ns,
                   double other_ns) {
  tuner_record(b->t, b->k, verdict, c, ns, &b->k->present, other_ns);
}

/** Finds the program of the kernel's present schedule: that of the network, or a winner of an
    earlier tuning. */
static void find_program(const batch *b) {
  tuned_kernel *k = b->k;
  const node *code = generate(b, &k->present);
  if (!code) diag_rethrow(b->t->diag);
  is_new(b, code);
  if (k->winner)
    diag_require(b->t->diag, compile(b, &code, 1, &k->program));
  else
    k->program = program_retain(b->t->before.variant->executable->programs[k->number]);
}

/** Opens the trial of the kernel. */
static void begin_kernel(const batch *b) {
  tuner *t = b->t;
  const tn_hardware known = hardware_with_defaults(&t->binding->context->target->target.hardware);
  uint64_t most = 2 * known.l2_bytes;
  if (t->tried == b->k) return;
  kernel_trial_close(t->trial);
  t->tried = NULL;
  t->trial = NULL;
  if (!b->k->program) find_program(b);
  if (t->network_bytes < most) most = t->network_bytes;
  diag_require(t->diag,
               kernel_trial_open(&t->trial, t->before.execution, b->k->share.step, most, t->diag));
  t->tried = b->k;
}

static void accept(batch *b, size_t i, const bench_result *r) {
  tuned_kernel *k = b->k;
  double left = (double)k->share.ns - k->gained_ns;
  if (!kernel_candidates_take(&k->candidates, b->at[i].text, &k->present)) return;
  program_release(k->program);
  k->program = b->programs[i];
  b->programs[i] = NULL;
  k->gained_ns += left * (1 - r->candidate_ns / r->incumbent_ns);
  b->t->info->faster += k->winner == NULL;
  k->winner = k->present.text;
}

/** Measures a compiled schedule; returns whether it is faster. */
static bool measure(batch *b, size_t i) {
  static const tuned_verdict verdicts[] = {[BENCH_FASTER] = TUNED_FASTER,
                                           [BENCH_SLOWER] = TUNED_SLOWER,
                                           [BENCH_WRONG] = TUNED_WRONG,
                                           [BENCH_FAILED] = TUNED_FAILED};
  tuner *t = b->t;
  bench_result r;
  t->info->measured++;
  diag_require(t->diag, kernel_bench_compare(t->trial, b->k->program, b->programs[i], &r, t->diag));
  record(b, verdicts[r.verdict], &b->at[i], r.candidate_ns, r.incumbent_ns);
  if (tuned_library_of(b->at[i].text)) {
    t->info->library_measured++;
    t->info->library_faster += r.verdict == BENCH_FASTER;
  }
  if (r.verdict == BENCH_FASTER) accept(b, i, &r);
  return r.verdict == BENCH_FASTER;
}

/** Fills the batch with schedules whose code is new. */
static void fill(batch *b) {
  kernel_candidate c;
  candidate_answer a = CANDIDATE_SOUGHT;
  while (b->n < BATCH && a != CANDIDATE_NONE && goes_on(b->t)) {
    a = kernel_candidates_next(&b->k->candidates, &c);
    if (a != CANDIDATE_GIVEN) continue;
    const node *code = generate(b, &c);
    if (code && is_new(b, code)) {
      b->at[b->n] = c;
      b->code[b->n++] = code;
    } else {
      record(b, code ? TUNED_EQUAL : TUNED_FAILED, &c, 0, 0);
    }
  }
  b->k->is_exhausted = !b->n && a == CANDIDATE_NONE;
}

/** Measures schedules of the kernel, compiled together or, where one cannot be compiled, one by
    one. */
static void run_batch(void *arg) {
  batch *b = arg;
  bool gains = false;
  begin_kernel(b);
  fill(b);
  if (!b->n || b->t->has_ended) return;
  bool compiled = compile_some(b, 0, b->n);
  for (size_t i = 0; i < b->n && goes_on(b->t); i++) {
    if (compiled || compile_some(b, i, 1))
      gains |= measure(b, i);
    else
      record(b, TUNED_FAILED, &b->at[i], 0, 0);
  }
  b->k->n_idle = gains ? 0 : b->k->n_idle + 1;
}

static void measure_batch(tuner *t, tuned_kernel *k) {
  batch b = {.t = t, .k = k, .ir = ir_new(&t->binding->context->mem, t->diag, false)};
  if (!b.ir) diag_raise(t->diag, TN_ERR_MEMORY, "out of memory");
  tn_status s = diag_catch(t->diag, run_batch, &b);
  for (size_t i = 0; i < b.n; i++) program_release(b.programs[i]);
  ir_free(b.ir);
  diag_require(t->diag, s);
}

/* The whole. */

/** Checks the plan, once a late one has become that for the inputs' values. */
static void check_plan(tuner *t) {
  tn_binding *b = t->binding;
  if (b->late) diag_require(t->diag, binding_prepare(b));
  const tn_plan *p = b->plan;
  if (!p->template.ir || p->is_interpreted)
    diag_raise(t->diag, TN_ERR_ARGUMENT, "the model or plan was not made to be tunable");
  for (size_t i = 0; i < p->template.order.n; i++)
    if (p->template.order.at[i]->device > 1)
      diag_raise(t->diag, TN_ERR_UNSUPPORTED, "a plan over several devices cannot be tuned");
  if (p->n_states || p->template.has_host_calls)
    diag_raise(t->diag, TN_ERR_UNSUPPORTED, "a plan with %s cannot be tuned",
               p->n_states ? "states" : "functions of the host");
  for (size_t i = 0; i < p->ports.n_inputs; i++)
    if (b->inputs[i].carried_output)
      diag_raise(t->diag, TN_ERR_UNSUPPORTED,
                 "a binding that carries output %s over to input %s cannot be tuned",
                 p->ports.outputs[b->inputs[i].carried_output - 1].name, p->ports.inputs[i].name);
}

static void check_store(tuner *t) {
  const tuned_store *store = t->binding->context->tuned;
  if (!store)
    diag_raise(t->diag, TN_ERR_IO,
               "there is no file of tuned schedules: TENON_TUNED or TENON_CACHE turns it off; "
               "name one (tune -o FILE, tn_open_desc.tuned)");
  t->info->file = tuned_store_path(store);
}

/** Opens the network as it runs now, and copies of its kernels. */
static void open_network(tuner *t) {
  tn_binding *b = t->binding;
  plan_variant *v;
  diag_require(t->diag, binding_run(b));
  t->copies.ir = ir_new(&b->context->mem, t->diag, false);
  if (!t->copies.ir) diag_raise(t->diag, TN_ERR_MEMORY, "out of memory");
  const variant_request r = {
      .form = b->variant->form, .facts = b->variant->likely, .kernels = &t->copies};
  int64_t start = clock_now_ns();
  diag_require(t->diag, plan_variant_build(b->plan, &r, t->diag, &v));
  t->build_seconds = seconds_since(start);
  diag_require(t->diag, network_open(&t->before, b, v));
  network_run(&t->before, t->diag);
  t->shares = network_profile(&t->before, PROFILE_RUNS, &t->arena);
  t->whole_ns = (double)network_run(&t->before, t->diag);
  t->info->before_ms = t->info->after_ms = t->whole_ns * 1e-6;
  t->network_bytes = network_bytes(&t->before, t->diag);
}

static void tune_body(void *arg) {
  tuner *t = arg;
  check_store(t);
  check_plan(t);
  diag_require(t->diag, tuned_store_check_writable(t->binding->context->tuned, t->diag));
  open_network(t);
  add_kernels(t);
  recall_winners(t);
  for (tuned_kernel *k; goes_on(t) && (k = choose_kernel(t));) measure_batch(t, k);
  kernel_trial_close(t->trial);
  t->trial = NULL;
  verify_winners(t);
  t->info->seconds_left = 0;
}

tn_status tuner_run(tn_binding *b, const tn_tune_desc *desc, tn_tuning *info) {
  tuner t = {.binding = b, .desc = desc, .info = info, .diag = &b->diag};
  t.start = clock_now_ns();
  arena_init(&t.arena, &b->context->mem, t.diag);
  tn_status s = diag_catch(t.diag, tune_body, &t);
  for (size_t i = 0; i < t.n_kernels; i++) program_release(t.kernels[i].program);
  kernel_trial_close(t.trial);
  network_close(&t.after);
  network_close(&t.before);
  ir_free(t.copies.ir);
  arena_free(&t.arena);
  return s;
}
