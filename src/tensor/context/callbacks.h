/* The caller's functions (allocator, workers, logger, progress, destructors). Each call is recorded
   as a visit of its context and of the shared kernel cache (base/reentrancy.h), so that what the
   function calls in turn is refused instead of waiting for its own thread. */
#ifndef TENON_TENSOR_CONTEXT_CALLBACKS_H
#define TENON_TENSOR_CONTEXT_CALLBACKS_H

#include "base/mem.h"
#include "base/reentrancy.h"

#include <tenon/context.h>

/** Callbacks of a descriptor, whose payloads the context owns. */
typedef struct callbacks {
  tn_allocator allocator;
  tn_workers workers;
  tn_logger logger;
  tn_progress progress;
} callbacks;

/** A callback that is being called. */
typedef struct callback {
  reentrancy_entry of_context,
      of_registry; /* of the context and of the registry that contexts share */
} callback;

/** Begins and ends a call of a caller's function by the calling thread; `c` may be NULL. */
void callback_begin(callback *k, tn_context *c, reentrancy_kind kind);
void callback_end(callback *k);

/** Takes over the callbacks of a descriptor: the context's own functions call them. */
void callbacks_install(tn_context *c, const tn_open_desc *o);

/** Gives a payload back through `destroy`; NULL: nobody wants it. */
void callbacks_destroy_payload(tn_context *c, void (*destroy)(void *user), void *user);

#endif
