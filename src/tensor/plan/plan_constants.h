/* Constant folding of a plan: the parts of its graph that depend on constant inputs alone
   (schedule/values/constant_folding.h) are computed once, when the plan is built. They are found
   and compiled first, and computed last, when the memory that compiling takes is free again. */
#ifndef TENON_TENSOR_PLAN_PLAN_CONSTANTS_H
#define TENON_TENSOR_PLAN_PLAN_CONSTANTS_H

#include "base/map.h"
#include "tensor/plan/plan.h"

typedef struct plan_constants {
  const node **roots; /* of the remaining graph: the outputs, new contents, labelled nodes */
  map memory;         /* its new BUFFER → tn_buffer, without contents until plan_constants_run */
  VEC(tn_buffer *) retained;
  execution *execution; /* computes the constants; NULL: there are none */
  const node **read;    /* by buffer of the execution: the BUFFER of the old graph, or NULL */
  const plan_graph *graph;
  size_t n_kernels; /* different ones, compiled for the constants */
} plan_constants;

/** Finds and compiles the constants of a graph with `n` roots of g->ir. Lists live in `work`.
   Raises; `out` holds what was acquired until then. Reports progress except for its end, as the
   plan itself is still to be compiled. */
void plan_constants_build(tn_context *c, const plan_graph *g, const node *const roots[], size_t n,
                          arena *work, plan_constants *out);

/** Computes the constants, and calls g->on_last_read for each input as soon as it is not read any
    more. */
tn_status plan_constants_run(plan_constants *p, diag *d);

void plan_constants_release(plan_constants *p);

#endif
