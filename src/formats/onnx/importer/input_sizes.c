/* Sizes of a model's inputs: named dimensions become variables; the caller's constraints bound
   them, fix them, or unify them (union-find over names). */
#include "formats/onnx/importer/input_sizes.h"

#include "ir/core/var_names.h"
#include "ir/index/index_arithmetic.h"

#include <stdlib.h>
#include <string.h>

/** A size, or several that are equal: of these one stands for all. */
struct input_size {
  const char *name;
  input_size *same; /* NULL: this one stands for itself */
  int64_t min, max;
};

static input_size *new_size(import *m, const char *name, int64_t min, int64_t max) {
  input_size s = {.name = name, .min = min, .max = max};
  return arena_copy(m->b.arena, &s, sizeof s);
}

/** The one that stands for a size. */
static input_size *chief(input_size *s) {
  while (s->same) {
    if (s->same->same) s->same = s->same->same;
    s = s->same;
  }
  return s;
}

/* The inputs' sizes. */

static void read_named(import *m, const onnx_value *v) {
  for (size_t i = 0; i < v->type.dims.n; i++) {
    const onnx_dim *d = &v->type.dims.at[i];
    if (d->value < 0 && *d->param && !string_map_get(&m->sizes, d->param))
      string_map_set(m->b.arena, &m->sizes, d->param, new_size(m, d->param, 0, ONNX_SIZE_MAX));
  }
}

/** A name that no size of the file has. */
static const char *own_name(import *m, const onnx_value *v, size_t axis) {
  const char *name = arena_printf(m->b.arena, "%s:%zu", v->name, axis);
  while (string_map_get(&m->sizes, name)) name = arena_printf(m->b.arena, "%s'", name);
  return name;
}

static void read_axes(import *m, const onnx_value *v) {
  size_t rank = v->type.dims.n;
  input_size **axes = arena_alloc(m->b.arena, (rank + 1) * sizeof *axes);
  for (size_t i = 0; i < rank; i++) {
    const onnx_dim *d = &v->type.dims.at[i];
    if (d->value >= 0)
      axes[i] =
          new_size(m, arena_printf(m->b.arena, "%lld", (long long)d->value), d->value, d->value);
    else if (*d->param)
      axes[i] = string_map_get(&m->sizes, d->param);
    else
      axes[i] = new_size(m, own_name(m, v, i), 0, ONNX_SIZE_MAX);
  }
  map_set(m->b.arena, &m->axes, v, axes);
}

/* The caller's constraints. */

/** "input:axis"; NULL if it is none. */
static input_size *find_axis(import *m, const char *name) {
  const onnx_values *inputs = &m->model->graph->inputs;
  const char *colon = strrchr(name, ':');
  if (!colon || colon[1] < '0' || colon[1] > '9') return NULL;
  char *end;
  unsigned long axis = strtoul(colon + 1, &end, 10);
  for (size_t i = 0; i < inputs->n && !*end; i++) {
    const onnx_value *v = &inputs->at[i];
    if (strlen(v->name) != (size_t)(colon - name) || strncmp(v->name, name, strlen(v->name)))
      continue;
    input_size **axes = map_get(&m->axes, v);
    return axes && axis < v->type.dims.n ? axes[axis] : NULL;
  }
  return NULL;
}

static void add_size(str *list, const char *name) {
  enum { LONGEST = 300 };
  if (list->n < LONGEST) str_addf(list, "%s'%.100s'", list->n ? ", " : "", name);
}

/** The names of the sizes that are left open. */
static const char *list_sizes(import *m) {
  str list = str_new(m->b.arena);
  const onnx_values *inputs = &m->model->graph->inputs;
  map listed = {0};
  for (size_t i = 0; i < inputs->n; i++) {
    input_size **axes = map_get(&m->axes, &inputs->at[i]);
    for (size_t k = 0; axes && k < inputs->at[i].type.dims.n; k++) {
      if (inputs->at[i].type.dims.at[k].value >= 0 || map_has(&listed, axes[k])) continue;
      map_set(m->b.arena, &listed, axes[k], axes[k]);
      add_size(&list, axes[k]->name);
    }
  }
  return list.n ? str_text(&list) : "none";
}

static input_size *find_size(import *m, const char *name) {
  input_size *s = name ? string_map_get(&m->sizes, name) : NULL;
  if (!s && name) s = find_axis(m, name);
  if (!s)
    diag_raise(m->b.diag, TN_ERR_ARGUMENT,
               "no input has a size '%.100s'; those that vary are %s, and input:axis names any",
               name ? name : "(NULL)", list_sizes(m));
  return s;
}

static void bound(import *m, input_size *s, const char *name, int64_t min, int64_t max) {
  if (min > s->max || max < s->min)
    diag_raise(m->b.diag, TN_ERR_ARGUMENT,
               "size '%.100s' cannot be in %lld … %lld: it is in %lld … %lld", name, (long long)min,
               (long long)max, (long long)s->min, (long long)s->max);
  if (min > s->min) s->min = min;
  if (max < s->max) s->max = max;
}

static void say(import *m, const tn_model_size *said) {
  input_size *s = chief(find_size(m, said->name));
  if (said->same) {
    input_size *other = chief(find_size(m, said->same));
    bound(m, other, said->name, s->min, s->max);
    if (s != other) s->same = other;
    return;
  }
  if (said->min < 0 || said->min > said->max || said->max > ONNX_SIZE_MAX)
    diag_raise(m->b.diag, TN_ERR_ARGUMENT,
               "size '%.100s' is to be in %lld … %lld, which is not within 0 … %d", said->name,
               (long long)said->min, (long long)said->max, ONNX_SIZE_MAX);
  bound(m, s, said->name, said->min, said->max);
}

void input_sizes_read(import *m) {
  const onnx_graph *g = m->model->graph;
  string_map given = {0};
  if (m->n_size_constraints && !m->said)
    diag_raise(m->b.diag, TN_ERR_ARGUMENT, "sizes is NULL, and n_sizes %zu", m->n_size_constraints);
  for (size_t i = 0; i < g->initializers.n; i++)
    string_map_set(m->b.arena, &given, g->initializers.at[i]->name, g->initializers.at[i]);
  for (int pass = 0; pass < 2; pass++)
    for (size_t i = 0; i < g->inputs.n; i++)
      if (!string_map_get(&given, g->inputs.at[i].name))
        (pass ? read_axes : read_named)(m, &g->inputs.at[i]);
  for (size_t i = 0; i < m->n_size_constraints; i++) say(m, &m->said[i]);
}

static const node *variable(ir *g, const char *text, int64_t min, int64_t max) {
  if (min == max) return ix_const(g, min);
  int64_t bounds[] = {min, max};
  return ir_make(g, &(node_spec){.op = OP_VAR,
                                 .dtype = DT_INDEX,
                                 .ints = bounds,
                                 .n_int = 2,
                                 .text = text,
                                 .n_text = strlen(text)});
}

const node *input_sizes_axis(import *m, const onnx_value *v, size_t axis) {
  input_size *const *axes = map_get(&m->axes, v), *s = chief(axes[axis]);
  return variable(m->b.ir, var_name_in_graph(m->b.arena, s->name), s->min, s->max);
}

void onnx_require_nonzero(onnx_call *c, const node *var) {
  map_set(c->m->b.arena, &c->m->nonzero, var, (void *)var);
}

const node *importer_size_at_run(const import *m, ir *g, const node *var) {
  return variable(g, var->text, map_has(&m->nonzero, var) ? 1 : var->lo, var->hi);
}
