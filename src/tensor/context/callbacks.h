/* Installs and calls user callbacks (allocator, workers, logger, progress, tracer,
   destructors). Each
   call is registered with the context and the device registry (base/reentrancy.h), so that
   reentrant API calls fail instead of deadlocking. */
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
  tn_tracer tracer;
} callbacks;

/** A callback that is being called. */
typedef struct callback {
  reentrancy_entry of_context;  /* visit of the context */
  reentrancy_entry of_registry; /* visit of the registry, which contexts may share */
} callback;

/** Begins and ends a call of a caller's function by the calling thread; `c` may be NULL. */
void callback_begin(callback *k, tn_context *c, reentrancy_kind kind);
void callback_end(callback *k);

/** Takes over the callbacks of a descriptor: the context's own functions call them. */
void callbacks_install(tn_context *c, const tn_open_desc *o);

/** Destroys a payload by the caller's function; NULL: it has none. */
void callbacks_destroy_payload(tn_context *c, void (*destroy)(void *user), void *user);

#endif
