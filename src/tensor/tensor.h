/* Inside of contexts and tensors: what the files of this folder share. */
#ifndef TENON_TENSOR_TENSOR_H
#define TENON_TENSOR_TENSOR_H

#include "ir/build.h"

#include <tenon/tensor.h>

/** How a rank-0 constant takes part in promotion (tn_num, tn_int). */
typedef enum weakness { WEAK_NO, WEAK_INT, WEAK_NUM } weakness;

/** A value in the making: what builders take and give. */
typedef struct value {
  const node *node;
  weakness weak;
} value;

/** What builders work with. They raise through `diag` and leave no trace: nodes nobody holds go
    when the call is over. Lists that they need live in `arena` for the call. */
typedef struct builder {
  ir *ir;
  arena *arena;
  diag *diag;
  struct tn_context *context; /* NULL where there is none: an importer without tensors */
  const node *needed;         /* what refused an operation would be 0 or more; NULL: not said */
} builder;

/** A builder of one result: `options` is whatever the public function hands on. */
typedef value (*build_fn)(builder *b, const value in[], size_t n, const void *options);

/** Carries a public building function out: refuses NULL and invalid operands, takes the context,
    runs `build` under diag_catch, and makes a handle in the innermost scope. A failure's message
    gets the op's name, the operands' types and the label. Some operands may be absent (NULL) where
    `optional` (a set of bits) says so: their node is NULL. */
tn_tensor *tensor_call(const char *op, tn_tensor *const in[], size_t n, uint64_t optional,
                       build_fn build, const void *options);

/** The same for builders with no operand. */
tn_tensor *tensor_call_in(tn_context *context, const char *op, build_fn build, const void *options);

/** The same for several results: `build` fills out[0 … n_out − 1]. */
typedef void (*build_many_fn)(builder *b, const value in[], size_t n, const void *options,
                              value out[], size_t n_out);
void tensor_call_many(tn_context *context, const char *op, tn_tensor *const in[], size_t n,
                      uint64_t optional, build_many_fn build, const void *options, tn_tensor *out[],
                      size_t n_out);

/** Movements: as tensor_call and tensor_call_many with the one operand x. Where x is a state or a
    movement of one, so are the results: `build` is then run on another node of x's type and shape,
    and what it makes of that is what is read of the state's contents from now on. `build` uses
    nothing of its operand but type and shape. */
tn_tensor *tensor_move(const char *op, tn_tensor *x, build_fn build, const void *options);
void tensor_move_many(const char *op, tn_tensor *x, build_many_fn build, const void *options,
                      tn_tensor *out[], size_t n_out);

/** The number of the random call at hand since the seed was set, which is counted; the seed goes to
 *seed. b->context is not NULL. */
uint64_t context_random(builder *b, uint64_t *seed);

/* Sizes: a tn_dim is a number or a variable of the context; inside, an index node. */

/** The index node of a size. What is no size (made by C's operators of a variable, of another
    context, the result of a failed call) raises. Without a context only numbers are sizes. */
const node *dim_node(builder *b, tn_dim d);

/** The size that stands for an index node; the same one each time. */
tn_dim dim_of(builder *b, const node *n);

#endif
