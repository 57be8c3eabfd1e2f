/* Describes the contents of an ONNX file, whether or not it can be run: operators, constants,
   inputs and outputs as the file declares them. Nothing under unstable/ is promised to stay. */
#ifndef TENON_UNSTABLE_MODEL_FILE_H
#define TENON_UNSTABLE_MODEL_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tenon/export.h>
#include <tenon/plan.h>
#include <tenon/status.h>
#include <tenon/unstable/failure.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tn_model_file tn_model_file;

/** Reads a model file's `bytes` bytes, which must outlive *file. Files of external data are not
    opened. TN_ERR_FORMAT for what is no model or is damaged, TN_ERR_UNSUPPORTED for a version of
   the format that is not supported; operators that are not supported are listed, not refused. On
   failure *file is NULL. `failure` may be NULL. */
TN_API tn_status tn_model_file_parse(const void *data, size_t bytes, tn_model_file **file,
                                     tn_failure *failure);

/** NULL is allowed. */
TN_API void tn_model_file_free(tn_model_file *file);

/* A file is used by any number of threads. Strings and lists live as long as it. Functions that
   describe an item return TN_ERR_ARGUMENT past the last and leave their results alone, so that a
   loop ends there. */

/** Contents of the graph, its nested graphs and functions, added up. */
typedef struct tn_model_file_info {
  size_t size; /**< sizeof(tn_model_file_info), set by the caller */
  int64_t ir_version;
  const char *producer, *producer_version; /**< "" where the file does not tell */
  uint64_t nodes;                          /**< uses of operators */
  uint64_t kinds;                          /**< different operators */
  uint64_t tensors;                        /**< constants */
  uint64_t elements, bytes;                /**< of these constants */
  uint64_t external;                       /**< constants whose elements lie in other files */
} tn_model_file_info;

#define TN_MODEL_FILE_INFO_INIT \
  { sizeof(tn_model_file_info), 0, NULL, NULL, 0, 0, 0, 0, 0, 0 }

TN_API tn_status tn_model_file_get(const tn_model_file *file, tn_model_file_info *info);

/** The `i`-th operator set that the file imports; the default domain is "ai.onnx". */
TN_API tn_status tn_model_file_opset(const tn_model_file *file, size_t i, const char **domain,
                                     int64_t *version);

/** The `i`-th operator, the most frequent one first, and its number of uses. Names have their
   domain and a dot before them, except those of the default domain. */
TN_API tn_status tn_model_file_operator(const tn_model_file *file, size_t i, const char **name,
                                        uint64_t *count);

/** An input or output as the file declares it, which may be wrong. */
typedef struct tn_declared_port {
  size_t size; /**< sizeof(tn_declared_port), set by the caller */
  const char *name;
  const char *type;         /**< in words: "f32 [batch, 3]", "sequence of f32" */
  bool is_tensor;           /**< the fields below describe tensors alone */
  int32_t dtype;            /**< ONNX's number of the element type, as tn_dtype's; 0: not told */
  const char *dtype_name;   /**< "f32", "u4"; NULL: not told */
  int64_t rank;             /**< -1: not told */
  const int64_t *sizes;     /**< `rank` sizes; -1: no number */
  const char *const *names; /**< `rank` names of those that are no numbers; "": it has none */
  bool is_weight;           /**< an input that the file gives a value */
} tn_declared_port;

#define TN_DECLARED_PORT_INIT \
  { sizeof(tn_declared_port), NULL, NULL, false, 0, NULL, -1, NULL, NULL, false }

TN_API tn_status tn_model_file_port(const tn_model_file *file, tn_port_kind kind, size_t i,
                                    tn_declared_port *port);

/** The `i`-th line about something that is not supported: "Op (domain, opset 13): node 'a'". */
TN_API tn_status tn_model_file_unsupported(const tn_model_file *file, size_t i, const char **line);

#ifdef __cplusplus
}
#endif
#endif
