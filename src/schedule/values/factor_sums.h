/* Factors loop-invariant terms, such as the divisor of a softmax, out of sums: Σ(x/y) becomes
   (Σx)/y. */
#ifndef TENON_SCHEDULE_VALUES_FACTOR_SUMS_H
#define TENON_SCHEDULE_VALUES_FACTOR_SUMS_H

#include "schedule/values/value.h"

/** Rewrites Σ(x·y) and Σ(x/y) as (Σx)·y and (Σx)/y, where that is safe and saves operations. */
void factor_sums(ir *g, values *v);

#endif
