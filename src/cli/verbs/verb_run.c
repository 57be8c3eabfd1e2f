/* Implements `tenon run`, which runs a model once and prints, writes or checks its outputs.
   Everything that will be written is checked before the model is compiled. */
#include "cli/core/math_option.h"
#include "cli/core/text_format.h"
#include "cli/data/compare_outputs.h"
#include "cli/data/file_conflicts.h"
#include "cli/data/host_array.h"
#include "cli/data/load_model.h"
#include "cli/data/onnx_test_set.h"
#include "cli/measure/step_profile.h"
#include "cli/report/chrome_trace.h"
#include "cli/verbs/verb_table.h"

#include "base/file.h"
#include "base/thread.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct run_options {
  option_list input, output, size;
  int64_t threads;
  uint64_t seed;
  const char *device, *trace, *variants, *math;
  bool profile, json;
  const char *input_dir, *output_dir, *check, *rtol, *atol;
} run_options;

#define OUTPUT_VALUE "NAME=FILE"

static const option options[] = {
    {"input", OPTION_LIST, offsetof(run_options, input), INPUT_OPTION_VALUE, INPUT_OPTION_HELP, 0,
     0, 0},
    {"output", OPTION_LIST, offsetof(run_options, output), OUTPUT_VALUE,
     "write output NAME to a .npy file, or to standard output (-); links are\n"
     "followed, devices and pipes written directly; a file is replaced once it is\n"
     "complete, or, if that is impossible (a mount point, a read-only folder),\n"
     "overwritten; repeatable",
     0, 0, 0},
    {"size", OPTION_LIST, offsetof(run_options, size), SIZE_OPTION_VALUE, SIZE_OPTION_HELP, 0, 0,
     0},
    VARIANTS_OPTION(run_options),
    MATH_OPTION(run_options),
    THREADS_OPTION(run_options),
    {"device", OPTION_STRING, offsetof(run_options, device), "NAME",
     "device to run on (default: CPU); tenon devices lists them", 0, 0, 0},
    {"seed", OPTION_UINT64, offsetof(run_options, seed), "N",
     "seed of the random inputs (default: 0)", 0, 0, 0},
    {"profile", OPTION_FLAG, offsetof(run_options, profile), NULL,
     "run up to ten more times, and print the time and the rates of each step and\n"
     "its share of this machine's measured peak",
     0, 0, 0},
    {"trace", OPTION_STRING, offsetof(run_options, trace), "FILE",
     "write a timeline to FILE, as trace events for ui.perfetto.dev", 0, 0, 0},
    {"json", OPTION_FLAG, offsetof(run_options, json), NULL, "print JSON", 0, 0, 0},
    {"input-dir", OPTION_STRING, offsetof(run_options, input_dir), "DIR",
     "read the inputs, in the model's order, from DIR/input_0.pb, …", 0, 0, 0},
    {"output-dir", OPTION_STRING, offsetof(run_options, output_dir), "DIR",
     "write the outputs to DIR/output_0.pb, …; create DIR if necessary", 0, 0, 0},
    {"check", OPTION_STRING, offsetof(run_options, check), "DIR",
     "compare outputs with recorded ones: run each DIR/test_data_set_N, or DIR\n"
     "itself, and exit with status 1 at the first output that differs",
     0, 0, 0},
    {"rtol", OPTION_STRING, offsetof(run_options, rtol), "X",
     "relative tolerance of --check (default: 1e-3)", 0, 0, 0},
    {"atol", OPTION_STRING, offsetof(run_options, atol), "X",
     "absolute tolerance of --check (default: 1e-7)", 0, 0, 0},
};

enum { FIRST_SHOWN = 8 }; /* elements */

/** An output and its destination. */
typedef struct result {
  const char *name, *file; /* file NULL: none */
  host_array value;
  host_array_summary summary;
} result;

typedef VEC(result) results;

static result read_result(command *c, const tn_model *m, tn_binding *b, size_t i,
                          const char *file) {
  tn_port port = TN_PORT_INIT;
  tn_model_port(m, TN_PORT_OUTPUT, i, &port);
  const char *name = port.name;
  result r = {.name = name, .file = file, .value = host_array_read_output(c, b, i, name)};
  if (port.is_string) host_array_find_strings(c, &r.value, m);
  r.summary = host_array_summarise(&r.value);
  return r;
}

static results read_results(command *c, const tn_model *m, tn_binding *b,
                            const char *const files[]) {
  results all = {0};
  tn_port port = TN_PORT_INIT;
  for (size_t i = 0; tn_model_port(m, TN_PORT_OUTPUT, i, &port) == TN_OK; i++)
    vec_push(&c->arena, &all, read_result(c, m, b, i, files[i]));
  return all;
}

static bool is_standard_output(const char *file) { return !strcmp(file, "-"); }

static void write_files(command *c, const results *all) {
  for (size_t i = 0; i < all->n; i++) {
    const result *r = &all->at[i];
    if (!r->file) continue;
    bool is_standard = is_standard_output(r->file);
    host_array_save(c, &r->value, is_standard ? NULL : r->file, TN_FILE_NPY, NULL);
    command_print_note(c, "wrote %s to %s", r->name, is_standard ? "standard output" : r->file);
  }
}

/* Printing. */

static void print_result(command *c, const result *r) {
  const host_array *a = &r->value;
  printf("%s: %s\n", text_escape(&c->arena, r->name), host_array_type_text(c, a));
  if (!a->elements) return;
  if (r->summary.least != SIZE_MAX)
    printf("  min %s, max %s, mean %s\n", host_array_element_text(c, a, r->summary.least),
           host_array_element_text(c, a, r->summary.greatest),
           text_number(&c->arena, r->summary.mean));
  if (r->summary.nans) printf("  %zu of %zu elements are NaN\n", r->summary.nans, a->elements);
  fputs(" ", stdout);
  for (size_t i = 0; i < a->elements && i < FIRST_SHOWN; i++)
    printf(" %s", host_array_element_text(c, a, i));
  puts(a->elements > FIRST_SHOWN ? " …" : "");
}

static json_t *json_shape(const host_array *a) {
  json_t *shape = json_array();
  for (int32_t i = 0; i < a->shape.rank; i++)
    json_array_append_new(shape, json_integer(a->shape.size[i]));
  return shape;
}

static json_t *json_element_at(command *c, const host_array *a, size_t i) {
  return i == SIZE_MAX ? json_null() : host_array_element_json(c, a, i);
}

static json_t *json_mean(double mean) { return isnan(mean) ? json_null() : text_json_float(mean); }

static json_t *json_result(command *c, const result *r) {
  const host_array *a = &r->value;
  json_t *first = json_array();
  for (size_t i = 0; i < a->elements && i < FIRST_SHOWN; i++)
    json_array_append_new(first, host_array_element_json(c, a, i));
  return json_pack("{s:o, s:s, s:o, s:o, s:o, s:o, s:I, s:o, s:o}", "name",
                   text_json(&c->arena, r->name), "type", host_array_type_name(a), "shape",
                   json_shape(a), "min", json_element_at(c, a, r->summary.least), "max",
                   json_element_at(c, a, r->summary.greatest), "mean", json_mean(r->summary.mean),
                   "nans", (json_int_t)r->summary.nans, "first", first, "file",
                   text_json(&c->arena, r->file));
}

static json_t *json_input(command *c, const model_input *in) {
  return json_pack("{s:o, s:s, s:o, s:o}", "name", text_json(&c->arena, in->name), "type",
                   host_array_type_name(&in->value), "shape", json_shape(&in->value), "from",
                   text_json(&c->arena, in->from));
}

static void print_json(command *c, const model_inputs *in, const results *out, const profile *p) {
  json_t *inputs = json_array(), *outputs = json_array();
  for (size_t i = 0; i < in->n; i++) json_array_append_new(inputs, json_input(c, &in->at[i]));
  for (size_t i = 0; i < out->n; i++) json_array_append_new(outputs, json_result(c, &out->at[i]));
  time_interval first = p->runs.at[0].time;
  json_t *all =
      json_pack("{s:o, s:o, s:o, s:f}", "model", text_json(&c->arena, c->operand), "inputs", inputs,
                "outputs", outputs, "ms", (double)(first.end - first.begin) / 1e6);
  if (((const run_options *)c->options)->profile)
    json_object_set_new(all, "profile", profile_json(p));
  text_json_print(&c->arena, all);
}

static void add_output(file_set *f, const char *file) {
  file_conflicts_add_target(f, "output", is_standard_output(file) ? NULL : file);
}

/** True if results are printed, because no option writes them. */
static bool prints_outputs(const run_options *o) { return !o->output.n && !o->output_dir; }

static void add_printed(file_set *f, const run_options *o) {
  if (o->json)
    file_conflicts_add_stdout(f, "where --json prints");
  else if (o->profile || prints_outputs(o))
    file_conflicts_add_stdout(f,
                              o->profile ? "where --profile prints" : "where results are printed");
}

static void add_folder(file_set *f, size_t n, const char *folder) {
  if (!file_exists(folder)) {
    file_conflicts_add_folder(f, "output-dir", folder);
    return;
  }
  for (size_t i = 0; i < n; i++)
    file_conflicts_add_target(f, "output-dir", onnx_test_set_path(f->c, folder, TN_PORT_OUTPUT, i));
}

static void add_trace(file_set *f, const char *file) {
  if (is_standard_output(file)) command_usage_error(f->c, "--trace must be a file, not %s", file);
  file_conflicts_add_target(f, "trace", file);
}

/** Counts the outputs; raises for one of strings that is to be written. */
static size_t count_outputs(command *c, const tn_model *m, const char *const files[]) {
  tn_port port = TN_PORT_INIT;
  const char *folder = ((const run_options *)c->options)->output_dir;
  size_t n = 0;
  for (; tn_model_port(m, TN_PORT_OUTPUT, n, &port) == TN_OK; n++)
    if (port.is_string && (files[n] || folder))
      diag_raise(&c->diag, TN_ERR_UNSUPPORTED,
                 "output %s has strings, which are not written to files, only printed", port.name);
  return n;
}

/** Finds the file of each output (NULL: none) and adds all files to be written. */
static const char *const *find_output_files(file_set *f, const tn_model *m) {
  const run_options *o = f->c->options;
  const char *const *outputs =
      model_inputs_match_ports(f->c, "output", &o->output, m, TN_PORT_OUTPUT);
  add_printed(f, o);
  size_t n = count_outputs(f->c, m, outputs);
  for (size_t i = 0; i < n; i++)
    if (outputs[i]) add_output(f, outputs[i]);
  if (o->output_dir) add_folder(f, n, o->output_dir);
  if (o->trace) add_trace(f, o->trace);
  return outputs;
}

static void check_options(command *c) {
  const run_options *o = c->options;
  model_inputs_check_option(c, "input", INPUT_OPTION_VALUE, &o->input);
  model_inputs_check_option(c, "output", OUTPUT_VALUE, &o->output);
  if (o->input_dir && o->input.n)
    command_usage_error(c, "--input-dir and --input cannot be combined");
  if (o->check && (o->input_dir || o->output_dir || o->input.n || o->output.n || o->json ||
                   o->profile || o->trace))
    command_usage_error(
        c, "--check cannot be combined with other inputs or outputs, --json, --profile or --trace");
  if (!o->check && (o->rtol || o->atol))
    command_usage_error(c, "--rtol and --atol require --check");
}

static model_inputs make_inputs(command *c, tn_model *m) {
  const run_options *o = c->options;
  if (o->input_dir) return onnx_test_set_read(c, o->input_dir, m, TN_PORT_INPUT);
  model_inputs in = model_inputs_make(c, m, &o->input, o->seed);
  model_inputs_note_integers(c, &in, m);
  return in;
}

static void write_folder(command *c, const char *folder, const results *all) {
  if (file_create_folders(folder, 0777, &c->diag)) diag_rethrow(&c->diag);
  for (size_t i = 0; i < all->n; i++)
    onnx_test_set_write(c, folder, i, all->at[i].name, &all->at[i].value);
  if (all->n)
    command_print_note(c, "wrote %s to %s", text_count(&c->arena, all->n, "output"), folder);
}

static void write_trace(const chrome_trace *t, const profile *p) {
  const char *file = ((const run_options *)p->c->options)->trace;
  if (!file) return;
  chrome_trace_write(t, p, file);
  command_print_note(p->c, "wrote the trace to %s", file);
}

static void print_results(const profile *p, const model_inputs *in, const results *out) {
  command *c = p->c;
  const run_options *o = c->options;
  if (o->json) {
    print_json(c, in, out, p);
    return;
  }
  for (size_t i = 0; i < out->n && prints_outputs(o); i++) print_result(c, &out->at[i]);
  if (o->profile) profile_print(p);
}

static int act(command *c) {
  const run_options *o = c->options;
  tn_model *m;
  tn_binding *b;
  check_options(c);
  comparison_tolerance tolerance = {tolerance_parse(c, "rtol", o->rtol, 1e-3),
                                    tolerance_parse(c, "atol", o->atol, 1e-7)};
  tn_model_desc desc = load_model_parse_sizes(c, &o->size);
  load_model_parse_variants(c, o->variants, &desc);
  math_option_parse(c, o->math);
  chrome_trace trace = {.c = c};
  if (o->trace) c->tracer = chrome_trace_tracer(&trace);
  command_open_context(c, o->device, o->threads, NULL);
  command_check_context(c);
  profile p = {.c = c};
  int64_t start = clock_now_ns();
  command_check_status(c, model_inputs_load_model(c, &desc, &o->input, &m));
  profile_add_phase(&p, "load", start);
  if (o->check) return compare_test_sets(c, m, o->check, tolerance);
  file_set touched = {.c = c};
  file_conflicts_add_model(&touched, m);
  const char *const *outputs = find_output_files(&touched, m);
  start = clock_now_ns();
  model_inputs in = make_inputs(c, m);
  profile_add_phase(&p, "inputs", start);
  file_conflicts_add_inputs(&touched, &in);
  start = clock_now_ns();
  command_check_status(c, tn_model_bind(m, &b));
  model_inputs_bind(c, &in, b);
  command_check_binding(c, tn_binding_prepare(b), b);
  profile_add_phase(&p, "compile", start);
  profile_start(&p, b, o->profile);
  profile_run_once(&p);
  if (o->profile) profile_run_more(&p);
  results out = read_results(c, m, b, outputs);
  write_files(c, &out);
  write_trace(&trace, &p);
  if (o->output_dir) write_folder(c, o->output_dir, &out);
  if (o->profile) profile_summarise(&p);
  print_results(&p, &in, &out);
  return EXIT_DONE;
}

const verb verb_run = {
    .name = "run",
    .summary = "Run a model once, and print, write or check its outputs",
    .operand = "MODEL",
    .examples = "tenon run model.onnx --input x=image.npy --output y=scores.npy\n"
                "tenon run model.onnx --input x=ones:8x3x224x224 --json\n"
                "tenon run model.onnx --check data\n"
                "tenon run model.onnx --size batch=8 --profile --trace trace.json",
    .about =
        "MODEL is an ONNX file, or - for standard input (./- for a file of that name).\n\n"
        "Unless outputs are written, the name, type, shape, minimum, maximum, mean and first\n"
        "elements of each are printed. Random floats have mean 0 and standard deviation 1; random\n"
        "integers and bools are 0 or 1, strings are empty. A .npy file is converted to the type\n"
        "of its input, as by tn_cast. NumPy has no bf16 and no types under 8 bits: files hold the\n"
        "bits of arrays of them and of 8-bit floats as u16 and u8. Strings are not read from "
        "files\n"
        "and not written to them.\n\n"
        "--check, --input-dir and --output-dir use ONNX's layout of test data, with one tensor in\n"
        "each file. --check prints a line for each test set. NaN matches NaN alone; integers and\n"
        "bools must be equal.\n\n"
        "--profile: operations are arithmetic and comparisons, a multiply-add counting as two;\n"
        "bytes are those of the arrays that a step reads and writes, each counted once. The peaks\n"
        "are measured in the same process: f32 multiply-adds in registers, and copies of large\n"
        "arrays. The share is that of the nearer peak, and exceeds 100 % if data stays in caches.\n"
        "Times are those of the run of median length, of up to ten runs after the first. A step "
        "is\n"
        "named after the model's nodes that it computes, without their common path, or after "
        "their\n"
        "operators. The time of a loop includes that of its body, its share of the time does not.\n"
        "On devices other than CPU no peak is measured: the shares are unknown.\n\n"
        "--json: model; inputs (name, type, shape, from: random, ones, zeros or a file); outputs\n"
        "(name, type, shape, min, max, mean, nans, first: up to 8 elements, file; statistics\n"
        "leave out NaN and are null without elements; file is null if not written); ms of the\n"
        "first run, without loading, compiling and file access. The first run is slower than\n"
        "others: tenon bench measures those. With --profile also profile: runs, ms and steps_ms\n"
        "of a run, peak_gflops, peak_gbps, and steps (name, kernel: null for host functions and\n"
        "loops, ms, share, operations, bytes, gflops, gbps, peak_fraction of the nearer peak,\n"
        "peak: compute or memory, steps: how many of the next steps a loop runs, whose ms it\n"
        "includes, times: how often the step ran).",
    .options = options,
    .n_options = sizeof options / sizeof *options,
    .options_bytes = sizeof(run_options),
    .act = act,
};
