/* The nodes behind handles: of a state the newest version, of a value its node. They are apart from
   context/handle.h, which does not know of states. */
#ifndef TENON_TENSOR_STATE_HANDLE_NODE_H
#define TENON_TENSOR_STATE_HANDLE_NODE_H

#include "tensor/context/handle.h"

/** Makes a new handle a state, or a movement of one; retains both arguments. */
void handle_set_state(tn_tensor *t, state_record *of, const node *over_base);

/** Frees a handle, whether a scope or the caller owns it. */
void handle_free(tn_tensor *t);

/** The node that reads a handle now: of a state its newest version. Raises. */
const node *handle_node(builder *b, const tn_tensor *t);

/** As handle_node; a weak scalar has its own type, f32 or i64. */
const node *handle_typed_node(builder *b, const tn_tensor *t);

#endif
