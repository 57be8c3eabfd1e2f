/* Fills the compiler settings of a context into a request to build an executable
   (runtime/build_request.h), so that evaluation and plans compile alike. */
#ifndef TENON_TENSOR_CONTEXT_FILL_BUILD_REQUEST_H
#define TENON_TENSOR_CONTEXT_FILL_BUILD_REQUEST_H

#include "runtime/build_request.h"
#include "tensor/context/context.h"

/** A request for the nodes `roots`, with the context's target, math mode, dumps, disk cache, tuned
    schedules, logger and progress callback. */
executable_request context_executable_request(tn_context *c, const char *name,
                                              const node *const roots[], size_t n_roots);

#endif
