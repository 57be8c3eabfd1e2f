/* Cache of the executables that realising compiled, keyed by the structure of their graphs: graphs
   may differ in the buffers they read and in scalars. A graph that differs from a cached one in
   scalars alone is compiled once more with those scalars as variables (lifted_scalars.h), so that a
   loop compiles its step twice. Bounded in entries and bytes; least recently used entries go first,
   and all go when memory runs out. */
#ifndef TENON_TENSOR_EVAL_EXECUTABLE_CACHE_H
#define TENON_TENSOR_EVAL_EXECUTABLE_CACHE_H

#include "ir/core/topo_sort.h"
#include "runtime/executable.h"
#include "tensor/context/context.h"

/** A graph to be run. */
typedef struct executable_cache_request {
  const node *const *roots;
  size_t n_roots;
  const node_list *order; /* the graph, sources first */
  bool (*may_overwrite)(void *user, const node *buffer);
  void *user;
} executable_cache_request;

/** An executable for the graph. Lists are in the context's arena. */
typedef struct executable_cache_result {
  executable *executable; /* retained for the caller */
  executable_host host;   /* the graph's host functions, for executions; the caller releases it */
  size_t *inputs;  /* the executable's buffer of each BUFFER of the graph, in `order`'s order;
                      SIZE_MAX: it is not read */
  size_t *vars;    /* the executable's variable of each lifted scalar; SIZE_MAX: not read */
  int64_t *values; /* of the lifted scalars in this graph */
  size_t n_vars;
} executable_cache_result;

/** Finds or compiles an executable. A failure is set in the context's diag, and `executable` is
   NULL then. */
tn_status executable_cache_get(tn_context *c, const executable_cache_request *request,
                               executable_cache_result *out);

void executable_cache_free(tn_context *c);

#endif
