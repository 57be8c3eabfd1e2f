/* The IR verifier: checks that a whole graph is well-formed at its pipeline stage (tensor, kernel,
   lowered, linear). Development builds run it after every pass. */
#ifndef TENON_IR_VERIFY_VERIFY_GRAPH_H
#define TENON_IR_VERIFY_VERIFY_GRAPH_H

#include "base/diag.h"
#include "base/mem.h"
#include "ir/core/ir.h"
#include "ir/core/pass_names.h"

/** Checks a graph of one stage: every node by ir_check_spec and by the stages that ops.def allows
   for its op, and the graph by these laws:

    - tensor: No lanes. The view of a SET is made of its tensor by movements. Each range has one
      LOOP, each CARRY a state of its LOOP; sizes and host functions depend on no loop.
    - kernel: Each range has one binder, which reads no range from outside its own path of open
      ranges. Extents depend on outer ranges only, extents of arrays and of array states not on the
      ranges of their binder. A cut stage is free of ranges. A state is read inside the steps and
      emitted values of its FOLD, with as many coordinates as it has dimensions; no state is in a
      size, in a start, in a term of an op, or in the coordinates of a FOLD's arrays. No vector is
      inside a vector. Only INDEX and OUT use params.
    - lowered: Each range is closed by exactly one END, and nothing is used outside its loop; an
      effect belongs to one loop.
    - linear: Instructions are listed once, after their sources and inside the loops of these; loops
      nest and end. No node is an index. Registers are addressed by constants.

    In each, an id names one RANGE, ALLOC or PARAM. Returns TN_ERR_INTERNAL with the first node that
    breaks a law, as a line of print_graph(roots). Free ranges are known in scratch irs only. */
tn_status verify_graph(const node *const roots[], size_t n, enum stage stage, const mem *m,
                       diag *d);

/** With TENON_VERIFY, raises TN_ERR_INTERNAL with the name of the pass if its result breaks the
    laws of `stage`; does nothing otherwise. */
void verify_after_pass(ir *g, pass after, enum stage stage, const node *const roots[], size_t n);

#endif
