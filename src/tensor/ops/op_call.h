/* Calls of public operators: each runs a builder of nodes (operators.h) on the nodes of its
   operands and returns handles of the results. */
#ifndef TENON_TENSOR_OPS_OP_CALL_H
#define TENON_TENSOR_OPS_OP_CALL_H

#include "tensor/context/builder.h"

/** Builder of one result; `options` come from the public function. */
typedef value (*op_build_fn)(builder *b, const value in[], size_t n, const void *options);

/** Calls a public operator: refuses NULL and invalid operands, acquires the context, runs `build`
    under diag_catch, and makes a handle in the innermost scope. The message of a failure begins
    with the op's name and the operands' types, and ends with the label. Operand i may be NULL where
    bit i of `optional` is set: its node is then NULL. */
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

/** As op_call_many, for as many results as operands, which may be on different devices. */
void op_call_across(tn_context *context, const char *op, tn_tensor *const in[], size_t n,
                    op_build_many_fn build_many, const void *options, tn_tensor *out[]);

/** Movements: as op_call and op_call_many with the one operand x. Where x is a state or a movement
    of one, so are the results: `build` runs on x's node over the state's view base, and reads of
    the results substitute the newest version for that. `build` uses nothing of its operand but type
    and shape. */
tn_tensor *op_call_movement(const char *op, tn_tensor *x, op_build_fn build, const void *options);

void op_call_movement_many(const char *op, tn_tensor *x, op_build_many_fn build,
                           const void *options, tn_tensor *out[], size_t n_out);

#endif
