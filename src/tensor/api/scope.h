/* Scopes of tensors (scope.c) and deferred releases (ownership.c), for contexts and loop bodies. */
#ifndef TENON_TENSOR_API_SCOPE_H
#define TENON_TENSOR_API_SCOPE_H

#include "tensor/context/context.h"

/** Keeps the scopes that are open from being ended until scope_end_to_floor. Returns the floor
    before. */
scope_floor scope_set_floor(tn_context *c);

/** Ends the scopes that were begun since, and restores the floor before. False if there were any.
 */
bool scope_end_to_floor(tn_context *c, scope_floor before);

/** Frees all scopes and handles of a context, without running anything. */
void scope_free_all(tn_context *c);

/** Carries out the releases of tensors that were deferred while the context was in use. */
void scope_release_deferred(tn_context *c);

#endif
