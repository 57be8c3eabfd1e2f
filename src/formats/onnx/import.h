/* From an ONNX graph to a tensor graph: the importer's core, and what operators' builders use. */
#ifndef TENON_FORMATS_ONNX_IMPORT_H
#define TENON_FORMATS_ONNX_IMPORT_H

#include "base/map.h"
#include "base/names.h"
#include "base/str.h"
#include "formats/onnx/proto.h"
#include "ir/topo.h"
#include "tensor/tensor.h"

#include <tenon/model.h>

enum {
  ONNX_OPSET_MAX = 28
}; /* of the default domain: the newest one the table was checked against */

/** How leaves of the graph are made: BUFFER nodes, which belong to the caller. Both raise. */
typedef struct import_leaves {
  const node *(*input)(void *user, const char *name, dtype t, size_t rank,
                       const node *const dims[]);
  const node *(*weight)(void *user, const onnx_tensor *t, dtype type, size_t rank,
                        const node *const dims[]);
  void *user;
} import_leaves;

/** An input or output of the graph. */
typedef struct import_port {
  const onnx_value *port;
  const node *node; /* of an input the leaf, of an output its value */
} import_port;

/** A size of the inputs (sizes.c). */
typedef struct input_size input_size;

typedef struct import {
  builder b; /* raises through its diag; lists that outlive the import are in its arena */
  import_leaves leaves;
  const tn_model_size *said; /* what the caller knows of sizes */
  size_t n_said;
  const onnx_model *model;
  int64_t opset;     /* of the default domain */
  names values;      /* name → import_value, of the graph at hand */
  VEC(names) around; /* the same of the graphs around it */
  names sizes;       /* name of a dimension → input_size */
  map axes;          /* onnx_value of an input → input_size of each axis */
  map weights;       /* leaf of a weight → onnx_tensor */
  map placed;        /* where a weight's data is → its leaf */
  map nonzero;       /* sizes that vary, but must not be 0 when the model runs */
  node_list asked;   /* sizes that the node at hand asked for, besides those of its inputs */
  VEC(import_port) inputs, outputs;
} import;

/** What a name of the graph stands for, and what gives it. */
typedef struct import_value {
  value v;             /* without a node: an output that is not supported, and not to be used */
  const onnx_node *by; /* NULL: a leaf */
  const char *kind;    /* of a leaf, in words */
} import_value;

/** The most that a size which varies can be. Models write far larger numbers to say "to the end".
 */
enum { IMPORT_SIZE_MAX = 999999999 };

/** Builds the whole graph; `b`, `leaves` and `said` are set. Sizes that inputs leave open are
    variables. Raises TN_ERR_UNSUPPORTED with all operators, versions and types that are not
    supported at once; TN_ERR_FORMAT, SHAPE or DTYPE with the node's name; TN_ERR_ARGUMENT where
    `said` is about no size or contradicts the file. */
void import_graph(import *m, const onnx_model *model);

/** A size of the graph as it is when the model runs, in `g`: bounds may have become narrower since
    it was made. */
const node *import_size(const import *m, ir *g, const node *var);

/** Appends a line for each thing of the model that is not supported: "Op (domain, opset 13): node
    'a', node 'b'". Nothing is appended if all is. */
void import_check(const onnx_model *model, str *report);

/** What messages call a node: its name, or that of its first output. */
const char *import_node_name(const onnx_node *n);

/** The opset of a domain that a model imports; 0: none. */
int64_t onnx_opset_of(const onnx_model *m, const char *domain);

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

/** A row of ops.def. */
typedef struct onnx_op {
  const char *name;
  const char *versions;   /* "7 13 14": those this row implements */
  const char *attributes; /* names that nodes may have, and which they must (ops.def) */
  uint16_t least, most;   /* inputs */
  uint16_t outputs;
  void (*build)(onnx_call *c);
} onnx_op;

/** All rows, for tests and listings. */
const onnx_op *onnx_ops(size_t *n);

builder *onnx_builder(onnx_call *c);
bool onnx_has(const onnx_call *c, size_t input);
/** An input; raises if it is absent. */
value onnx_input(const onnx_call *c, size_t i);
/** The same of one element: a scalar. */
value onnx_scalar(onnx_call *c, size_t i);

/** Whether the node names an output. One that is not built is refused where it is used. */
bool onnx_wants(const onnx_call *c, size_t output);

/** Raises unless all inputs that are given have the type of the first: nothing is promoted. */
void onnx_same_types(const onnx_call *c);

bool onnx_has_attribute(const onnx_call *c, const char *name);
/** NULL if there is none; raises if it is of another type. */
const onnx_attribute *onnx_attribute_of(const onnx_call *c, const char *name,
                                        onnx_attribute_type type);
/** Attributes, with what holds where they are absent. */
int64_t onnx_int(const onnx_call *c, const char *name, int64_t otherwise);
/** The type of data that an attribute names; raises for another one. */
dtype onnx_data_type(const onnx_call *c, const char *name, dtype otherwise);
float onnx_float(const onnx_call *c, const char *name, float otherwise);
const char *onnx_string(const onnx_call *c, const char *name, const char *otherwise);
/** NULL if there is none. */
const onnx_ints *onnx_list(const onnx_call *c, const char *name);
const onnx_tensor *onnx_tensor_attribute(const onnx_call *c, const char *name);
/** Of one that nodes must have. */
const onnx_graph *onnx_graph_attribute(const onnx_call *c, const char *name);

/** Imports a graph that a node has as the body of a loop: as many inputs as it names, and its
    outputs. What it reads of the graphs around it is found by name. */
void onnx_import_body(onnx_call *c, const onnx_graph *g, const value in[], value out[]);

/** The range of a loop of so many steps; raises where it is in too many others. */
const node *onnx_loop_range(onnx_call *c, const node *steps);

/** The way out where a value has to be known before the model runs. */
#define ONNX_KNOWN "make it an initializer, or let it come of shapes (onnxsim folds constants)"

/** The elements of an integer input of rank 0 or 1 that are known before the model runs, as index
    nodes: constants, and what is computed from shapes. Raises TN_ERR_UNSUPPORTED if they are not.
 */
const node *const *onnx_elements(onnx_call *c, size_t input, size_t *n);
/** The same where all are numbers. */
const int64_t *onnx_numbers(onnx_call *c, size_t input, size_t *n);

/** The elements of an input of floats, of rank 0 or 1, that are known before the model runs. Raises
    TN_ERR_UNSUPPORTED if they are not. */
const double *onnx_reals(onnx_call *c, size_t input, size_t *n);

/** A constant tensor as a value. */
value onnx_constant(onnx_call *c, const onnx_tensor *t);

/** An axis of a tensor, counted from its end if negative; raises if there is none. */
size_t onnx_axis(onnx_call *c, int64_t axis, size_t rank);

/** From here on a variable is a size that is not 0: runs with another are refused. */
void onnx_forbid_zero(onnx_call *c, const node *var);

/** Raises TN_ERR_UNSUPPORTED for what cannot be done while a size varies: "axis 2, of size n, can
   be 1 or not" is told with the way out. */
_Noreturn void onnx_fail_size(onnx_call *c, const node *size, const char *format, ...)
    BASE_PRINTF(3, 4);

/** Raises, with the node's name and operator before the message. */
_Noreturn void onnx_fail(const onnx_call *c, tn_status s, const char *format, ...)
    BASE_PRINTF(3, 4);

#endif
