/* Runs the builder of an operator, as the public functions do. */
#ifndef TENON_TENSOR_OPS_OP_CALL_H
#define TENON_TENSOR_OPS_OP_CALL_H

#include "tensor/context/builder.h"

/** Builder of one result; `options` come from the public function. */
typedef value (*op_build_fn)(builder *b, const value in[], size_t n, const void *options);

/** Carries a public building function out: refuses NULL and invalid operands, takes the context,
    runs `build` under diag_catch, and makes a handle in the innermost scope. A failure's message
    gets the op's name, the operands' types and the label. Some operands may be absent (NULL) where
    `optional` (a set of bits) says so: their node is NULL. */
tn_tensor *op_call(const char *op, tn_tensor *const in[], size_t n, uint64_t optional,
                   op_build_fn build, const void *options);

/** As op_call, for builders without operands. */
tn_tensor *op_call_in(tn_context *context, const char *op, op_build_fn build, const void *options);

/** As op_call, for several results: `build` fills out[0 … n_out − 1]. */
typedef void (*op_build_many_fn)(builder *b, const value in[], size_t n, const void *options,
                                 value out[], size_t n_out);

void op_call_many(tn_context *context, const char *op, tn_tensor *const in[], size_t n,
                  uint64_t optional, op_build_many_fn build, const void *options, tn_tensor *out[],
                  size_t n_out);

/** Movements: as op_call and op_call_many with the one operand x. Where x is a state or a
    movement of one, so are the results: `build` is then run on another node of x's type and shape,
    and what it makes of that is what is read of the state's contents from now on. `build` uses
    nothing of its operand but type and shape. */
tn_tensor *op_call_movement(const char *op, tn_tensor *x, op_build_fn build, const void *options);

void op_call_movement_many(const char *op, tn_tensor *x, op_build_many_fn build,
                           const void *options, tn_tensor *out[], size_t n_out);

#endif
