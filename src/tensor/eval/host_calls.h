/* The host functions of a graph, called as steps of its executable. */
#ifndef TENON_TENSOR_EVAL_HOST_CALLS_H
#define TENON_TENSOR_EVAL_HOST_CALLS_H

#include "ir/core/topo_sort.h"
#include "runtime/executable.h"
#include "tensor/context/context.h"

/** The host functions behind the CUSTOM nodes of a graph, which an executable calls by uid: the
    nodes' own, or for an executable made of an equal graph the `uids` there, in `order`'s order
    (NULL: their own). Empty if there are none. Failures are set in the context's diag. */
tn_status host_calls_of_graph(tn_context *c, const node_list *order, const int64_t uids[],
                              executable_host *out);

#endif
