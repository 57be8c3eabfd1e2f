/* Values of a model's graph: the nodes of its file, and runs that compute any of their values,
   compiled or interpreted. */
#ifndef TENON_CLI_DATA_MODEL_VALUES_H
#define TENON_CLI_DATA_MODEL_VALUES_H

#include "base/map.h"
#include "cli/data/model_inputs.h"

#include <tenon/unstable/model_file.h>

/** Arrays by the names of values in the graph: name → host_array, in the order of insertion. */
typedef string_map value_map;

/** A value that a node makes. */
typedef struct node_value {
  const char *name;
  size_t node;
} node_value;

/** The nodes that a model's outputs need, in the file's order, and the values that they make. */
typedef struct model_nodes {
  VEC(tn_model_node) at;
  VEC(node_value) values;
  string_map number; /* name of a value → its index in `values` + 1 */
} model_nodes;

/** Lists the nodes of a parsed file, which must outlive the list. */
model_nodes model_nodes_list(command *c, const tn_model_file *file);

/** The index of a value; SIZE_MAX: no node makes it. */
size_t model_nodes_find(const model_nodes *n, const char *name);

/** Marks the values that value `v` is computed from, and itself. */
void model_nodes_mark_sources(const model_nodes *n, size_t v, bool marks[]);

/** Marks the values that depend on the inputs in `inputs`. */
void model_nodes_mark_varying(const model_nodes *n, const value_map *inputs, bool marks[]);

/** Adds the arrays of a model's inputs to a map, which does not need the model. */
void model_values_add_inputs(command *c, const model_inputs *in, value_map *to);

/** Loads the command's model with a descriptor, which names outputs and inputs, runs it once on the
    values in `inputs`, and adds its outputs to `outputs`, in the order of the model. Raises. */
void model_values_compute(command *c, const tn_model_desc *desc, const value_map *inputs,
                          value_map *outputs);

#endif
