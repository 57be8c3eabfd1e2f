/* What realising compiled, for graphs that are the same but for the buffers they read and for
   scalars: a loop compiles its step once, and once more when a scalar is another for the first
   time, with all that have differed so far as variables. Bounded, and dropped where
   memory runs out; what is dropped gives its programs back. */
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

/** An executable for it. Lists are in the context's arena. */
typedef struct executable_answer {
  executable *made;     /* held for the caller */
  executable_host host; /* the graph's functions, for executions; the caller's to release */
  size_t *inputs; /* its buffer of each of the graph's BUFFERs, in `order`'s order; SIZE_MAX: it is
                     not read */
  size_t *vars;   /* variables of the executable, and what they are in this graph */
  int64_t *values;
  size_t n_vars;
} executable_answer;

/** On failure, which is set in the context's diag, `made` is NULL. */
tn_status executable_cache_get(tn_context *c, const executable_ask *a, executable_answer *out);

void executable_cache_free(tn_context *c);

#endif
