/* Inputs, initializers and outputs of graphs: inputs become graph inputs, with variables for sizes
   that vary, or constants where the caller gave their values; initializers become constants; an
   output that is a sequence becomes one for each of its tensors. */
#include "formats/onnx/graph_import.h"

#include "formats/onnx/importer/input_sizes.h"
#include "ir/index/index_arithmetic.h"

#include <string.h>

/** The value that is given to an input; NULL: it is unknown before a run. */
static const onnx_tensor *find_given(const import *m, const char *name) {
  for (size_t i = 0; i < m->n_given; i++)
    if (!strcmp(m->given[i].name, name)) return &m->given[i];
  return NULL;
}

static const int64_t *find_given_sizes(const import *m, const char *name) {
  for (const importer_sizes *s = m->given_sizes; s && s->name; s++)
    if (!strcmp(s->name, name)) return s->size;
  return NULL;
}

void importer_add_input(graph_import *k, const onnx_value *v) {
  import *m = k->m;
  bool is_other = v->type.kind != ONNX_TYPE_TENSOR && v->type.kind != ONNX_TYPE_NONE;
  if (is_other)
    diag_raise(
        m->b.diag, TN_ERR_UNSUPPORTED,
        "input '%.200s' is a sequence, an optional value or a map; of a sequence, say how many "
        "tensors it has when the model is loaded (tn_model_desc.lists)",
        v->name);
  if (v->type.kind != ONNX_TYPE_TENSOR || !v->type.has_shape)
    diag_raise(m->b.diag, TN_ERR_UNSUPPORTED,
               "input '%.200s' is not a tensor of known rank; export the model with the shapes of "
               "its inputs, naming sizes that vary",
               v->name);
  size_t rank = v->type.dims.n;
  importer_check_rank(m, "input", v->name, rank, TN_MAX_RANK);
  const node **dims = arena_alloc(m->b.arena, (rank + 1) * sizeof *dims);
  const int64_t *sizes = find_given_sizes(m, v->name);
  for (size_t axis = 0; axis < rank; axis++)
    dims[axis] = sizes ? ix_const(m->b.ir, sizes[axis]) : input_sizes_axis(m, v, axis);
  bool is_string = v->type.dtype == ONNX_STRING;
  dtype t = is_string ? DT_I64 : importer_check_dtype(m, v->type.dtype, "input", v->name);
  const node *n = m->callbacks.input(m->callbacks.user, v->name, t, rank, dims);
  vec_push(m->b.arena, &m->inputs, ((importer_port){v, n, is_string}));
  const onnx_tensor *given = find_given(m, v->name);
  value known = given ? importer_constant(m, given) : (value){n, WEAK_NO};
  if (is_string) known = importer_add_strings(m, known.node);
  importer_define(m, v->name, (importer_value){.v = known, .kind = "input"});
  k->input = v;
  importer_check_element_count(m, n);
  k->input = NULL;
}

void importer_check_names_differ(import *m, const onnx_values *list, const char *kind) {
  string_map seen = {0};
  for (size_t i = 0; i < list->n; i++) {
    const onnx_value *v = &list->at[i], *other = string_map_get(&seen, v->name);
    if (other)
      diag_raise(m->b.diag, TN_ERR_FORMAT, "%s %zu and %zu are both named '%.200s'", kind,
                 (size_t)(other - list->at), i, v->name);
    string_map_set(m->b.arena, &seen, v->name, (void *)v);
  }
}

void importer_add_initializer(import *m, const onnx_tensor *t) {
  importer_define(m, t->name,
                  (importer_value){.v = importer_constant(m, t), .kind = "initializer"});
}

void importer_add_initializers(import *m, const onnx_graph *g) {
  for (size_t i = 0; i < g->initializers.n; i++) importer_add_initializer(m, g->initializers.at[i]);
}

/** Defines an input that is a map, of the inputs that its parts are. */
static void add_map_input(import *m, const onnx_map_input *map) {
  const importer_value *keys = string_map_get(&m->values, map->keys),
                       *values = string_map_get(&m->values, map->values);
  value both[2] = {keys->v, values->v};
  importer_define(m, map->name, (importer_value){.v = importer_add_map(m, both), .kind = "input"});
}

void importer_add_graph_inputs(graph_import *k) {
  import *m = k->m;
  const onnx_graph *g = m->model->graph;
  importer_check_names_differ(m, &g->inputs, "inputs");
  importer_check_names_differ(m, &g->outputs, "outputs");
  importer_add_initializers(m, g);
  for (size_t i = 0; i < g->inputs.n; i++)
    if (!string_map_get(&m->values, g->inputs.at[i].name)) importer_add_input(k, &g->inputs.at[i]);
  for (size_t i = 0; i < g->maps.n; i++) add_map_input(m, &g->maps.at[i]);
  for (size_t i = 0; i < g->absent.n; i++)
    importer_define(m, g->absent.at[i], (importer_value){.kind = ONNX_ABSENT});
}

static void add_tensor_output(import *m, const onnx_value *port, value v) {
  const node *numbers = importer_find_strings(m, v), *n = numbers ? numbers : v.node;
  importer_check_rank(m, "output", port->name, n->rank, TN_MAX_RANK);
  vec_push(m->b.arena, &m->outputs, ((importer_port){port, n, numbers != NULL}));
}

/** Adds the tensors of a sequence "y" as the outputs "y[0]" …; of an absent value none. */
static void add_list_output(graph_import *k, const onnx_value *port, const importer_sequence *s) {
  import *m = k->m;
  arena *a = m->b.arena;
  if (m->n_given || m->given_sizes)
    diag_raise(m->b.diag, TN_ERR_UNSUPPORTED,
               "output '%.200s' is a sequence or an absent optional value; give the values that "
               "decide on it when the model is loaded (tn_model_desc.values)",
               port->name);
  vec_push(a, &m->lists, ((importer_list){port->name, s->is_absent ? -1 : (int64_t)s->n}));
  for (size_t i = 0; i < s->n; i++) {
    onnx_value element = {.name = arena_printf(a, "%s[%zu]", port->name, i)};
    add_tensor_output(m, arena_copy(a, &element, sizeof element), s->at[i]);
  }
}

void importer_add_output(graph_import *k, const onnx_value *port) {
  import *m = k->m;
  if (!string_map_get(&m->values, port->name))
    diag_raise(m->b.diag, TN_ERR_FORMAT, "no node makes output '%.200s'", port->name);
  value v = importer_find_result(m, port->name);
  const importer_sequence *s = importer_find_sequence(m, v);
  if (s && s->is_map)
    diag_raise(m->b.diag, TN_ERR_UNSUPPORTED, "output '%.200s' is a map", port->name);
  if (s)
    add_list_output(k, port, s);
  else
    add_tensor_output(m, port, v);
}
