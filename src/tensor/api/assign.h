/* Assigns to states. */
#ifndef TENON_TENSOR_API_ASSIGN_H
#define TENON_TENSOR_API_ASSIGN_H

#include "tensor/context/handle.h"

/** Raises TN_ERR_ARGUMENT if a tensor cannot be assigned to: it is no state, or a movement that
    repeats or adds elements. */
void state_check_assignable(builder *b, const tn_tensor *dst);

/** Assigns a node, converted to the type of `dst` and broadcast to its shape. Raises. */
void state_assign(builder *b, const tn_tensor *dst, const node *value);

#endif
