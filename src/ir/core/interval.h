/* Interval arithmetic (range analysis) on the bounds of index and integer nodes. An end that 64
   bits cannot hold becomes BOUND_LOW or BOUND_HIGH, the marks of an unbounded side. */
#ifndef TENON_IR_CORE_INTERVAL_H
#define TENON_IR_CORE_INTERVAL_H

#include "ir/core/node.h"

/** lo … hi, both inclusive. */
typedef struct interval {
  int64_t lo, hi;
} interval;

/** The bounds of a node; the bounds of a type, unbounded for types that are no integers; true if
    the interval is bounded and a type holds all of it. */
static inline interval node_interval(const node *n) { return (interval){n->lo, n->hi}; }
interval interval_of_type(dtype t);
bool interval_fits(interval a, dtype t);

/** Bounds of the result of an op whose operands lie in a and b. Divisors are at least 1. */
interval interval_add(interval a, interval b);
interval interval_sub(interval a, interval b);
interval interval_scale(interval a, int64_t by);
interval interval_mul(interval a, interval b);
interval interval_floordiv(interval a, interval b);
interval interval_mod(interval a, interval b);
interval interval_cdiv(interval a, interval b);
interval interval_cmod(interval a, interval b);
interval interval_min(interval a, interval b);
interval interval_max(interval a, interval b);

/** The hull of two intervals; the indices of a loop over `extent`, 0 … extent − 1. */
interval interval_hull(interval a, interval b);
interval interval_of_extent(interval extent);

/** Division rounding towards −∞; the divisor is not 0. */
int64_t floor_div(int64_t a, int64_t b);
int64_t floor_mod(int64_t a, int64_t b);

/** The greatest common divisor, at least 0; gcd(a, 0) = |a|. */
int64_t greatest_common_divisor(int64_t a, int64_t b);

#endif
