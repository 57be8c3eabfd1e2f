/* Estimates the costs of kernels of a build by the predicted time of their schedules, and remembers
   what searches found, so that code generation does not search again. */
#ifndef TENON_RUNTIME_KERNEL_COSTS_H
#define TENON_RUNTIME_KERNEL_COSTS_H

#include "base/block_cache.h"
#include "base/map.h"
#include "ir/core/ir.h"
#include "target/target.h"

/** The costs of one build. Not moved. */
typedef struct kernel_costs {
  ir *g; /* of the kernels */
  const target *target;
  int math;           /* math_mode */
  block_cache blocks; /* of the irs of predictions */
  map found;          /* kernel → decision_list of its searched schedule */
} kernel_costs;

void kernel_costs_init(kernel_costs *p, ir *g, const target *t, int math);
void kernel_costs_free(kernel_costs *p);

/** The predicted ns of a kernel of the ir, on the device that the costs are of, with the schedule
   that a search finds or with the steps' own decisions; as kernel_estimates has it, with a
   kernel_costs as `user`. */
double kernel_costs_estimate(void *user, size_t device, const node *kernel, bool is_searched);

#endif
