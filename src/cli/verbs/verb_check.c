/* Implements `tenon check`, which runs a model compiled and by the interpreter, compares the
   results, and finds the first node that differs. */
#include "cli/core/math_option.h"
#include "cli/core/text_format.h"
#include "cli/data/compare_outputs.h"
#include "cli/data/find_difference.h"
#include "cli/data/load_model.h"
#include "cli/verbs/verb_table.h"

#include "base/file.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

typedef struct check_options {
  option_list input, size;
  const char *tolerance, *variants, *math, *device;
  int64_t threads;
  uint64_t seed;
  bool nodes, bisect, json;
} check_options;

static const option options[] = {
    {"input", OPTION_LIST, offsetof(check_options, input), INPUT_OPTION_VALUE, INPUT_OPTION_HELP, 0,
     0, 0},
    {"size", OPTION_LIST, offsetof(check_options, size), SIZE_OPTION_VALUE, SIZE_OPTION_HELP, 0, 0,
     0},
    {"tolerance", OPTION_STRING, offsetof(check_options, tolerance), "R",
     "relative tolerance of all floats (default: that of their type: 1e-9 for f64,\n"
     "1e-3 for f32, 0.02 for f16, 0.1 for bf16, 0.5 for smaller ones)",
     0, 0, 0},
    {"nodes", OPTION_FLAG, offsetof(check_options, nodes), NULL,
     "print a comparison of the values of all nodes, also if the outputs are equal", 0, 0, 0},
    {"bisect", OPTION_FLAG, offsetof(check_options, bisect), NULL,
     "find the first node that differs in a few runs with few values as outputs,\n"
     "instead of one with all; for large models",
     0, 0, 0},
    VARIANTS_OPTION(check_options),
    MATH_OPTION(check_options),
    THREADS_OPTION(check_options),
    {"device", OPTION_STRING, offsetof(check_options, device), "NAME",
     "device to run on (default: CPU); tenon devices lists them", 0, 0, 0},
    {"seed", OPTION_UINT64, offsetof(check_options, seed), "N",
     "seed of the random inputs (default: 0)", 0, 0, 0},
    {"json", OPTION_FLAG, offsetof(check_options, json), NULL, "print JSON", 0, 0, 0},
};

/** A check of the command's model. */
typedef struct check {
  command *c;
  checked_model model;
  file_map bytes; /* of the file */
  tn_model_file *file;
  model_inputs inputs;
  value_map computed;             /* the outputs of a compiled run */
  checked_values outputs, values; /* values: of nodes */
  found_difference found;
  bool differs;
} check;

static bool is_random(const check *k) {
  for (size_t i = 0; i < k->inputs.n; i++)
    if (!strncmp(k->inputs.at[i].from, "random", 6)) return true;
  return false;
}

/* Comparing. */

/** Parses the file, whose nodes are compared. */
static void read_nodes(check *k) {
  command *c = k->c;
  tn_failure why = {0};
  if (file_map_open(&k->bytes, c->operand, &c->diag)) diag_rethrow(&c->diag);
  tn_status s = tn_model_file_parse(k->bytes.data, k->bytes.bytes, &k->file, &why);
  if (s != TN_OK) diag_raise(&c->diag, s, "%s: %s", c->operand, why.text);
  k->model.nodes = model_nodes_list(c, k->file);
}

/** Interprets the model; with `all`, for the values of all nodes too. */
static void interpret(check *k, const tn_model *m, bool all) {
  command *c = k->c;
  tn_model_desc desc = k->model.desc;
  const model_nodes *nodes = &k->model.nodes;
  VEC(const char *) names = {0};
  string_map seen = {0};
  tn_port port = TN_PORT_INIT;
  desc.interpreted = true;
  for (size_t i = 0; all && i < nodes->values.n; i++) {
    vec_push(&c->arena, &names, nodes->values.at[i].name);
    string_map_set(&c->arena, &seen, nodes->values.at[i].name, k);
  }
  for (size_t i = 0; all && tn_model_port(m, TN_PORT_OUTPUT, i, &port) == TN_OK; i++)
    if (!string_map_get(&seen, port.name)) vec_push(&c->arena, &names, port.name);
  desc.outputs = names.at;
  desc.n_outputs = names.n;
  progress_show(&c->progress, all ? "interpreting all nodes" : "interpreting");
  model_values_compute(c, &desc, &k->model.inputs, &k->model.interpreted);
  progress_clear(&c->progress);
}

static void compare_outputs(check *k) {
  for (size_t i = 0; i < k->computed.entries.n; i++) {
    const char *name = k->computed.entries.at[i].key;
    const host_array *expected = string_map_get(&k->model.interpreted, name);
    if (!expected) diag_raise(&k->c->diag, TN_ERR_INTERNAL, "output %s was not interpreted", name);
    checked_value v = check_value(&k->model, name, k->computed.entries.at[i].value, expected);
    vec_push(&k->c->arena, &k->outputs, v);
    k->differs |= checked_value_differs(&v);
  }
}

static void bisect(check *k) {
  for (size_t i = 0; i < k->outputs.n && !k->found.is_found; i++) {
    const checked_value *v = &k->outputs.at[i];
    size_t number = model_nodes_find(&k->model.nodes, v->name);
    if (checked_value_differs(v) && number != SIZE_MAX)
      k->found = bisect_difference(&k->model, number, v);
  }
}

static void compare_nodes(check *k) {
  const check_options *o = k->c->options;
  if (o->bisect)
    bisect(k);
  else
    k->found = find_difference(&k->model, o->nodes ? &k->values : NULL);
  k->differs |= k->found.is_found;
  if (k->found.is_found) k->found.cause = find_cause(&k->model, &k->found);
}

/* Text. */

static const char *file_name(const check *k) {
  const char *slash = strrchr(k->c->operand, '/');
  return slash ? slash + 1 : k->c->operand;
}

static const tn_model_node *node_of(const check *k, size_t value) {
  return &k->model.nodes.at.at[k->model.nodes.values.at[value].node];
}

/** Appends the numbers of NaNs or infinities where these are unequal. */
static void add_special(str *s, const char *what, size_t n, size_t expected) {
  if (n != expected) str_addf(s, ", %zu %s, not %zu", n, what, expected);
}

static const char *beyond_text(const check *k, const checked_value *v) {
  arena *a = &k->c->arena;
  const value_difference *d = &v->difference;
  str s = str_new(a);
  if (!v->has_same_type)
    return arena_printf(a, "is not %s", host_array_type_text(k->c, v->interpreted));
  str_addf(&s, "%zu of %zu", d->beyond, d->elements);
  add_special(&s, "NaN", d->nans, d->expected_nans);
  add_special(&s, "infinite", d->infinities, d->expected_infinities);
  return str_text(&s);
}

static void print_padded(const char *text, size_t width) {
  size_t n = text_columns(text);
  printf("%s%*s  ", text, (int)(n < width ? width - n : 0), "");
}

enum { WIDEST = 40 }; /* column of names and types */

/** The row's first words: the name, after the node of a node's value. */
static const char *row_name(const check *k, const checked_value *v, bool of_nodes) {
  arena *a = &k->c->arena;
  size_t number = model_nodes_find(&k->model.nodes, v->name);
  if (!of_nodes || number == SIZE_MAX) return text_escape(a, v->name);
  return text_escape(a, arena_printf(a, "%s %s", node_of(k, number)->op, v->name));
}

static void print_table(const check *k, const char *title, const checked_values *all,
                        bool of_nodes) {
  arena *a = &k->c->arena;
  size_t widths[2] = {strlen(title), strlen("type")};
  for (size_t i = 0; i < all->n; i++) {
    size_t n[] = {text_columns(row_name(k, &all->at[i], of_nodes)),
                  text_columns(host_array_type_text(k->c, all->at[i].computed))};
    for (int j = 0; j < 2; j++)
      if (n[j] > widths[j] && n[j] <= WIDEST) widths[j] = n[j];
  }
  print_padded(title, widths[0]);
  print_padded("type", widths[1]);
  printf("%10s %10s %10s  %s\n", "difference", "relative", "tolerance", "beyond it");
  for (size_t i = 0; i < all->n; i++) {
    const checked_value *v = &all->at[i];
    print_padded(row_name(k, v, of_nodes), widths[0]);
    print_padded(host_array_type_text(k->c, v->computed), widths[1]);
    if (v->has_same_type)
      printf("%10.3g %10.3g %10g  ", v->difference.largest, v->difference.relative,
             v->difference.tolerance);
    puts(text_escape(a, beyond_text(k, v)));
  }
}

static const char *const cause_words[] = {[CAUSE_UNKNOWN] = "unknown",
                                          [CAUSE_WRONG] = "wrong",
                                          [CAUSE_SUMS] = "sums",
                                          [CAUSE_INPUTS] = "inputs",
                                          [CAUSE_FUSION] = "fusion"};

static const char *const cause_texts[] = {
    [CAUSE_UNKNOWN] = "unknown: the node was not computed alone",
    [CAUSE_WRONG] = "from equal inputs the node computes wrongly, with --math exact too",
    [CAUSE_SUMS] =
        "from equal inputs the node sums differently: with --math exact it is within the "
        "tolerance of its type",
    [CAUSE_INPUTS] =
        "from equal inputs the node is within the tolerance: it makes small differences "
        "of its inputs larger",
    [CAUSE_FUSION] = "the node is within the tolerance where the values that it reads are outputs: "
                     "it differs where it is computed together with others"};

/** "is 1.5 at [0, 1], not 1.2". */
static const char *first_text(const check *k, const checked_value *v) {
  command *c = k->c;
  size_t i = v->difference.first;
  if (!v->has_same_type)
    return arena_printf(&c->arena, "is %s, not %s", host_array_type_text(c, v->computed),
                        host_array_type_text(c, v->interpreted));
  const char *is = host_array_element_text(c, v->computed, i);
  const char *expected = host_array_element_text(c, v->interpreted, i);
  if (!strcmp(is, expected)) { /* all digits tell them apart */
    is = arena_printf(&c->arena, "%.17g", host_array_value(v->computed, i));
    expected = arena_printf(&c->arena, "%.17g", host_array_value(v->interpreted, i));
  }
  return arena_printf(&c->arena, "is %s at %s, not %s; %s beyond the tolerance, by up to %.3g", is,
                      host_array_index_text(c, v->computed, i), expected, beyond_text(k, v),
                      v->difference.largest);
}

static void print_found(const check *k) {
  arena *a = &k->c->arena;
  const check_options *o = k->c->options;
  const found_difference *f = &k->found;
  if (!f->is_found) {
    if (k->differs)
      printf("first      none of the values of nodes differs where all are outputs%s\n",
             o->bisect ? "" : "; --bisect finds what differs where nodes are computed together");
    return;
  }
  const tn_model_node *n = node_of(k, f->value);
  printf("first      %s\n",
         text_escape(a, arena_printf(a, "%s node '%s' of %s: %s %s", n->op, n->name, file_name(k),
                                     k->model.nodes.values.at[f->value].name,
                                     first_text(k, &f->check))));
  printf("cause      %s\n", cause_texts[f->cause]);
}

static void print_text(const check *k) {
  arena *a = &k->c->arena;
  const check_options *o = k->c->options;
  if (is_random(k)) printf("seed       %" PRIu64 "\n", o->seed);
  print_table(k, "output", &k->outputs, false);
  if (k->values.n) puts("");
  if (k->values.n) print_table(k, "node value", &k->values, true);
  print_found(k);
  if (!k->differs)
    printf("equal      %s within the tolerance%s\n", text_count(a, k->outputs.n, "output"),
           k->values.n ? arena_printf(a, ", and %s", text_count(a, k->values.n, "node value"))
                       : "");
}

/* JSON. */

static json_t *json_value(const check *k, const checked_value *v) {
  arena *a = &k->c->arena;
  const value_difference *d = &v->difference;
  json_t *shape = json_array();
  for (int32_t i = 0; i < v->computed->shape.rank; i++)
    json_array_append_new(shape, json_integer(v->computed->shape.size[i]));
  json_t *made = json_pack("{s:o, s:s, s:o, s:b}", "name", text_json(a, v->name), "type",
                           tn_dtype_name(v->computed->dtype), "shape", shape, "equal",
                           !checked_value_differs(v));
  if (!v->has_same_type) {
    json_object_set_new(made, "expected_type",
                        text_json(a, host_array_type_text(k->c, v->interpreted)));
    return made;
  }
  json_object_update_new(
      made, json_pack("{s:o, s:o, s:f, s:I, s:I, s:I, s:I, s:I, s:I}", "difference",
                      text_json_float(d->largest), "relative", text_json_float(d->relative),
                      "tolerance", d->tolerance, "elements", (json_int_t)d->elements, "beyond",
                      (json_int_t)d->beyond, "nans", (json_int_t)d->nans, "expected_nans",
                      (json_int_t)d->expected_nans, "infinities", (json_int_t)d->infinities,
                      "expected_infinities", (json_int_t)d->expected_infinities));
  return made;
}

static json_t *json_values(const check *k, const checked_values *all) {
  json_t *list = json_array();
  for (size_t i = 0; i < all->n; i++) {
    const checked_value *v = &all->at[i];
    size_t number = model_nodes_find(&k->model.nodes, v->name);
    json_t *made = json_value(k, v);
    if (all == &k->values && number != SIZE_MAX) {
      json_object_set_new(made, "node", text_json(&k->c->arena, node_of(k, number)->name));
      json_object_set_new(made, "operator", text_json(&k->c->arena, node_of(k, number)->op));
    }
    json_array_append_new(list, made);
  }
  return list;
}

static json_t *json_found(const check *k) {
  arena *a = &k->c->arena;
  const found_difference *f = &k->found;
  if (!f->is_found) return json_null();
  const tn_model_node *n = node_of(k, f->value);
  json_t *made = json_value(k, &f->check);
  json_object_update_new(made, json_pack("{s:o, s:o, s:s, s:I}", "node", text_json(a, n->name),
                                         "operator", text_json(a, n->op), "cause",
                                         cause_words[f->cause], "runs", (json_int_t)f->runs));
  return made;
}

static void print_json(const check *k) {
  arena *a = &k->c->arena;
  const check_options *o = k->c->options;
  json_t *all =
      json_pack("{s:o, s:o, s:b, s:o, s:o}", "model", text_json(a, k->c->operand), "seed",
                is_random(k) ? json_integer((json_int_t)o->seed) : json_null(), "equal",
                !k->differs, "outputs", json_values(k, &k->outputs), "first", json_found(k));
  if (o->nodes) json_object_set_new(all, "nodes", json_values(k, &k->values));
  text_json_print(a, all);
}

/* The whole. */

static void check_model(void *arg) {
  check *k = arg;
  command *c = k->c;
  const check_options *o = c->options;
  tn_model *m;
  command_check_status(c, model_inputs_load_sized(c, &k->model.desc, &o->input, &m));
  k->inputs = model_inputs_make(c, m, &o->input, o->seed);
  model_values_add_inputs(c, &k->inputs, &k->model.inputs);
  read_nodes(k);
  /* Compiled runs name nodes in errors, and so come first. */
  model_values_compute(c, &k->model.desc, &k->model.inputs, &k->computed);
  interpret(k, m, o->nodes || o->bisect);
  compare_outputs(k);
  if (k->differs && !o->nodes && !o->bisect) interpret(k, m, true);
  tn_model_free(m);
  if (k->differs || o->nodes) compare_nodes(k);
  if (o->json)
    print_json(k);
  else
    print_text(k);
}

static int act(command *c) {
  const check_options *o = c->options;
  check k = {.c = c,
             .model = {.c = c,
                       .desc = load_model_parse_sizes(c, &o->size),
                       .device = o->device,
                       .threads = o->threads,
                       .tolerance = tolerance_parse(c, "tolerance", o->tolerance, -1)}};
  if (!strcmp(c->operand, "-"))
    command_usage_error(c, "the model is read several times, so it cannot be standard input");
  if (o->nodes && o->bisect) command_usage_error(c, "--nodes and --bisect cannot be combined");
  model_inputs_check_option(c, "input", INPUT_OPTION_VALUE, &o->input);
  load_model_parse_variants(c, o->variants, &k.model.desc);
  math_option_parse(c, o->math);
  command_open_context(c, o->device, o->threads, NULL);
  command_check_context(c);
  tn_status s = diag_catch(&c->diag, check_model, &k);
  tn_model_file_free(k.file);
  file_map_close(&k.bytes);
  if (s != TN_OK) diag_rethrow(&c->diag);
  return k.differs ? EXIT_FAILED : EXIT_DONE;
}

const verb verb_check = {
    .name = "check",
    .summary = "Compare a model's compiled results with interpreted ones",
    .operand = "MODEL",
    .examples = "tenon check model.onnx\n"
                "tenon check model.onnx --input x=image.npy --nodes\n"
                "tenon check model.onnx --size batch=2 --bisect --json",
    .about =
        "The model runs compiled, and by an interpreter that computes each operator by its\n"
        "definition, element after element, without any rewriting; it takes a hundred times as\n"
        "long and more. The exit status is 0 if all outputs are equal within the tolerance, else\n"
        "1. Then the first node whose value differs is named, and the cause: the node is compiled\n"
        "alone and fed with the interpreted values of what it reads.\n\n"
        "An element a is beyond the tolerance R of an expected one e if |a - e| > R * (|e| + s).\n"
        "s is typical of the array: a quarter of its expected elements, without 0, are smaller.\n"
        "NaN matches NaN alone, infinities match themselves; integers and bools must be equal.\n"
        "Differences below four times the least normal number of the type are none.\n\n"
        "Values of nodes are had by making them outputs, so that less is fused; those of nested\n"
        "graphs and functions belong to the node that has them. Sequences are not compared.\n"
        "--bisect compiles the model a few times instead, with up to 7 values as outputs.\n\n"
        "Causes: wrong (from equal inputs the node computes something else, with --math exact\n"
        "too); sums (with --math exact it is within the tolerance of its type, so sums go in\n"
        "another order or are rounded otherwise); inputs (from equal inputs it is equal, so small\n"
        "differences of its inputs have grown); fusion (it is equal where the values that it\n"
        "reads are outputs); unknown.\n\n"
        "--json: model; seed (null if no input is random); equal; outputs (name, type, shape,\n"
        "equal, difference, relative, tolerance, elements, beyond, nans, expected_nans,\n"
        "infinities, expected_infinities; expected_type instead if type or shape differ); first\n"
        "(null if there is none; the same of its value, with node, operator, cause and runs, the\n"
        "number of compiled runs). With --nodes also nodes (as outputs, with node and operator).",
    .options = options,
    .n_options = sizeof options / sizeof *options,
    .options_bytes = sizeof(check_options),
    .act = act,
};
