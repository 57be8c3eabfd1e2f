/* The values and the builder that operators work with: a builder appends nodes to the tensor graph
   (ir/core/ir.h) and raises failures. Builders serve tensors of a context as well as importers of
   model files, which have none. */
#ifndef TENON_TENSOR_CONTEXT_BUILDER_H
#define TENON_TENSOR_CONTEXT_BUILDER_H

#include "base/vec.h"
#include "ir/core/build.h"

#include <tenon/tensor.h>

/** The kind of a weak scalar (weak type in JAX, wrapped number in PyTorch): promoted as an integer
    or a float of no fixed width (tn_int, tn_num). */
typedef enum weakness { WEAK_NO, WEAK_INT, WEAK_NUM } weakness;

/** An operand or a result of a builder. */
typedef struct value {
  const node *node;
  weakness weak; /* other than WEAK_NO: a constant of rank 0 */
} value;

/** The surroundings of operator builders. Builders raise through `diag`; nodes that nothing holds
    are freed when the call ends, so that a failed call leaves nothing behind. */
typedef struct builder {
  ir *ir;
  arena *arena; /* lists; freed when the call ends */
  diag *diag;
  struct tn_context *context; /* NULL for an importer without tensors */
  const node *needed;         /* size that a refused operation needs to be at least 0, or NULL */
  VEC(const node *) named;    /* sizes that the message of a refusal names: size_text adds them */
} builder;

#endif
