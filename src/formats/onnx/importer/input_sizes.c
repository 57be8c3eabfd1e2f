/* Sizes of a model's inputs. A named dimension (dim_param) is one size wherever its name occurs,
   or, with `separates_names`, a size of its own there that only has the same name. An unnamed one
   is a size of its own. The caller's constraints narrow the bounds of sizes or unify them
   (union-find); each remaining class becomes a variable, or a constant if its bounds are equal. */
#include "formats/onnx/importer/input_sizes.h"

#include "ir/core/var_names.h"
#include "ir/index/index_arithmetic.h"
#include "tensor/context/descriptor.h"

#include <stdlib.h>
#include <string.h>

/** A size: an element of the union-find forest. The root's name and bounds hold for its class. */
struct input_size {
  const char *name;
  size_t number;      /* among those of its name */
  input_size *next;   /* of its name */
  input_size *parent; /* NULL: a root */
  int64_t min, max;
  int64_t likely; /* 0: not known */
  bool has_min;   /* above 0, from the caller */
  bool is_fixed;  /* by the file, to `min` */
};

static input_size *new_size(import *m, const char *name, int64_t min, int64_t max) {
  input_size s = {.name = name, .min = min, .max = max};
  return arena_copy(m->b.arena, &s, sizeof s);
}

/** A size that the file leaves open. */
static input_size *open_size(import *m, const char *name) {
  return new_size(m, name, m->least_size, ONNX_SIZE_MAX);
}

/** Finds the root of a size, halving the path. */
static input_size *find_root(input_size *s) {
  while (s->parent) {
    if (s->parent->parent) s->parent = s->parent->parent;
    s = s->parent;
  }
  return s;
}

/* Sizes of the inputs. */

static bool is_named(const onnx_dim *d) { return d->value < 0 && *d->param; }

static void declare_named_sizes(import *m, const onnx_value *v) {
  for (size_t i = 0; i < v->type.dims.n; i++) {
    const onnx_dim *d = &v->type.dims.at[i];
    if (is_named(d) && !string_map_get(&m->sizes, d->param))
      string_map_set(m->b.arena, &m->sizes, d->param, open_size(m, d->param));
  }
}

/** The size of a named dimension: that of its name, or one more. */
static input_size *named_size(import *m, const char *name, map *used) {
  input_size *first = string_map_get(&m->sizes, name), *last = first;
  if (!m->separates_names || !map_has(used, first)) {
    map_set(m->b.arena, used, first, first);
    return first;
  }
  while (last->next) last = last->next;
  last->next = open_size(m, name);
  last->next->number = last->number + 1;
  return last->next;
}

static input_size *fixed_size(import *m, int64_t value) {
  input_size *s = new_size(m, arena_printf(m->b.arena, "%lld", (long long)value), value, value);
  s->is_fixed = true;
  return s;
}

/** Names an unnamed dimension "input:axis", with primes until no size of the file has the name. */
static const char *unique_name(import *m, const onnx_value *v, size_t axis) {
  const char *name = arena_printf(m->b.arena, "%s:%zu", v->name, axis);
  while (string_map_get(&m->sizes, name)) name = arena_printf(m->b.arena, "%s'", name);
  return name;
}

static void declare_axes(import *m, const onnx_value *v, map *used) {
  size_t rank = v->type.dims.n;
  input_size **axes = arena_alloc(m->b.arena, (rank + 1) * sizeof *axes);
  for (size_t i = 0; i < rank; i++) {
    const onnx_dim *d = &v->type.dims.at[i];
    if (d->value >= 0)
      axes[i] = fixed_size(m, d->value);
    else if (*d->param)
      axes[i] = named_size(m, d->param, used);
    else
      axes[i] = open_size(m, unique_name(m, v, i));
  }
  map_set(m->b.arena, &m->axes, v, axes);
}

/* Constraints of the caller. */

/** Finds a size by "input:axis"; NULL: there is none. */
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

static void list_size_name(str *list, const char *name) {
  enum { LONGEST = 300 };
  if (list->n < LONGEST) str_addf(list, "%s'%.100s'", list->n ? ", " : "", name);
}

/** Lists the names of all varying sizes for a message. */
static const char *list_varying_sizes(import *m) {
  str list = str_new(m->b.arena);
  const onnx_values *inputs = &m->model->graph->inputs;
  map listed = {0};
  for (size_t i = 0; i < inputs->n; i++) {
    input_size **axes = map_get(&m->axes, &inputs->at[i]);
    for (size_t k = 0; axes && k < inputs->at[i].type.dims.n; k++) {
      if (inputs->at[i].type.dims.at[k].value >= 0 || map_has(&listed, axes[k])) continue;
      map_set(m->b.arena, &listed, axes[k], axes[k]);
      list_size_name(&list, axes[k]->name);
    }
  }
  return list.n ? str_text(&list) : NULL;
}

static input_size *find_size(import *m, const char *name) {
  input_size *s = name ? string_map_get(&m->sizes, name) : NULL;
  if (!s && name) s = find_axis(m, name);
  if (s) return s;
  const char *varying = list_varying_sizes(m);
  if (!varying)
    diag_raise(
        m->b.diag, TN_ERR_ARGUMENT,
        "no input has a size '%.100s': the file fixes all sizes; one that is to vary must be "
        "exported as dynamic (dynamic_shapes of torch.onnx.export)",
        name ? name : "(NULL)");
  diag_raise(m->b.diag, TN_ERR_ARGUMENT,
             "no input has a size '%.100s'; sizes that vary: %s; the file fixes all others",
             name ? name : "(NULL)", varying);
}

/** Raises if a size that the file fixes, which is one of an axis, is to be another one. */
static void check_fixed(import *m, const input_size *s, const tn_model_size *constraint) {
  if (!s->is_fixed || (constraint->min <= s->min && s->min <= constraint->max)) return;
  const char *colon = strrchr(constraint->name, ':');
  diag_raise(m->b.diag, TN_ERR_ARGUMENT,
             "the file fixes axis %s of input '%.*s' to %lld; one that is to vary must be exported "
             "as dynamic (dynamic_shapes of torch.onnx.export)",
             colon + 1, (int)(colon - constraint->name < 100 ? colon - constraint->name : 100),
             constraint->name, (long long)s->min);
}

static void narrow_bounds(import *m, input_size *s, const char *name, int64_t min, int64_t max) {
  if (min > s->max || max < s->min)
    diag_raise(m->b.diag, TN_ERR_ARGUMENT,
               "the range %lld … %lld of size '%.100s' contradicts its range %lld … %lld in the "
               "model or in another constraint",
               (long long)min, (long long)max, name, (long long)s->min, (long long)s->max);
  if (min > s->min) s->min = min;
  if (max < s->max) s->max = max;
}

static void set_likely(import *m, input_size *s, const char *name, int64_t likely) {
  if (likely < s->min || likely > s->max)
    diag_raise(m->b.diag, TN_ERR_ARGUMENT,
               "the likely value %lld of size '%.100s' is not within its range %lld … %lld",
               (long long)likely, name, (long long)s->min, (long long)s->max);
  s->likely = likely;
}

/** Makes a size equal to another one, under the name of the latter. */
static void unify(import *m, input_size *s, input_size *other, const char *name) {
  s = find_root(s);
  other = find_root(other);
  narrow_bounds(m, other, name, s->min, s->max);
  if (s->likely) other->likely = s->likely;
  other->has_min |= s->has_min;
  if (s != other) s->parent = other;
}

/** Makes all sizes of a constraint equal. */
static void apply_equality(import *m, const tn_model_size *constraint) {
  input_size *first = find_size(m, constraint->name), *other = find_size(m, constraint->same);
  bool is_first_named = string_map_get(&m->sizes, constraint->name) == first,
       is_other_named = string_map_get(&m->sizes, constraint->same) == other;
  for (input_size *s = is_other_named ? other->next : NULL; s; s = s->next)
    unify(m, s, other, constraint->same);
  for (input_size *s = first; s; s = is_first_named ? s->next : NULL)
    unify(m, s, other, constraint->name);
  if (constraint->likely) set_likely(m, find_root(other), constraint->name, constraint->likely);
}

static void apply_bounds(import *m, input_size *s, const tn_model_size *constraint) {
  check_fixed(m, s, constraint);
  s = find_root(s);
  if (constraint->min < 0 || constraint->min > constraint->max || constraint->max > ONNX_SIZE_MAX)
    diag_raise(m->b.diag, TN_ERR_ARGUMENT,
               "the range %lld … %lld of size '%.100s' is empty or not within 0 … %d",
               (long long)constraint->min, (long long)constraint->max, constraint->name,
               ONNX_SIZE_MAX);
  narrow_bounds(m, s, constraint->name, constraint->min, constraint->max);
  s->has_min |= constraint->min > 0;
  if (constraint->likely) set_likely(m, s, constraint->name, constraint->likely);
}

/** Applies a constraint to all sizes of its name, or to that of an axis. */
static void apply_constraint(import *m, const tn_model_size *constraint) {
  if (constraint->same) {
    apply_equality(m, constraint);
    return;
  }
  input_size *first = find_size(m, constraint->name);
  bool is_named = string_map_get(&m->sizes, constraint->name) == first;
  for (input_size *s = first; s; s = is_named ? s->next : NULL) apply_bounds(m, s, constraint);
}

/** Applies all constraints, of which those of programs built with another header may be shorter. */
static void apply_constraints(import *m) {
  const char *at = (const char *)m->size_constraints;
  size_t bytes = m->n_size_constraints ? m->size_constraints->size : 0;
  for (size_t i = 0; i < m->n_size_constraints; i++, at += bytes) {
    tn_model_size constraint = TN_MODEL_SIZE_INIT;
    if (((const tn_model_size *)at)->size != bytes)
      diag_raise(m->b.diag, TN_ERR_ARGUMENT, "entries of sizes differ in their tn_model_size.size");
    if (descriptor_read(m->b.diag, &constraint, at, sizeof constraint, "tn_model_size") != TN_OK)
      diag_rethrow(m->b.diag);
    apply_constraint(m, &constraint);
  }
}

/** The graph's initializers by name: inputs with these names are left out. */
static string_map find_initializers(import *m) {
  const onnx_graph *g = m->model->graph;
  string_map found = {0};
  for (size_t i = 0; i < g->initializers.n; i++)
    string_map_set(m->b.arena, &found, g->initializers.at[i]->name, g->initializers.at[i]);
  return found;
}

bool input_sizes_share_names(import *m) {
  const onnx_values *inputs = &m->model->graph->inputs;
  string_map seen = {0}, initializers = find_initializers(m);
  for (size_t i = 0; i < inputs->n; i++) {
    if (string_map_get(&initializers, inputs->at[i].name)) continue;
    for (size_t k = 0; k < inputs->at[i].type.dims.n; k++) {
      const onnx_dim *d = &inputs->at[i].type.dims.at[k];
      if (is_named(d) && string_map_get(&seen, d->param)) return true;
      if (is_named(d)) string_map_set(m->b.arena, &seen, d->param, (void *)d);
    }
  }
  return false;
}

void input_sizes_read(import *m) {
  const onnx_graph *g = m->model->graph;
  string_map initializers = find_initializers(m);
  map used = {0};
  if (m->n_size_constraints && !m->size_constraints)
    diag_raise(m->b.diag, TN_ERR_ARGUMENT, "sizes is NULL, but n_sizes is %zu",
               m->n_size_constraints);
  for (size_t i = 0; i < g->inputs.n; i++)
    if (!string_map_get(&initializers, g->inputs.at[i].name))
      declare_named_sizes(m, &g->inputs.at[i]);
  for (size_t i = 0; i < g->inputs.n; i++)
    if (!string_map_get(&initializers, g->inputs.at[i].name))
      declare_axes(m, &g->inputs.at[i], &used);
  apply_constraints(m);
}

/** A size as a node: a constant if its bounds are equal, else a variable. `likely` 0: not known, or
    no longer within the bounds. */
static const node *size_node(ir *g, const char *text, int64_t min, int64_t max, int64_t likely) {
  if (min == max) return ix_const(g, min);
  int64_t bounds[] = {min, max, likely};
  bool is_known = likely && likely >= min && likely <= max;
  return ir_make(g, &(node_spec){.op = OP_VAR,
                                 .dtype = DT_INDEX,
                                 .ints = bounds,
                                 .n_int = 2 + is_known,
                                 .text = text,
                                 .n_text = strlen(text)});
}

const node *input_sizes_axis(import *m, const onnx_value *v, size_t axis) {
  input_size *const *axes = map_get(&m->axes, v), *s = find_root(axes[axis]);
  const char *text = var_name_numbered(m->b.arena, s->name, s->number);
  int64_t raised = (intptr_t)string_map_get(&m->least, text),
          lowered = (intptr_t)string_map_get(&m->most, text);
  if (s->has_min) string_map_set(m->b.arena, &m->bounded, text, s);
  return size_node(m->b.ir, text, raised > s->min ? raised : s->min,
                   lowered && lowered < s->max ? lowered : s->max, s->likely);
}

enum { MOST_RAISES = 64 }; /* each costs an import */

bool input_sizes_raise_minimum(import *m, const node *var, int64_t least) {
  if (least <= var->lo || least > var->hi || string_map_get(&m->bounded, var->text) ||
      m->n_raises++ == MOST_RAISES)
    return false;
  string_map_set(m->b.arena, &m->least, arena_printf(m->b.arena, "%s", var->text),
                 (void *)(intptr_t)least);
  return true;
}

bool input_sizes_lower_maximum(import *m, const node *var, int64_t most) {
  bool is_bounded = var->hi < ONNX_SIZE_MAX && !string_map_get(&m->most, var->text);
  if (most >= var->hi || most < var->lo || most < 1 || is_bounded || m->n_raises++ == MOST_RAISES)
    return false;
  string_map_set(m->b.arena, &m->most, arena_printf(m->b.arena, "%s", var->text),
                 (void *)(intptr_t)most);
  return true;
}

void input_sizes_forget_bounds(import *m) {
  m->least = m->most = m->bounded = (string_map){0};
  m->n_raises = 0;
}

void onnx_require_nonzero(onnx_call *c, const node *var) {
  map_set(c->m->b.arena, &c->m->nonzero, var, (void *)var);
}

const node *importer_size_at_run(const import *m, ir *g, const node *var) {
  int64_t least = map_has(&m->nonzero, var) ? 1 : var->lo;
  return size_node(g, var->text, least, var->hi, var->n_int > 2 ? var->ints[2] : 0);
}
