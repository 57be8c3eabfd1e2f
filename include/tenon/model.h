/* Models: ONNX files, loaded to be run like plans or used as a part of an expression. */
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

typedef struct tn_model tn_model;

/** What is known of a size that a model's inputs leave open. */
typedef struct tn_model_size {
  const char *name; /**< as the file has it and tn_port.sizes shows it ("batch"), or an input and
                         its axis ("x:0") */
  const char *same; /**< another one, named likewise, that the size is equal to; NULL: it is a */
  int64_t min, max; /**< number in min … max, at most 999999999; both equal: just this number */
} tn_model_size;

/** How a model is loaded. What it points to is copied. */
typedef struct tn_model_desc {
  size_t size;        /**< sizeof(tn_model_desc) */
  const char *folder; /**< where data that the model keeps in files of its own lies, or below it,
                         and nowhere else, all links followed; NULL: the model file's folder, also
                         that of the file that the path is a link to, and for a model from memory
                         none, so that such data is TN_ERR_IO */
  bool copy;          /**< copy what the files hold: they may change once the model is loaded */
  const tn_model_size *sizes; /**< what holds of all runs; NULL: no more than the file says. Sizes
                                   that nobody says anything of are 0 or more, and 1 or more where
                                   ONNX takes a 0 that a shape is computed to for a copy */
  size_t n_sizes;             /**< how many these are */
} tn_model_desc;

#define TN_MODEL_DESC_INIT \
  { sizeof(tn_model_desc), NULL, false, NULL, 0 }

/** Loads a model file; desc NULL: INIT. The model belongs to the context until it is freed. A pipe
    is read to its end; files are mapped, not read: unless `copy` is set, they are not to be
    shortened or overwritten in place as long as the model, a binding of it or a tensor built from
    it lives, or the process may be killed. To put others in their place, rename those. On failure
    *model is NULL and tn_message names the file and the node: TN_ERR_IO where a file cannot be
    read, TN_ERR_FORMAT where it is malformed, TN_ERR_UNSUPPORTED with all that is not supported at
    once, or the first of it and how much more there is (the command's `inspect` lists it all),
    TN_ERR_SHAPE or TN_ERR_DTYPE where nodes do not fit together, TN_ERR_ARGUMENT where `sizes` name
    none of the inputs' or contradict the file or each other. A model is loaded only if it fits
    together for all sizes that it may be given: where two have to be equal, and the file names them
    differently, `sizes` must say so. What the file says of an output's type is not relied on: where
    the graph gives another one, the logger is told. */
TN_API tn_status tn_model_load(tn_context *context, const char *path, const tn_model_desc *desc,
                               tn_model **model);

/** The same from a model file's `bytes` bytes in memory, which are free for reuse on return. */
TN_API tn_status tn_model_load_bytes(tn_context *context, const void *data, size_t bytes,
                                     const tn_model_desc *desc, tn_model **model);

/** Frees a model; its bindings and what was built from it go on working. NULL is allowed. */
TN_API void tn_model_free(tn_model *model);

/** A new binding of a model, from any thread (see plan.h). The first one compiles the model, for
    all sizes of its inputs at once; the context may be used meanwhile. On failure *binding is NULL
    and the message is the context's. */
TN_API tn_status tn_model_bind(tn_model *model, tn_binding **binding);

typedef enum tn_port_kind {
  TN_PORT_INPUT = 0,
  TN_PORT_OUTPUT = 1,
  TN_PORT_KIND_MAX_ENUM = 0x7fffffff
} tn_port_kind;

/** An input or output of a model. Strings live as long as the model. */
typedef struct tn_port {
  size_t size; /**< sizeof(tn_port), set by the caller */
  const char *name;
  tn_type type;                   /**< a size that varies is -1; an unknown rank is -1 */
  const char *sizes[TN_MAX_RANK]; /**< each size in words: "224", "batch", "2*batch+1", "x:0"
                                     for one without a name; "…" is what is not said so shortly;
                                     NULL past the rank */
} tn_port;

#define TN_PORT_INIT                                          \
  {                                                           \
    sizeof(tn_port), NULL, {TN_UNDEFINED, {0, {0}}}, { NULL } \
  }

/** Describes the `i`-th input or output, in the model's order, from any thread. Inputs that the
    model gives a value itself (its weights) are not among them. Past the last, and where
    `port` is NULL or does not begin with TN_PORT_INIT: TN_ERR_ARGUMENT, which leaves *port and the
    message alone, so that a loop ends there. */
TN_API tn_status tn_model_port(const tn_model *model, tn_port_kind kind, size_t i, tn_port *port);

/** The model as an operation: `in` and `out` in the order of its ports, all of them. Input types
    are the ports' own (TN_ERR_DTYPE; nothing is converted but weak scalars), shapes fit
    (TN_ERR_SHAPE). Every out[i] is set, to an invalid tensor on failure: TN_ERR_ARGUMENT for a
   wrong number of either, TN_ERR_UNSUPPORTED where a size is known only by running. */
TN_API void tn_model_apply(tn_model *model, tn_tensor *const in[], size_t n_in, tn_tensor *out[],
                           size_t n_out);

#ifdef __cplusplus
}
#endif
#endif
