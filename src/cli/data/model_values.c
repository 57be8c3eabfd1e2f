/* Computes values of a model's graph: loads the part of the model that has them as outputs, anew
   for each run, as what is an output decides what is compiled. */
#include "cli/data/model_values.h"

#include "cli/data/load_model.h"

#include <string.h>

/* Nodes. */

static bool makes_any(const tn_model_node *n, const string_map *needed) {
  for (size_t i = 0; i < n->n_outputs; i++)
    if (string_map_get(needed, n->outputs[i])) return true;
  return false;
}

static void need(command *c, string_map *needed, const char *name) {
  string_map_set(&c->arena, needed, name, needed);
}

/** Adds a node; constants are no values that are computed. */
static void add_node(command *c, model_nodes *to, const tn_model_node *n) {
  arena *a = &c->arena;
  for (size_t i = 0; i < n->n_outputs && strcmp(n->op, "Constant") != 0; i++) {
    vec_push(a, &to->values, (node_value){n->outputs[i], to->at.n});
    string_map_set(a, &to->number, n->outputs[i], (void *)(uintptr_t)to->values.n);
  }
  vec_push(a, &to->at, *n);
}

model_nodes model_nodes_list(command *c, const tn_model_file *file) {
  model_nodes made = {0};
  VEC(tn_model_node) all = {0};
  string_map needed = {0};
  tn_model_node n = TN_MODEL_NODE_INIT;
  tn_declared_port port = TN_DECLARED_PORT_INIT;
  for (size_t i = 0; tn_model_file_node(file, i, &n) == TN_OK; i++) vec_push(&c->arena, &all, n);
  for (size_t i = 0; tn_model_file_port(file, TN_PORT_OUTPUT, i, &port) == TN_OK; i++)
    need(c, &needed, port.name);
  bool *keeps = arena_calloc(&c->arena, all.n + 1, sizeof *keeps);
  for (size_t i = all.n; i-- > 0;) {
    keeps[i] = makes_any(&all.at[i], &needed);
    for (size_t k = 0; keeps[i] && k < all.at[i].n_inputs; k++)
      need(c, &needed, all.at[i].inputs[k]);
  }
  for (size_t i = 0; i < all.n; i++)
    if (keeps[i]) add_node(c, &made, &all.at[i]);
  return made;
}

size_t model_nodes_find(const model_nodes *n, const char *name) {
  return (size_t)(uintptr_t)string_map_get(&n->number, name) - 1;
}

void model_nodes_mark_sources(const model_nodes *n, size_t v, bool marks[]) {
  marks[v] = true;
  for (size_t i = v + 1; i-- > 0;) {
    const tn_model_node *of = &n->at.at[n->values.at[i].node];
    for (size_t k = 0; marks[i] && k < of->n_inputs; k++) {
      size_t from = model_nodes_find(n, of->inputs[k]);
      if (from != SIZE_MAX) marks[from] = true;
    }
  }
}

void model_nodes_mark_varying(const model_nodes *n, const value_map *inputs, bool marks[]) {
  for (size_t i = 0; i < n->values.n; i++) {
    const tn_model_node *of = &n->at.at[n->values.at[i].node];
    for (size_t k = 0; k < of->n_inputs; k++) {
      size_t from = model_nodes_find(n, of->inputs[k]);
      marks[i] |= from == SIZE_MAX ? string_map_get(inputs, of->inputs[k]) != NULL : marks[from];
    }
  }
}

/* Runs. */

void model_values_add_inputs(command *c, const model_inputs *in, value_map *to) {
  for (size_t i = 0; i < in->n; i++)
    string_map_set(&c->arena, to, arena_printf(&c->arena, "%s", in->at[i].name), &in->at[i].value);
}

static void bind_inputs(command *c, tn_model *m, tn_binding *b, const value_map *inputs) {
  tn_port port = TN_PORT_INIT;
  for (size_t i = 0; tn_model_port(m, TN_PORT_INPUT, i, &port) == TN_OK; i++) {
    const host_array *v = string_map_get(inputs, port.name);
    if (!v) diag_raise(&c->diag, TN_ERR_INTERNAL, "there is no value for input %s", port.name);
    host_array_number_strings(c, v, m);
    command_check_binding(c, tn_binding_input_at(b, i, v->shape, v->dtype, v->data, v->bytes), b);
  }
}

static void read_outputs(command *c, const tn_model *m, tn_binding *b, value_map *outputs) {
  tn_port port = TN_PORT_INIT;
  for (size_t i = 0; tn_model_port(m, TN_PORT_OUTPUT, i, &port) == TN_OK; i++) {
    const char *name = arena_printf(&c->arena, "%s", port.name);
    host_array *v = arena_alloc(&c->arena, sizeof *v);
    *v = host_array_read_output(c, b, i, name);
    if (port.is_string) host_array_find_strings(c, v, m);
    string_map_set(&c->arena, outputs, name, v);
  }
}

void model_values_compute(command *c, const tn_model_desc *desc, const value_map *inputs,
                          value_map *outputs) {
  tn_model *m;
  tn_binding *b;
  command_check_status(c, load_model(c, desc, NULL, &m));
  command_check_status(c, tn_model_bind(m, &b));
  bind_inputs(c, m, b, inputs);
  command_check_binding(c, tn_binding_run(b), b);
  read_outputs(c, m, b, outputs);
  tn_binding_free(b);
  tn_model_free(m);
}
