/* What of a plan's graph is computed once, when the plan is made (schedule/constants.h). It is
   found and compiled first, and computed last: memory that compiling takes is free again by then.
 */
#ifndef TENON_TENSOR_PREPARE_H
#define TENON_TENSOR_PREPARE_H

#include "base/map.h"
#include "tensor/plan.h"

typedef struct prepared {
  const node **roots; /* of the graph that is left: the outputs, new contents, labelled nodes */
  map memory;         /* its new BUFFERs → tn_buffer, without contents until prepare_run */
  VEC(tn_buffer *) held;
  execution *execution; /* computes them; NULL: there are none */
  const node **read; /* of each of its buffers: the BUFFER of the old graph that it is, or NULL */
  const plan_graph *graph;
  size_t kernels; /* different ones, that were compiled for it */
} prepared;

/** Finds and compiles it. `n` roots of g->ir; lists live in `work`; raises. What it holds when it
    raises is in `out`, too. Progress is told but for its end, which is not that of the plan. */
void prepare_constants(tn_context *c, const plan_graph *g, const node *const roots[], size_t n,
                       arena *work, prepared *out);

/** Computes it. Leaves that are not read any more are told of (g->was_read) as soon as that is so.
 */
tn_status prepare_run(prepared *p, diag *d);

void prepare_release(prepared *p);

#endif
