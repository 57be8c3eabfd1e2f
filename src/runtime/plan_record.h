/* Serialises executables for the disk cache. A record names buffers and CUSTOM nodes by their
   position in the graph, and kernels by the keys of their code records; values that follow from
   these are not written. */
#ifndef TENON_RUNTIME_PLAN_RECORD_H
#define TENON_RUNTIME_PLAN_RECORD_H

#include "compile/cache_keys.h"
#include "ir/core/topo_sort.h"
#include "runtime/executable.h"

/** The graph of a request as records refer to it. */
typedef struct plan_cache_graph {
  cache_key key;
  node_list buffers, customs; /* BUFFERs and CUSTOMs in the order that numbers them */
} plan_cache_graph;

/** Appends an executable's record. */
void plan_record_write(str *to, const executable *p, const executable_request *r,
                       const plan_cache_graph *g);

/** Reads a record into an executable of which only the arena and the targets are set. False for
   bytes that cannot be an executable of that request: numbers out of range, wrong dtypes, buffers
   used outside their live ranges, kernels launched with other arguments than they take. `records`
   are in `work`, and point into `work` and `data`. Raises TN_ERR_MEMORY. */
bool plan_record_read(executable *p, const executable_request *r, const plan_cache_graph *g,
                      const void *data, size_t bytes, arena *work, program_record **records,
                      size_t *n_records);

#endif
