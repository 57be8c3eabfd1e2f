#include "cli/feed.h"

#include "cli/load.h"
#include "cli/text.h"
#include "formats/model.h"
#include "ir/var.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Lists of NAME=VALUE. A name may hold '=' itself, so names are told by the model. */

void feed_check_list(command *c, const char *option, const char *form, const option_list *list) {
  for (size_t i = 0; i < list->n; i++) {
    const char *equals = strchr(list->at[i], '=');
    if (!equals || equals == list->at[i] || !equals[1])
      command_misuse(c, "--%s is given as %s, not as \"%s\"", option, form, list->at[i]);
  }
}

typedef VEC(const char *) port_names;

static port_names names_of(command *c, const tn_model *m, tn_port_kind kind) {
  port_names names = {0};
  tn_port port = TN_PORT_INIT;
  for (size_t i = 0; tn_model_port(m, kind, i, &port) == TN_OK; i++)
    vec_push(&c->arena, &names, port.name);
  return names;
}

/** The place of the longest name that an entry begins with; SIZE_MAX if there is none. */
static size_t place_of(const char *entry, const port_names *names) {
  size_t best = SIZE_MAX, longest = 0;
  for (size_t i = 0; i < names->n; i++) {
    size_t n = strlen(names->at[i]);
    bool fits = !strncmp(entry, names->at[i], n) && entry[n] == '=';
    if (!fits || (best != SIZE_MAX && n <= longest)) continue;
    best = i;
    longest = n;
  }
  return best;
}

static _Noreturn void no_port(command *c, const char *option, const char *entry,
                              const port_names *names) {
  const char *name = arena_printf(&c->arena, "%.*s", (int)strcspn(entry, "="), entry);
  str all = str_new(&c->arena);
  for (size_t i = 0; i < names->n; i++) str_addf(&all, "%s%s", i ? ", " : "", names->at[i]);
  command_misuse(c, "--%s: the model has no %s \"%s\"%s (it has %s)", option, option, name,
                 text_suggestion(&c->arena, text_nearest(name, names->at, names->n)),
                 str_text(&all));
}

const char *const *feed_match(command *c, const char *option, const option_list *list,
                              const tn_model *m, tn_port_kind kind) {
  port_names names = names_of(c, m, kind);
  const char **values = arena_calloc(&c->arena, names.n + 1, sizeof *values);
  for (size_t i = 0; i < list->n; i++) {
    const char *entry = list->at[i];
    size_t place = place_of(entry, &names);
    if (place == SIZE_MAX) no_port(c, option, entry, &names);
    if (values[place]) command_misuse(c, "--%s %s is given twice", option, names.at[place]);
    values[place] = entry + strlen(names.at[place]) + 1;
  }
  return values;
}

/* Values. */

/** What the command line says of an input. */
typedef struct order {
  const char *file; /* NULL: it is filled */
  array_fill fill;
  bool shaped;
  tn_shape shape;
} order;

static const char *const fills[] = {
    [FILL_RANDOM] = "random", [FILL_ONES] = "ones", [FILL_ZEROS] = "zeros"};
enum { FILLS = sizeof fills / sizeof *fills };

/** "4x3x224"; "" is a scalar's. */
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

/** A fill, a shape, "fill:shape", or else a file's name. */
static order parse_order(const char *text) {
  order o = {.fill = FILL_RANDOM};
  if (parse_shape(text, &o.shape)) {
    o.shaped = true;
    return o;
  }
  for (size_t i = 0; i < FILLS; i++) {
    size_t n = strlen(fills[i]);
    if (strncmp(text, fills[i], n) || (text[n] && text[n] != ':')) continue;
    o.shaped = text[n] && parse_shape(text + n + 1, &o.shape);
    o.fill = (array_fill)i;
    if (o.shaped || !text[n]) return o;
  }
  o.file = load_path(text);
  return o;
}

typedef VEC(tn_model_size) model_sizes;

/** Adds what an entry says of an input's sizes. Standard input is read once, later. */
static void add_sizes(command *c, const char *entry, model_sizes *sizes) {
  size_t n = strcspn(entry, "=");
  order o = parse_order(entry + n + 1);
  if (o.file && !strcmp(entry + n + 1, "-")) return;
  tn_shape shape = o.file ? array_read(c, o.file, TN_F32).shape : o.shape;
  for (int32_t i = 0; (o.file || o.shaped) && i < shape.rank; i++) {
    char *name = arena_printf(&c->arena, "%.*s:%d", (int)n, entry, (int)i);
    int64_t size = shape.size[i];
    vec_push(&c->arena, sizes, ((tn_model_size){.name = name, .min = size, .max = size}));
  }
}

tn_status feed_load(command *c, const tn_model_desc *desc, const option_list *given, tn_model **m) {
  tn_status s = load_model(c, desc, NULL, m);
  bool may_be_sizes = s == TN_ERR_SHAPE || s == TN_ERR_UNSUPPORTED;
  model_sizes sizes = {0};
  for (size_t i = 0; i < given->n && may_be_sizes; i++) add_sizes(c, given->at[i], &sizes);
  if (!sizes.n || !strcmp(c->operand, "-")) return s;
  for (size_t i = 0; i < desc->n_sizes; i++) vec_push(&c->arena, &sizes, desc->sizes[i]);
  tn_model_desc known = *desc;
  known.sizes = sizes.at;
  known.n_sizes = sizes.n;
  s = tn_model_load(c->context, c->operand, &known, m);
  if (s == TN_ERR_ARGUMENT) command_misuse(c, "--input: %s", tn_message(c->context));
  if (s == TN_OK)
    command_note(c,
                 "loaded for the sizes of the inputs alone; tenon inspect tells why not for all");
  return s;
}

/** The arrays of a model's inputs, in the making. */
typedef struct feeding {
  command *c;
  const tn_model *m;
  feeds feeds;
  order *orders; /* of each input */
  map told;      /* size that varies → what an input that is given says it is, an int64_t */
} feeding;

/** Sizes that a given input tells. */
static void tell_sizes(feeding *k, const node *leaf, const tn_shape *shape) {
  for (int32_t i = 0; shape->rank == leaf->rank && i < shape->rank; i++)
    if (!map_has(&k->told, leaf->dims[i]))
      map_set(&k->c->arena, &k->told, leaf->dims[i],
              arena_copy(&k->c->arena, &shape->size[i], sizeof shape->size[i]));
}

/** What is said of an input, and its array where that is a file's. */
static void take_order(feeding *k, const tn_port *port, const char *text) {
  size_t at = k->feeds.n;
  const order o = k->orders[at] = text ? parse_order(text) : (order){.fill = FILL_RANDOM};
  feed f = {.name = port->name, .from = o.file ? o.file : fills[o.fill], .file = o.file};
  if (o.file) f.value = array_read(k->c, o.file, port->type.dtype);
  if (o.file || o.shaped) tell_sizes(k, k->m->nodes[at], o.file ? &f.value.shape : &o.shape);
  vec_push(&k->c->arena, &k->feeds, f);
}

/** The shape an input is to have where nobody says: sizes that vary are what other inputs tell, or
    as small as they can be, from 1 on. */
static tn_shape guess(feeding *k, const tn_port *port, const node *leaf) {
  command *c = k->c;
  tn_shape shape = port->type.shape;
  if (shape.rank < 0)
    command_misuse(c,
                   "the model does not say how many axes its input \"%s\" has: give its shape, "
                   "as in --input %s=2x3",
                   port->name, port->name);
  str chosen = str_new(&c->arena);
  map seen = {0};
  for (int32_t i = 0; i < shape.rank; i++) {
    if (shape.size[i] >= 0) continue;
    const int64_t *told = map_get(&k->told, leaf->dims[i]);
    int64_t least = leaf->dims[i]->lo;
    shape.size[i] = told ? *told : least > 1 ? least : 1;
    if (told || map_has(&seen, leaf->dims[i])) continue;
    map_set(&c->arena, &seen, leaf->dims[i], NULL);
    str_addf(&chosen, "%s%s = %lld", chosen.n ? ", " : "", port->sizes[i],
             (long long)shape.size[i]);
  }
  if (chosen.n)
    command_note(c, "input %s has sizes that vary, taken as %s", port->name, str_text(&chosen));
  return shape;
}

/** The type of an input that is filled, which costs no memory before all are known to fit. */
static void choose_type(feeding *k, const tn_port *port, size_t at) {
  const order *o = &k->orders[at];
  array *value = &k->feeds.at[at].value;
  if (o->file) return;
  value->dtype = port->type.dtype;
  value->shape = o->shaped ? o->shape : guess(k, port, k->m->nodes[at]);
}

static void fill(feeding *k, size_t at, uint64_t *seed) {
  feed *f = &k->feeds.at[at];
  if (f->file) return;
  f->value = array_make(k->c, f->name, f->value.dtype, f->value.shape);
  array_set(&f->value, k->orders[at].fill, seed);
}

static void check_standard_input(command *c, const char *const values[], size_t n) {
  size_t readers = !strcmp(c->operand, "-");
  for (size_t i = 0; i < n; i++) readers += values[i] && !strcmp(values[i], "-");
  if (readers > 1)
    command_misuse(c, "-, standard input, can be read once: as the model, or as one input");
}

feeds feed_make(command *c, const tn_model *m, const option_list *given, uint64_t seed) {
  feeding k = {.c = c, .m = m};
  tn_port port = TN_PORT_INIT;
  const char *const *values = feed_match(c, "input", given, m, TN_PORT_INPUT);
  check_standard_input(c, values, m->n_inputs);
  k.orders = arena_alloc(&c->arena, (m->n_inputs + 1) * sizeof *k.orders);
  for (size_t i = 0; tn_model_port(m, TN_PORT_INPUT, i, &port) == TN_OK; i++)
    take_order(&k, &port, values[i]);
  for (size_t i = 0; tn_model_port(m, TN_PORT_INPUT, i, &port) == TN_OK; i++)
    choose_type(&k, &port, i);
  feed_check(c, &k.feeds, m);
  for (size_t i = 0; i < k.feeds.n; i++) fill(&k, i, &seed);
  return k.feeds;
}

/* What fits. */

/** A size that varies, where the inputs before tell it. */
typedef struct told_size {
  const feed *by;
  size_t axis;
} told_size;

typedef struct fitting {
  command *c;
  map told; /* size of the model that varies → told_size */
} fitting;

static const char *input_text(command *c, const feed *f) {
  return f->file ? arena_printf(&c->arena, "%s (%s)", f->name, f->file) : f->name;
}

static void check_varying(fitting *k, const feed *f, size_t axis, const node *size) {
  command *c = k->c;
  int64_t given = f->value.shape.size[axis];
  const char *name = var_name(size->text);
  if (given < size->lo || given > size->hi)
    diag_raise(&c->diag, TN_ERR_SHAPE,
               "input %s: axis %zu of size %lld gives %s no value from %lld to %lld",
               input_text(c, f), axis, (long long)given, name, (long long)size->lo,
               (long long)size->hi);
  const told_size *told = map_get(&k->told, size);
  int64_t value = told ? told->by->value.shape.size[told->axis] : given;
  if (given != value)
    diag_raise(&c->diag, TN_ERR_SHAPE,
               "input %s: axis %zu has size %lld, not %lld, as %s is %lld by axis %zu of input %s",
               input_text(c, f), axis, (long long)given, (long long)value, name, (long long)value,
               told->axis, told->by->name);
  if (!told)
    map_set(&c->arena, &k->told, size,
            arena_copy(&c->arena, &(told_size){f, axis}, sizeof(told_size)));
}

static void check_feed(fitting *k, const feed *f, const node *leaf) {
  command *c = k->c;
  const tn_shape *shape = &f->value.shape;
  if (shape->rank != leaf->rank)
    diag_raise(&c->diag, TN_ERR_SHAPE, "input %s has rank %d, not %d", input_text(c, f),
               (int)shape->rank, (int)leaf->rank);
  for (size_t i = 0; i < leaf->rank; i++) {
    const node *size = leaf->dims[i];
    if (!node_is_const(size))
      check_varying(k, f, i, size);
    else if (node_int(size) != shape->size[i])
      diag_raise(&c->diag, TN_ERR_SHAPE, "input %s: axis %zu has size %lld, not %lld",
                 input_text(c, f), i, (long long)shape->size[i], (long long)node_int(size));
  }
}

void feed_check(command *c, const feeds *f, const tn_model *m) {
  fitting k = {.c = c};
  for (size_t i = 0; i < f->n; i++) check_feed(&k, &f->at[i], m->nodes[i]);
}

const char *feed_sizes(command *c, const feeds *f, const tn_model *m) {
  str s = str_new(&c->arena);
  map seen = {0};
  for (size_t i = 0; i < f->n; i++) {
    const node *leaf = m->nodes[i];
    for (size_t k = 0; k < leaf->rank; k++) {
      if (node_is_const(leaf->dims[k]) || map_has(&seen, leaf->dims[k])) continue;
      map_set(&c->arena, &seen, leaf->dims[k], NULL);
      str_addf(&s, "%s%s = %lld", s.n ? ", " : "", var_name(leaf->dims[k]->text),
               (long long)f->at[i].value.shape.size[k]);
    }
  }
  return str_text(&s);
}

void feed_bind(command *c, const feeds *f, tn_binding *b) {
  for (size_t i = 0; i < f->n; i++) {
    const array *v = &f->at[i].value;
    command_check_binding(
        c, tn_binding_input(b, f->at[i].name, v->shape, v->dtype, v->data, v->bytes), b);
  }
}
