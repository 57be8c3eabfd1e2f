/* What realising compiled, for graphs that are the same but for the buffers they read: a loop
   compiles its step once. Bounded, and dropped where memory runs out; what is dropped gives its
   programs back. */
#ifndef TENON_TENSOR_EXECUTABLE_CACHE_H
#define TENON_TENSOR_EXECUTABLE_CACHE_H

#include "ir/topo.h"
#include "runtime/executable.h"
#include "tensor/context.h"

/** A graph to be run. */
typedef struct executable_ask {
  const node *const *roots;
  size_t n_roots;
  const node_list *order; /* the graph, sources first */
  bool (*may_overwrite)(void *user, const node *buffer);
  void *user;
} executable_ask;

/** An executable for it, held for the caller; and its buffer of each of the graph's BUFFERs, in
    `order`'s order (SIZE_MAX: not read), allocated in the context's arena. Failures are set in the
    context's diag. */
tn_status executable_cache_get(tn_context *c, const executable_ask *a, executable **out,
                               size_t **inputs);

void executable_cache_free(tn_context *c);

#endif
