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

/** Sizes that a message names, so that a hint can list those at fault: the single ones, or, without
    any, those of the shapes. */
typedef struct named_sizes {
  VEC(const node *) single;    /* added by size_text */
  VEC(const node *) of_shapes; /* added by sizes_text */
} named_sizes;

/** The surroundings of operator builders. Builders raise through `diag`; nodes that nothing holds
    are freed when the call ends, so that a failed call leaves nothing behind. */
typedef struct builder {
  ir *ir;
  arena *arena; /* lists; freed when the call ends */
  diag *diag;
  struct tn_context *context; /* NULL for an importer without tensors */
  const node *needed;         /* size that a refused operation needs to be at least 0, or NULL */
  named_sizes named;          /* by the message of a refusal */
  bool is_in_branch;          /* a run may not compute what is built: where it can, the run checks
                                 what operators need of sizes, open ones too */
} builder;

#endif
