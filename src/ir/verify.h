/* The laws of the stages (6-kernels: "Place"; ir.h: one node). */
#ifndef TENON_IR_VERIFY_H
#define TENON_IR_VERIFY_H

#include "base/diag.h"
#include "base/mem.h"
#include "ir/node.h"

/** Checks a graph of one stage: every node by ir_check and ops.def's column of stages, and

    tensor   scalars only; a SET's view comes from its tensor by movements.
    kernel   every range has exactly one binder, which reads no range from outside its own path of
             open ranges; extents depend on outer ranges only, those of an array and of an array
             state not on its binder's; a cut stage is free of ranges; a state is read inside its
             fold's steps and emitted values, with as many coordinates as it has dimensions; no
             state is in a size, in a start, in a term of an op, or in the coordinates of what a
             fold writes;
             no vector inside a vector; params are read and written by index and out alone.
    lowered  every range is closed by exactly one end, and nothing is used outside its loop.
    linear   instructions are listed once, after what they use, and inside its loop; loops nest and
             end; no index is left; registers are addressed by constants.

    Of each range or alloc number there is one node. TN_ERR_INTERNAL, and the message has the
    line of the node as print_graph(roots) prints it. Free ranges are known in scratch irs only. */
tn_status verify(const node *const roots[], size_t n, enum stage stage, const mem *m, diag *d);

#endif
