/* Importer from ONNX graphs to tensor graphs (ONNX operator specification, opsets up to
   ONNX_OPSET_MAX): its state, its entry point, and the interface of operator builders (inputs,
   attributes, constant elements, errors). Everything below import_graph raises. */
#ifndef TENON_FORMATS_ONNX_IMPORTER_IMPORTER_H
#define TENON_FORMATS_ONNX_IMPORTER_IMPORTER_H

#include "base/map.h"
#include "base/str.h"
#include "formats/host/host_steps.h"
#include "formats/onnx/file/onnx_file.h"
#include "ir/core/topo_sort.h"
#include "tensor/context/shape.h"

#include <tenon/model.h>

/** The newest opset of the default domain that onnx_operators.def was checked against. */
enum { ONNX_OPSET_MAX = 28 };

/** The type of an output. */
typedef struct importer_type {
  dtype dtype;
  size_t rank;
  bool is_string; /* its elements are numbers of strings */
} importer_type;

/** A loop whose body the host runs as a model of its own, step by step. The model's inputs are, of
   a Loop, the number of the step; then the states, the entries that a step of a Scan gets, and what
    the body reads of the graphs around it. Its outputs are, of a Loop, whether it goes on; then the
    states, and an entry of each scan output. */
typedef struct importer_loop { /* in the arena of the steps of the host */
  onnx_graph body;             /* with the types of its inputs */
  const onnx_opsets *opsets;
  bool is_scan;
  bool has_trips, has_condition; /* of a Loop: the step's first inputs, i64 and bool */
  size_t n_states, n_scanned, n_entries;
  const bool *reads_backward, *writes_backward; /* each scanned array, and scan output; of a Loop
                                                   NULL */
  const bool *is_wanted;                        /* by result: states, then scan outputs */
  const tn_model_size *changing;                /* constraints of the sizes that a step changes */
  size_t n_changing;
  const size_t *ranks;  /* of the step's further inputs */
  const int64_t *fixed; /* sizes of these, of all axes, one after another; -1: the next element of
                           the step's last input, a vector of i64 */
  bool may_be_late;
  const importer_type *late; /* by output of the body: its states take any shape, and it is imported
                                for those that they have; NULL: it is imported once */
  const char *late_reason;   /* they decide by their sizes: why these cannot be open; else NULL */
} importer_loop;

/** The imported body of such a loop, and the steps of the host that run it. */
typedef struct importer_loop_body {
  const node *const *inputs, *const *outputs; /* of the model, in an ir of its own */
  const importer_type *types;                 /* by output */
  bool is_late;            /* no outputs are there: what only a run knows decides on them */
  const char *late_reason; /* sizes decide: why these cannot be open; else NULL */
  bool reads_later;        /* runs import it, or a body in it, again */
  host_step run; /* its result: the number of steps, then the sizes of wanted results in their
                    order, of scan outputs without the first */
  const host_step *results; /* by result: takes `run`'s result, after which it has the array */
} importer_loop_body;

/** Callbacks that create the BUFFER nodes of inputs and weights, and import the body of a loop for
    the host, which stays until `run.destroy`. All raise. */
typedef struct importer_callbacks {
  const node *(*input)(void *user, const char *name, dtype t, size_t rank,
                       const node *const dims[]);
  const node *(*weight)(void *user, const onnx_tensor *t, dtype type, size_t rank,
                        const node *const dims[]);
  importer_loop_body (*loop)(void *user, const importer_loop *l);
  void *user;
} importer_callbacks;

/** The sizes that an input has in a run. */
typedef struct importer_sizes {
  const char *name; /* of the input; NULL: the end of a list */
  const int64_t *size;
} importer_sizes;

/** An input or output of the graph. */
typedef struct importer_port {
  const onnx_value *port; /* as the file declares it */
  const node *node;       /* the BUFFER of an input, the value of an output */
  bool is_string;         /* its elements are numbers of strings */
} importer_port;

/** An output that is a sequence, the tensors of which are ports, or absent. */
typedef struct importer_list {
  const char *name; /* the file's */
  int64_t length;   /* −1: absent */
} importer_list;

/** A part of a model that is not supported, or does not fit to others. */
typedef struct importer_problem {
  bool is_of_operator; /* of an operator, wherever it is used; else of a node, an input or output */
  const char *op, *domain; /* NULL: of an input or output */
  int64_t opset;           /* of the domain */
  int64_t version, newest; /* of the operator: the one by which it is read, the newest; 0: none */
  onnx_names nodes;
  const char *reason;
  const char *nearest; /* what is supported instead; NULL: not known */
} importer_problem;

typedef VEC(importer_problem) importer_problems;

/** A size of the inputs (input_sizes.c). */
typedef struct input_size input_size;

typedef struct import {
  builder b; /* raises through its diag; its arena holds all lists */
  importer_callbacks callbacks;
  const tn_model_size *size_constraints; /* the caller's */
  size_t n_size_constraints;
  const onnx_model *model;
  const onnx_model *tensors;        /* whose files hold the tensors */
  const onnx_opsets *opsets;        /* of the model, or of the function that is expanded */
  string_map values;                /* name → importer_value, of the current graph */
  VEC(string_map) enclosing;        /* the values of the enclosing graphs, outermost first */
  const onnx_graph *graph;          /* the current one; NULL: the nodes of `call` are at hand */
  const struct function_call *call; /* the function that is expanded; NULL: none */
  bool separates_names;             /* sizes of one name may differ */
  string_map sizes;                 /* name of a dimension → its first input_size */
  map axes;                         /* onnx_value of an input → input_size of each axis */
  map weights;                      /* BUFFER of a weight → onnx_tensor */
  map weights_by_data;              /* address of a weight's data → its BUFFER */
  map sequences;                    /* handle of a sequence → importer_sequence */
  map strings;                      /* handle of a tensor of strings → their numbers, a node */
  host_steps *host;                 /* steps that the host computes, and the table of strings */
  map nonzero;                      /* varying sizes that must not be 0 when the model runs */
  string_map least;   /* varying size → its minimum, which operators have raised (intptr_t) */
  string_map bounded; /* varying sizes of which the caller gave a minimum */
  string_map most;    /* varying size → its maximum, which operators have lowered (intptr_t) */
  size_t n_raises;    /* of minima, and lowered maxima, each followed by an import of the graph */
  const onnx_tensor *given; /* values of inputs, under their names */
  size_t n_given;
  const importer_sizes *given_sizes; /* of all inputs, or NULL */
  const char *const *varying; /* inputs whose values are not given, as they vary: runs compute with
                                 them where operators take that */
  size_t n_varying;
  int64_t least_size;   /* of all sizes that the file leaves open */
  onnx_names deciding;  /* inputs with unknown elements that the current node depends on */
  bool uses_data;       /* the node depends on more than such inputs */
  node_list sizes_used; /* sizes that the current node read from shape tensors */
  VEC(importer_port) inputs, outputs;
  VEC(importer_list) lists;   /* among outputs */
  importer_problems problems; /* of import_find_problems */
  bool meets_problem;         /* the node at hand reads a value that was left out */
  bool leaves_out_sequences;  /* among outputs, and values that were not built */
  bool is_told;               /* the caller says itself how sizes are constrained */
  bool blames_sizes;          /* size constraints may avoid the failure */
  bool has_bound;             /* one bound of a size would avoid it */
  bool asks_exact_sizes;      /* an import with the sizes of a run may succeed */
  const onnx_node *failed;    /* the node of the failure; NULL: there is none */
  bool is_body;               /* the graph is the body of a loop that the host runs */
  bool hosts_loops;           /* the host runs loops that a plan cannot */
  bool has_late_bodies;       /* runs import the bodies of such loops where that helps */
  bool may_have_late_bodies;  /* a further import may have them, if this one fails */
  bool refuses_loop;          /* a loop was met that a plan cannot run */
  bool assumes_trips;         /* the next Loop is built to see whether any trip count lets it */
} import;

/** The value of a name, and its origin. */
typedef struct importer_value {
  value v;                   /* without a node: an unsupported output, which must not be used */
  const onnx_node *producer; /* NULL: an input or initializer */
  const char *kind;          /* without a producer: "input" or "initializer"; or ONNX_ABSENT */
  bool is_left_out;          /* for a problem */
} importer_value;

/** The kind of a function's input that its call leaves out; it has no node. */
#define ONNX_ABSENT "absent input"

/** The largest value of a varying size. Models write far larger numbers to say "to the end". */
enum { ONNX_SIZE_MAX = TN_MODEL_SIZE_MAX };

/** The greatest number of elements of an input that operators may ask for. */
enum { ONNX_ELEMENTS_MAX = 256 };

/** Has a tensor's data in memory; raises if its file lacks it by now. */
void importer_load_tensor(const import *m, const onnx_tensor *t);

/** True if a failed import may succeed once the inputs in `deciding` are given. */
bool importer_lacks_values(const import *m);

/** Imports the whole graph; the caller has set `b`, `callbacks` and the size constraints. Dynamic
    dimensions of inputs become variables, without small values that no operator that needs more
    could take, unless the caller gave a minimum above 0. Raises TN_ERR_UNSUPPORTED with all
   unsupported operators and versions at once; TN_ERR_FORMAT, SHAPE or DTYPE with the node's name;
   TN_ERR_ARGUMENT for a size constraint that names no size or contradicts the file. */
void import_graph(import *m, const onnx_model *model);

/** Imports the inputs alone, after import_graph has failed; sizes of one name may differ, and
   bounds are the caller's. */
void import_inputs(import *m);

/** Copies a variable of the import to `g`, with the bounds that hold when the model runs: operators
    may have excluded 0. */
const node *importer_size_at_run(const import *m, ir *g, const node *var);

/** Imports the graph as far as possible, and notes its problems; of nested graphs and functions the
    first of each call, besides operators that are not supported. Raises as import_graph does for
   size constraints, and without memory. */
void import_find_problems(import *m, const onnx_model *model);

/** Lists the operators of the model that are not supported, and opsets that are too new. */
importer_problems list_unsupported_operators(const onnx_model *model, arena *a);

/** A problem as a line: "Det (ai.onnx, opset 13): the operator is not supported: node 'a', 'b'" or
    "Add node 'a' (opset 13): …". */
const char *importer_problem_text(arena *a, const importer_problem *p);

/** A problem of a node, with what the table of operators says about its operator. */
importer_problem importer_problem_of_node(arena *a, const onnx_opsets *opsets, const onnx_node *n,
                                          const char *reason);

/** The reason why a node cannot be imported (static text); NULL if there is none known. */
const char *onnx_unsupported_reason(const onnx_model *m, const onnx_opsets *opsets,
                                    const onnx_node *n);

/** The function of the model that a node calls; NULL if it is an operator. */
const onnx_function *onnx_function_of_node(const onnx_model *m, const onnx_node *n);

/** The name of a node for messages: its own, or its first output's. */
const char *onnx_node_name(const onnx_node *n);

/** The version of a domain's operator set that a model or function imports; 0: none. */
int64_t onnx_opset_of_domain(const onnx_opsets *opsets, const char *domain);

/* Interface of operator builders. */

/** A node being imported. */
typedef struct onnx_call {
  import *m;
  const onnx_node *node;
  int64_t version; /* of the operator's definition: the newest not above the model's opset */
  size_t n_inputs, n_outputs;
  const value *inputs; /* absent ones have no node */
  value *outputs;
} onnx_call;

/** A row of onnx_operators.def. */
typedef struct onnx_op {
  const char *domain; /* "": ONNX's own */
  const char *name;
  const char *versions;   /* "7 13 14": those that the builder implements */
  const char *attributes; /* allowed and required names, as onnx_operators.def describes */
  uint16_t min_inputs, max_inputs, max_outputs;
  void (*build)(onnx_call *c);
} onnx_op;

/** All rows, for tests and listings. */
const onnx_op *op_table_rows(size_t *n);

builder *onnx_builder(onnx_call *c);
bool onnx_has_input(const onnx_call *c, size_t input);
/** An input; raises if it is absent, or a sequence. */
value onnx_input(const onnx_call *c, size_t i);
/** A sequence, which the import knows: its tensors; or an optional value that is absent; or a map,
    its keys and its values. Its value has a node of its own, a handle that is no tensor. */
typedef struct importer_sequence {
  bool is_absent, is_map;
  size_t n;
  const value *at;
} importer_sequence;

/** The sequence of a value; NULL: it is a tensor. */
const importer_sequence *importer_find_sequence(const import *m, value v);
/** The map of two vectors, or of one's numbers where it has strings. */
value importer_add_map(import *m, const value keys_and_values[2]);
/** The keys and the values of an input; raises if it is no map. */
const value *onnx_map_input_parts(const onnx_call *c, size_t i);
/** The sequence of an input; raises if it is a tensor or a map. */
const importer_sequence *onnx_sequence_input(const onnx_call *c, size_t i);
/** A new sequence of n tensors, which are copied. */
value onnx_sequence(onnx_call *c, const value at[], size_t n);
/** An optional value that is absent. */
value onnx_absent_optional(onnx_call *c);
/** An input that may be a sequence, or a tensor of strings. */
value onnx_any_input(const onnx_call *c, size_t i);

/* Tensors of strings are tensors of their numbers in the model's table. A value of one is a handle
   that is no tensor, so that no operator takes the numbers for integers. */

/** The numbers (i64) of a tensor of strings; NULL: the value is no such. */
const node *importer_find_strings(const import *m, value v);
/** The handle of numbers. */
value importer_add_strings(import *m, const node *numbers);
/** The number of a string; raises without memory. */
int64_t importer_string_number(import *m, const onnx_bytes *text);
/** The numbers of a constant tensor of strings. */
value importer_string_constant(import *m, const onnx_tensor *t);

bool onnx_is_string_input(const onnx_call *c, size_t i);
/** The numbers of an input of strings; raises if it is none. */
value onnx_string_input(const onnx_call *c, size_t i);
/** A tensor of strings of these numbers. */
value onnx_strings(onnx_call *c, value numbers);
/** The numbers of the strings of an attribute, as a vector; NULL if it is absent. */
int64_t *onnx_string_numbers(onnx_call *c, const char *name, size_t *n);
value onnx_string_vector(onnx_call *c, const char *name);

/** Builds an operator that moves elements, or compares them, for inputs of strings; false: it does
    not take them. */
bool onnx_build_on_strings(onnx_call *c, const onnx_op *row);

/** Raises if a step of the host would read a value that steps of a loop of the plan compute. */
void onnx_refuse_host_in_loop(const onnx_call *c, const node *n);
/** The result of a step of the host, which gets inputs that are present, in their order. */
value onnx_host_step(onnx_call *c, host_step step, const value in[], size_t n, dtype t,
                     const sizes *s);
/** A size that an i64 of rank 0 has, from `min` to `most`. */
const node *onnx_computed_size(onnx_call *c, const node *x, int64_t min, int64_t most);

/** An input of one element, as a scalar. */
value onnx_scalar_input(onnx_call *c, size_t i);

/** True if the node names an output. Using an output that was not built raises. */
bool onnx_wants_output(const onnx_call *c, size_t output);

/** Tells of each output whether a node of the graph at hand, or of a graph in it, reads it, or the
    graph gives it. `is_read` has n_outputs entries. */
void onnx_find_read_outputs(const onnx_call *c, bool is_read[]);

/** Raises unless all present inputs have the type of the first: ONNX promotes no types. */
void onnx_require_same_types(const onnx_call *c);

bool onnx_has_attribute(const onnx_call *c, const char *name);
/** The attribute, NULL if absent; raises if it has another type. */
const onnx_attribute *onnx_find_attribute(const onnx_call *c, const char *name,
                                          onnx_attribute_type type);
/** The value of an attribute, or a default. */
int64_t onnx_int_attribute(const onnx_call *c, const char *name, int64_t default_value);
float onnx_float_attribute(const onnx_call *c, const char *name, float default_value);
const char *onnx_string_attribute(const onnx_call *c, const char *name, const char *default_value);
/** The element type that an int attribute names; raises for unsupported ones. */
dtype onnx_dtype_attribute(const onnx_call *c, const char *name, dtype default_value);
/** The value of an attribute, NULL if absent. */
const onnx_ints *onnx_ints_attribute(const onnx_call *c, const char *name);
const onnx_tensor *onnx_tensor_attribute(const onnx_call *c, const char *name);
/** A required graph attribute. */
const onnx_graph *onnx_graph_attribute(const onnx_call *c, const char *name);

/** Imports a node's graph attribute, as the body of a loop or a branch. `in` and `out` have one
   value for each input and output of the graph; other names resolve in the enclosing graphs. */
void onnx_import_branch(onnx_call *c, const onnx_graph *g, const value in[], value out[]);

/** As onnx_import_branch; raises if an output is a sequence. */
void onnx_import_body(onnx_call *c, const onnx_graph *g, const value in[], value out[]);

/** The value of a name where a node stands; raises if there is none. */
const importer_value *onnx_named_value(onnx_call *c, const char *name);

/** Builds a node that was imported once more, of other inputs; returns its outputs. */
const value *onnx_build_node(onnx_call *c, const onnx_node *n, const value in[]);

/** True if the node is one of a function, also in a body that was taken out of it; and the
   attributes that nodes of the function may refer to, in `a`. */
bool onnx_is_in_function(const onnx_call *c);
onnx_attributes onnx_function_attributes(const onnx_call *c, arena *a);

/** The call of another node, to read its attributes; without inputs and outputs. */
onnx_call onnx_call_of(onnx_call *c, const onnx_node *n);

/** Creates the range of a loop; raises if loops are nested too deep. */
const node *onnx_loop_range(onnx_call *c, const node *trip_count);

/** Advice for values that must be known before the model runs. */
#define ONNX_STATIC_HINT \
  "make it an initializer or compute it from shapes (onnxsim folds constants)"

/** The elements of an integer input of rank 0 or 1 as index expressions over constants and sizes.
    Those that depend on data are computed by runs, which refuse ones beyond ±ONNX_SIZE_MAX. Raises
    TN_ERR_UNSUPPORTED if a loop computes them. */
const node *const *onnx_shape_elements(onnx_call *c, size_t input, size_t *n);
/** As onnx_shape_elements; runs also refuse negative ones. */
const node *const *onnx_size_elements(onnx_call *c, size_t input, size_t *n);
/** As onnx_size_elements, of a shape in which 0 and -1 are no sizes: elements of inputs have to be
    constants, also of inputs that vary. */
const node *const *onnx_target_elements(onnx_call *c, size_t input, size_t *n);
/** The one element of an input, from 0 to `most`. */
const node *onnx_bounded_size(onnx_call *c, size_t input, const node *most);
/** As onnx_shape_elements, for constant elements only. Raises TN_ERR_UNSUPPORTED if they depend on
    data. */
const int64_t *onnx_static_ints(onnx_call *c, size_t input, size_t *n);

/** The constant elements of a float input of rank 0 or 1. Raises TN_ERR_UNSUPPORTED if they depend
    on data. */
const double *onnx_static_floats(onnx_call *c, size_t input, size_t *n);

/** The value of a bool input of one element, or of one that is absent. Raises TN_ERR_UNSUPPORTED if
    it depends on data. */
bool onnx_static_bool(onnx_call *c, size_t input, bool absent);

/** A bool of one element, as an index from 0 to 1: a constant, or an ITEM that a run computes.
   NULL: the steps of a loop compute it. */
const node *onnx_condition(onnx_call *c, size_t input);

/** A constant tensor as a value. */
value onnx_constant_tensor(onnx_call *c, const onnx_tensor *t);

/** A constant of computed elements, rows × columns of them or, with 0 columns, a vector. The
   elements, in the import's arena, are copied before the import ends. */
value onnx_computed_tensor(onnx_call *c, dtype t, const void *data, size_t rows, size_t columns);

/** Converts an axis, counted from the end if negative, to 0 … rank − 1; raises if out of range. */
size_t onnx_normalise_axis(onnx_call *c, int64_t axis, size_t rank);

/** Excludes 0 from a variable's range: runs with this size 0 fail. */
void onnx_require_nonzero(onnx_call *c, const node *var);

/** Raises TN_ERR_UNSUPPORTED for an operation that needs a constant size; the importer appends how
    to fix the size. */
_Noreturn void onnx_fail_varying_size(onnx_call *c, const node *size, const char *format, ...)
    BASE_PRINTF(3, 4);

/** Notes the varying sizes that an input's elements are computed of as those at fault for a
   failure, if these depend on nothing else that only a run knows. */
void onnx_blame_sizes_of_input(onnx_call *c, size_t input);

/** Raises; the importer prefixes the message with the node's operator and name. */
_Noreturn void onnx_fail(const onnx_call *c, tn_status s, const char *format, ...)
    BASE_PRINTF(3, 4);

#endif
