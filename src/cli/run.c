/* tenon run: a model, once. */
#include "cli/array.h"
#include "cli/check.h"
#include "cli/files.h"
#include "cli/load.h"
#include "cli/profile.h"
#include "cli/testset.h"
#include "cli/text.h"

#include "base/file.h"
#include "base/thread.h"
#include "device/pool.h"
#include "formats/model.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct run_options {
  option_list input, output, size;
  int64_t threads;
  uint64_t seed;
  const char *device, *trace;
  bool profile, json;
  const char *input_dir, *output_dir, *check, *rtol, *atol;
} run_options;

#define OUTPUT_VALUE "NAME=FILE"

static const option options[] = {
    {"input", OPTION_LIST, offsetof(run_options, input), FEED_VALUE, FEED_ABOUT, 0, 0, 0},
    {"output", OPTION_LIST, offsetof(run_options, output), OUTPUT_VALUE,
     "write an output, by name, to a .npy file, which is none that is read; links\n"
     "are followed, a device or a pipe is written as it is, - is standard output;\n"
     "the file is replaced once all is written, or, where it cannot be (a mount\n"
     "point, a folder that is not writable), written over",
     0, 0, 0},
    {"size", OPTION_LIST, offsetof(run_options, size), LOAD_SIZE_VALUE, LOAD_SIZE_ABOUT, 0, 0, 0},
    {"threads", OPTION_NUMBER, offsetof(run_options, threads), "N",
     "threads to use (default: as many as physical cores)", 1, POOL_MOST, 0},
    {"device", OPTION_TEXT, offsetof(run_options, device), "NAME",
     "where to run (default: CPU); tenon devices lists what there is", 0, 0, 0},
    {"seed", OPTION_BITS, offsetof(run_options, seed), "N",
     "start of the random numbers (default: 0)", 0, 0, 0},
    {"profile", OPTION_FLAG, offsetof(run_options, profile), NULL,
     "run some more times, and tell of each step how long it takes, its rates, and\n"
     "its share of this machine's measured peak",
     0, 0, 0},
    {"trace", OPTION_TEXT, offsetof(run_options, trace), "FILE",
     "write when what was done to a file that ui.perfetto.dev opens", 0, 0, 0},
    {"json", OPTION_FLAG, offsetof(run_options, json), NULL, "print JSON", 0, 0, 0},
    {"input-dir", OPTION_TEXT, offsetof(run_options, input_dir), "DIR",
     "read the inputs, in the model's order, from DIR/input_0.pb and so on", 0, 0, 0},
    {"output-dir", OPTION_TEXT, offsetof(run_options, output_dir), "DIR",
     "write the outputs to DIR/output_0.pb and so on; DIR is made if need be", 0, 0, 0},
    {"check", OPTION_TEXT, offsetof(run_options, check), "DIR",
     "compare with recorded results: run each DIR/test_data_set_N, or DIR itself,\n"
     "and end with status 1 at the first output that differs",
     0, 0, 0},
    {"rtol", OPTION_TEXT, offsetof(run_options, rtol), "X",
     "of --check: by how much of its value an element may be off (default: 1e-3)", 0, 0, 0},
    {"atol", OPTION_TEXT, offsetof(run_options, atol), "X",
     "of --check: by how much more (default: 1e-7)", 0, 0, 0},
};

enum { FIRST = 8 };

/** An output, and where it goes. */
typedef struct result {
  const char *name, *file; /* file NULL: it is printed */
  array value;
  array_summary sum;
} result;

typedef VEC(result) results;

static result read_result(command *c, tn_binding *b, const char *name, const char *file) {
  result r = {.name = name, .file = file, .value = array_of_output(c, b, name)};
  r.sum = array_sum_up(&r.value);
  return r;
}

static results read_results(command *c, const tn_model *m, tn_binding *b,
                            const char *const files[]) {
  results all = {0};
  tn_port port = TN_PORT_INIT;
  for (size_t i = 0; tn_model_port(m, TN_PORT_OUTPUT, i, &port) == TN_OK; i++)
    vec_push(&c->arena, &all, read_result(c, b, port.name, files[i]));
  return all;
}

static bool is_standard_output(const char *file) { return !strcmp(file, "-"); }

static void write_files(command *c, const results *all) {
  for (size_t i = 0; i < all->n; i++) {
    const result *r = &all->at[i];
    if (!r->file) continue;
    bool is_standard = is_standard_output(r->file);
    array_write(c, &r->value, is_standard ? NULL : r->file);
    command_note(c, "wrote %s to %s", r->name, is_standard ? "standard output" : r->file);
  }
}

/* What it prints. */

static void print_result(command *c, const result *r) {
  const array *a = &r->value;
  printf("%s: %s\n", text_safe(&c->arena, r->name), array_type(c, a));
  if (!a->elements) return;
  if (r->sum.least != SIZE_MAX)
    printf("  min %s, max %s, mean %s\n", array_text(c, a, r->sum.least),
           array_text(c, a, r->sum.greatest), text_number(&c->arena, r->sum.mean));
  if (r->sum.nans) printf("  %zu of %zu elements are NaN\n", r->sum.nans, a->elements);
  fputs(" ", stdout);
  for (size_t i = 0; i < a->elements && i < FIRST; i++) printf(" %s", array_text(c, a, i));
  puts(a->elements > FIRST ? " …" : "");
}

static json_t *json_shape(const array *a) {
  json_t *shape = json_array();
  for (int32_t i = 0; i < a->shape.rank; i++)
    json_array_append_new(shape, json_integer(a->shape.size[i]));
  return shape;
}

static json_t *json_place(const array *a, size_t i) {
  return i == SIZE_MAX ? json_null() : array_json(a, i);
}

static json_t *json_mean(double mean) { return isnan(mean) ? json_null() : text_json_float(mean); }

static json_t *json_result(command *c, const result *r) {
  const array *a = &r->value;
  json_t *first = json_array();
  for (size_t i = 0; i < a->elements && i < FIRST; i++)
    json_array_append_new(first, array_json(a, i));
  return json_pack("{s:o, s:s, s:o, s:o, s:o, s:o, s:I, s:o, s:o}", "name",
                   text_json(&c->arena, r->name), "type", tn_dtype_name(a->dtype), "shape",
                   json_shape(a), "min", json_place(a, r->sum.least), "max",
                   json_place(a, r->sum.greatest), "mean", json_mean(r->sum.mean), "nans",
                   (json_int_t)r->sum.nans, "first", first, "file", text_json(&c->arena, r->file));
}

static json_t *json_feed(command *c, const feed *f) {
  return json_pack("{s:o, s:s, s:o, s:o}", "name", text_json(&c->arena, f->name), "type",
                   tn_dtype_name(f->value.dtype), "shape", json_shape(&f->value), "from",
                   text_json(&c->arena, f->from));
}

static void print_json(command *c, const feeds *in, const results *out, const profile *p) {
  json_t *inputs = json_array(), *outputs = json_array();
  for (size_t i = 0; i < in->n; i++) json_array_append_new(inputs, json_feed(c, &in->at[i]));
  for (size_t i = 0; i < out->n; i++) json_array_append_new(outputs, json_result(c, &out->at[i]));
  span_of_time first = p->runs.at[0].time;
  json_t *all =
      json_pack("{s:o, s:o, s:o, s:f}", "model", text_json(&c->arena, c->operand), "inputs", inputs,
                "outputs", outputs, "ms", (double)(first.end - first.begin) / 1e6);
  if (((const run_options *)c->options)->profile)
    json_object_set_new(all, "profile", profile_json(p));
  text_json_print(&c->arena, all);
}

static void add_output(files *f, const char *file) {
  files_write(f, "output", is_standard_output(file) ? NULL : file);
}

/** Whether results are printed, as nothing else was said. */
static bool prints_results(const run_options *o) { return !o->output.n && !o->output_dir; }

static void add_printed(files *f, const run_options *o) {
  if (o->json)
    files_print(f, "where --json prints");
  else if (o->profile || prints_results(o))
    files_print(f, o->profile ? "where --profile prints" : "where results are printed");
}

static void add_folder(files *f, size_t n, const char *folder) {
  if (!file_is_there(folder)) {
    files_make_folder(f, "output-dir", folder);
    return;
  }
  for (size_t i = 0; i < n; i++)
    files_write(f, "output-dir", testset_path(f->c, folder, TN_PORT_OUTPUT, i));
}

static void add_trace(files *f, const char *file) {
  if (is_standard_output(file)) command_misuse(f->c, "--trace writes to a file, not to %s", file);
  files_write(f, "trace", file);
}

/** Where outputs go; what is wrong with anything that is written is told before the model runs. */
static const char *const *find_files(files *f, const tn_model *m) {
  const run_options *o = f->c->options;
  const char *const *outputs = feed_match(f->c, "output", &o->output, m, TN_PORT_OUTPUT);
  add_printed(f, o);
  for (size_t i = 0; i < m->n_outputs; i++)
    if (outputs[i]) add_output(f, outputs[i]);
  if (o->output_dir) add_folder(f, m->n_outputs, o->output_dir);
  if (o->trace) add_trace(f, o->trace);
  return outputs;
}

static void check_options(command *c) {
  const run_options *o = c->options;
  feed_check_list(c, "input", FEED_VALUE, &o->input);
  feed_check_list(c, "output", OUTPUT_VALUE, &o->output);
  if (o->input_dir && o->input.n) command_misuse(c, "--input-dir gives all inputs: --input cannot");
  if (o->check && (o->input_dir || o->output_dir || o->input.n || o->output.n || o->json ||
                   o->profile || o->trace))
    command_misuse(c, "--check has its own inputs and outputs, and prints no JSON and no profile");
  if (!o->check && (o->rtol || o->atol)) command_misuse(c, "--rtol and --atol belong to --check");
}

static feeds make_feeds(command *c, const tn_model *m) {
  const run_options *o = c->options;
  return o->input_dir ? testset_read(c, o->input_dir, m, TN_PORT_INPUT)
                      : feed_make(c, m, &o->input, o->seed);
}

static void write_folder(command *c, const char *folder, const results *all) {
  if (file_make_folder(folder, 0777, &c->diag)) diag_rethrow(&c->diag);
  for (size_t i = 0; i < all->n; i++)
    testset_write(c, folder, i, all->at[i].name, &all->at[i].value);
  if (all->n) command_note(c, "wrote %s to %s", text_count(&c->arena, all->n, "output"), folder);
}

static void write_trace(const profile *p) {
  const char *file = ((const run_options *)p->c->options)->trace;
  if (!file) return;
  profile_write_trace(p, file);
  command_note(p->c, "wrote the trace to %s", file);
}

static void tell(const profile *p, const feeds *in, const results *out) {
  command *c = p->c;
  const run_options *o = c->options;
  if (o->json) {
    print_json(c, in, out, p);
    return;
  }
  for (size_t i = 0; i < out->n && prints_results(o); i++) print_result(c, &out->at[i]);
  if (o->profile) profile_print(p);
}

static int act(command *c) {
  const run_options *o = c->options;
  tn_model *m;
  tn_binding *b;
  check_options(c);
  check_tolerance tolerance = {check_number(c, "rtol", o->rtol, 1e-3),
                               check_number(c, "atol", o->atol, 1e-7)};
  tn_model_desc desc = load_sizes(c, &o->size);
  command_open(c, o->device, o->threads);
  command_check_open(c);
  profile p = {.c = c};
  int64_t start = clock_now();
  command_check(c, feed_load(c, &desc, &o->input, &m));
  profile_add_phase(&p, "load", start);
  if (o->check) return check_sets(c, m, o->check, tolerance);
  files touched = {.c = c};
  files_read_model(&touched, m);
  const char *const *outputs = find_files(&touched, m);
  start = clock_now();
  feeds in = make_feeds(c, m);
  profile_add_phase(&p, "inputs", start);
  files_read_inputs(&touched, &in);
  start = clock_now();
  command_check(c, tn_model_bind(m, &b));
  profile_add_phase(&p, "compile", start);
  feed_bind(c, &in, b);
  profile_begin(&p, b, o->profile || o->trace);
  profile_run_once(&p);
  if (o->profile) profile_run_more(&p);
  results out = read_results(c, m, b, outputs);
  write_files(c, &out);
  write_trace(&p);
  if (o->output_dir) write_folder(c, o->output_dir, &out);
  if (o->profile) profile_sum_up(&p);
  tell(&p, &in, &out);
  return EXIT_DONE;
}

const verb verb_run = {
    .name = "run",
    .summary = "Runs a model once and tells, or writes, what it gives",
    .operand = "MODEL",
    .about =
        "MODEL may be -, standard input; pipes are read to their end. ./- is a file of that "
        "name.\n\n"
        "Without --output each output's name, type, shape, least and greatest element, mean and\n"
        "first elements are printed. Random floats have mean 0 and deviation 1; random integers\n"
        "and bools are 0 or 1. A file may hold another type than its input has: it is converted,\n"
        "as tn_cast does. NumPy has no bf16: such arrays are u16 in files, their bits.\n\n"
        "--check, --input-dir and --output-dir are for ONNX's layout of test data, in which each\n"
        "tensor is a file. --check prints a line for each set. NaN is as expected where NaN is\n"
        "expected; integers and bools are to be equal.\n\n"
        "--profile: operations are arithmetic and comparisons, a multiply-add being two, and "
        "bytes\n"
        "those of arrays that a step reads and writes, each once. The peaks are what in-register\n"
        "loops of f32 multiply-adds and copies of large arrays reach in the same process; the "
        "share\n"
        "is of the one that the step is nearer to, and above 100 % where data stays in caches.\n"
        "Times are medians of up to ten runs after the first. Names of steps are those of the\n"
        "model's nodes that they compute, without folders that all names begin with, or the\n"
        "operators of nodes that have none.\n\n"
        "--json: model; inputs, each with name, type, shape, from (random, ones, zeros or a\n"
        "file); outputs, each with name, type, shape, min, max, mean (of what is not NaN; null\n"
        "where there is none), nans, first (up to 8 elements), file (null:\n"
        "not written); ms, how long the run took, without loading, compiling, and reading and\n"
        "writing files. It is the first run, and slower than others: tenon bench measures. With\n"
        "--profile also profile: runs, ms and steps_ms (of a run), peak_gflops, peak_gbps, and\n"
        "steps, each with name, kernel (null: a host function or a loop), ms, share, operations,\n"
        "bytes, gflops, gbps, peak_fraction (of the nearer peak), peak (compute or memory), steps\n"
        "(of a loop how many of the next ones it runs; its ms are theirs too) and times (run).",
    .options = options,
    .n_options = sizeof options / sizeof *options,
    .options_bytes = sizeof(run_options),
    .act = act,
};
