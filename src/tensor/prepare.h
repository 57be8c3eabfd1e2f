/* What of a plan's graph is computed once, when the plan is made (schedule/constants.h). */
#ifndef TENON_TENSOR_PREPARE_H
#define TENON_TENSOR_PREPARE_H

#include "base/map.h"
#include "tensor/plan.h"

typedef struct prepared {
  const node **roots; /* of the graph that is left: the outputs, new contents, labelled nodes */
  map memory;         /* its new BUFFERs → tn_buffer */
  VEC(tn_buffer *) held;
} prepared;

/** Computes it. `n` roots of g->ir; lists live in `work`; raises. What it holds when it raises is
    in `out`, too. */
void prepare_constants(tn_context *c, const plan_graph *g, const node *const roots[], size_t n,
                       arena *work, prepared *out);

void prepare_release(prepared *p);

#endif
