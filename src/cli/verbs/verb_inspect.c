/* Implements `tenon inspect`, which prints the contents of a model file, whether or not the model
   can be run. It loads the model to find what else is wrong, and compiles it only to find the
   memory of its runs. */
#include "cli/core/text_format.h"
#include "cli/data/input_lists.h"
#include "cli/data/load_model.h"
#include "cli/data/model_inputs.h"
#include "cli/verbs/verb_table.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tenon/unstable/model_file.h>

typedef struct inspect_options {
  option_list size, input;
  bool memory, json;
} inspect_options;

static const option options[] = {
    {"size", OPTION_LIST, offsetof(inspect_options, size), SIZE_OPTION_VALUE, SIZE_OPTION_HELP, 0,
     0, 0},
    {"memory", OPTION_FLAG, offsetof(inspect_options, memory), NULL,
     "compile the model and print the memory of its runs", 0, 0, 0},
    {"input", OPTION_LIST, offsetof(inspect_options, input), INPUT_OPTION_VALUE,
     "with --memory:\n" INPUT_OPTION_HELP, 0, 0, 0},
    {"json", OPTION_FLAG, offsetof(inspect_options, json), NULL, "print JSON", 0, 0, 0},
};

/** An input or output, as the file declares it or, if that differs, as the loaded model has it. */
typedef struct inspected_port {
  const char *name, *type;  /* type: as text */
  const char *dtype;        /* NULL: unknown */
  int64_t rank;             /* -1: unknown */
  const int64_t *sizes;     /* -1: not constant */
  const char *const *names; /* of sizes that are not constant; "": none */
  bool is_weight, is_deciding;
  const char *declared; /* the file's type if it contradicts the model's, else NULL */
} inspected_port;

typedef VEC(inspected_port) inspected_ports;

/** A problem, as tn_model_problem. */
typedef struct problem {
  const char *text, *op, *domain, *reason, *nearest;
  int64_t opset, version, newest;
  const char *const *nodes;
  size_t n_nodes;
} problem;

/** A fact: a size, or the elements of an input, which a run tells and variants are compiled for. */
typedef struct fact {
  const char *name;
  bool is_size;
  option_list places; /* "x:0"; of elements: the input */
} fact;

/** A varying size. */
typedef struct size_bounds {
  const char *name;
  int64_t min, max, example;
} size_bounds;

typedef struct inspection {
  command *c;
  tn_model_desc desc; /* for loading the model */
  file_map bytes;     /* of the file */
  tn_model_file *file;
  tn_model_file_info info;
  inspected_ports inputs, outputs;
  VEC(size_bounds) varying; /* sizes of the inputs */
  VEC(fact) facts;
  const char *exact_reason;      /* why sizes cannot be open; NULL: they can */
  const char *exact_text;        /* a sentence about that; NULL: the same */
  bool is_open_from_one;         /* only sizes of 0 cannot */
  VEC(const char *) unsupported; /* operators */
  VEC(const char *) host_loops;
  VEC(problem) problems;
  bool is_told; /* a failure to load is among the problems */
  bool has_memory;
  tn_memory memory; /* of runs */
  bool is_partial;  /* external data is missing, so only operators were checked */
} inspection;

/* Ports. */

static void list_ports(inspection *x, tn_port_kind kind, inspected_ports *to) {
  tn_declared_port p = TN_DECLARED_PORT_INIT;
  for (size_t i = 0; tn_model_file_port(x->file, kind, i, &p) == TN_OK; i++)
    vec_push(&x->c->arena, to,
             (inspected_port){.name = p.name,
                              .type = p.type,
                              .dtype = p.dtype_name,
                              .rank = p.rank,
                              .sizes = p.sizes,
                              .names = p.names,
                              .is_weight = p.is_weight});
}

enum { STRING_OF_ONNX = 8 }; /* the number of the element type */

/** True if a model's port agrees with its declaration; unknown sizes and types agree with any. */
static bool fits_declaration(const tn_declared_port *p, const tn_port *port) {
  const tn_shape *shape = &port->type.shape;
  if (!p->is_tensor) return true;
  if (p->dtype && p->dtype != (port->is_string ? STRING_OF_ONNX : (int32_t)port->type.dtype))
    return false;
  if (p->rank < 0) return true;
  bool fits = p->rank == shape->rank;
  for (int32_t i = 0; fits && i < shape->rank; i++)
    fits = p->sizes[i] < 0 || shape->size[i] < 0 || p->sizes[i] == shape->size[i];
  return fits;
}

/** Copies the sizes of a model's port. A size without a text in the port keeps the file's name if
    `keeps_names`, else it has no name. */
static void copy_sizes(inspection *x, inspected_port *to, const tn_port *port, bool keeps_names) {
  arena *a = &x->c->arena;
  size_t rank = (size_t)port->type.shape.rank;
  int64_t *sizes = arena_alloc(a, (rank + 1) * sizeof *sizes);
  const char **names = arena_alloc(a, (rank + 1) * sizeof *names);
  str type = str_new(a);
  str_addf(&type, "%s [", to->dtype ? to->dtype : "unknown type");
  for (size_t i = 0; i < rank; i++) {
    bool has_text = strcmp(port->sizes[i], "…") != 0;
    sizes[i] = port->type.shape.size[i];
    names[i] = has_text ? port->sizes[i] : keeps_names ? to->names[i] : "";
    if (i) str_add(&type, ", ");
    if (sizes[i] >= 0)
      str_addf(&type, "%" PRId64, sizes[i]);
    else
      str_add(&type, *names[i] ? names[i] : "?");
  }
  str_add(&type, "]");
  to->type = str_text(&type);
  to->rank = (int64_t)rank;
  to->sizes = sizes;
  to->names = names;
}

/** Corrects declared ports that contradict the model's, and, with --size, all sizes. Skips weights,
    which the file may list among its inputs. */
static void correct_ports(inspection *x, const tn_model *m, tn_port_kind kind,
                          inspected_ports *ports) {
  tn_port port = TN_PORT_INIT;
  tn_declared_port declared = TN_DECLARED_PORT_INIT;
  for (size_t i = 0, k = 0; tn_model_port(m, kind, i, &port) == TN_OK; i++, k++) {
    while (k < ports->n && strcmp(ports->at[k].name, port.name) != 0) k++;
    if (tn_model_file_port(x->file, kind, k, &declared) != TN_OK) return;
    inspected_port *to = &ports->at[k];
    to->is_deciding = port.is_deciding;
    if (port.type.shape.rank < 0) continue; /* known when the model runs */
    if (!fits_declaration(&declared, &port)) {
      to->declared = declared.type;
      to->dtype = port.is_string ? "string" : tn_dtype_name(port.type.dtype);
      copy_sizes(x, to, &port, false);
    } else if (x->desc.n_sizes && port.type.shape.rank == declared.rank) {
      copy_sizes(x, to, &port, true);
    }
  }
}

/** Lists the sizes of inputs that vary, each once. */
static void list_varying_sizes(inspection *x, const tn_model *m) {
  tn_port port = TN_PORT_INIT;
  int32_t n_seen = 0; /* numbers of variables ascend */
  for (size_t i = 0; tn_model_port(m, TN_PORT_INPUT, i, &port) == TN_OK; i++)
    for (int32_t k = 0; k < port.type.shape.rank; k++) {
      if (port.variable[k] < n_seen) continue;
      n_seen = port.variable[k] + 1;
      vec_push(&x->c->arena, &x->varying,
               (size_bounds){port.sizes[k], port.min[k], port.max[k], port.example[k]});
    }
}

/** Lists sizes by their variables, then the inputs whose elements decide. */
static void list_facts(inspection *x, const tn_model *m) {
  arena *a = &x->c->arena;
  tn_port port = TN_PORT_INIT;
  for (size_t i = 0; tn_model_port(m, TN_PORT_INPUT, i, &port) == TN_OK; i++)
    for (int32_t k = 0; k < port.type.shape.rank; k++) {
      if (port.variable[k] < 0) continue;
      while (x->facts.n <= (size_t)port.variable[k])
        vec_push(a, &x->facts, (fact){.name = port.sizes[k], .is_size = true});
      vec_push(a, &x->facts.at[port.variable[k]].places,
               arena_printf(a, "%s:%d", port.name, (int)k));
    }
  for (size_t i = 0; tn_model_port(m, TN_PORT_INPUT, i, &port) == TN_OK; i++) {
    if (!port.is_deciding) continue;
    vec_push(a, &x->facts, (fact){.name = port.name});
    vec_push(a, &vec_last(&x->facts).places, port.name);
  }
}

static void list_host_loops(inspection *x, const tn_model *m) {
  arena *a = &x->c->arena;
  const char *node, *what;
  for (size_t i = 0; tn_model_host_loop(m, i, &node, &what) == TN_OK; i++)
    vec_push(a, &x->host_loops, arena_printf(a, "%s: %s", node, what));
}

/* Checking. */

static const char *copy_text(arena *a, const char *text) {
  return text ? arena_printf(a, "%s", text) : NULL;
}

/** Keeps a problem, in the arena, which raises. */
static void keep_problem(void *arg) {
  void **pair = arg;
  inspection *x = pair[0];
  const tn_model_problem *p = pair[1];
  arena *a = &x->c->arena;
  const char **nodes = arena_alloc(a, (p->n_nodes + 1) * sizeof *nodes);
  for (size_t i = 0; i < p->n_nodes; i++) nodes[i] = copy_text(a, p->nodes[i]);
  problem made = {copy_text(a, p->text),
                  copy_text(a, p->op),
                  copy_text(a, p->domain),
                  copy_text(a, p->reason),
                  copy_text(a, p->nearest),
                  p->opset,
                  p->version,
                  p->newest,
                  nodes,
                  p->n_nodes};
  vec_push(a, &x->problems, made);
}

/** Called by the library, through which nothing may be raised. */
static void tell_problem(void *user, const tn_model_problem *p) {
  inspection *x = user;
  void *pair[] = {x, (void *)p};
  if (diag_catch(&x->c->diag, keep_problem, pair) == TN_OK) x->is_told = true;
}

/** Adds a failure that is not among the problems, line by line. */
static void add_failure(inspection *x, const char *lines) {
  arena *a = &x->c->arena;
  for (const char *line = lines; *line;) {
    size_t n = strcspn(line, "\n");
    const char *text = arena_printf(a, "%.*s", (int)n, line);
    vec_push(a, &x->problems, (problem){.text = text, .reason = text});
    line += n + (line[n] == '\n');
  }
}

/** Tells that sizes have to be fixed, and some that fit. */
static void note_example_sizes(const inspection *x) {
  str all = str_new(&x->c->arena);
  for (size_t i = 0; i < x->varying.n; i++)
    str_addf(&all, "%s--size %s=%" PRId64, i ? " " : "", x->varying.at[i].name,
             x->varying.at[i].example);
  command_print_note(x->c,
                     "the memory follows from sizes that are known when the model runs; fix them "
                     "by --size, for example %s",
                     str_text(&all));
}

/** Compiles the model and computes the memory of its runs, without running it. A model whose sizes
    are known when it runs has no plan before. */
static void measure_memory(inspection *x, tn_model *m) {
  command *c = x->c;
  const inspect_options *o = c->options;
  tn_binding *b;
  if (tn_model_exact_sizes(m) && !o->input.n) {
    note_example_sizes(x);
    return;
  }
  model_inputs in = model_inputs_make(c, m, &o->input, 0);
  command_check_status(c, tn_model_bind(m, &b));
  model_inputs_bind(c, &in, b);
  command_check_binding(c, tn_binding_memory(b, &x->memory), b);
  x->has_memory = true;
}

/** Opens a context that takes nothing but the limits on memory and time from the environment: what
    it says of devices and compilers is not needed, and need not be there. */
static void open_for_loading(command *c) {
  static const char *const others[] = {
      "TENON_DEVICE", "TENON_CACHE", "TENON_TUNED", "TENON_BACKEND",
      "TENON_PAIR",   "TENON_CPU",   "TENON_DUMP",  "TENON_THREADS",
      "TENON_MATH",   "TENON_CC",    "CC",          "TENON_VENDOR"};
  tn_open_desc desc = TN_OPEN_DESC_INIT;
  if (c->log_level > TN_LOG_WARNING) desc.logger = command_logger(c);
  for (size_t i = 0; i < sizeof others / sizeof *others; i++) unsetenv(others[i]);
  c->context = tn_open(&desc);
  if (!c->context) diag_raise(&c->diag, TN_ERR_MEMORY, "out of memory");
}

static void forget_problems(inspection *x) {
  x->problems.n = 0;
  x->is_told = false;
}

/** Loads a model again that may be loaded for the lengths and the sizes that --input gives.
    Problems are told of the last load alone. */
static tn_status load_for_inputs(inspection *x, tn_model **m) {
  const inspect_options *o = x->c->options;
  const tn_model_problems told = x->desc.problems;
  forget_problems(x);
  x->desc.problems = (tn_model_problems){0};
  tn_status s = model_inputs_load_sized(x->c, &x->desc, &o->input, m);
  x->desc.problems = told;
  bool is_final = s == TN_OK || s == TN_ERR_MEMORY || s == TN_ERR_TIMEOUT;
  return is_final ? s : load_model(x->c, &x->desc, NULL, m);
}

/** Loads the model; if that fails, for what --input gives, or for sequences of one tensor. A file
    that can be read only once is not loaded again. */
static tn_status load_some_form(inspection *x, tn_model **m) {
  command *c = x->c;
  const inspect_options *o = c->options;
  tn_status s = load_model(c, &x->desc, x->bytes.is_copy ? &x->bytes : NULL, m);
  if (s != TN_ERR_UNSUPPORTED && s != TN_ERR_SHAPE) return s;
  if (o->input.n && !x->bytes.is_copy) return load_for_inputs(x, m);
  if (s != TN_ERR_UNSUPPORTED || !input_lists_choose(c, &(option_list){0}, &x->desc)) return s;
  forget_problems(x);
  return load_model(c, &x->desc, NULL, m);
}

/** Loads the model to find errors besides unsupported operators: types, ranks, shapes. Compiles
    nothing, except for --memory. */
static void check_by_loading(inspection *x) {
  command *c = x->c;
  const inspect_options *o = c->options;
  tn_model *m;
  if (o->memory)
    command_open_context(c, NULL, -1, NULL);
  else
    open_for_loading(c);
  command_check_context(c);
  x->desc.problems = (tn_model_problems){tell_problem, x};
  tn_status s = load_some_form(x, &m);
  load_model_advise(c, &x->desc);
  if (s == TN_ERR_MEMORY || s == TN_ERR_TIMEOUT) command_check_status(c, s);
  x->is_partial = s == TN_ERR_IO && x->info.external;
  if (s == TN_OK) {
    correct_ports(x, m, TN_PORT_INPUT, &x->inputs);
    correct_ports(x, m, TN_PORT_OUTPUT, &x->outputs);
    list_varying_sizes(x, m);
    list_facts(x, m);
    x->exact_reason = copy_text(&c->arena, tn_model_exact_sizes(m));
    x->exact_text = load_model_exact_text(c, m);
    x->is_open_from_one = tn_model_open_from_one(m);
    list_host_loops(x, m);
  }
  if (s == TN_OK && o->memory) measure_memory(x, m);
  for (size_t i = 0; x->is_partial && i < x->unsupported.n; i++)
    add_failure(x, x->unsupported.at[i]);
  if (s == TN_OK || x->is_partial || x->is_told) return;
  add_failure(x, tn_message(c->context));
}

static void read_model(void *arg) {
  inspection *x = arg;
  diag *d = &x->c->diag;
  const char *path = load_model_path(x->c->operand), *line;
  tn_failure failure = {0};
  if (file_map_open_or_pipe(&x->bytes, path, d)) diag_rethrow(d);
  tn_status s = tn_model_file_parse(x->bytes.data, x->bytes.bytes, &x->file, &failure);
  if (s != TN_OK) diag_raise(d, s, "%s: %s", path, failure.text);
  tn_model_file_get(x->file, &x->info);
  list_ports(x, TN_PORT_INPUT, &x->inputs);
  list_ports(x, TN_PORT_OUTPUT, &x->outputs);
  for (size_t i = 0; tn_model_file_unsupported(x->file, i, &line) == TN_OK; i++)
    vec_push(&x->c->arena, &x->unsupported, line);
  check_by_loading(x);
}

/* Text. */

static void print_ports(inspection *x, const char *title, const inspected_ports *ports) {
  arena *a = &x->c->arena;
  size_t width = 0;
  for (size_t i = 0; i < ports->n; i++) {
    size_t n = text_columns(text_escape(a, ports->at[i].name));
    if (n > width && n <= 32) width = n;
  }
  printf("%s\n", title);
  for (size_t i = 0; i < ports->n; i++) {
    const inspected_port *p = &ports->at[i];
    if (p->is_weight) continue;
    const char *name = text_escape(a, p->name);
    size_t n = text_columns(name);
    printf("  %s%*s  %s", name, (int)(n < width ? width - n : 0), "", text_escape(a, p->type));
    if (p->declared) printf(", but the file declares %s", text_escape(a, p->declared));
    if (p->is_deciding) printf(", its elements decide on shapes or branches");
    puts("");
  }
}

/** True if a size of the same name and bounds stands before the i-th. */
static bool is_repeated_size(const inspection *x, size_t i) {
  const size_bounds *s = &x->varying.at[i];
  for (const size_bounds *t = x->varying.at; t < s; t++)
    if (!strcmp(t->name, s->name) && t->min == s->min && t->max == s->max) return true;
  return false;
}

/** Prints sizes, with bounds as --size takes them: "sizes      batch, height=3.., width=..64". */
static void print_varying_sizes(inspection *x) {
  for (size_t i = 0; i < x->varying.n; i++) {
    const size_bounds *s = &x->varying.at[i];
    bool is_bounded = s->min > 0 || s->max < TN_MODEL_SIZE_MAX;
    if (is_repeated_size(x, i)) continue;
    printf("%s%s%s", i ? ", " : "sizes      ", text_escape(&x->c->arena, s->name),
           is_bounded ? "=" : "");
    if (!is_bounded) continue;
    if (s->min > 0) printf("%" PRId64, s->min);
    fputs("..", stdout);
    if (s->max < TN_MODEL_SIZE_MAX) printf("%" PRId64, s->max);
  }
  if (x->varying.n) puts("");
}

static const char *variants_word(const inspection *x) {
  size_t n = x->facts.n;
  return !n ? "one" : x->facts.at[n - 1].is_size ? "sizes" : "values";
}

/** Prints the facts that variants are compiled for: "facts      batch (x:0, y:0), elements of s".
 */
static void print_facts(inspection *x) {
  arena *a = &x->c->arena;
  size_t n = x->facts.n;
  for (size_t i = 0; i < n; i++) {
    const fact *f = &x->facts.at[i];
    printf("%s%s%s", i ? ", " : "facts      ", f->is_size ? "" : "elements of ",
           text_escape(a, f->name));
    for (size_t k = 0; f->is_size && k < f->places.n; k++)
      printf("%s%s", k ? ", " : " (", text_escape(a, f->places.at[k]));
    if (f->is_size) printf(")");
  }
  if (n) puts("");
  bool is_late = n && !x->facts.at[n - 1].is_size;
  if (!x->problems.n && !x->is_partial)
    printf(
        "variants   %s\n",
        !n ? "one"
        : is_late
            ? "one for each set of elements, which is compiled when a run first has it;\n"
              "           from an input's third value on, one for all that nodes can compute with"
        : x->is_open_from_one ? "as where sizes are open; one for each set of sizes with a 0"
        : x->exact_reason
            ? "one for each set of sizes, which is compiled when a run first has it"
            : "one for the sizes of the first run, then others with those open that change");
  if (x->exact_text) printf("           %s\n", text_escape(a, x->exact_text));
}

static void print_opsets(inspection *x) {
  const char *domain;
  int64_t version;
  fputs("opset      ", stdout);
  for (size_t i = 0; tn_model_file_opset(x->file, i, &domain, &version) == TN_OK; i++)
    printf("%s%s %" PRId64, i ? ", " : "", text_escape(&x->c->arena, domain), version);
  printf(" (IR version %" PRId64 ")\n", x->info.ir_version);
}

static void print_operators(inspection *x) {
  arena *a = &x->c->arena;
  const char *name;
  uint64_t count;
  printf("operators  %" PRIu64 ", %s\n", x->info.nodes, text_count(a, x->info.kinds, "kind"));
  for (size_t i = 0; tn_model_file_operator(x->file, i, &name, &count) == TN_OK; i++)
    printf("  %6" PRIu64 " %s\n", count, text_escape(a, name));
}

static uint64_t memory_sum(const tn_memory *m) {
  return m->inputs + m->outputs + m->values + m->states + m->scratch;
}

/** Prints what the memory leaves out, of which there is something. */
static void print_uncounted(inspection *x) {
  arena *a = &x->c->arena;
  uint64_t arrays = x->memory.uncounted;
  size_t loops = x->host_loops.n;
  fputs("           not counted: ", stdout);
  if (arrays) printf("%s whose sizes a run computes", text_count(a, arrays, "array"));
  if (arrays && loops) fputs(", ", stdout);
  if (loops)
    printf("what %s of the host need%s", text_count(a, loops, "loop"), loops == 1 ? "s" : "");
  puts("");
}

static void print_memory(inspection *x) {
  arena *a = &x->c->arena;
  const tn_memory *m = &x->memory;
  printf("memory     %s: inputs %s, outputs %s, weights %s, between steps %s\n",
         text_bytes(a, memory_sum(m)), text_bytes(a, m->inputs), text_bytes(a, m->outputs),
         text_bytes(a, m->values), text_bytes(a, m->scratch));
  if (m->uncounted || x->host_loops.n) print_uncounted(x);
}

static void print_text(inspection *x) {
  arena *a = &x->c->arena;
  const tn_model_file_info *f = &x->info;
  printf("model      %s\n", text_escape(a, x->c->operand));
  if (*f->producer || *f->producer_version)
    printf("producer   %s\n",
           text_escape(a, arena_printf(a, "%s%s%s", f->producer, *f->producer_version ? " " : "",
                                       f->producer_version)));
  print_opsets(x);
  printf("parameters %" PRIu64 " in %s, %s\n", f->elements, text_count(a, f->tensors, "tensor"),
         text_bytes(a, f->bytes));
  if (f->external)
    printf("           %s in external files\n", text_count(a, f->external, "tensor"));
  if (x->has_memory) print_memory(x);
  print_ports(x, "inputs", &x->inputs);
  print_ports(x, "outputs", &x->outputs);
  print_varying_sizes(x);
  print_facts(x);
  print_operators(x);
  for (size_t i = 0; i < x->host_loops.n; i++)
    printf("%s%s\n", i ? "           " : "loops      ", text_escape(a, x->host_loops.at[i]));
  if (!x->problems.n && !x->is_partial) puts("supported  yes");
  if (x->is_partial && !x->problems.n)
    puts("supported  all operators; other checks need the files of external data");
  if (x->problems.n)
    puts(x->unsupported.n ? "not supported" : "not loaded, although all operators are supported");
  for (size_t i = 0; i < x->problems.n; i++)
    printf("  %s\n", text_escape(a, x->problems.at[i].text));
}

/* JSON. */

static json_t *json_shape(inspection *x, const inspected_port *p) {
  json_t *shape = json_array();
  for (int64_t i = 0; i < p->rank; i++)
    json_array_append_new(shape, p->sizes[i] >= 0 ? json_integer(p->sizes[i])
                                 : *p->names[i]   ? text_json(&x->c->arena, p->names[i])
                                                  : json_null());
  return shape;
}

static json_t *json_ports(inspection *x, const inspected_ports *ports) {
  arena *a = &x->c->arena;
  json_t *list = json_array();
  for (size_t i = 0; i < ports->n; i++) {
    const inspected_port *p = &ports->at[i];
    if (p->is_weight) continue;
    json_t *port = json_pack("{s:o, s:o, s:o, s:o}", "name", text_json(a, p->name), "type",
                             text_json(a, p->type), "dtype", text_json(a, p->dtype), "shape",
                             p->rank >= 0 ? json_shape(x, p) : json_null());
    if (p->declared) json_object_set_new(port, "declared", text_json(a, p->declared));
    if (p->is_deciding) json_object_set_new(port, "deciding", json_true());
    json_array_append_new(list, port);
  }
  return list;
}

static json_t *json_opsets(inspection *x) {
  json_t *list = json_object();
  const char *domain;
  int64_t version;
  for (size_t i = 0; tn_model_file_opset(x->file, i, &domain, &version) == TN_OK; i++)
    json_object_set_new(list, text_escape(&x->c->arena, domain), json_integer(version));
  return list;
}

static json_t *json_operators(inspection *x) {
  json_t *list = json_object();
  const char *name;
  uint64_t count;
  for (size_t i = 0; tn_model_file_operator(x->file, i, &name, &count) == TN_OK; i++)
    json_object_set_new(list, text_escape(&x->c->arena, name), json_integer((json_int_t)count));
  return list;
}

static json_t *json_varying_sizes(inspection *x) {
  json_t *list = json_array();
  for (size_t i = 0; i < x->varying.n; i++) {
    const size_bounds *s = &x->varying.at[i];
    json_array_append_new(list,
                          json_pack("{s:o, s:I, s:I}", "name", text_json(&x->c->arena, s->name),
                                    "min", (json_int_t)s->min, "max", (json_int_t)s->max));
  }
  return list;
}

static json_t *json_facts(inspection *x) {
  arena *a = &x->c->arena;
  json_t *list = json_array();
  for (size_t i = 0; i < x->facts.n; i++) {
    const fact *f = &x->facts.at[i];
    json_t *places = json_array();
    for (size_t k = 0; k < f->places.n; k++)
      json_array_append_new(places, text_json(a, f->places.at[k]));
    json_array_append_new(list, json_pack("{s:o, s:s, s:o}", "name", text_json(a, f->name), "kind",
                                          f->is_size ? "size" : "elements", "of", places));
  }
  return list;
}

static json_t *json_version(int64_t version) {
  return version ? json_integer(version) : json_null();
}

static json_t *json_problems(inspection *x) {
  arena *a = &x->c->arena;
  json_t *list = json_array();
  for (size_t i = 0; i < x->problems.n; i++) {
    const problem *p = &x->problems.at[i];
    json_t *nodes = json_array();
    for (size_t k = 0; k < p->n_nodes; k++) json_array_append_new(nodes, text_json(a, p->nodes[k]));
    json_array_append_new(
        list, json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "nodes", nodes, "operator",
                        text_json(a, p->op), "domain", text_json(a, p->domain), "opset",
                        json_version(p->opset), "version", json_version(p->version), "newest",
                        json_version(p->newest), "reason", text_json(a, p->reason), "nearest",
                        text_json(a, p->nearest)));
  }
  return list;
}

static json_t *json_memory(const inspection *x) {
  const tn_memory *m = &x->memory;
  return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "inputs", (json_int_t)m->inputs,
                   "outputs", (json_int_t)m->outputs, "weights", (json_int_t)m->values, "scratch",
                   (json_int_t)m->scratch, "total", (json_int_t)memory_sum(m), "uncounted_arrays",
                   (json_int_t)m->uncounted, "uncounted_loops", (json_int_t)x->host_loops.n);
}

static void print_json(inspection *x) {
  arena *a = &x->c->arena;
  const tn_model_file_info *f = &x->info;
  json_t *unsupported = json_array();
  for (size_t i = 0; i < x->problems.n; i++)
    json_array_append_new(unsupported, text_json(a, x->problems.at[i].text));
  json_t *parameters = json_pack("{s:I, s:I, s:I, s:I}", "tensors", (json_int_t)f->tensors,
                                 "elements", (json_int_t)f->elements, "bytes", (json_int_t)f->bytes,
                                 "external", (json_int_t)f->external);
  json_t *all = json_pack(
      "{s:o, s:I, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:s, s:o, s:I, s:o, s:o, s:o, s:s}", "model",
      text_json(a, x->c->operand), "ir_version", (json_int_t)f->ir_version, "producer",
      text_json(a, f->producer), "producer_version", text_json(a, f->producer_version), "opsets",
      json_opsets(x), "inputs", json_ports(x, &x->inputs), "outputs", json_ports(x, &x->outputs),
      "sizes", json_varying_sizes(x), "facts", json_facts(x), "variants", variants_word(x),
      "parameters", parameters, "nodes", (json_int_t)f->nodes, "operators", json_operators(x),
      "unsupported", unsupported, "problems", json_problems(x), "checked",
      x->is_partial ? "operators" : "all");
  json_t *loops = json_array();
  for (size_t i = 0; i < x->host_loops.n; i++)
    json_array_append_new(loops, text_json(a, x->host_loops.at[i]));
  json_object_set_new(all, "host_loops", loops);
  if (x->has_memory) json_object_set_new(all, "memory", json_memory(x));
  json_object_set_new(all, "exact_sizes", text_json(a, x->exact_reason));
  json_object_set_new(all, "open_from_one", json_boolean(x->is_open_from_one));
  text_json_print(a, all);
}

static void inspect_model(void *arg) {
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
  inspection x = {.c = c,
                  .desc = load_model_parse_sizes(c, &o->size),
                  .info = TN_MODEL_FILE_INFO_INIT,
                  .memory = TN_MEMORY_INIT};
  if (o->input.n && !o->memory) command_usage_error(c, "--input needs --memory");
  model_inputs_check_option(c, "input", INPUT_OPTION_VALUE, &o->input);
  x.desc.name = "";
  tn_status s = diag_catch(&c->diag, inspect_model, &x);
  tn_model_file_free(x.file);
  file_map_close(&x.bytes);
  if (s != TN_OK) diag_rethrow(&c->diag);
  return x.problems.n ? EXIT_FAILED : EXIT_DONE;
}

const verb verb_inspect = {
    .name = "inspect",
    .summary = "Print the contents of a model file, and everything unsupported in it",
    .operand = "MODEL",
    .examples = "tenon inspect model.onnx\n"
                "tenon inspect model.onnx --size batch=8 --memory\n"
                "tenon inspect model.onnx --memory --input 'shape=[2, 3]'\n"
                "tenon inspect model.onnx --json",
    .about =
        "The exit status is 1 if the model is not supported. All problems are listed at once:\n"
        "unsupported operators with the nearest supported form, and nodes, inputs and outputs\n"
        "that do not fit together. Nodes that read a result of a node with a problem are not\n"
        "checked.\n"
        "Without its files of external data, only operators are checked. Counts of operators\n"
        "include nested graphs and functions. Shapes are those of the file or, with --size, of\n"
        "the constrained model. If the file declares a wrong type of an output, both types are\n"
        "printed. Facts are what variants are compiled for: sizes of inputs, and inputs whose\n"
        "elements decide on shapes or branches.\n\n"
        "--memory compiles kernels without running them. Varying sizes are the smallest allowed,\n"
        "at least 1, unless --size or --input sets them. Weights stay in the file if the device\n"
        "can read them there; the program and its kernels need further memory, and so do arrays\n"
        "whose sizes a run computes and loops that the host runs, which are not counted.\n"
        "Compiling a model for the first time needs more than running it, a few MiB at least,\n"
        "and counts against the same limit (TENON_MEMORY).\n\n"
        "--json: model, ir_version, producer, producer_version, opsets (by domain); inputs and\n"
        "outputs, each with name, type (text), dtype, shape (numbers, names or null; null for an\n"
        "unknown rank), and declared (text) if the file declares another type; sizes that vary,\n"
        "each with name, min and max (given, needed, or the largest there are); parameters with\n"
        "tensors, elements, bytes, external (number of tensors in external files); nodes;\n"
        "operators (counts by name); facts (name, kind: size or elements, of: inputs or their\n"
        "axes); variants (one, sizes or values, by which they differ); exact_sizes (why no size\n"
        "can be open: the node and its reason; null if they can); open_from_one (true if those\n"
        "from 1 on can then); host_loops (lines: each loop that the host runs, and why);\n"
        "unsupported (lines of text);\n"
        "problems (nodes, operator, domain, opset, version: of the operator's definition, newest:\n"
        "known one, reason, nearest: supported form; null if unknown); checked (all, or operators\n"
        "if files of external data are missing). With --memory also memory: inputs, outputs,\n"
        "weights, scratch (values between steps) and total, in bytes, and uncounted_arrays and\n"
        "uncounted_loops: numbers of arrays whose sizes a run computes, and of loops that the\n"
        "host runs.",
    .options = options,
    .n_options = sizeof options / sizeof *options,
    .options_bytes = sizeof(inspect_options),
    .act = act,
};
