/* Loads models from ONNX files, to be run like plans or used as a part of an expression. */
#ifndef TENON_MODEL_H
#define TENON_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tenon/export.h>
#include <tenon/plan.h>
#include <tenon/status.h>
#include <tenon/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

/** A loaded model: immutable, and used by any number of threads. */
typedef struct tn_model tn_model;

/** Largest value of a size that an input leaves open. */
#define TN_MODEL_SIZE_MAX 999999999

/** Bounds of a size that a model's inputs leave open. */
typedef struct tn_model_size {
  size_t size;      /**< sizeof(tn_model_size), the same in all of an array */
  const char *name; /**< its name in the file, as tn_port.sizes shows it ("batch"), for all sizes of
                       that name, or an input and its axis ("x:0"), for that alone */
  const char *same; /**< another size, named likewise, that it equals; NULL: bounds follow */
  int64_t min, max; /**< inclusive, at most TN_MODEL_SIZE_MAX; equal: a fixed size */
  int64_t likely;   /**< a value within the bounds that variants which leave the size open are made
                       fast for; 0: the size of the run that a variant is compiled for */
} tn_model_size;

#define TN_MODEL_SIZE_INIT \
  { sizeof(tn_model_size), NULL, NULL, 0, TN_MODEL_SIZE_MAX, 0 }

/** A problem of a model that cannot be loaded. Strings and lists live during the call. */
typedef struct tn_model_problem {
  size_t size;              /**< sizeof(tn_model_problem) of the library */
  const char *text;         /**< all of it, as a line */
  const char *op, *domain;  /**< operator, NULL where it is about an input, an output or an opset */
  int64_t opset;            /**< version of the domain that the file states; 0: none */
  int64_t version, newest;  /**< of the operator's definitions: the one by which it is read, and the
                               newest one known; 0: there is none */
  const char *const *nodes; /**< names of the nodes: one, or all of an unsupported operator */
  size_t n_nodes;
  const char *reason;
  const char *nearest; /**< what is supported instead; NULL: not known */
} tn_model_problem;

/** A receiver of problems. Calls nothing on the context. */
typedef struct tn_model_problems {
  void (*tell)(void *user, const tn_model_problem *problem); /**< NULL: there is none */
  void *user;
} tn_model_problems;

/** A value of a file's graph: the name, and the type where the caller knows it (sizes that vary are
    -1). */
typedef struct tn_model_value {
  const char *name;
  tn_type type;
} tn_model_value;

/** The value that an input has in all runs of a model. */
typedef struct tn_input_value {
  const char *name;
  tn_type type;     /**< of the elements, which is the input's; all sizes are numbers */
  const void *data; /**< row-major */
} tn_input_value;

/** The tensors of an input that is a sequence, or an optional value. */
typedef struct tn_input_list {
  const char *name;
  int64_t count;        /**< how many tensors the sequence has; -1: an optional value is absent */
  const tn_type *types; /**< of these tensors, sizes that vary being -1; NULL: all are as the file
                           declares them */
} tn_input_list;

/** Options of loading a model. Everything that they point to is copied. */
typedef struct tn_model_desc {
  size_t size; /**< sizeof(tn_model_desc) */
  /** folder of the model's external data, which must lie in it or below, all links followed; NULL:
      the model file's folder, also that of the file that the path is a link to; for a model from
      memory there is none, and external data is TN_ERR_IO */
  const char *folder;
  bool copy; /**< copy the files' contents: the files may change once the model is loaded */
  const tn_model_size *sizes; /**< bounds that hold in all runs; NULL: those of the file. Other
                                 sizes are 0 or more; and without a min above 0 they are as large as
                                 operators need (a height that fits the windows of convolutions),
                                 which tn_port.min tells; without a max, no larger than they allow
                                 (the rows of a table of positions), which tn_port.max tells */
  size_t n_sizes;             /**< length of `sizes` */
  const char *name; /**< name of the model in messages; NULL: its path, or "the model" for one from
                       memory; "": messages name its nodes alone */
  tn_variants variants; /**< of what is compiled for bindings */
  bool tunable;         /**< keep graph and weights, so that tn_tune can tune bindings */
  bool *about_sizes;    /**< set to whether a failure to load is about sizes that `sizes` may fix,
                           bound or equate; the message then does not name `sizes`. NULL: not
                           told */
  /** run bindings by the interpreter: each operator is computed by its definition, element after
      element, and nothing is compiled. Slow; compiled results are compared with it (tenon check) */
  bool interpreted;
  /** names of values of the file's graph that are the outputs instead of those that it declares;
      nodes that they do not need are left out. Values that are no tensors (sequences) are left out
      too; of a model whose inputs decide on shapes they fail. NULL: the file's outputs */
  const char *const *outputs;
  size_t n_outputs; /**< length of `outputs` */
  /** values of the file's graph that are inputs, of these types, instead of being computed; they
      come before the file's inputs, of which those that outputs do not need are left out. Constants
      of the file are TN_ERR_ARGUMENT. NULL: the file's inputs */
  const tn_model_value *inputs;
  size_t n_inputs; /**< length of `inputs` */
  /** told of all problems of a graph that cannot be imported, where the message has the first one,
      or as many as it holds: unsupported operators, and nodes, inputs and outputs that do not fit
      together; what reads a result of a node with a problem has none of its own. Of a nested graph
     or a function one problem of each node is told */
  tn_model_problems problems;
  /** values of inputs, which are no ports of the model then; NULL: none. A model whose inputs
     decide on shapes is compiled at once where it has these inputs' values */
  const tn_input_value *values;
  size_t n_values; /**< length of `values` */
  /** inputs that are sequences, which is needed for each, or optional values. A sequence "x" of n
      tensors becomes the ports "x[0]" … "x[n - 1]"; an absent value none. An optional tensor that
     is not listed is a port of its own name. NULL: none */
  const tn_input_list *lists;
  size_t n_lists; /**< length of `lists` */
  /** map the files, so that weights which kernels read as they are need no memory of their own. A
      file that another process cuts then ends this process. Without it, weights are read from the
      files when they are used, and what a file lacks by then is TN_ERR_IO */
  bool map;
} tn_model_desc;

/* clang-format off */
#define TN_MODEL_DESC_INIT                                                                 \
  { sizeof(tn_model_desc), NULL, false, NULL, 0, NULL, TN_VARIANTS_AUTO, false, NULL, false, \
    NULL, 0, NULL, 0, {NULL, NULL}, NULL, 0, NULL, 0, false }
/* clang-format on */

/** Loads a model file; `desc` NULL: INIT. The model belongs to the context until it is freed.
    Unless `copy` is set its files stay open, and must not be overwritten in place while they are in
    use ("Models" in docs/library.md). On failure *model is NULL and tn_message
    names the file and the node: TN_ERR_IO where a file cannot be read; TN_ERR_FORMAT where it is
    malformed; TN_ERR_UNSUPPORTED with a list of what is not supported; TN_ERR_SHAPE or TN_ERR_DTYPE
    where nodes fit together for no sizes that the inputs allow; TN_ERR_ARGUMENT where
    `sizes` names no size of the inputs, or contradicts the file or itself. Where the elements of
    inputs decide on shapes, as a Reshape's, nodes are checked by the first run with these values,
    which is compiled for them; runs fail as loading does then. So are the nodes of a model
    that fit together for some sizes alone (tn_model_exact_sizes), unless a bound in `sizes` mends
    that. */
TN_API tn_status tn_model_load(tn_context *context, const char *path, const tn_model_desc *desc,
                               tn_model **model);

/** Loads a model as tn_model_load does from a file's `bytes` bytes in memory, which may be reused
    on return. */
TN_API tn_status tn_model_load_bytes(tn_context *context, const void *data, size_t bytes,
                                     const tn_model_desc *desc, tn_model **model);

/** Frees a model; its bindings and expressions that use it stay valid. NULL is allowed. */
TN_API void tn_model_free(tn_model *model);

/** Returns the path of the `i`-th file of external data that the model was loaded with, as it was
    opened, each once; NULL past the last. Lives as long as the model. Any thread. */
TN_API const char *tn_model_data_file(const tn_model *model, size_t i);

/** Arithmetic of a model's contractions: sums of products of two different tensors, neither of them
    a constant, such as matrix products and convolutions. */
typedef struct tn_contractions {
  size_t size;       /**< sizeof(tn_contractions), set by the caller */
  double operations; /**< per run, a multiply-add counting as two; 0: there are none */
  bool is_float;     /**< true if all of them have floating results */
} tn_contractions;

#define TN_CONTRACTIONS_INIT \
  { sizeof(tn_contractions), 0, true }

/** Counts the contractions of a run with inputs of `n` shapes, in the order of the ports, as the
    file has them; compiles nothing. Any thread. On failure *contractions is unchanged and the
    message is the context's: TN_ERR_SHAPE where the shapes do not fit the inputs, TN_ERR_ARGUMENT
    for another number of shapes. */
TN_API tn_status tn_model_contractions(const tn_model *model, const tn_shape shapes[], size_t n,
                                       tn_contractions *contractions);

/** Makes a binding of a model (plan.h). Where its inputs leave no size open, or the model has
    TN_VARIANTS_ONE, the first binding compiles it; the context may be used meanwhile. Any thread.
   On failure *binding is NULL and the message is the context's. */
TN_API tn_status tn_model_bind(tn_model *model, tn_binding **binding);

/** Describes the `i`-th input or output, in the model's order; inputs that have a value in the file
    (weights) are left out. Strings live as long as the model. Any thread. TN_ERR_ARGUMENT past the
    last, and where `port` is NULL or does not begin with TN_PORT_INIT; *port and the message are
    then unchanged, so that a loop can end there. */
TN_API tn_status tn_model_port(const tn_model *model, tn_port_kind kind, size_t i, tn_port *port);

/** Returns how many tensors an output has that is a sequence or an optional value: those of a
    sequence "y" are the ports "y[0]" … "y[n - 1]", and a present optional tensor "y" is a port of
    that name, as is a tensor: 1. -1: an optional value is absent, there is no such output, or
    elements or sizes of inputs decide on the model. Any thread. */
TN_API int64_t tn_model_length(const tn_model *model, const char *output);

/** Returns why no size of a model's inputs can stay open: the first node that fits together for
   some sizes alone, and its reason. Each run's sizes are then compiled when a run first has them,
   and eight sets of them are kept; where tn_model_open_from_one, those with a 0 alone. NULL: sizes
   can be open, or there are none. Lives as long as the model. Any thread. */
TN_API const char *tn_model_exact_sizes(const tn_model *model);

/** Returns true if a model with tn_model_exact_sizes fits all sizes from 1 on, and its variants are
   AUTO or STEADY: these sizes then stay open. Any thread. */
TN_API bool tn_model_open_from_one(const tn_model *model);

/** Sets *number to the number of a string of `bytes` bytes, for inputs of strings: ports with
    is_string take tensors of i64 with such numbers, and give them. Equal strings have the same one,
    the empty string has 0. The model keeps all strings that it was given or that runs made until it
    and its bindings are freed. TN_ERR_ARGUMENT for a NULL; TN_ERR_MEMORY. Any thread. */
TN_API tn_status tn_model_string_number(tn_model *model, const char *text, size_t bytes,
                                        int64_t *number);

/** Returns the string of a number, with a NUL behind its *bytes bytes (`bytes` may be NULL); NULL
    where no string has the number. Lives as long as the model. Any thread. */
TN_API const char *tn_model_string(const tn_model *model, int64_t number, size_t *bytes);

/** Uses the model as an operation: `in` and `out` are all of its ports, in order. Inputs have the
    ports' types (TN_ERR_DTYPE; only weak scalars are converted) and fit their shapes
    (TN_ERR_SHAPE). Every out[i] is set, to an invalid tensor on failure: TN_ERR_ARGUMENT for a
    wrong number of inputs or outputs, TN_ERR_UNSUPPORTED for a model that fits some sizes of inputs
    alone (tn_model_exact_sizes), of which elements of inputs decide on shapes, or of which the host
    runs a loop. */
TN_API void tn_model_apply(tn_model *model, tn_tensor *const in[], size_t n_in, tn_tensor *out[],
                           size_t n_out);

#ifdef __cplusplus
}
#endif
#endif
