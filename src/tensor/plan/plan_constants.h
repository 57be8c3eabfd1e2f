/* Constant folding of a variant: the parts of its graph that depend on constant inputs alone
   (schedule/values/constant_folding.h) are computed once, when the variant is built. They are found
   and compiled first, and computed last, when the memory that compiling takes is free again. */
#ifndef TENON_TENSOR_PLAN_PLAN_CONSTANTS_H
#define TENON_TENSOR_PLAN_PLAN_CONSTANTS_H

#include "runtime/execution.h"
#include "tensor/plan/plan_variant.h"
#include "tensor/plan/weight_reads.h"

typedef struct new_constant {
  str key;
  tn_buffer *memory;
} new_constant;

typedef struct plan_constants {
  const node **roots; /* of the remaining graph */
  map memory;         /* its new BUFFER → tn_buffer, without contents until plan_constants_run */
  VEC(tn_buffer *) retained;
  VEC(shared_constant *) shared; /* with a reference each */
  VEC(new_constant) made;        /* to be shared once they are computed */
  execution *execution;          /* computes the constants; NULL: there are none */
  weight_reads reads;            /* of the execution */
  size_t n_buffers;              /* of the execution */
  const atomic_bool *background; /* set when computing in the background has to stop; NULL: the
                                    caller waits, and its progress may cancel loops */
  tn_plan *plan;
  arena *work;      /* of the graph */
  size_t n_kernels; /* different ones, compiled for the constants */
} plan_constants;

/** Finds the constants of a graph with `n` roots of `g`, a copy of the plan's, and compiles those
   that no variant has. Lists live in the arena of `g`. Raises; `out` holds what was acquired until
   then. Reports progress except for its end, as the variant itself is still to be compiled. */
void plan_constants_build(tn_plan *p, ir *g, const node *const roots[], size_t n,
                          const atomic_bool *background, plan_constants *out);

/** Computes the constants, and has the plan's file drop each value's pages as soon as the value is
    not read any more. */
tn_status plan_constants_run(plan_constants *p, diag *d);

void plan_constants_release(plan_constants *p);

#endif
