/* Imports a file for the values of a run's inputs, as constants, or for their sizes or ranks, and
   makes the plan of the graph. The file stays mapped for that; weights of the graphs are parts of
   it, and what is made of these, as packed ones, all plans share. */
#include "formats/model/late_graph.h"

#include "formats/model/declared_type.h"
#include "tensor/context/context.h"
#include "tensor/plan/shared_constants.h"

#include <string.h>

/** The graph as far as imports need it: a model may be freed before its bindings. */
typedef struct kept_graph {
  late_graph of;               /* without the graph */
  shared_constants *constants; /* of all plans */
} kept_graph;

/* Import for values. */

typedef struct values_import {
  const tn_plan *late;
  const plan_made_for *made_for;
  arena *work;
  VEC(onnx_tensor) tensors;
  VEC(importer_sizes) sizes; /* of all inputs, and an end */
  onnx_names varying;        /* inputs whose values are left out */
  onnx_model model;          /* with the ranks of inputs */
  onnx_graph graph;
} values_import;

/** An input of any shape, with the rank that it has; sizes are open. */
static onnx_value ranked_input(values_import *j, const onnx_value *v, size_t rank) {
  onnx_value typed = {
      .name = v->name,
      .type = {.kind = ONNX_TYPE_TENSOR, .dtype = v->type.dtype, .has_shape = true}};
  for (size_t k = 0; k < rank; k++)
    vec_push(j->work, &typed.type.dims, ((onnx_dim){.value = -1, .param = ""}));
  return typed;
}

/** The file's model, whose graph has the ranks of the run where inputs take any. */
static void rank_inputs(values_import *j) {
  j->graph = *j->model.graph;
  j->graph.inputs = (onnx_values){0};
  for (size_t i = 0; i < j->model.graph->inputs.n; i++) {
    const onnx_value *v = &j->model.graph->inputs.at[i];
    const plan_port *p = string_map_get(&j->late->ports.input_of, v->name);
    bool is_ranked = p && p->is_late;
    onnx_value typed =
        is_ranked ? ranked_input(j, v, j->made_for->values[p - j->late->ports.inputs].rank) : *v;
    vec_push(j->work, &j->graph.inputs, typed);
  }
  j->model.graph = &j->graph;
}

static void list_values(void *arg) {
  values_import *j = arg;
  rank_inputs(j);
  for (size_t i = 0; i < j->late->ports.n_inputs; i++) {
    const plan_port *port = &j->late->ports.inputs[i];
    const plan_value *v = &j->made_for->values[i];
    vec_push(j->work, &j->sizes, (importer_sizes){port->name, v->size});
    if (j->made_for->varying[i]) vec_push(j->work, &j->varying, port->name);
    if (!v->data) continue;
    onnx_tensor t = {.name = port->name,
                     .dtype = (onnx_dtype)port->dtype,
                     .elements = v->count,
                     .bytes = v->count * dtype_bytes(port->dtype),
                     .data = v->data};
    for (size_t k = 0; k < v->rank; k++) vec_push(j->work, &t.dims, v->size[k]);
    vec_push(j->work, &j->tensors, t);
  }
  vec_push(j->work, &j->sizes, (importer_sizes){0});
}

static plan_graph graph_of_plan(const late_graph *of, const model_graph *g) {
  plan_graph p = model_graph_of_plan(g, of->file);
  p.name = of->name;
  if (of->is_body) p.title = NULL;
  return p;
}

static tn_status build_plan(const kept_graph *l, const model_graph *g, int64_t first_variant,
                            diag *d, tn_plan **out) {
  plan_graph p = graph_of_plan(&l->of, g);
  p.variants = l->of.variants;
  p.is_tunable = l->of.is_tunable;
  p.is_interpreted = l->of.is_interpreted;
  p.first_variant = first_variant;
  p.constants = l->constants;
  return plan_build(l->of.context, &p, d, out);
}

static tn_status make_plan(void *user, const tn_plan *late, const plan_made_for *made_for,
                           int64_t first_variant, bool deciding[], diag *d, tn_plan **out) {
  const kept_graph *l = user;
  const late_graph *of = &l->of;
  arena work;
  arena_init(&work, &of->context->mem, d);
  values_import j = {.late = late, .made_for = made_for, .work = &work, .model = *of->file->onnx};
  model_graph g = {.arena = &work};
  tn_status s = diag_catch(d, list_values, &j);
  model_graph_request r = {.mem = &of->context->mem,
                           .device = of->context->device,
                           .file = of->file,
                           .onnx = &j.model,
                           .context = of->context,
                           .is_interpreted = of->is_interpreted,
                           .is_body = of->is_body,
                           .sizes = of->sizes,
                           .n_sizes = of->n_sizes,
                           .values = j.tensors.at,
                           .n_values = j.tensors.n,
                           .input_sizes = made_for->of_sizes ? j.sizes.at : NULL,
                           .varying = j.varying.at,
                           .n_varying = j.varying.n,
                           .least_size = made_for->from_one,
                           .stop = stop_after(of->context->options.compile_seconds)};
  *out = NULL;
  if (s == TN_OK) s = model_graph_import(&g, &r, d);
  for (size_t i = 0; i < g.n_inputs && s == TN_OK && g.is_late; i++) deciding[i] = g.deciding[i];
  if (s == TN_OK && !g.is_late) s = build_plan(l, &g, first_variant, d, out);
  model_graph_free(&g);
  arena_free(&work);
  return s;
}

static void release_graph(void *user) {
  kept_graph *l = user;
  const mem *m = &l->of.context->mem;
  shared_constants_release(l->constants);
  model_file_release(l->of.file);
  mem_free(m, l, sizeof *l);
}

/* The late plan. */

typedef struct output_list {
  const onnx_values *declared;
  const importer_type *types; /* NULL: those that are declared */
  arena *work;
  const char **names;
  dtype *dtypes;
} output_list;

static void list_outputs(void *arg) {
  output_list *j = arg;
  size_t n = j->declared->n;
  j->names = arena_alloc(j->work, (n + 1) * sizeof *j->names);
  j->dtypes = arena_alloc(j->work, (n + 1) * sizeof *j->dtypes);
  for (size_t i = 0; i < n; i++) {
    j->names[i] = j->declared->at[i].name;
    j->dtypes[i] = j->types ? j->types[i].dtype : declared_type_elements(&j->declared->at[i].type);
  }
}

static kept_graph *keep_graph(const late_graph *of) {
  const mem *from = &of->context->mem;
  kept_graph *l = mem_calloc(from, 1, sizeof *l);
  shared_constants *constants = l ? shared_constants_new(from) : NULL;
  if (!constants) {
    mem_free(from, l, sizeof *l);
    return NULL;
  }
  *l = (kept_graph){.of = *of, .constants = constants};
  l->of.graph = NULL;
  l->of.is_free = NULL;
  atomic_fetch_add_explicit(&of->file->count, 1, memory_order_relaxed);
  return l;
}

tn_status late_graph_make_plan(const late_graph *of, diag *d, tn_plan **out) {
  arena work;
  arena_init(&work, &of->context->mem, d);
  output_list j = {
      .declared = &of->file->onnx->graph->outputs, .types = of->graph->late_types, .work = &work};
  tn_status s = diag_catch(d, list_outputs, &j);
  kept_graph *l = s == TN_OK ? keep_graph(of) : NULL;
  *out = NULL;
  if (s == TN_OK && !l) s = diag_set(d, TN_ERR_MEMORY, "out of memory");
  if (s == TN_OK) {
    bool may_vary = of->variants == TN_VARIANTS_AUTO || of->variants == TN_VARIANTS_STEADY;
    const plan_late late = {.outputs = j.names,
                            .output_types = j.dtypes,
                            .n_outputs = j.declared->n,
                            .deciding = of->graph->deciding,
                            .is_free = of->is_free,
                            .most_elements = ONNX_ELEMENTS_MAX,
                            .of_sizes = of->graph->exact_reason,
                            .fits_from_one = of->graph->fits_open_from_one && may_vary,
                            .may_vary = may_vary,
                            .make = make_plan,
                            .release = release_graph,
                            .user = l};
    plan_graph g = graph_of_plan(of, of->graph);
    g.late = &late;
    s = plan_build(of->context, &g, d, out);
  }
  arena_free(&work);
  return s;
}
