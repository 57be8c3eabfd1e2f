/* Prices kernels of a build by the predicted time of their schedules, and remembers what searches
   found, so that code generation does not search again. */
#ifndef TENON_RUNTIME_KERNEL_PRICES_H
#define TENON_RUNTIME_KERNEL_PRICES_H

#include "base/block_cache.h"
#include "base/map.h"
#include "ir/core/ir.h"
#include "target/target.h"

/** The prices of one build. Not moved. */
typedef struct kernel_prices {
  ir *g; /* of the kernels */
  const target *target;
  int math;           /* math_mode */
  block_cache blocks; /* of the irs of predictions */
  map found;          /* kernel → decision_list of its searched schedule */
} kernel_prices;

void kernel_prices_init(kernel_prices *p, ir *g, const target *t, int math);
void kernel_prices_free(kernel_prices *p);

/** The predicted ns of a kernel of the ir, on the device that the prices are of, with the schedule
   that a search finds or with the steps' own decisions; as kernel_pricing has it, with a
   kernel_prices as `user`. */
double kernel_prices_price(void *user, size_t device, const node *kernel, bool is_searched);

#endif
