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

typedef struct tn_model tn_model;

/** The largest size that an input which leaves it open can have. */
#define TN_MODEL_SIZE_MAX 999999999

/** Bounds of a size that a model's inputs leave open. */
typedef struct tn_model_size {
  const char *name; /**< as the file has it and tn_port.sizes shows it ("batch"), or an input and
                         its axis ("x:0") */
  const char *same; /**< another one, named likewise, that the size is equal to; NULL: it is a */
  int64_t min, max; /**< number in min … max, at most TN_MODEL_SIZE_MAX; both equal: just this
                            number */
} tn_model_size;

/** Options of loading a model. Everything they point to is copied. */
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
  const char *name; /**< what messages call the model; NULL: its path, or "the model" for one from
                       memory; "": they name its nodes alone */
} tn_model_desc;

#define TN_MODEL_DESC_INIT \
  { sizeof(tn_model_desc), NULL, false, NULL, 0, NULL }

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

/** The path of the `i`-th file of weights that a model was loaded with beside its own file, each
    once, as it was opened, from any thread; NULL past the last. It lives as long as the model. */
TN_API const char *tn_model_data_file(const tn_model *model, size_t i);

/** Arithmetic of a model's contractions: sums of products of two different tensors, neither a
    constant, as matrix products and convolutions are. */
typedef struct tn_contractions {
  size_t size;       /**< sizeof(tn_contractions), set by the caller */
  double operations; /**< in a run, a multiply-add being two; 0: there are none */
  bool is_float;     /**< all of them have floating results */
} tn_contractions;

#define TN_CONTRACTIONS_INIT \
  { sizeof(tn_contractions), 0, true }

/** Counts the contractions of a run with inputs of `n` shapes, in the order of the ports, as the
    file has them; from any thread. Nothing is compiled. On failure *contractions is untouched and
    the message is the context's: TN_ERR_SHAPE where the shapes are not those of inputs,
    TN_ERR_ARGUMENT for another number of them. */
TN_API tn_status tn_model_contractions(const tn_model *model, const tn_shape shapes[], size_t n,
                                       tn_contractions *contractions);

/** A new binding of a model, from any thread (see plan.h). The first one compiles the model, for
    all sizes of its inputs at once; the context may be used meanwhile. On failure *binding is NULL
    and the message is the context's. */
TN_API tn_status tn_model_bind(tn_model *model, tn_binding **binding);

/** Describes the `i`-th input or output, in the model's order, from any thread. Inputs that the
    model gives a value itself (its weights) are not among them. Strings live as long as the model.
    Past the last, and where `port` is NULL or does not begin with TN_PORT_INIT: TN_ERR_ARGUMENT,
    which leaves *port and the message alone, so that a loop ends there. */
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
