/* tenon inspect: what a model file holds, whether or not it can be run. */
#include "cli/feed.h"
#include "cli/load.h"
#include "cli/text.h"
#include "formats/declared.h"
#include "formats/onnx/import.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct inspect_options {
  option_list size;
  bool memory, json;
} inspect_options;

static const option options[] = {
    {"size", OPTION_LIST, offsetof(inspect_options, size), LOAD_SIZE_VALUE, LOAD_SIZE_ABOUT, 0, 0,
     0},
    {"memory", OPTION_FLAG, offsetof(inspect_options, memory), NULL,
     "compile the model, and tell the memory that its runs need", 0, 0, 0},
    {"json", OPTION_FLAG, offsetof(inspect_options, json), NULL, "print JSON", 0, 0, 0},
};

typedef struct op_count {
  const char *name; /* with its domain, unless that is the default one */
  size_t n;
} op_count;

/** What a file holds, added up over its graph, nested graphs and functions. */
typedef struct inspection {
  command *c;
  tn_model_desc desc; /* of loading the model */
  file_map file;
  onnx_model *model;
  names weights; /* names of the graph's initializers */
  VEC(op_count) ops;
  names op_places; /* name → its place in ops + 1 */
  size_t tensors, nodes;
  uint64_t elements, bytes;
  VEC(const char *) unsupported;
  bool failed; /* to load, though it has no operator that is not supported */
  bool has_memory;
  tn_memory memory; /* of runs */
  bool partly;      /* only operators were checked: data outside the file is missing */
  names declared;   /* output → what the file says of its type, where that is something else */
} inspection;

/* Counting. */

static const char *node_name(inspection *x, const onnx_node *n) {
  bool is_default = !*n->domain || !strcmp(n->domain, "ai.onnx");
  return is_default ? n->op_type : arena_printf(&x->c->arena, "%s.%s", n->domain, n->op_type);
}

static void count_node(inspection *x, const onnx_node *n) {
  arena *a = &x->c->arena;
  const char *name = node_name(x, n);
  size_t place = (size_t)(uintptr_t)names_get(&x->op_places, name);
  if (!place) {
    vec_push(a, &x->ops, (op_count){name, 0});
    place = x->ops.n;
    names_set(a, &x->op_places, name, (void *)(uintptr_t)place);
  }
  x->ops.at[place - 1].n++;
  x->nodes++;
}

static void count_weights(inspection *x, const onnx_graph *g) {
  for (size_t i = 0; i < g->initializers.n; i++) {
    const onnx_tensor *t = g->initializers.at[i];
    x->tensors++;
    x->elements += t->elements;
    x->bytes += t->bytes;
    for (size_t k = 0; k < t->strings.n; k++) x->bytes += t->strings.at[k].n;
  }
}

typedef VEC(const onnx_graph *) graphs;

static void count_nodes(inspection *x, const onnx_nodes *nodes, graphs *nested) {
  for (size_t i = 0; i < nodes->n; i++) {
    const onnx_node *n = &nodes->at[i];
    count_node(x, n);
    for (size_t k = 0; k < n->attributes.n; k++) {
      const onnx_attribute *attribute = &n->attributes.at[k];
      if (attribute->g) vec_push(&x->c->arena, nested, attribute->g);
      for (size_t j = 0; j < attribute->graphs.n; j++)
        vec_push(&x->c->arena, nested, attribute->graphs.at[j]);
    }
  }
}

static int by_count(const void *a, const void *b) {
  const op_count *x = a, *y = b;
  return x->n != y->n ? (x->n < y->n) - (x->n > y->n) : strcmp(x->name, y->name);
}

static void count_all(inspection *x) {
  graphs waiting = {0};
  vec_push(&x->c->arena, &waiting, x->model->graph);
  for (size_t i = 0; i < x->model->functions.n; i++)
    count_nodes(x, &x->model->functions.at[i].nodes, &waiting);
  while (waiting.n) {
    const onnx_graph *g = vec_pop(&waiting);
    count_weights(x, g);
    count_nodes(x, &g->nodes, &waiting);
  }
  if (x->ops.n) qsort(x->ops.at, x->ops.n, sizeof *x->ops.at, by_count);
}

static void add_unsupported(inspection *x, const char *lines) {
  arena *a = &x->c->arena;
  for (const char *at = lines; *at;) {
    size_t n = strcspn(at, "\n");
    vec_push(a, &x->unsupported, arena_printf(a, "%.*s", (int)n, at));
    at += n + (at[n] == '\n');
  }
}

static void settle_port(const tn_port *port, onnx_type *t) {
  for (size_t i = 0; i < t->dims.n; i++) {
    onnx_dim *d = &t->dims.at[i];
    bool is_said = strcmp(port->sizes[i], "…") != 0;
    d->value = port->type.shape.size[i];
    if (d->value < 0 && is_said) d->param = port->sizes[i];
  }
}

/** Puts what is known of the model in the place of what its file leaves open, where sizes are
   given, or says wrongly. */
static void settle_ports(inspection *x, const tn_model *m, tn_port_kind kind,
                         const onnx_values *values) {
  arena *a = &x->c->arena;
  tn_port port = TN_PORT_INIT;
  for (size_t i = 0, k = 0; tn_model_port(m, kind, i, &port) == TN_OK; i++, k++) {
    while (k < values->n && strcmp(values->at[k].name, port.name) != 0) k++;
    if (k == values->n) return;
    onnx_type *t = &values->at[k].type;
    if (!declared_fits(t, &port)) {
      names_set(a, &x->declared, values->at[k].name, (void *)declared_text(a, t));
      *t = declared_port(a, &port);
    } else if (x->desc.n_sizes && port.type.shape.rank == (int64_t)t->dims.n) {
      settle_port(&port, t);
    }
  }
}

/** Finds the memory of runs; nothing is run. */
static void find_memory(inspection *x, tn_model *m) {
  command *c = x->c;
  tn_binding *b;
  feeds in = feed_make(c, m, &(option_list){0}, 0);
  command_check(c, tn_model_bind(m, &b));
  feed_bind(c, &in, b);
  command_check_binding(c, tn_binding_memory(b, &x->memory), b);
  x->has_memory = true;
}

/** Loads the model to see what is wrong besides operators: types, ranks, shapes that do not fit.
    Nothing is compiled, and no variable heeded, unless the memory is asked for. */
static void check_by_loading(inspection *x) {
  command *c = x->c;
  const inspect_options *o = c->options;
  tn_open_desc desc = TN_OPEN_DESC_INIT;
  tn_model *m;
  desc.environment = false;
  if (o->memory)
    command_open(c, NULL, 0);
  else if (!(c->context = tn_open(&desc)))
    diag_raise(&c->diag, TN_ERR_MEMORY, "out of memory");
  command_check_open(c);
  tn_status s = load_model(c, &x->desc, x->file.was_pipe ? &x->file : NULL, &m);
  if (s == TN_ERR_MEMORY) command_check(c, s);
  x->partly = s == TN_ERR_IO && x->model->external.n;
  if (s == TN_OK) {
    settle_ports(x, m, TN_PORT_INPUT, &x->model->graph->inputs);
    settle_ports(x, m, TN_PORT_OUTPUT, &x->model->graph->outputs);
  }
  if (s == TN_OK && o->memory) find_memory(x, m);
  if (s == TN_OK || x->partly) return;
  const char *why = tn_message(c->context), *path = load_path(c->operand), *at = strstr(why, path);
  if (at) why = at + strlen(path) + strspn(at + strlen(path), ": ");
  add_unsupported(x, why);
  x->failed = true;
}

static void check(inspection *x) {
  str report = str_new(&x->c->arena);
  import_check(x->model, &report);
  add_unsupported(x, str_text(&report));
  if (!x->unsupported.n) check_by_loading(x);
}

static void read_model(void *arg) {
  inspection *x = arg;
  arena *a = &x->c->arena;
  diag *d = &x->c->diag;
  if (file_map_read(&x->file, load_path(x->c->operand), d)) diag_rethrow(d);
  if (onnx_parse(&x->model, x->file.data, x->file.bytes, a, d)) {
    diag_prefix(d, "%s", load_path(x->c->operand));
    diag_rethrow(d);
  }
  const onnx_graph *g = x->model->graph;
  for (size_t i = 0; i < g->initializers.n; i++)
    names_set(a, &x->weights, g->initializers.at[i]->name, x);
  count_all(x);
  check(x);
}

/* For people. */

static void print_values(inspection *x, const char *title, const onnx_values *values,
                         bool without_weights) {
  arena *a = &x->c->arena;
  size_t width = 0;
  for (size_t i = 0; i < values->n; i++) {
    size_t n = text_columns(text_safe(a, values->at[i].name));
    if (n > width && n <= 32) width = n;
  }
  printf("%s\n", title);
  for (size_t i = 0; i < values->n; i++) {
    const onnx_value *v = &values->at[i];
    if (without_weights && names_get(&x->weights, v->name)) continue;
    const char *name = text_safe(a, v->name);
    size_t n = text_columns(name);
    printf("  %s%*s  %s", name, (int)(n < width ? width - n : 0), "",
           text_safe(a, declared_text(a, &v->type)));
    const char *declared = names_get(&x->declared, v->name);
    if (declared) printf(", where the file says %s", text_safe(a, declared));
    puts("");
  }
}

static void print_opsets(inspection *x) {
  arena *a = &x->c->arena;
  const onnx_model *m = x->model;
  fputs("opset      ", stdout);
  for (size_t i = 0; i < m->opsets.n; i++) {
    const onnx_opset *o = &m->opsets.at[i];
    printf("%s%s %" PRId64, i ? ", " : "", *o->domain ? text_safe(a, o->domain) : "ai.onnx",
           o->version);
  }
  printf(" (IR version %" PRId64 ")\n", m->ir_version);
}

static uint64_t memory_sum(const tn_memory *m) {
  return m->inputs + m->outputs + m->values + m->states + m->scratch;
}

static void print_memory(inspection *x) {
  arena *a = &x->c->arena;
  const tn_memory *m = &x->memory;
  printf("memory     %s: inputs %s, outputs %s, weights %s, between steps %s\n",
         text_bytes(a, memory_sum(m)), text_bytes(a, m->inputs), text_bytes(a, m->outputs),
         text_bytes(a, m->values), text_bytes(a, m->scratch));
}

static void print_text(inspection *x) {
  arena *a = &x->c->arena;
  const onnx_model *m = x->model;
  printf("model      %s\n", text_safe(a, x->c->operand));
  if (*m->producer_name || *m->producer_version)
    printf("producer   %s\n",
           text_safe(a, arena_printf(a, "%s%s%s", m->producer_name, *m->producer_version ? " " : "",
                                     m->producer_version)));
  print_opsets(x);
  printf("parameters %" PRIu64 " in %s, %s\n", x->elements, text_count(a, x->tensors, "tensor"),
         text_bytes(a, x->bytes));
  if (m->external.n)
    printf("           %s outside the file\n", text_count(a, m->external.n, "tensor"));
  if (x->has_memory) print_memory(x);
  print_values(x, "inputs", &m->graph->inputs, true);
  print_values(x, "outputs", &m->graph->outputs, false);
  printf("operators  %zu, %s\n", x->nodes, text_count(a, x->ops.n, "kind"));
  for (size_t i = 0; i < x->ops.n; i++)
    printf("  %6zu %s\n", x->ops.at[i].n, text_safe(a, x->ops.at[i].name));
  if (!x->unsupported.n && !x->partly) puts("supported  all of it");
  if (x->partly) puts("supported  all operators; the rest is known with the data outside the file");
  if (x->unsupported.n)
    puts(x->failed ? "not loaded, though all operators are supported" : "not supported");
  for (size_t i = 0; i < x->unsupported.n; i++)
    printf("  %s\n", text_safe(a, x->unsupported.at[i]));
}

/* For programs. */

static json_t *json_shape(inspection *x, const onnx_type *t) {
  json_t *shape = json_array();
  for (size_t i = 0; i < t->dims.n; i++) {
    const onnx_dim *d = &t->dims.at[i];
    json_array_append_new(shape, d->value >= 0           ? json_integer(d->value)
                                 : d->param && *d->param ? text_json(&x->c->arena, d->param)
                                                         : json_null());
  }
  return shape;
}

static json_t *json_values(inspection *x, const onnx_values *values, bool without_weights) {
  arena *a = &x->c->arena;
  json_t *list = json_array();
  for (size_t i = 0; i < values->n; i++) {
    const onnx_value *v = &values->at[i];
    const onnx_type *t = &v->type;
    bool is_tensor = t->kind == ONNX_TYPE_TENSOR;
    if (without_weights && names_get(&x->weights, v->name)) continue;
    json_t *told = json_pack("{s:o, s:o, s:o, s:o}", "name", text_json(a, v->name), "type",
                             text_json(a, declared_text(a, t)), "dtype",
                             text_json(a, is_tensor ? onnx_dtype_name(t->dtype) : NULL), "shape",
                             is_tensor && t->has_shape ? json_shape(x, t) : json_null());
    const char *declared = names_get(&x->declared, v->name);
    if (declared) json_object_set_new(told, "declared", text_json(a, declared));
    json_array_append_new(list, told);
  }
  return list;
}

static json_t *json_opsets(inspection *x) {
  json_t *list = json_object();
  for (size_t i = 0; i < x->model->opsets.n; i++) {
    const onnx_opset *o = &x->model->opsets.at[i];
    const char *domain = *o->domain ? o->domain : "ai.onnx";
    json_object_set_new(list, text_safe(&x->c->arena, domain), json_integer(o->version));
  }
  return list;
}

static json_t *json_ops(inspection *x) {
  json_t *list = json_object();
  for (size_t i = 0; i < x->ops.n; i++)
    json_object_set_new(list, text_safe(&x->c->arena, x->ops.at[i].name),
                        json_integer((json_int_t)x->ops.at[i].n));
  return list;
}

static json_t *json_memory(const tn_memory *m) {
  return json_pack("{s:I, s:I, s:I, s:I, s:I}", "inputs", (json_int_t)m->inputs, "outputs",
                   (json_int_t)m->outputs, "weights", (json_int_t)m->values, "scratch",
                   (json_int_t)m->scratch, "total", (json_int_t)memory_sum(m));
}

static void print_json(inspection *x) {
  arena *a = &x->c->arena;
  const onnx_model *m = x->model;
  json_t *unsupported = json_array();
  for (size_t i = 0; i < x->unsupported.n; i++)
    json_array_append_new(unsupported, text_json(a, x->unsupported.at[i]));
  json_t *parameters = json_pack("{s:I, s:I, s:I, s:I}", "tensors", (json_int_t)x->tensors,
                                 "elements", (json_int_t)x->elements, "bytes", (json_int_t)x->bytes,
                                 "external", (json_int_t)m->external.n);
  json_t *all = json_pack("{s:o, s:I, s:o, s:o, s:o, s:o, s:o, s:o, s:I, s:o, s:o, s:s}", "model",
                          text_json(a, x->c->operand), "ir_version", (json_int_t)m->ir_version,
                          "producer", text_json(a, m->producer_name), "producer_version",
                          text_json(a, m->producer_version), "opsets", json_opsets(x), "inputs",
                          json_values(x, &m->graph->inputs, true), "outputs",
                          json_values(x, &m->graph->outputs, false), "parameters", parameters,
                          "nodes", (json_int_t)x->nodes, "operators", json_ops(x), "unsupported",
                          unsupported, "checked", x->partly ? "operators" : "all");
  if (x->has_memory) json_object_set_new(all, "memory", json_memory(&x->memory));
  text_json_print(a, all);
}

static void print(void *arg) {
  inspection *x = arg;
  const inspect_options *o = x->c->options;
  read_model(x);
  if (o->json)
    print_json(x);
  else
    print_text(x);
}

static int act(command *c) {
  const inspect_options *o = c->options;
  inspection x = {.c = c, .desc = load_sizes(c, &o->size), .memory = TN_MEMORY_INIT};
  tn_status s = diag_catch(&c->diag, print, &x);
  file_map_close(&x.file);
  if (s != TN_OK) diag_rethrow(&c->diag);
  return x.unsupported.n ? EXIT_FAILED : EXIT_DONE;
}

const verb verb_inspect = {
    .name = "inspect",
    .summary = "Tells what a model file holds, and all that is not supported of it",
    .operand = "MODEL",
    .about =
        "The exit status is 1 where something is not supported: all operators that are not are\n"
        "named at once; where there are none, the model is loaded, and what that fails at is "
        "told.\n"
        "Without its files of external data only operators are checked. Operators are counted in\n"
        "nested graphs and functions too. Shapes are as the file has them; with --size, as they\n"
        "then are. Of an output that is of another type than the file says, both are told.\n\n"
        "--memory compiles kernels, and runs none. Sizes that vary are the least that they can "
        "be,\n"
        "from 1 on, unless --size says what they are. Weights are read where they are in the file\n"
        "where the device can; the program itself and its kernels come on top.\n\n"
        "--json: model, ir_version, producer, producer_version, opsets (by domain); inputs and\n"
        "outputs, each with name, type (text), dtype and shape (numbers, names, null: not known;\n"
        "null: any shape), and declared (text) where the file says another type; parameters with\n"
        "tensors, elements, bytes, external (how many tensors lie outside the file); nodes;\n"
        "operators (counts by name); unsupported (lines of text); checked (all, or operators:\n"
        "files of external data are missing). With --memory also memory: inputs, outputs,\n"
        "weights, scratch (what lives between steps) and total, in bytes.",
    .options = options,
    .n_options = sizeof options / sizeof *options,
    .options_bytes = sizeof(inspect_options),
    .act = act,
};
