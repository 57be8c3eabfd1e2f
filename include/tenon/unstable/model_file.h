/* Describes the contents of an ONNX file, whether or not it can be run: operators, constants,
   inputs and outputs as the file declares them. Nothing under unstable/ is promised to stay. */
#ifndef TENON_UNSTABLE_MODEL_FILE_H
#define TENON_UNSTABLE_MODEL_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tenon/export.h>
#include <tenon/model.h>
#include <tenon/status.h>
#include <tenon/unstable/failure.h>

#ifdef __cplusplus
extern "C" {
#endif

/** A parsed model file. */
typedef struct tn_model_file tn_model_file;

/** Parses a model file's `bytes` bytes, which must outlive *file. External data is not opened.
    TN_ERR_FORMAT for a damaged file or one that is no model, TN_ERR_UNSUPPORTED for an unsupported
    version of the format; unsupported operators are listed, not refused. On failure *file is NULL.
    `failure` may be NULL. */
TN_API tn_status tn_model_file_parse(const void *data, size_t bytes, tn_model_file **file,
                                     tn_failure *failure);

/** Frees a parsed file. NULL is allowed. */
TN_API void tn_model_file_free(tn_model_file *file);

/* A parsed file may be used by any number of threads. Strings and lists live as long as it does.
   Functions that describe the `i`-th item return TN_ERR_ARGUMENT past the last and leave their
   results unchanged, so that a loop can end there. */

/** Totals over the graph, its nested graphs and functions. */
typedef struct tn_model_file_info {
  size_t size; /**< sizeof(tn_model_file_info), set by the caller */
  int64_t ir_version;
  const char *producer, *producer_version; /**< "" if the file does not name them */
  uint64_t nodes;                          /**< uses of operators */
  uint64_t kinds;                          /**< different operators */
  uint64_t tensors;                        /**< constants */
  uint64_t elements, bytes;                /**< total size of these constants */
  uint64_t external;                       /**< constants stored in external files */
} tn_model_file_info;

#define TN_MODEL_FILE_INFO_INIT \
  { sizeof(tn_model_file_info), 0, NULL, NULL, 0, 0, 0, 0, 0, 0 }

/** Describes the file. */
TN_API tn_status tn_model_file_get(const tn_model_file *file, tn_model_file_info *info);

/** Returns the `i`-th operator set that the file imports; the default domain is "ai.onnx". */
TN_API tn_status tn_model_file_opset(const tn_model_file *file, size_t i, const char **domain,
                                     int64_t *version);

/** Returns the `i`-th operator, most frequent first, and its number of uses. Names are preceded by
    their domain and a dot, except in the default domain. */
TN_API tn_status tn_model_file_operator(const tn_model_file *file, size_t i, const char **name,
                                        uint64_t *count);

/** A node of the file's graph; those of nested graphs and functions are parts of it. */
typedef struct tn_model_node {
  size_t size;      /**< sizeof(tn_model_node), set by the caller */
  const char *name; /**< its own, or if it has none that of its first output */
  const char *op;   /**< operator, preceded by its domain and a dot, except in the default domain */
  const char *const *inputs; /**< names of the values that it reads, also in its nested graphs, each
                                once */
  size_t n_inputs;
  const char *const *outputs; /**< names of the values that it makes */
  size_t n_outputs;
} tn_model_node;

#define TN_MODEL_NODE_INIT \
  { sizeof(tn_model_node), NULL, NULL, NULL, 0, NULL, 0 }

/** Describes the `i`-th node of the graph, in the file's order, in which values are made before
   they are read. */
TN_API tn_status tn_model_file_node(const tn_model_file *file, size_t i, tn_model_node *node);

/** An input or output as the file declares it; the declaration may be wrong. */
typedef struct tn_declared_port {
  size_t size; /**< sizeof(tn_declared_port), set by the caller */
  const char *name;
  const char *type;       /**< as text: "f32 [batch, 3]", "sequence of f32" */
  bool is_tensor;         /**< the fields below describe tensors alone */
  int32_t dtype;          /**< ONNX's number of the element type, as tn_dtype's; 0: not declared */
  const char *dtype_name; /**< "f32", "u4"; NULL: not declared */
  int64_t rank;           /**< -1: not declared */
  const int64_t *sizes;   /**< `rank` sizes; -1: not a number */
  const char *const *names; /**< `rank` names of sizes that are not numbers; "": unnamed */
  bool is_weight;           /**< an input with a value in the file */
} tn_declared_port;

#define TN_DECLARED_PORT_INIT \
  { sizeof(tn_declared_port), NULL, NULL, false, 0, NULL, -1, NULL, NULL, false }

/** Describes the `i`-th declared input or output. */
TN_API tn_status tn_model_file_port(const tn_model_file *file, tn_port_kind kind, size_t i,
                                    tn_declared_port *port);

/** Tells of the `i`-th loop of a loaded model that the host runs step by step, as no loop of a plan
    can be it: its node, as "Loop node 'decode'", and the kind of the step with the reason. A loop
    comes before those in its body. Strings live as long as the model; a model that is imported for
    each set of elements, and a body that is for each shape of its states, have none before a run.
    TN_ERR_ARGUMENT past the last. */
TN_API tn_status tn_model_host_loop(const tn_model *model, size_t i, const char **node,
                                    const char **what);

/** Returns the `i`-th unsupported item as text: "Op (domain, opset 13): node 'a'". */
TN_API tn_status tn_model_file_unsupported(const tn_model_file *file, size_t i, const char **line);

#ifdef __cplusplus
}
#endif
#endif
