/* Scopes. */
#ifndef TENON_TENSOR_SCOPE_H
#define TENON_TENSOR_SCOPE_H

#include "tensor/context.h"

/** Puts a handle into a list (of a scope, or of owned tensors), or takes it out of its list. */
void scope_add(handle_list *l, tn_tensor *t);
void scope_remove(tn_tensor *t);

/** The handle no longer waits to be realised at the end of a scope. */
void scope_stay(tn_tensor *t);

/** The scopes that are open stay open until scope_end_to_floor. Returns the floor that was. */
scope_floor scope_set_floor(tn_context *c);

/** Ends the scopes begun since, and puts the floor back that was. False where there were any. */
bool scope_end_to_floor(tn_context *c, scope_floor before);

/** Frees all scopes and handles of a context, without running anything. */
void scope_free_all(tn_context *c);

#endif
