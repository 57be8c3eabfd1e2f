/* Implements `tenon bench`, which measures how fast a model or a workload runs. Times are of runs
   alone, after the first one and some warm-up runs. */
#include "base/thread.h"
#include "cli/core/math_option.h"
#include "cli/core/text_format.h"
#include "cli/data/explained_plan.h"
#include "cli/data/load_model.h"
#include "cli/data/model_inputs.h"
#include "cli/measure/machine_peak.h"
#include "cli/measure/statistics.h"
#include "cli/measure/workload.h"
#include "cli/verbs/verb_table.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

typedef struct bench_options {
  option_list input, size;
  int64_t warmup, repeat, threads;
  uint64_t seed;
  const char *device, *variants, *math;
  bool compile, json;
} bench_options;

static const option options[] = {
    {"warmup", OPTION_NUMBER, offsetof(bench_options, warmup), "N",
     "warm-up runs after the first one (default: 3)", 0, 1000000, 3},
    {"repeat", OPTION_NUMBER, offsetof(bench_options, repeat), "N",
     "measured runs (default: as many as fit in a second, 10 to 10000)", 1, 1000000, 0},
    THREADS_OPTION(bench_options),
    {"device", OPTION_STRING, offsetof(bench_options, device), "NAME",
     "device to run on (default: CPU); tenon devices lists them", 0, 0, 0},
    {"input", OPTION_LIST, offsetof(bench_options, input), INPUT_OPTION_VALUE, INPUT_OPTION_HELP, 0,
     0, 0},
    {"size", OPTION_LIST, offsetof(bench_options, size), SIZE_OPTION_VALUE, SIZE_OPTION_HELP, 0, 0,
     0},
    VARIANTS_OPTION(bench_options),
    MATH_OPTION(bench_options),
    {"seed", OPTION_UINT64, offsetof(bench_options, seed), "N",
     "seed of the random inputs (default: 0)", 0, 0, 0},
    {"compile", OPTION_FLAG, offsetof(bench_options, compile), NULL,
     "also print the time of each compiler pass and of each kernel", 0, 0, 0},
    {"json", OPTION_FLAG, offsetof(bench_options, json), NULL, "print JSON", 0, 0, 0},
};

enum { RUNS_LEAST = 10, RUNS_MOST = 10000 };
static const int64_t enough_run_ns = 1000000000;

/** A measurement. */
typedef struct bench {
  command *c;
  tn_binding *binding;
  double compile_ms;                  /* of a workload's plan; of a model's loading and first run */
  tn_context_info used;               /* device and target */
  tn_kernel_cache_info before, after; /* kernels counted around the compilation */
  tn_explanation *explanation;        /* of the compilation; NULL: not requested */
  tn_contractions contractions;
  double bytes;   /* traffic of a run; 0: unknown */
  VEC(double) ms; /* of each run */
  statistics stats;
  double peak_gflops;  /* NAN: not measured */
  const char *no_peak; /* why rates are not compared with the peak; NULL: they are */
  uint64_t peak_bytes; /* of the process, resident */
} bench;

static double ms_since(int64_t start) { return (double)(clock_now_ns() - start) / 1e6; }

static tn_kernel_cache_info count_kernels(command *c) {
  tn_kernel_cache_info counts = TN_KERNEL_CACHE_INFO_INIT;
  command_check_status(c, tn_kernel_cache_get(c->context, &counts));
  return counts;
}

/* Compiling. */

static void request_explanation(bench *b) {
  command *c = b->c;
  if (((const bench_options *)c->options)->compile)
    command_check_status(c, tn_explain(c->context, false, &b->explanation));
}

static const char *const input_names[WORKLOAD_INPUTS] = {"0", "1", "2"};

static void bind_random_input(bench *b, size_t i, const workload *w, tn_shape shape,
                              uint64_t *seed) {
  host_array a = host_array_alloc(b->c, b->c->operand, w->dtype, shape);
  host_array_fill(&a, FILL_RANDOM, seed);
  int64_t port = tn_binding_find(b->binding, TN_PORT_INPUT, input_names[i]);
  tn_status s = tn_binding_input_at(b->binding, (size_t)port, shape, w->dtype, a.data, a.bytes);
  command_check_binding(b->c, s, b->binding);
}

static double type_bytes(tn_type t) {
  double bytes = (double)tn_dtype_size(t.dtype);
  for (int32_t i = 0; i < t.shape.rank; i++) bytes *= (double)t.shape.size[i];
  return bytes;
}

/** Counts the bytes and operations of a workload from its shapes. */
static void count_workload(bench *b, const workload *w) {
  tn_shape shapes[WORKLOAD_INPUTS];
  size_t n = workload_inputs(w, shapes);
  for (size_t i = 0; i < n; i++) b->bytes += type_bytes((tn_type){w->dtype, shapes[i]});
  b->bytes += type_bytes(tn_binding_type_at(b->binding, 0));
  b->contractions =
      (tn_contractions){.operations = workload_operations(w), .is_float = w->dtype != TN_I8};
}

static void prepare_workload(bench *b, const workload *w) {
  command *c = b->c;
  uint64_t seed = ((const bench_options *)c->options)->seed;
  tn_shape shapes[WORKLOAD_INPUTS];
  tn_tensor *in[WORKLOAD_INPUTS];
  tn_plan *plan;
  size_t n = workload_inputs(w, shapes);
  for (size_t i = 0; i < n; i++) in[i] = tn_input(c->context, input_names[i], shapes[i], w->dtype);
  b->before = count_kernels(c);
  int64_t start = clock_now_ns();
  request_explanation(b);
  tn_tensor *out = workload_build(w, c->context, in);
  command_check_status(c, tn_plan_compile(c->context, &out, 1, NULL, &plan));
  b->compile_ms = ms_since(start);
  command_check_status(c, tn_plan_bind(plan, &b->binding));
  for (size_t i = 0; i < n; i++) bind_random_input(b, i, w, shapes[i], &seed);
  command_check_binding(c, tn_binding_run(b->binding), b->binding);
  b->after = count_kernels(c);
  count_workload(b, w);
}

/** Counts the contractions of a model; none if a size is unknown before the model runs. */
static tn_contractions count_contractions(command *c, const tn_model *m, const model_inputs *in) {
  tn_contractions found = TN_CONTRACTIONS_INIT;
  tn_shape *shapes = arena_alloc(&c->arena, (in->n + 1) * sizeof *shapes);
  for (size_t i = 0; i < in->n; i++) shapes[i] = in->at[i].value.shape;
  tn_status s = tn_model_contractions(m, shapes, in->n, &found);
  if (s == TN_ERR_MEMORY) command_check_status(c, s);
  return found;
}

static void prepare_model(bench *b, const tn_model_desc *desc) {
  command *c = b->c;
  const bench_options *o = c->options;
  tn_model *m;
  int64_t start = clock_now_ns();
  command_check_status(c, model_inputs_load_model(c, desc, &o->input, &m));
  double load_ms = ms_since(start);
  model_inputs in = model_inputs_make(c, m, &o->input, o->seed);
  b->before = count_kernels(c);
  start = clock_now_ns();
  request_explanation(b);
  command_check_status(c, tn_model_bind(m, &b->binding));
  model_inputs_bind(c, &in, b->binding);
  command_check_binding(c, tn_binding_run(b->binding), b->binding);
  b->compile_ms = load_ms + ms_since(start);
  b->after = count_kernels(c);
  b->contractions = count_contractions(c, m, &in);
}

/* Measuring. */

static bool has_enough_runs(const bench *b, int64_t start) {
  const bench_options *o = b->c->options;
  if (o->repeat) return (int64_t)b->ms.n >= o->repeat;
  return b->ms.n >= RUNS_MOST || (b->ms.n >= RUNS_LEAST && clock_now_ns() - start >= enough_run_ns);
}

static void run_repeatedly(bench *b) {
  command *c = b->c;
  const bench_options *o = c->options;
  for (int64_t i = 0; i < o->warmup; i++)
    command_check_binding(c, tn_binding_run(b->binding), b->binding);
  for (int64_t start = clock_now_ns(); !has_enough_runs(b, start);) {
    int64_t before = clock_now_ns();
    tn_status s = tn_binding_run(b->binding);
    double ms = ms_since(before);
    command_check_binding(c, s, b->binding);
    vec_push(&c->arena, &b->ms, ms);
  }
  b->stats = statistics_of(b->ms.at, b->ms.n);
}

/** The library that computes a step; NULL: none does. */
static const char *find_library(const bench *b) {
  tn_step step = TN_STEP_INIT;
  for (size_t i = 0; tn_binding_step(b->binding, i, &step) == TN_OK; i++)
    if (step.library) return step.library;
  return NULL;
}

static void measure(bench *b) {
  command *c = b->c;
  run_repeatedly(b);
  struct rusage use;
  getrusage(RUSAGE_SELF, &use);
  b->peak_bytes = (uint64_t)use.ru_maxrss * 1024;
  bool has_peak = b->contractions.operations > 0 && b->contractions.is_float;
  const tn_context_info *used = &b->used;
  if (has_peak) b->no_peak = machine_peak_why_none(c, used, find_library(b));
  has_peak = has_peak && !b->no_peak;
  b->peak_gflops =
      has_peak ? machine_peak_gflops(used->threads, used->vector_bytes, &c->arena) : NAN;
}

/* Output. */

static double per_second(double amount, double ms) { return amount > 0 ? amount / ms / 1e6 : NAN; }
static double gflops(const bench *b) {
  return per_second(b->contractions.operations, b->stats.best);
}
static double gbps(const bench *b) { return per_second(b->bytes, b->stats.best); }

static uint64_t compiled(const bench *b) { return b->after.compiled - b->before.compiled; }
static uint64_t kernels(const bench *b) { return compiled(b) + b->after.found - b->before.found; }

static const char *kernel_name(const explained_plan *x, size_t kernel) {
  for (size_t i = 0; i < x->steps.n; i++)
    if (x->steps.at[i].kernel == (int64_t)kernel) return x->steps.at[i].name;
  return "";
}

static json_t *json_cost(const char *name, arena *a, const tn_explained_cost *cost) {
  return json_pack("{s:o, s:f, s:I, s:I}", "name", text_json(a, name), "ms", (double)cost->ns / 1e6,
                   "nodes", (json_int_t)cost->nodes, "rules", (json_int_t)cost->rules);
}

static json_t *json_compilation(const bench *b) {
  arena *a = &b->c->arena;
  const explained_plan x = explained_plan_list(b->explanation, a);
  json_t *passes = json_array(), *kernels = json_array();
  for (size_t i = 0; i < x.passes.n; i++)
    json_array_append_new(passes, json_cost(x.passes.at[i].name, a, &x.passes.at[i].cost));
  for (size_t i = 0; i < x.kernels.n; i++)
    json_array_append_new(kernels, json_cost(kernel_name(&x, i), a, &x.kernels.at[i].cost));
  return json_pack("{s:o, s:o}", "passes", passes, "kernels", kernels);
}

static void print_cost(const char *name, const tn_explained_cost *cost) {
  printf("%10.3f %9" PRIu64 " %7" PRIu64 "  %s\n", (double)cost->ns / 1e6, cost->nodes, cost->rules,
         name);
}

static void print_compilation(const bench *b) {
  arena *a = &b->c->arena;
  const explained_plan x = explained_plan_list(b->explanation, a);
  printf("\n%10s %9s %7s  %s\n", "ms", "nodes", "rules", "pass");
  for (size_t i = 0; i < x.passes.n; i++) print_cost(x.passes.at[i].name, &x.passes.at[i].cost);
  printf("\n%10s %9s %7s  %s\n", "ms", "nodes", "rules", "kernel, without the compiler");
  for (size_t i = 0; i < x.kernels.n; i++)
    print_cost(arena_printf(a, "%zu %s", i + 1, text_escape(a, kernel_name(&x, i))),
               &x.kernels.at[i].cost);
}

static void print_json(const bench *b) {
  const command *c = b->c;
  const tn_context_info *used = &b->used;
  const statistics *s = &b->stats;
  arena *a = &b->c->arena;
  json_t *all = json_pack(
      "{s:o, s:s, s:s, s:i, s:I, s:f, s:f, s:f, s:f, s:f, s:o, s:o, s:o, s:o, s:o, "
      "s:f, s:I, s:I, s:I}",
      "name", text_json(a, c->operand), "device", used->device, "target", used->target, "threads",
      (int)used->threads, "runs", (json_int_t)b->ms.n, "best_ms", s->best, "median_ms", s->p50,
      "p90_ms", s->p90, "p99_ms", s->p99, "mean_ms", s->mean, "sd_ms", text_json_number(s->sd),
      "gflops", text_json_number(gflops(b)), "gbps", text_json_number(gbps(b)), "peak_fraction",
      text_json_number(gflops(b) / b->peak_gflops), "peak_gflops", text_json_number(b->peak_gflops),
      "compile_ms", b->compile_ms, "kernels", (json_int_t)kernels(b), "compiled",
      (json_int_t)compiled(b), "peak_bytes", (json_int_t)b->peak_bytes);
  if (b->explanation) json_object_set_new(all, "compile", json_compilation(b));
  text_json_print(a, all);
}

static void print_mean(const bench *b) {
  const statistics *s = &b->stats;
  text_unit unit = text_time_unit(s->mean);
  double sd = s->sd / unit.factor;
  printf("mean     %.4g", s->mean / unit.factor);
  if (!isnan(sd)) printf(sd < 99.5 ? " ± %.2g" : " ± %.0f", sd);
  printf(" %s, %s\n", unit.name, text_count(&b->c->arena, b->ms.n, "run"));
}

static void print_text(const bench *b) {
  const tn_context_info *used = &b->used;
  const statistics *s = &b->stats;
  arena *a = &b->c->arena;
  printf("%s on %s, %s%s%s\n", text_escape(a, b->c->operand), used->device, used->target,
         command_is_processor(used) ? ", " : "",
         command_is_processor(used) ? text_count(a, (uint64_t)used->threads, "thread") : "");
  printf("compile  %.2f ms, %s, %llu compiled\n", b->compile_ms,
         text_count(a, kernels(b), "kernel"), (unsigned long long)compiled(b));
  printf("best     %s\n", text_time(a, s->best));
  print_mean(b);
  printf("p50      %s, p90 %s, p99 %s\n", text_time(a, s->p50), text_time(a, s->p90),
         text_time(a, s->p99));
  if (!isnan(gflops(b)))
    printf("rate     %.4g %s\n", gflops(b), b->contractions.is_float ? "GFLOP/s" : "GOP/s");
  if (b->no_peak)
    printf("peak     unknown: %s\n", b->no_peak);
  else if (gflops(b) > b->peak_gflops)
    printf("peak     more than the measured %.4g GFLOP/s: the machine was busy meanwhile\n",
           b->peak_gflops);
  else if (!isnan(b->peak_gflops))
    printf("peak     %.3g %% of the measured %.4g GFLOP/s\n", 100 * gflops(b) / b->peak_gflops,
           b->peak_gflops);
  if (!isnan(gbps(b))) printf("traffic  %.4g GB/s\n", gbps(b));
  printf("memory   %s at most\n", text_bytes(a, b->peak_bytes));
  if (b->explanation) print_compilation(b);
}

/** Raises for an operand that is not a file and looks like a misspelt workload. */
static void check_operand(command *c) {
  if (access(c->operand, F_OK)) workload_reject(c, c->operand);
}

static int act(command *c) {
  const bench_options *o = c->options;
  bench b = {.c = c};
  workload w;
  bool is_workload = workload_parse(c, c->operand, &w);
  if (is_workload && (o->input.n || o->size.n || o->variants))
    command_usage_error(c, "--%s applies to models, not to workloads",
                        o->input.n  ? "input"
                        : o->size.n ? "size"
                                    : "variants");
  if (!is_workload) check_operand(c);
  model_inputs_check_option(c, "input", INPUT_OPTION_VALUE, &o->input);
  tn_model_desc desc = load_model_parse_sizes(c, &o->size);
  load_model_parse_variants(c, o->variants, &desc);
  math_option_parse(c, o->math);
  command_open_context(c, o->device, o->threads, o->compile ? "off" : NULL);
  b.used = command_check_context(c);
  if (is_workload)
    prepare_workload(&b, &w);
  else
    prepare_model(&b, &desc);
  measure(&b);
  if (o->json)
    print_json(&b);
  else
    print_text(&b);
  return EXIT_DONE;
}

const verb verb_bench = {
    .name = "bench",
    .summary = "Measure the run time of a model or a workload",
    .operand = "MODEL|WORKLOAD",
    .examples = "tenon bench model.onnx --size batch=8 --threads 4\n"
                "tenon bench matmul:512x512x512:bf16\n"
                "tenon bench model.onnx --compile --json",
    .about =
        "A WORKLOAD is matmul:MxNxK, conv:N,C,H,W,K,R,stride,pad, attention:HxSxD, softmax:RxC,\n"
        "layernorm:RxC, gelu:RxC, add:RxC, sum:RxC:axis, transpose:RxC or copy:BYTES, followed by\n"
        "its type: :f16, :bf16 or (matmul, conv, add, sum, transpose, copy) :i8; the default is\n"
        "f32. Contractions of i8 accumulate in i32. BYTES may have a suffix k, M, G or T (powers\n"
        "of 1024).\n\n"
        "The rate counts contractions (sums of products), a multiply-add counting as two\n"
        "operations. The traffic counts a workload's inputs and output once each, without what\n"
        "its kernels write and read between. Both refer to the best time. The peak is the rate of\n"
        "f32 multiply-adds in registers, measured in the same process with the same threads and\n"
        "vector width; for devices other than CPU, and where a library computes that does not "
        "heed\n"
        "TENON_CPU, it is unknown.\n\n"
        "--json: name, device, target, threads, runs; best_ms, median_ms, p90_ms, p99_ms,\n"
        "mean_ms, sd_ms (null for one run); gflops, gbps (the traffic; null for models),\n"
        "peak_fraction, peak_gflops (null if unknown); compile_ms (a workload's plan; a model's\n"
        "loading and first run); kernels; compiled (those of them not found in a cache);\n"
        "peak_bytes (the largest resident memory of the process).\n\n"
        "--compile: disables the disk cache, so that everything is compiled. Passes are listed in\n"
        "order, each over all kernels, with the nodes that they created and the rules that fired;\n"
        "render writes the sources, compiler compiles them, on several threads at once. With\n"
        "--json also compile: passes and kernels, each with name, ms, nodes and rules.",
    .options = options,
    .n_options = sizeof options / sizeof *options,
    .options_bytes = sizeof(bench_options),
    .act = act,
};
