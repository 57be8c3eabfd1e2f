/* Cuts a part out of a parsed file's graph: walks from the outputs that the caller names towards
   the inputs, and keeps the nodes that are met. Nested graphs read names of the graphs around them,
   so these count as read by the node that has the nested graph. */
#include "formats/model/model_part.h"

#include "base/map.h"

/* The cut. */

typedef struct cut {
  onnx_graph *g;
  const tn_model_desc *desc;
  arena *a;
  string_map declared; /* name → onnx_value */
  string_map made;     /* names of values that nodes make */
  string_map constant; /* names of initializers */
  string_map given;    /* names of the caller's inputs */
  string_map needed;   /* names that outputs need */
} cut;

static void declare(cut *k, const onnx_values *values) {
  for (size_t i = 0; i < values->n; i++)
    string_map_set(k->a, &k->declared, values->at[i].name, &values->at[i]);
}

static void list_names(cut *k) {
  const onnx_graph *g = k->g;
  declare(k, &g->values);
  declare(k, &g->outputs);
  declare(k, &g->inputs);
  for (size_t i = 0; i < g->initializers.n; i++)
    string_map_set(k->a, &k->constant, g->initializers.at[i]->name, k);
  for (size_t i = 0; i < g->inputs.n; i++) string_map_set(k->a, &k->made, g->inputs.at[i].name, k);
  for (size_t i = 0; i < g->nodes.n; i++)
    for (size_t o = 0; o < g->nodes.at[i].outputs.n; o++)
      if (*g->nodes.at[i].outputs.at[o])
        string_map_set(k->a, &k->made, g->nodes.at[i].outputs.at[o], k);
}

static void need(void *user, const char *name) {
  cut *k = user;
  string_map_set(k->a, &k->needed, name, k);
}

/** A value with the type that the file declares, if any. */
static onnx_value output_of(cut *k, const char *name) {
  bool is_known = name && (string_map_get(&k->made, name) || string_map_get(&k->constant, name));
  if (!is_known)
    diag_raise(k->a->diag, TN_ERR_ARGUMENT, "the graph has no value '%.200s' to be an output",
               name ? name : "(NULL)");
  const onnx_value *declared = string_map_get(&k->declared, name);
  onnx_value v = {.name = arena_printf(k->a, "%s", name)};
  if (declared) v.type = declared->type;
  return v;
}

static onnx_value input_of(cut *k, const tn_model_value *x) {
  const char *name = x->name;
  if (!name) diag_raise(k->a->diag, TN_ERR_ARGUMENT, "the name of an input is NULL");
  if (string_map_get(&k->constant, name))
    diag_raise(k->a->diag, TN_ERR_ARGUMENT, "'%.200s' is a constant, which cannot be an input",
               name);
  if (!string_map_get(&k->made, name))
    diag_raise(k->a->diag, TN_ERR_ARGUMENT, "the graph has no value '%.200s' to be an input", name);
  const tn_shape *shape = &x->type.shape;
  if (shape->rank < 0 || shape->rank > TN_MAX_RANK)
    diag_raise(k->a->diag, TN_ERR_ARGUMENT, "input '%.200s' has rank %d", name, (int)shape->rank);
  onnx_value v = {
      .name = arena_printf(k->a, "%s", name),
      .type = {.kind = ONNX_TYPE_TENSOR, .dtype = (int32_t)x->type.dtype, .has_shape = true}};
  for (int32_t i = 0; i < shape->rank; i++)
    vec_push(k->a, &v.type.dims,
             (onnx_dim){.value = shape->size[i] < 0 ? -1 : shape->size[i], .param = ""});
  return v;
}

static bool is_needed(const cut *k, const onnx_node *n) {
  for (size_t i = 0; i < n->outputs.n; i++)
    if (string_map_get(&k->needed, n->outputs.at[i])) return true;
  return false;
}

/** Forgets that a node makes what is an input now: it may be kept for another output. */
static void drop_given_outputs(const cut *k, onnx_node *n) {
  for (size_t i = 0; i < n->outputs.n; i++)
    if (string_map_get(&k->given, n->outputs.at[i])) n->outputs.at[i] = "";
}

static void take_nodes(cut *k) {
  onnx_nodes *nodes = &k->g->nodes, kept = {0};
  bool *keeps = arena_calloc(k->a, nodes->n + 1, sizeof *keeps);
  for (size_t i = nodes->n; i-- > 0;) {
    onnx_node *n = &nodes->at[i];
    drop_given_outputs(k, n);
    keeps[i] = is_needed(k, n);
    if (keeps[i]) onnx_node_for_names(k->a, n, need, k);
  }
  for (size_t i = 0; i < nodes->n; i++)
    if (keeps[i]) vec_push(k->a, &kept, nodes->at[i]);
  *nodes = kept;
}

/** The caller's inputs, whose names are noted. */
static onnx_values given_inputs(cut *k) {
  onnx_values inputs = {0};
  for (size_t i = 0; i < k->desc->n_inputs; i++) {
    onnx_value v = input_of(k, &k->desc->inputs[i]);
    string_map_set(k->a, &k->given, v.name, k);
    vec_push(k->a, &inputs, v);
  }
  return inputs;
}

/** The caller's inputs, then those of the file that are needed. */
static void take_inputs(cut *k, onnx_values inputs) {
  for (size_t i = 0; i < k->g->inputs.n; i++) {
    const onnx_value *v = &k->g->inputs.at[i];
    bool is_constant = string_map_get(&k->constant, v->name);
    bool is_kept = string_map_get(&k->needed, v->name) && !string_map_get(&k->given, v->name);
    if (is_constant || is_kept) vec_push(k->a, &inputs, *v);
  }
  k->g->inputs = inputs;
}

static void take_part(void *arg) {
  cut *k = arg;
  const tn_model_desc *desc = k->desc;
  onnx_values outputs = {0};
  list_names(k);
  for (size_t i = 0; i < desc->n_outputs; i++) {
    onnx_value v = output_of(k, desc->outputs[i]);
    vec_push(k->a, &outputs, v);
  }
  if (desc->n_outputs) k->g->outputs = outputs;
  for (size_t i = 0; i < k->g->outputs.n; i++) need(k, k->g->outputs.at[i].name);
  onnx_values inputs = given_inputs(k);
  take_nodes(k);
  if (desc->n_inputs) take_inputs(k, inputs);
}

tn_status onnx_take_part(onnx_model *m, const tn_model_desc *desc, arena *a, diag *d) {
  cut k = {.g = m->graph, .desc = desc, .a = a};
  if (!desc->n_outputs && !desc->n_inputs) return TN_OK;
  if ((desc->n_outputs && !desc->outputs) || (desc->n_inputs && !desc->inputs))
    return diag_set(d, TN_ERR_ARGUMENT, "the list of %s is NULL",
                    desc->n_outputs && !desc->outputs ? "outputs" : "inputs");
  diag *before = a->diag;
  a->diag = d;
  tn_status s = diag_catch(d, take_part, &k);
  a->diag = before;
  return s;
}
