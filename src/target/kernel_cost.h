/* Cost model of a scheduled kernel: predicts the time of one thread from the summary of its loops
   and accesses. A loop costs the most of its arithmetic, loads, stores, issue slots and dependent
   steps; a level of the memory costs the bytes that go through it divided by its bandwidth. All
   of these overlap: the time is a norm of them, near the largest one, and a share of the time of
   data from far away, which prefetching does not hide. */
#ifndef TENON_TARGET_KERNEL_COST_H
#define TENON_TARGET_KERNEL_COST_H

#include "target/kernel_summary.h"

enum { COST_LEVELS = 3 };

/** Terms of a prediction; times in ns. */
typedef struct kernel_cost {
  double core;                /* instructions, with all data in the first cache */
  double memory[COST_LEVELS]; /* data from beyond the first, second and last cache */
  double total;
  double imbalance; /* instructions of the slowest of as many threads as there are cores, over an
                       equal share: 1 or more */
} kernel_cost;

/** The time that searches compare, in ns: the mean of one thread alone, and of all cores times
   their number. */
double kernel_cost_searched(const kernel_cost *c);

/** The predicted cost of a kernel. `a`: for scratch memory, which raises. */
kernel_cost kernel_cost_of(arena *a, const kernel_summary *s, const target *t);

#endif
