/* Imports a model's file for the values of a run's inputs, as constants, or for their sizes, and
   makes the plan of the graph. The file stays mapped for that; weights of the graphs are parts of
   it, and what is made of these, as packed ones, all plans share. */
#include "formats/model/late_model.h"

#include "tensor/plan/shared_constants.h"

#include <string.h>

/** The model as far as imports need it: it may be freed before its bindings. */
typedef struct late_model {
  tn_context *context;
  model_file *file;
  const char *name;
  const tn_model_size *sizes; /* in the file's arena */
  size_t n_sizes;
  tn_variants variants;
  bool is_tunable, is_interpreted;
  shared_constants *constants; /* of all plans */
} late_model;

/* The parts of a model for later imports, and its declared outputs. */

typedef struct model_opening {
  tn_model *m;
  const tn_model_size *sizes;
  size_t n;
} model_opening;

static const char *copy_text(arena *a, const char *text) {
  return text ? arena_printf(a, "%s", text) : NULL;
}

static void copy_sizes(const model_opening *j) {
  tn_model *m = j->m;
  arena *a = &m->data->arena;
  size_t bytes = j->n ? j->sizes->size : 0;
  char *to = arena_copy(a, j->sizes, j->n * bytes);
  for (size_t i = 0; i < j->n; i++) {
    tn_model_size *s = (tn_model_size *)(to + i * bytes);
    s->name = copy_text(a, s->name);
    s->same = copy_text(a, s->same);
  }
  m->sizes = (tn_model_size *)to;
  m->n_sizes = j->n;
}

/** The declared type of an output, of strings that of their numbers, or VOID. */
static dtype declared_dtype(const onnx_value *v) {
  if (v->type.kind == ONNX_TYPE_TENSOR && v->type.dtype == ONNX_STRING) return DT_I64;
  bool is_data = v->type.kind == ONNX_TYPE_TENSOR && dtype_is_data((dtype)v->type.dtype);
  return is_data ? (dtype)v->type.dtype : DT_VOID;
}

/** A number for a size that is known as the size of no other port. */
static int32_t late_variable(const tn_model *m, size_t output, int32_t axis) {
  int32_t n = 0;
  for (size_t i = 0; i < m->graph.n_inputs; i++) n += (int32_t)m->graph.nodes[i]->rank;
  return n + (int32_t)output * TN_MAX_RANK + axis;
}

static const char *size_name(arena *a, const onnx_value *v, int32_t axis) {
  const onnx_dim *dim = &v->type.dims.at[axis];
  if (dim->value >= 0) return arena_printf(a, "%lld", (long long)dim->value);
  return *dim->param ? dim->param : arena_printf(a, "%s:%d", v->name, (int)axis);
}

static tn_port declared_port(const tn_model *m, size_t i) {
  const onnx_value *v = &m->data->onnx->graph->outputs.at[i];
  dtype t = declared_dtype(v);
  bool has_rank = t != DT_VOID && v->type.has_shape && v->type.dims.n <= TN_MAX_RANK;
  tn_port port = {.size = sizeof port, .name = v->name};
  port.is_string = v->type.kind == ONNX_TYPE_TENSOR && v->type.dtype == ONNX_STRING;
  port.type.dtype = t == DT_VOID ? TN_UNDEFINED : (tn_dtype)t;
  port.type.shape.rank = has_rank ? (int32_t)v->type.dims.n : -1;
  for (int32_t k = 0; k < port.type.shape.rank; k++) {
    int64_t size = v->type.dims.at[k].value;
    port.type.shape.size[k] = size >= 0 ? size : -1;
    port.sizes[k] = size_name(&m->data->arena, v, k);
    port.min[k] = size >= 0 ? size : 0;
    port.max[k] = size >= 0 ? size : ONNX_SIZE_MAX;
    port.variable[k] = size >= 0 ? -1 : late_variable(m, i, k);
  }
  return port;
}

static void open_body(void *arg) {
  const model_opening *j = arg;
  tn_model *m = j->m;
  size_t n = m->data->onnx->graph->outputs.n;
  copy_sizes(j);
  tn_port *outputs = arena_alloc(&m->data->arena, (n + 1) * sizeof *outputs);
  for (size_t i = 0; i < n; i++) outputs[i] = declared_port(m, i);
  m->late_outputs = outputs;
  m->n_late_outputs = n;
}

tn_status late_model_open(tn_model *m, const tn_model_size *sizes, size_t n, diag *d) {
  model_opening j = {m, sizes, n};
  diag *before = m->data->arena.diag;
  m->data->arena.diag = d;
  tn_status s = diag_catch(d, open_body, &j);
  m->data->arena.diag = before;
  return s;
}

/* Import for values. */

typedef struct values_import {
  const tn_plan *late;
  const plan_value *values; /* by input */
  arena *work;
  VEC(onnx_tensor) tensors;
  VEC(importer_sizes) sizes; /* of all inputs, and an end */
} values_import;

static void list_values(void *arg) {
  values_import *j = arg;
  for (size_t i = 0; i < j->late->ports.n_inputs; i++) {
    const plan_port *port = &j->late->ports.inputs[i];
    const plan_value *v = &j->values[i];
    vec_push(j->work, &j->sizes, (importer_sizes){port->name, v->size});
    if (!v->data) continue;
    onnx_tensor t = {.name = port->name,
                     .dtype = (onnx_dtype)port->dtype,
                     .elements = v->count,
                     .bytes = v->count * dtype_bytes(port->dtype),
                     .data = v->data};
    for (size_t k = 0; k < port->rank; k++) vec_push(j->work, &t.dims, v->size[k]);
    vec_push(j->work, &j->tensors, t);
  }
  vec_push(j->work, &j->sizes, (importer_sizes){0});
}

static tn_status build_plan(const late_model *l, const model_graph *g, int64_t first_variant,
                            diag *d, tn_plan **out) {
  plan_graph p = model_graph_of_plan(g, l->file);
  p.name = l->name;
  p.variants = l->variants;
  p.is_tunable = l->is_tunable;
  p.is_interpreted = l->is_interpreted;
  p.first_variant = first_variant;
  p.constants = l->constants;
  return plan_build(l->context, &p, d, out);
}

static tn_status make_plan(void *user, const tn_plan *late, const plan_value values[],
                           bool of_sizes, int64_t first_variant, bool deciding[], diag *d,
                           tn_plan **out) {
  const late_model *l = user;
  arena work;
  arena_init(&work, &l->context->mem, d);
  values_import j = {.late = late, .values = values, .work = &work};
  model_graph g = {.arena = &work};
  tn_status s = diag_catch(d, list_values, &j);
  model_graph_request r = {.mem = &l->context->mem,
                           .device = l->context->device,
                           .file = l->file,
                           .context = l->context,
                           .is_interpreted = l->is_interpreted,
                           .sizes = l->sizes,
                           .n_sizes = l->n_sizes,
                           .values = j.tensors.at,
                           .n_values = j.tensors.n,
                           .input_sizes = of_sizes ? j.sizes.at : NULL,
                           .stop = stop_after(l->context->options.compile_seconds)};
  *out = NULL;
  if (s == TN_OK) s = model_graph_import(&g, &r, d);
  for (size_t i = 0; i < g.n_inputs && s == TN_OK && g.is_late; i++) deciding[i] = g.deciding[i];
  if (s == TN_OK && !g.is_late) s = build_plan(l, &g, first_variant, d, out);
  model_graph_free(&g);
  arena_free(&work);
  return s;
}

static void release_late_model(void *user) {
  late_model *l = user;
  const mem *m = &l->context->mem;
  shared_constants_release(l->constants);
  model_file_release(l->file);
  mem_free(m, l, sizeof *l);
}

/* The late plan. */

typedef struct output_list {
  const onnx_values *declared;
  arena *work;
  const char **names;
  dtype *types;
} output_list;

static void list_outputs(void *arg) {
  output_list *j = arg;
  size_t n = j->declared->n;
  j->names = arena_alloc(j->work, (n + 1) * sizeof *j->names);
  j->types = arena_alloc(j->work, (n + 1) * sizeof *j->types);
  for (size_t i = 0; i < n; i++) {
    j->names[i] = j->declared->at[i].name;
    j->types[i] = declared_dtype(&j->declared->at[i]);
  }
}

static late_model *open_late_model(const tn_model *m) {
  const mem *from = &m->context->mem;
  late_model *l = mem_calloc(from, 1, sizeof *l);
  shared_constants *constants = l ? shared_constants_new(from) : NULL;
  if (!constants) {
    mem_free(from, l, sizeof *l);
    return NULL;
  }
  *l = (late_model){.context = m->context,
                    .file = m->data,
                    .name = m->name,
                    .sizes = m->sizes,
                    .n_sizes = m->n_sizes,
                    .variants = m->variants,
                    .is_tunable = m->is_tunable,
                    .is_interpreted = m->is_interpreted,
                    .constants = constants};
  atomic_fetch_add_explicit(&m->data->count, 1, memory_order_relaxed);
  return l;
}

tn_status late_model_make_plan(tn_model *m, diag *d, tn_plan **out) {
  arena work;
  arena_init(&work, &m->context->mem, d);
  output_list j = {.declared = &m->data->onnx->graph->outputs, .work = &work};
  tn_status s = diag_catch(d, list_outputs, &j);
  late_model *l = s == TN_OK ? open_late_model(m) : NULL;
  *out = NULL;
  if (s == TN_OK && !l) s = diag_set(d, TN_ERR_MEMORY, "out of memory");
  if (s == TN_OK) {
    const plan_late late = {.outputs = j.names,
                            .output_types = j.types,
                            .n_outputs = j.declared->n,
                            .deciding = m->graph.deciding,
                            .most_elements = ONNX_ELEMENTS_MAX,
                            .of_sizes = m->graph.exact_reason,
                            .make = make_plan,
                            .release = release_late_model,
                            .user = l};
    plan_graph g = model_graph_of_plan(&m->graph, m->data);
    g.name = m->name;
    g.late = &late;
    s = plan_build(m->context, &g, d, out);
  }
  arena_free(&work);
  return s;
}
