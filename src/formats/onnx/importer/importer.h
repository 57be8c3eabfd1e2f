/* Importer from ONNX graphs to tensor graphs: its state, its entry point, and the interface of
   operator builders (inputs, attributes, constant elements, errors). */
#ifndef TENON_FORMATS_ONNX_IMPORTER_IMPORTER_H
#define TENON_FORMATS_ONNX_IMPORTER_IMPORTER_H

#include "base/map.h"
#include "base/str.h"
#include "formats/onnx/file/onnx_file.h"
#include "ir/core/topo_sort.h"
#include "tensor/context/builder.h"

#include <tenon/model.h>

enum {
  ONNX_OPSET_MAX = 28
}; /* of the default domain: the newest one the table was checked against */

/** Callbacks that make BUFFER nodes for inputs and weights, owned by the caller. Both raise. */
typedef struct importer_callbacks {
  const node *(*input)(void *user, const char *name, dtype t, size_t rank,
                       const node *const dims[]);
  const node *(*weight)(void *user, const onnx_tensor *t, dtype type, size_t rank,
                        const node *const dims[]);
  void *user;
} importer_callbacks;

/** An input or output of the graph. */
typedef struct importer_port {
  const onnx_value *port;
  const node *node; /* the BUFFER of an input, the value of an output */
} importer_port;

/** A size of the inputs (input_sizes.c). */
typedef struct input_size input_size;

typedef struct import {
  builder b; /* raises through its diag; lists that outlive the import are in its arena */
  importer_callbacks leaves;
  const tn_model_size *said; /* the caller's constraints on sizes */
  size_t n_size_constraints;
  const onnx_model *model;
  int64_t opset;          /* of the default domain */
  string_map values;      /* name → importer_value, of the present graph */
  VEC(string_map) around; /* likewise, of the enclosing graphs */
  string_map sizes;       /* name of a dimension → input_size */
  map axes;               /* onnx_value of an input → input_size of each axis */
  map weights;            /* leaf of a weight → onnx_tensor */
  map placed;             /* address of a weight's data → its BUFFER */
  map nonzero;            /* varying sizes that must not be 0 when the model runs */
  node_list asked;        /* sizes that the present node used, besides those of its inputs */
  VEC(importer_port) inputs, outputs;
} import;

/** Value of a name in the graph, and the node that computes it. */
typedef struct importer_value {
  value v;             /* without a node: an output that is not supported, and not to be used */
  const onnx_node *by; /* NULL: a leaf */
  const char *kind;    /* of a leaf, in words */
} importer_value;

/** The most that a size which varies can be. Models write far larger numbers to say "to the end".
 */
enum { ONNX_SIZE_MAX = TN_MODEL_SIZE_MAX };

/** Builds the whole graph; `b`, `leaves` and `said` are set. Sizes that inputs leave open are
    variables. Raises TN_ERR_UNSUPPORTED with all operators, versions and types that are not
    supported at once; TN_ERR_FORMAT, SHAPE or DTYPE with the node's name; TN_ERR_ARGUMENT where
    `said` is about no size or contradicts the file. */
void import_graph(import *m, const onnx_model *model);

/** A size of the graph as it is when the model runs, in `g`: bounds may have become narrower since
    it was made. */
const node *importer_size_at_run(const import *m, ir *g, const node *var);

/** Appends a line for each thing of the model that is not supported: "Op (domain, opset 13): node
    'a', node 'b'". Nothing is appended if all is. */
void report_unsupported_operators(const onnx_model *model, str *report);

/** Name of a node in messages: its own, or its first output's. */
const char *onnx_node_name(const onnx_node *n);

/** The opset of a domain that a model imports; 0: none. */
int64_t onnx_opset_of_domain(const onnx_model *m, const char *domain);

/* ---- For operators ---- */

/** A node being imported. */
typedef struct onnx_call {
  import *m;
  const onnx_node *node;
  int64_t version; /* of the operator: the newest that is not above the model's opset */
  size_t n_inputs, n_outputs;
  const value *inputs; /* absent ones have no node */
  value *outputs;
} onnx_call;

/** A row of onnx_operators.def. */
typedef struct onnx_op {
  const char *name;
  const char *versions;   /* "7 13 14": those this row implements */
  const char *attributes; /* names that nodes may have, and which they must (onnx_operators.def) */
  uint16_t least, most;   /* inputs */
  uint16_t outputs;
  void (*build)(onnx_call *c);
} onnx_op;

/** All rows, for tests and listings. */
const onnx_op *op_table_rows(size_t *n);

builder *onnx_builder(onnx_call *c);
bool onnx_has_input(const onnx_call *c, size_t input);
/** An input; raises if it is absent. */
value onnx_input(const onnx_call *c, size_t i);
/** An input of one element, as a scalar. */
value onnx_scalar_input(onnx_call *c, size_t i);

/** True if the node names an output. An output that is not built raises where it is used. */
bool onnx_wants_output(const onnx_call *c, size_t output);

/** Raises unless all inputs that are given have the type of the first: nothing is promoted. */
void onnx_require_same_types(const onnx_call *c);

bool onnx_has_attribute(const onnx_call *c, const char *name);
/** NULL if there is none; raises if it is of another type. */
const onnx_attribute *onnx_find_attribute(const onnx_call *c, const char *name,
                                          onnx_attribute_type type);
/** Attributes, with their defaults. */
int64_t onnx_int_attribute(const onnx_call *c, const char *name, int64_t otherwise);
/** The type of data that an attribute names; raises for another one. */
dtype onnx_dtype_attribute(const onnx_call *c, const char *name, dtype otherwise);
float onnx_float_attribute(const onnx_call *c, const char *name, float otherwise);
const char *onnx_string_attribute(const onnx_call *c, const char *name, const char *otherwise);
/** NULL if there is none. */
const onnx_ints *onnx_ints_attribute(const onnx_call *c, const char *name);
const onnx_tensor *onnx_tensor_attribute(const onnx_call *c, const char *name);
/** A required graph attribute. */
const onnx_graph *onnx_graph_attribute(const onnx_call *c, const char *name);

/** Imports a graph that a node has as the body of a loop: as many inputs as it names, and its
    outputs. What it reads of the graphs around it is found by name. */
void onnx_import_loop_body(onnx_call *c, const onnx_graph *g, const value in[], value out[]);

/** The range of a loop of so many steps; raises where it is in too many others. */
const node *onnx_loop_range(onnx_call *c, const node *steps);

/** Advice for values that must be known before the model runs. */
#define ONNX_STATIC_HINT \
  "make it an initializer, or let it come of shapes (onnxsim folds constants)"

/** The elements of an integer input of rank 0 or 1 that are known before the model runs, as index
    nodes: constants, and what is computed from shapes. Raises TN_ERR_UNSUPPORTED if they are not.
 */
const node *const *onnx_shape_elements(onnx_call *c, size_t input, size_t *n);
/** As onnx_shape_elements, where all are numbers. */
const int64_t *onnx_static_ints(onnx_call *c, size_t input, size_t *n);

/** The elements of an input of floats, of rank 0 or 1, that are known before the model runs. Raises
    TN_ERR_UNSUPPORTED if they are not. */
const double *onnx_static_floats(onnx_call *c, size_t input, size_t *n);

/** A constant tensor as a value. */
value onnx_constant_tensor(onnx_call *c, const onnx_tensor *t);

/** An axis of a tensor, counted from its end if negative; raises if there is none. */
size_t onnx_normalise_axis(onnx_call *c, int64_t axis, size_t rank);

/** Requires a variable not to be 0: runs with size 0 raise. */
void onnx_require_nonzero(onnx_call *c, const node *var);

/** Raises TN_ERR_UNSUPPORTED for what cannot be done while a size varies: "axis 2, of size n, can
   be 1 or not" is told with the way out. */
_Noreturn void onnx_fail_varying_size(onnx_call *c, const node *size, const char *format, ...)
    BASE_PRINTF(3, 4);

/** Raises, with the node's name and operator before the message. */
_Noreturn void onnx_fail(const onnx_call *c, tn_status s, const char *format, ...)
    BASE_PRINTF(3, 4);

#endif
