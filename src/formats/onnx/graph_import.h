/* Internal header of the importer of graphs: the state of an import in progress, and the functions
   that import_graph.c, import_problems.c and the files of their parts (import_*.c) share. All
   raise. */
#ifndef TENON_FORMATS_ONNX_GRAPH_IMPORT_H
#define TENON_FORMATS_ONNX_GRAPH_IMPORT_H

#include "formats/onnx/importer/importer.h"

/** An import in progress, with the place that errors name. */
typedef struct graph_import {
  import *m;
  const onnx_node *node;   /* being imported; NULL: none */
  const onnx_value *input; /* being checked; NULL: none */
  bool restarts;           /* finding problems: bounds of a size were narrowed */
} graph_import;

/** The expansion of a function. */
typedef struct function_call {
  const onnx_function *f;
  const onnx_node *node; /* that calls it */
  size_t first_graph;    /* of the enclosing graphs that the function's nodes see */
  size_t depth;
  const struct function_call *caller;
} function_call;

/* import_names.c */

/** Gives a name of the current graph a value. */
void importer_define(import *m, const char *name, importer_value v);

/** Gives a name the output of a node; raises if it has a value already. */
void importer_define_output(import *m, const char *name, value v, const onnx_node *producer);

/** The value of a name, here or in an enclosing graph; raises if there is none that can be used. */
const importer_value *importer_find_value(import *m, const char *name);

/** A value that a graph or function gives; raises if there is none. */
value importer_find_result(import *m, const char *name);

/* import_constants.c */

/** The element type of this number; raises if it is not supported. `kind` and `name` say of what.
 */
dtype importer_check_dtype(import *m, int number, const char *kind, const char *name);

/** Raises if a tensor has more than `most` dimensions. */
void importer_check_rank(import *m, const char *kind, const char *name, size_t rank, size_t most);

/** Raises if the number of elements overflows 64 bits. Axes of size 0 are left out, because strides
    are products of the other sizes. */
void importer_check_element_count(import *m, const node *n);

/** Imports a constant tensor: a scalar as a CONST, so that rules can fold it, others as weights. */
value importer_constant(import *m, const onnx_tensor *t);

/* import_ports.c */

/** Adds an input of the main graph. */
void importer_add_input(graph_import *k, const onnx_value *v);

/** Defines the initializers and the inputs of the main graph. Before IR version 4 each initializer
   is also an input, with a default value; such inputs are left out. */
void importer_add_graph_inputs(graph_import *k);

/** Raises if two inputs or outputs have one name. */
void importer_check_names_differ(import *m, const onnx_values *list, const char *kind);

/** Defines one initializer, or all of a graph. */
void importer_add_initializer(import *m, const onnx_tensor *t);
void importer_add_initializers(import *m, const onnx_graph *g);

/** Adds an output of the main graph. */
void importer_add_output(graph_import *k, const onnx_value *port);

/* import_nodes.c */

/** Imports a node of the current graph, and defines its outputs. */
void importer_add_node(import *m, const onnx_node *written);

/** Clears the record of the elements that the node before read. */
void importer_reset_queries(import *m);

/* import_size_advice.c */

/** Appends the varying sizes that may have caused the error, and how to constrain them: for shape
    errors, those that the message names. False if there are none. */
bool importer_suggest_sizes(import *m, const onnx_node *n);

/** Notes what a failure at a node owes to varying sizes, and appends advice. One that a bound would
    avoid, or that no size within the bounds avoids, does not ask for the sizes of a run. */
void importer_blame_sizes(import *m, const onnx_node *n);

/* import_graph.c */

/** Forgets all but the weights, which are for each import of the file. */
void importer_reset(import *m);

/** Raises the minimum, or lowers the maximum, of the size that the operator which failed needs to
   be larger or smaller. */
bool importer_fit_bounds(import *m, const graph_import *k);

#endif
