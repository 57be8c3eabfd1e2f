/* The caller's functions, each called as a visit of its context (base/visit.h), so that what it
   calls in turn is refused and does not wait for what called it. */
#ifndef TENON_TENSOR_CALLBACKS_H
#define TENON_TENSOR_CALLBACKS_H

#include "base/mem.h"
#include "base/visit.h"

#include <tenon/context.h>

/** Those of a descriptor, whose payloads the context owns. */
typedef struct callbacks {
  tn_allocator allocator;
  tn_workers workers;
  tn_logger logger;
  tn_progress progress;
} callbacks;

/** A call of such a function: of its context, and of the kernels that contexts share. */
typedef struct callback {
  visit of_context, of_kernels;
} callback;

/** `c` NULL: of none. */
void callback_begin(callback *k, tn_context *c, visit_kind kind);
void callback_end(callback *k);

/** Takes a descriptor's: the context's own call them. */
void callbacks_take(tn_context *c, const tn_open_desc *o);

/** Gives a payload back; `destroy` NULL: to nobody. */
void callbacks_destroy(tn_context *c, void (*destroy)(void *user), void *user);

#endif
