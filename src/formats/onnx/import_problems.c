/* Finds the problems of a graph: imports each part of it by itself; whatever fails is left out, and
   so is what reads it. */
#include "formats/onnx/graph_import.h"

#include "base/stop.h"
#include "formats/onnx/importer/input_sizes.h"

typedef enum problem_part {
  PART_NAMES,
  PART_WEIGHT,
  PART_INPUT,
  PART_NODE,
  PART_OUTPUT
} problem_part;

/** The import of one part of the main graph. */
typedef struct part_import {
  graph_import *k;
  problem_part part;
  const onnx_tensor *weight;
  const onnx_value *port;
  const onnx_node *node;
} part_import;

static void import_part(void *arg) {
  part_import *j = arg;
  import *m = j->k->m;
  const onnx_graph *g = m->model->graph;
  switch (j->part) {
  case PART_NAMES:
    importer_check_names_differ(m, &g->inputs, "inputs");
    importer_check_names_differ(m, &g->outputs, "outputs");
    if (!g->outputs.n) diag_raise(m->b.diag, TN_ERR_UNSUPPORTED, "the graph has no outputs");
    break;
  case PART_WEIGHT: importer_add_initializer(m, j->weight); break;
  case PART_INPUT: importer_add_input(j->k, j->port); break;
  case PART_NODE: importer_add_node(m, j->node); break;
  case PART_OUTPUT: importer_add_output(j->k, j->port); break;
  }
}

static void leave_out(import *m, const char *name) {
  if (*name && !string_map_get(&m->values, name))
    importer_define(m, name, (importer_value){.kind = "input", .is_left_out = true});
}

/** The reason of a failure that is a problem of its own; NULL: the part reads what was left out, is
    listed with its operator, or waits for values of inputs. */
static const char *own_problem(import *m, const part_import *j) {
  bool is_of_operator = j->node && onnx_unsupported_reason(m->model, m->opsets, j->node);
  if (m->meets_problem || is_of_operator || (j->node && importer_lacks_values(m))) return NULL;
  bool may_be_sizes = m->b.diag->status == TN_ERR_SHAPE || m->b.diag->status == TN_ERR_UNSUPPORTED;
  if (j->node && may_be_sizes && importer_suggest_sizes(m, j->node)) m->blames_sizes = true;
  const char *text = m->b.diag->text;
  return j->k->input ? arena_printf(m->b.arena, "input '%.200s': %s", j->k->input->name, text)
                     : arena_printf(m->b.arena, "%s", text);
}

/** The types that inputs and constants may have, if this one is none of them. */
static const char *supported_types(arena *a, int32_t number) {
  str s = str_new(a);
  if (number == ONNX_UNDEFINED || dtype_is_data((dtype)number)) return NULL;
  for (int i = ONNX_F32; i <= ONNX_F6E3M2; i++)
    if (dtype_is_data((dtype)i)) str_addf(&s, "%s%s", s.n ? ", " : "", onnx_dtype_name(i));
  return arena_printf(a, "types are %s", str_text(&s));
}

/** Imports a part of the main graph; notes the problem if it fails. */
static void try_part(graph_import *k, part_import j) {
  import *m = k->m;
  arena *a = m->b.arena;
  j.k = k;
  m->meets_problem = false;
  importer_reset_queries(m);
  if (diag_catch(m->b.diag, import_part, &j) == TN_OK) return;
  if (stops_work(m->b.diag->status)) diag_rethrow(m->b.diag);
  k->node = j.node;
  if (j.node && importer_fit_bounds(m, k)) { /* the graph is imported again */
    k->restarts = true;
    diag_rethrow(m->b.diag);
  }
  const char *reason = own_problem(m, &j);
  importer_problem p = {.reason = reason};
  bool is_tensor = j.port && j.port->type.kind == ONNX_TYPE_TENSOR;
  if (j.part == PART_INPUT && is_tensor) p.nearest = supported_types(a, j.port->type.dtype);
  if (j.weight) p.nearest = supported_types(a, j.weight->dtype);
  if (j.node && reason) p = importer_problem_of_node(a, m->opsets, j.node, reason);
  if (reason) vec_push(a, &m->problems, p);
  if (j.part == PART_INPUT) leave_out(m, j.port->name);
  if (j.weight) leave_out(m, j.weight->name);
  for (size_t i = 0; j.node && i < j.node->outputs.n; i++) leave_out(m, j.node->outputs.at[i]);
  k->input = NULL;
  diag_clear(m->b.diag);
}

static void import_parts(void *arg) {
  graph_import *k = arg;
  const onnx_graph *g = k->m->model->graph;
  input_sizes_read(k->m);
  try_part(k, (part_import){.part = PART_NAMES});
  for (size_t i = 0; i < g->initializers.n; i++)
    try_part(k, (part_import){.part = PART_WEIGHT, .weight = g->initializers.at[i]});
  for (size_t i = 0; i < g->inputs.n; i++)
    if (!string_map_get(&k->m->values, g->inputs.at[i].name))
      try_part(k, (part_import){.part = PART_INPUT, .port = &g->inputs.at[i]});
  for (size_t i = 0; i < g->nodes.n; i++)
    try_part(k, (part_import){.part = PART_NODE, .node = &g->nodes.at[i]});
  for (size_t i = 0; i < g->outputs.n; i++)
    try_part(k, (part_import){.part = PART_OUTPUT, .port = &g->outputs.at[i]});
}

/** Imports all parts, again with narrower bounds of sizes as long as operators need them. */
static void find_problems_of_parts(import *m, const importer_problems *of_operators) {
  graph_import k = {.m = m, .restarts = true};
  while (k.restarts) {
    k = (graph_import){.m = m};
    m->problems.n = 0;
    for (size_t i = 0; i < of_operators->n; i++)
      vec_push(m->b.arena, &m->problems, of_operators->at[i]);
    if (diag_catch(m->b.diag, import_parts, &k) == TN_OK) return;
    if (!k.restarts) diag_rethrow(m->b.diag);
    diag_clear(m->b.diag);
    importer_reset(m);
  }
}

void import_find_problems(import *m, const onnx_model *model) {
  m->model = model;
  m->graph = model->graph;
  m->opsets = &model->opsets;
  m->hosts_loops = m->callbacks.loop != NULL;
  m->has_late_bodies = m->hosts_loops && m->may_have_late_bodies;
  const importer_problems operators = list_unsupported_operators(model, m->b.arena);
  m->separates_names = input_sizes_share_names(m);
  find_problems_of_parts(m, &operators);
  if (!m->separates_names || m->problems.n == operators.n) return;
  m->separates_names = false;
  input_sizes_forget_bounds(m);
  importer_reset(m);
  find_problems_of_parts(m, &operators);
}
