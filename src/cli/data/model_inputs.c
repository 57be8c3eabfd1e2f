/* Makes the inputs of a model run: parses --input options, reads or fills the array of each input,
   and binds the arrays. */
#include "cli/data/model_inputs.h"

#include "cli/core/text_format.h"
#include "cli/data/declared_ports.h"
#include "cli/data/input_lists.h"
#include "cli/data/load_model.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Lists of NAME=VALUE. A name may contain '=', so the model's ports decide where it ends. */

void model_inputs_check_option(command *c, const char *option, const char *form,
                               const option_list *list) {
  for (size_t i = 0; i < list->n; i++) {
    const char *equals = strchr(list->at[i], '=');
    if (!equals || equals == list->at[i] || !equals[1])
      command_usage_error(c, "--%s must have the form %s, not \"%s\"", option, form, list->at[i]);
  }
}

static port_list list_ports(command *c, const tn_model *m, tn_port_kind kind) {
  port_list ports = {0};
  tn_port port = TN_PORT_INIT;
  for (size_t i = 0; tn_model_port(m, kind, i, &port) == TN_OK; i++)
    vec_push(&c->arena, &ports, port);
  return ports;
}

/** Finds the port with the longest name that an entry begins with; SIZE_MAX: none. */
static size_t find_port(const char *entry, const port_list *ports) {
  size_t best = SIZE_MAX, longest = 0;
  for (size_t i = 0; i < ports->n; i++) {
    size_t n = strlen(ports->at[i].name);
    bool fits = !strncmp(entry, ports->at[i].name, n) && entry[n] == '=';
    if (!fits || (best != SIZE_MAX && n <= longest)) continue;
    best = i;
    longest = n;
  }
  return best;
}

static _Noreturn void fail_unknown_port(command *c, const char *option, const char *entry,
                                        const port_list *ports) {
  const char *name = arena_printf(&c->arena, "%.*s", (int)strcspn(entry, "="), entry);
  const char **names = arena_alloc(&c->arena, (ports->n + 1) * sizeof *names);
  str all = str_new(&c->arena);
  for (size_t i = 0; i < ports->n; i++) {
    names[i] = ports->at[i].name;
    str_addf(&all, "%s%s", i ? ", " : "", names[i]);
  }
  command_usage_error(c, "--%s: the model has no %s \"%s\"%s (%ss: %s)", option, option, name,
                      text_suggestion(&c->arena, text_nearest_word(name, names, ports->n)), option,
                      str_text(&all));
}

const char *const *model_inputs_match_ports(command *c, const char *option, const option_list *list,
                                            const tn_model *m, tn_port_kind kind) {
  port_list ports = list_ports(c, m, kind);
  const char **values = arena_calloc(&c->arena, ports.n + 1, sizeof *values);
  for (size_t i = 0; i < list->n; i++) {
    const char *entry = list->at[i];
    size_t k = find_port(entry, &ports);
    if (k == SIZE_MAX) fail_unknown_port(c, option, entry, &ports);
    if (values[k])
      command_usage_error(c, "--%s %s is specified more than once", option, ports.at[k].name);
    values[k] = entry + strlen(ports.at[k].name) + 1;
  }
  return values;
}

/* Values. */

/** The parsed VALUE of an input. */
typedef struct input_spec {
  const char *file; /* NULL: elements or a fill */
  const char *text; /* of a list of elements; NULL: there is none */
  const double *elements;
  const char **strings; /* elements in quotes, NULL for others; NULL: there are none */
  fill_kind fill;
  bool has_shape;
  tn_shape shape;
} input_spec;

static const char *const fills[] = {
    [FILL_RANDOM] = "random", [FILL_ONES] = "ones", [FILL_ZEROS] = "zeros"};
enum { FILLS = sizeof fills / sizeof *fills };

/** Parses "4x3x224"; "" is the shape of a scalar. */
static bool parse_shape(const char *text, tn_shape *shape) {
  *shape = TN_SCALAR;
  if (!*text) return true;
  for (;; text++) {
    char *end;
    errno = 0;
    long long n = strtoll(text, &end, 10);
    if (end == text || *text < '0' || *text > '9' || errno || shape->rank == TN_MAX_RANK)
      return false;
    shape->size[shape->rank++] = n;
    if (!*end) return true;
    if (*end != 'x') return false;
    text = end;
  }
}

/** True for a text written like a shape that is none: a size is negative or too large, or there are
    too many. */
static bool resembles_shape(const char *text) {
  return text[strspn(text, "-x")] && !text[strspn(text, "-0123456789x")];
}

/** Elements as "[[1, 2], [3, 4]]" gives them. */
typedef struct element_list {
  VEC(double) at;
  VEC(const char *) strings; /* NULL: a number */
  bool has_strings;
  tn_shape shape;
} element_list;

static const char *skip_spaces(const char *text) { return text + strspn(text, " "); }

/** Parses a string in quotes, in which \\ keeps the next byte; returns the text behind it, NULL:
   the second quote is missing. */
static const char *parse_string(command *c, const char *text, element_list *l) {
  char *to = arena_alloc(&c->arena, strlen(text));
  vec_push(&c->arena, &l->at, 0);
  vec_push(&c->arena, &l->strings, to);
  l->has_strings = true;
  for (text++; *text && *text != '"'; text++) {
    if (*text == '\\' && text[1]) text++;
    *to++ = *text;
  }
  *to = 0;
  return *text ? text + 1 : NULL;
}

/** Parses an element; returns the text behind it, NULL: there is none. */
static const char *parse_element(command *c, const char *text, element_list *l) {
  char *end;
  if (*text == '"') return parse_string(c, text, l);
  double value = strtod(text, &end);
  for (int truth = 0; truth < 2; truth++) {
    size_t n = strlen(truth ? "true" : "false");
    if (!strncmp(text, truth ? "true" : "false", n)) value = truth, end = (char *)text + n;
  }
  vec_push(&c->arena, &l->at, value);
  vec_push(&c->arena, &l->strings, NULL);
  return end == text ? NULL : end;
}

/** Parses a list at an axis, or an element behind the last; returns the text behind it, NULL: there
    is none, or lists differ in length or depth. */
static const char *parse_list(command *c, const char *text, int32_t axis, element_list *l) {
  int64_t n = 0;
  bool is_first = l->at.n == 0 && l->shape.rank == axis;
  if (*text != '[') return axis == l->shape.rank ? parse_element(c, text, l) : NULL;
  if (is_first && axis < TN_MAX_RANK) l->shape.rank++;
  if (axis >= l->shape.rank) return NULL;
  for (text = skip_spaces(text + 1); *text != ']'; n++) {
    text = parse_list(c, text, axis + 1, l);
    if (text) text = skip_spaces(text);
    if (!text || (*text != ',' && *text != ']')) return NULL;
    if (*text == ',') text = skip_spaces(text + 1);
  }
  if (is_first) l->shape.size[axis] = n;
  return l->shape.size[axis] == n ? text + 1 : NULL;
}

static input_spec parse_elements(command *c, const char *text) {
  element_list *l = arena_calloc(&c->arena, 1, sizeof *l);
  const char *end = parse_list(c, text, 0, l);
  if (!end || *end)
    command_usage_error(
        c, "--input: \"%s\" is no list of elements, as [3, 4], [[1], [2]] or [\"a\", \"b\"]", text);
  return (input_spec){.text = text,
                      .elements = l->at.at,
                      .strings = l->has_strings ? l->strings.at : NULL,
                      .has_shape = true,
                      .shape = l->shape};
}

/** Refuses a text that names no file and may be a mistyped fill. */
static _Noreturn void fail_no_file(command *c, const char *text) {
  const char *word = arena_printf(&c->arena, "%.*s", (int)strcspn(text, ":"), text);
  str all = str_new(&c->arena);
  for (size_t i = 0; i < FILLS; i++) str_addf(&all, "%s%s", i ? ", " : "", fills[i]);
  diag_raise(&c->diag, TN_ERR_IO,
             "--input: there is no file \"%s\"%s (fills: %s; elements: [1, 2])", text,
             text_suggestion(&c->arena, text_nearest_word(word, fills, FILLS)), str_text(&all));
}

/** Parses a list of elements, a fill, a shape or "fill:shape"; any other text is a file name. */
static input_spec parse_spec(command *c, const char *text) {
  input_spec o = {.fill = FILL_RANDOM};
  bool is_shape = resembles_shape(text);
  if (*text == '[' && !file_exists(text)) return parse_elements(c, text);
  if (parse_shape(text, &o.shape)) {
    o.has_shape = true;
    return o;
  }
  for (size_t i = 0; i < FILLS; i++) {
    size_t n = strlen(fills[i]);
    if (strncmp(text, fills[i], n) || (text[n] && text[n] != ':')) continue;
    o.has_shape = text[n] && parse_shape(text + n + 1, &o.shape);
    o.fill = (fill_kind)i;
    if (o.has_shape || !text[n]) return o;
    is_shape = true;
  }
  if (is_shape && !file_exists(text))
    command_usage_error(c,
                        "--input: \"%s\" is neither a file nor a shape, of at most %d sizes from 0 "
                        "with x between, as 4x3x224, nor elements, as [1, 2]",
                        text, TN_MAX_RANK);
  if (strcmp(text, "-") && !file_exists(text) && errno == ENOENT) fail_no_file(c, text);
  o.file = load_model_path(text);
  return o;
}

/* Varying sizes, by their numbers (tn_port.variable). */

/** The value of a varying size, and the first input and axis that have it. */
typedef struct size_value {
  const model_input *input; /* NULL: unknown */
  size_t axis;
  int64_t value;
  const char *name;
} size_value;

typedef struct size_values {
  size_t n;
  size_value *at;
} size_values;

/** Allocates an entry for each varying size of some ports. */
static size_values new_size_values(command *c, const port_list *ports) {
  size_t n = 0;
  for (size_t i = 0; i < ports->n; i++)
    for (int32_t k = 0; k < ports->at[i].type.shape.rank; k++)
      if (ports->at[i].variable[k] >= (int32_t)n) n = (size_t)ports->at[i].variable[k] + 1;
  return (size_values){n, arena_calloc(&c->arena, n + 1, sizeof(size_value))};
}

/** The value of a varying size: its own if that is known, else that of a size with the same name;
    NULL: none is known. */
static const size_value *find_known(const size_values *sizes, const tn_port *port, size_t axis) {
  const size_value *own = &sizes->at[port->variable[axis]];
  if (own->input) return own;
  for (size_t i = 0; i < sizes->n; i++)
    if (sizes->at[i].input && !strcmp(sizes->at[i].name, port->sizes[axis])) return &sizes->at[i];
  return NULL;
}

/** The creation of a model's inputs. */
typedef struct input_builder {
  command *c;
  tn_model *model;
  port_list ports;
  input_spec *specs;       /* by input */
  size_values sizes;       /* from the inputs with a shape or file */
  VEC(const char *) notes; /* about sizes that were chosen */
  model_inputs inputs;
} input_builder;

/** Records the varying sizes of the last input. */
static void record_sizes(input_builder *k, const tn_port *port, const tn_shape *shape) {
  for (int32_t i = 0; shape->rank == port->type.shape.rank && i < shape->rank; i++) {
    size_value *size = port->variable[i] < 0 ? NULL : &k->sizes.at[port->variable[i]];
    if (size && !size->input)
      *size = (size_value){&vec_last(&k->inputs), (size_t)i, shape->size[i], port->sizes[i]};
  }
}

/** True for a list of one element that is given to a port without axes. */
static bool is_scalar(const input_spec *o, const tn_port *port) {
  return o->text && !port->type.shape.rank && o->shape.rank == 1 && o->shape.size[0] == 1;
}

/** A size that an input may have at an axis; 1 behind the last. */
static int64_t example_size(const tn_port *port, int32_t axis) {
  if (axis >= port->type.shape.rank) return 1;
  int64_t size = port->type.shape.size[axis];
  return size < 0 ? port->example[axis] : size;
}

/** Adds the list of equal elements at an axis and those behind it. */
static void add_example(str *s, const tn_port *port, int32_t axis, const char *element) {
  int64_t n = example_size(port, axis);
  str_add(s, "[");
  for (int64_t i = 0; i < n; i++) {
    if (i) str_add(s, ", ");
    if (axis + 1 < port->type.shape.rank)
      add_example(s, port, axis + 1, element);
    else
      str_add(s, element);
  }
  str_add(s, "]");
}

/** Example elements of an input that decides on shapes, in a shape that it may have: "[[2], [2]]";
    of a scalar "[2]". */
static const char *example_elements(command *c, const tn_port *port) {
  enum { SHOWN = 4 };
  int64_t n = 1;
  for (int32_t i = 0; i < port->type.shape.rank && n <= SHOWN; i++) n *= example_size(port, i);
  str all = str_new(&c->arena);
  if (n > SHOWN) return "[…]";
  add_example(&all, port, 0, port->type.dtype == TN_BOOL ? "true" : "2");
  return str_text(&all);
}

/** Adds an input, and reads its array if its VALUE is a file. */
static void add_input(input_builder *k, const char *text) {
  size_t i = k->inputs.n;
  const tn_port *port = &k->ports.at[i];
  const input_spec o = k->specs[i] =
      text ? parse_spec(k->c, text) : (input_spec){.fill = FILL_RANDOM};
  const char *from = o.file ? o.file : o.text ? o.text : fills[o.fill];
  model_input in = {.name = port->name, .from = from, .file = o.file};
  in.is_drawn = from == fills[FILL_RANDOM] && !(text && !strncmp(text, from, strlen(from)));
  if (is_scalar(&o, port)) k->specs[i].shape = TN_SCALAR;
  if (o.file && port->is_string)
    command_usage_error(k->c,
                        "--input: strings are not read from files; list them, as "
                        "'%s=[\"a\", \"b\"]'",
                        port->name);
  if (o.strings && !port->is_string)
    command_usage_error(k->c, "--input: the elements of %s are no strings, but %s", port->name,
                        tn_dtype_name(port->type.dtype));
  if (o.file) in.value = host_array_load(k->c, o.file, TN_FILE_NPY, port->type.dtype);
  vec_push(&k->c->arena, &k->inputs, in);
  if (o.file || o.has_shape) record_sizes(k, port, o.file ? &in.value.shape : &o.shape);
  if (port->is_deciding && !o.file && !o.text)
    command_print_note(
        k->c,
        "input %s: its elements decide on shapes or branches, and are %s; give them, "
        "for example --input '%s=%s'",
        port->name, from, port->name, example_elements(k->c, port));
}

/** Chooses the shape of an input without one: varying sizes are those of other inputs, or else the
    smallest allowed, at least 1, or some that fit where the model fits some alone. */
static tn_shape choose_shape(input_builder *k, const tn_port *port) {
  command *c = k->c;
  tn_shape shape = port->type.shape;
  if (shape.rank < 0)
    command_usage_error(
        c, "the rank of input %s is unknown; specify its shape, for example --input %s=2x3",
        port->name, port->name);
  str chosen = str_new(&c->arena);
  for (int32_t i = 0; i < shape.rank; i++) {
    if (port->variable[i] < 0) continue;
    const size_value *known = find_known(&k->sizes, port, (size_t)i);
    shape.size[i] = known ? known->value : port->example[i];
    bool is_repeated = false;
    for (int32_t j = 0; j < i; j++) is_repeated |= port->variable[j] == port->variable[i];
    if (!known && !is_repeated)
      str_addf(&chosen, "%s%s = %lld", chosen.n ? ", " : "", port->sizes[i],
               (long long)shape.size[i]);
  }
  if (chosen.n)
    vec_push(&c->arena, &k->notes,
             arena_printf(&c->arena, "input %s: varying sizes default to %s", port->name,
                          str_text(&chosen)));
  return shape;
}

/** Sets an input's elements; raises for one that an integer or a bool cannot be. */
static void set_elements(command *c, const model_input *in, const double elements[]) {
  const host_array *a = &in->value;
  size_t size = tn_dtype_size(a->dtype);
  for (size_t i = 0; i < a->elements; i++) {
    char *at = (char *)a->data + i * size;
    tn_element_set(a->dtype, at, elements[i]);
    if (tn_dtype_kind_of(a->dtype) != TN_KIND_FLOAT && tn_element_get(a->dtype, at) != elements[i])
      command_usage_error(c, "--input: %s is no element of %s, which has type %s",
                          text_number(&c->arena, elements[i]), in->name, tn_dtype_name(a->dtype));
  }
}

/** Raises unless all elements that are given for an input of strings are strings. */
static void check_strings(input_builder *k, size_t i) {
  const input_spec *o = &k->specs[i];
  const char *name = k->ports.at[i].name;
  for (size_t e = 0; e < k->inputs.at[i].value.elements; e++)
    if (!o->strings || !o->strings[e])
      command_usage_error(k->c,
                          "--input: the elements of %s are strings: give them in quotes, as "
                          "'%s=[\"a\", \"b\"]'",
                          name, name);
}

static void fill_input(input_builder *k, size_t i, uint64_t *seed) {
  model_input *in = &k->inputs.at[i];
  const tn_port *port = &k->ports.at[i];
  if (in->file) return;
  in->value = host_array_alloc(k->c, in->name, in->value.dtype, in->value.shape);
  if (k->specs[i].text && port->is_string) check_strings(k, i);
  if (port->is_string && !k->specs[i].text) {
    in->value.strings = arena_alloc(&k->c->arena, (in->value.elements + 1) * sizeof(char *));
    for (size_t e = 0; e < in->value.elements; e++) in->value.strings[e] = "";
  } else if (port->is_string) {
    in->value.strings = k->specs[i].strings;
  }
  if (port->is_string)
    host_array_number_strings(k->c, &in->value, k->model);
  else if (k->specs[i].text)
    set_elements(k->c, in, k->specs[i].elements);
  else
    host_array_fill(&in->value, k->specs[i].fill, seed);
}

static void check_standard_input(command *c, const char *const values[], size_t n) {
  size_t readers = !strcmp(c->operand, "-");
  for (size_t i = 0; i < n; i++) readers += values[i] && !strcmp(values[i], "-");
  if (readers > 1)
    command_usage_error(c,
                        "standard input (-) can be read only once, as the model or as one input");
}

model_inputs model_inputs_make(command *c, tn_model *m, const option_list *entries, uint64_t seed) {
  input_builder k = {.c = c, .model = m, .ports = list_ports(c, m, TN_PORT_INPUT)};
  size_t n = k.ports.n;
  const char *const *values = model_inputs_match_ports(c, "input", entries, m, TN_PORT_INPUT);
  check_standard_input(c, values, n);
  k.specs = arena_alloc(&c->arena, (n + 1) * sizeof *k.specs);
  k.sizes = new_size_values(c, &k.ports);
  vec_reserve(&c->arena, &k.inputs, n); /* sizes point into it */
  for (size_t i = 0; i < n; i++) add_input(&k, values[i]);
  for (size_t i = 0; i < n; i++) { /* shapes are checked before arrays are allocated */
    const input_spec *o = &k.specs[i];
    if (o->file) continue;
    k.inputs.at[i].value.dtype = k.ports.at[i].type.dtype;
    k.inputs.at[i].value.shape = o->has_shape ? o->shape : choose_shape(&k, &k.ports.at[i]);
  }
  model_inputs_check_shapes(c, &k.inputs, m);
  for (size_t i = 0; i < k.notes.n; i++) command_print_note(c, "%s", k.notes.at[i]);
  for (size_t i = 0; i < n; i++) fill_input(&k, i, &seed);
  return k.inputs;
}

/* Shapes. */

static const char *input_text(command *c, const model_input *in) {
  return in->file ? arena_printf(&c->arena, "%s (%s)", in->name, in->file) : in->name;
}

/** Shapes that do not fit, in words. */
typedef struct shape_check {
  command *c;
  size_values sizes; /* from the inputs so far */
  str misfits;
} shape_check;

/** Begins the text about an input, at an axis (SIZE_MAX: all). */
static void begin_misfit(shape_check *k, const model_input *in, size_t axis) {
  str_addf(&k->misfits, "%sinput %s", k->misfits.n ? "; " : "", input_text(k->c, in));
  if (axis != SIZE_MAX)
    str_addf(&k->misfits, ": axis %zu has size %lld, ", axis,
             (long long)in->value.shape.size[axis]);
}

/** Checks a varying size against its bounds and the inputs before it. */
static void check_varying_size(shape_check *k, const model_input *in, size_t axis,
                               const tn_port *port) {
  size_value *known = &k->sizes.at[port->variable[axis]];
  int64_t size = in->value.shape.size[axis];
  if (size < port->min[axis] || size > port->max[axis]) {
    begin_misfit(k, in, axis);
    str_addf(&k->misfits, "but %s must be from %lld to %lld", port->sizes[axis],
             (long long)port->min[axis], (long long)port->max[axis]);
    return;
  }
  if (!known->input) *known = (size_value){in, axis, size, port->sizes[axis]};
  if (size == known->value) return;
  begin_misfit(k, in, axis);
  str_addf(&k->misfits, "not %lld, as %s is %lld by axis %zu of input %s", (long long)known->value,
           port->sizes[axis], (long long)known->value, known->axis, known->input->name);
}

/** Adds "2x3", or "scalar"; `names` of sizes that vary. */
static void add_shape(str *s, const tn_shape *shape, const char *const names[]) {
  if (!shape->rank) str_add(s, "scalar");
  for (size_t i = 0; i < (size_t)shape->rank; i++) {
    if (names && shape->size[i] < 0)
      str_addf(s, strpbrk(names[i], " */%") ? "%s(%s)" : "%s%s", i ? "x" : "", names[i]);
    else
      str_addf(s, "%s%lld", i ? "x" : "", (long long)shape->size[i]);
  }
}

static void check_shape(shape_check *k, const model_input *in, const tn_port *port) {
  const tn_shape *shape = &in->value.shape, *expected = &port->type.shape;
  if (shape->rank != expected->rank) {
    begin_misfit(k, in, SIZE_MAX);
    str_addf(&k->misfits, " has rank %d, not %d: its shape is ", (int)shape->rank,
             (int)expected->rank);
    add_shape(&k->misfits, shape, NULL);
    str_add(&k->misfits, ", not ");
    add_shape(&k->misfits, expected, port->sizes);
    if (shape->rank == 1 && !expected->rank)
      str_addf(&k->misfits, " (an element is written in brackets: [%lld])",
               (long long)shape->size[0]);
    return;
  }
  for (size_t i = 0; i < (size_t)expected->rank; i++) {
    if (port->variable[i] >= 0) {
      check_varying_size(k, in, i, port);
    } else if (shape->size[i] != expected->size[i]) {
      begin_misfit(k, in, i);
      str_addf(&k->misfits, "not %lld, its fixed size", (long long)expected->size[i]);
    }
  }
}

/** Raises TN_ERR_SHAPE if the shapes of inputs do not fit their ports. */
static void check_shapes(command *c, const model_inputs *in, const port_list *ports) {
  shape_check k = {c, new_size_values(c, ports), str_new(&c->arena)};
  for (size_t i = 0; i < in->n; i++) check_shape(&k, &in->at[i], &ports->at[i]);
  if (k.misfits.n) diag_raise(&c->diag, TN_ERR_SHAPE, "%s", str_text(&k.misfits));
}

void model_inputs_check_shapes(command *c, const model_inputs *in, const tn_model *m) {
  port_list ports = list_ports(c, m, TN_PORT_INPUT);
  check_shapes(c, in, &ports);
}

const char *model_inputs_sizes_text(command *c, const model_inputs *in, const tn_model *m) {
  str s = str_new(&c->arena);
  port_list ports = list_ports(c, m, TN_PORT_INPUT);
  size_values sizes = new_size_values(c, &ports);
  for (size_t i = 0; i < in->n; i++) {
    const tn_port *port = &ports.at[i];
    for (int32_t k = 0; k < port->type.shape.rank; k++) {
      int64_t value = in->at[i].value.shape.size[k];
      const size_value *known = port->variable[k] < 0 ? NULL : find_known(&sizes, port, (size_t)k);
      if (port->variable[k] < 0 || (known && known->value == value)) continue;
      sizes.at[port->variable[k]] = (size_value){&in->at[i], (size_t)k, value, port->sizes[k]};
      str_addf(&s, "%s%s = %lld", s.n ? ", " : "", port->sizes[k], (long long)value);
    }
  }
  return str_text(&s);
}

void model_inputs_note_integers(command *c, const model_inputs *in, const tn_model *m) {
  port_list ports = list_ports(c, m, TN_PORT_INPUT);
  for (size_t i = 0; i < in->n; i++) {
    const model_input *x = &in->at[i];
    tn_dtype_kind kind = tn_dtype_kind_of(x->value.dtype);
    bool is_integer = kind == TN_KIND_SIGNED || kind == TN_KIND_UNSIGNED;
    if (!x->is_drawn || !is_integer || !x->value.elements || ports.at[i].is_string ||
        ports.at[i].is_deciding)
      continue;
    command_print_note(c,
                       "input %s: its integers are drawn from 0 and 1; give others by --input "
                       "%s=FILE.npy, or few as '%s=[…]'",
                       x->name, x->name, x->name);
  }
}

/* Loading. */

/** An entry whose shape is known before the model is. */
typedef struct known_input {
  const char *entry;
  const char *file; /* NULL: filled */
  tn_shape shape;
} known_input;

typedef VEC(known_input) known_inputs;
typedef VEC(tn_model_size) model_sizes;

/** The entries with a shape or a file. Skips standard input, which can be read only once. */
static known_inputs find_known_inputs(command *c, const tn_model_desc *desc,
                                      const option_list *entries) {
  known_inputs known = {0};
  port_list declared = declared_ports_list(c, desc, false);
  for (size_t i = 0; i < entries->n; i++) {
    const char *entry = entries->at[i], *text = entry + strcspn(entry, "=") + 1;
    input_spec o = parse_spec(c, text);
    if ((!o.file && !o.has_shape) || !strcmp(text, "-")) continue;
    known_input k = {entry, o.file, o.shape};
    size_t at = find_port(entry, &declared);
    if (at != SIZE_MAX && is_scalar(&o, &declared.at[at])) k.shape = TN_SCALAR;
    if (o.file) k.shape = host_array_load(c, o.file, TN_FILE_NPY, TN_F32).shape;
    vec_push(&c->arena, &known, k);
  }
  return known;
}

static void add_sizes(command *c, const known_input *k, model_sizes *sizes) {
  for (int32_t i = 0; i < k->shape.rank; i++) {
    tn_model_size size = TN_MODEL_SIZE_INIT;
    size.name = arena_printf(&c->arena, "%.*s:%d", (int)strcspn(k->entry, "="), k->entry, (int)i);
    size.min = size.max = k->shape.size[i];
    vec_push(&c->arena, sizes, size);
  }
}

/** True for the entry of a tensor of a sequence, "q[1]=…", which the file does not declare. */
static bool is_of_list(const tn_model_desc *desc, const char *entry) {
  for (size_t i = 0; i < desc->n_lists; i++) {
    size_t n = strlen(desc->lists[i].name);
    if (!strncmp(entry, desc->lists[i].name, n) && entry[n] == '[') return true;
  }
  return false;
}

/** Raises if shapes do not fit the inputs that the file declares, as check_shapes does for those of
    a model. */
static void check_declared(command *c, const tn_model_desc *desc, const known_inputs *known,
                           const port_list *ports) {
  model_inputs in = {0};
  port_list of = {0};
  for (size_t i = 0; i < known->n && ports->n; i++) {
    const known_input *k = &known->at[i];
    size_t at = find_port(k->entry, ports);
    if (at == SIZE_MAX && is_of_list(desc, k->entry)) continue;
    if (at == SIZE_MAX) fail_unknown_port(c, "input", k->entry, ports);
    if (ports->at[at].type.shape.rank < 0) continue;
    vec_push(&c->arena, &of, ports->at[at]);
    vec_push(&c->arena, &in, ((model_input){.name = ports->at[at].name, .file = k->file}));
    vec_last(&in).value.shape = k->shape;
  }
  check_shapes(c, &in, &of);
}

/** True if the file declares an input with a known shape without its rank. */
static bool lack_rank(command *c, const tn_model_desc *desc, const known_inputs *known) {
  port_list ports = declared_ports_list(c, desc, false);
  bool lacks = false;
  for (size_t i = 0; i < known->n; i++) {
    size_t at = find_port(known->at[i].entry, &ports);
    lacks |= at != SIZE_MAX && ports.at[at].type.shape.rank < 0;
  }
  return lacks;
}

/** Explains why a model cannot be loaded for the sizes of the inputs, if these are the cause. Names
    that sizes share matter last: the model may do with different ones. */
static void explain_sizes(command *c, const tn_model_desc *desc, const known_inputs *known,
                          tn_status s) {
  for (int shares_names = 0; shares_names <= (s == TN_ERR_ARGUMENT); shares_names++) {
    port_list ports = declared_ports_list(c, desc, shares_names);
    check_declared(c, desc, known, &ports);
  }
}

/** Hints at constraints of sizes: of a failure to load, or of a run whose sizes are known exactly.
 */
static void advise(command *c, const tn_model_desc *desc, const tn_model *m) {
  *desc->about_sizes |= tn_model_exact_sizes(m) != NULL;
  load_model_advise(c, desc);
}

/** Tells that a model's sizes cannot be open. */
static void note_exact_sizes(command *c, const tn_model *m, const tn_model_desc *desc) {
  if (tn_model_exact_sizes(m) && !tn_model_open_from_one(m))
    command_print_note(
        c, "the sizes of the model are known exactly at each run; tenon inspect shows why%s",
        desc->variants == TN_VARIANTS_AUTO ? "" : "; --variants has no effect");
}

/** Loads the model for the sizes of inputs, and of --size; `desc` becomes that of this load. An
    input whose rank the file leaves out has no sizes to be given: the failure without them stays.
 */
static tn_status load_for_sizes(command *c, tn_model_desc *desc, const known_inputs *inputs,
                                tn_model **m) {
  model_sizes sizes = {0};
  for (size_t i = 0; i < inputs->n; i++) add_sizes(c, &inputs->at[i], &sizes);
  for (size_t i = 0; i < desc->n_sizes; i++) vec_push(&c->arena, &sizes, desc->sizes[i]);
  tn_model_desc known = *desc;
  known.sizes = sizes.at;
  known.n_sizes = sizes.n;
  tn_status s = tn_model_load(c->context, c->operand, &known, m);
  if (s == TN_ERR_ARGUMENT || s == TN_ERR_SHAPE) explain_sizes(c, desc, inputs, s);
  if (s == TN_ERR_ARGUMENT && lack_rank(c, desc, inputs)) return load_model(c, desc, NULL, m);
  if (s == TN_ERR_ARGUMENT) command_usage_error(c, "--input: %s", tn_message(c->context));
  advise(c, desc, *m);
  if (s == TN_OK)
    command_print_note(
        c,
        "the model is loaded only for the sizes of the given inputs; tenon inspect without "
        "--input shows why%s",
        desc->variants == TN_VARIANTS_AUTO ? "" : "; --variants has no effect");
  *desc = known;
  return s;
}

tn_status model_inputs_load_sized(command *c, tn_model_desc *desc, const option_list *entries,
                                  tn_model **m) {
  tn_status s = load_model(c, desc, NULL, m);
  if (s == TN_ERR_UNSUPPORTED && input_lists_choose(c, entries, desc))
    s = load_model(c, desc, NULL, m);
  known_inputs inputs = {0};
  bool needs_sizes = s == TN_OK && tn_model_exact_sizes(*m);
  if (s == TN_ERR_SHAPE || s == TN_ERR_UNSUPPORTED || needs_sizes)
    inputs = find_known_inputs(c, desc, entries);
  if (!inputs.n || !strcmp(c->operand, "-")) {
    advise(c, desc, *m);
    note_exact_sizes(c, *m, desc);
    return s;
  }
  if (s == TN_OK) tn_model_free(*m);
  return load_for_sizes(c, desc, &inputs, m);
}

tn_status model_inputs_load_model(command *c, const tn_model_desc *desc, const option_list *entries,
                                  tn_model **m) {
  tn_model_desc copy = *desc;
  return model_inputs_load_sized(c, &copy, entries, m);
}

/* Binding. */

void model_inputs_bind(command *c, const model_inputs *in, tn_binding *b) {
  for (size_t i = 0; i < in->n; i++) {
    const host_array *v = &in->at[i].value;
    command_check_binding(c, tn_binding_input_at(b, i, v->shape, v->dtype, v->data, v->bytes), b);
  }
}
