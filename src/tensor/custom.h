/* Custom operations: functions of the host, and kernels of the caller's, as nodes.

   A kernel is a KERNEL node for each of its results (ir/kernel.h). A function is one CUSTOM node.
   Its inputs are the caller's, and after these, as rank-0 i64 tensors, the sizes that vary. Its
   result is the only output, or all of them one after another in one row: of their type, if they
   have one, else of bytes that expressions put together. States that it writes are outputs too,
   which are then assigned. */
#ifndef TENON_TENSOR_CUSTOM_H
#define TENON_TENSOR_CUSTOM_H

#include "ir/topo.h"
#include "runtime/executable.h"
#include "tensor/context.h"

/** A caller's function, counted: by its leaf and by plans. */
typedef struct custom_host custom_host;

custom_host *custom_hold(custom_host *h);
void custom_drop(custom_host *h); /* NULL is allowed */

/** The host functions behind the CUSTOM nodes of a graph, as an executable asks for them; absent if
   there are none. Failures are set in the context's diag. */
tn_status custom_host_of(tn_context *c, const node_list *order, executable_host *out);

#endif
