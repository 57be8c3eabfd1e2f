/* Intervals of integers: what is known of an index or an integer. Ends that 64 bits can't hold
   become BOUND_LOW or BOUND_HIGH, which also stand for no end. */
#ifndef TENON_IR_INTERVAL_H
#define TENON_IR_INTERVAL_H

#include "ir/node.h"

/** From lo to hi, both included. */
typedef struct interval {
  int64_t lo, hi;
} interval;

/** What a node's bounds say; those of a type; whether a type holds all of an interval (true for
    none that has no end). Types without integers have no bounds. */
static inline interval node_interval(const node *n) { return (interval){n->lo, n->hi}; }
interval interval_of_type(dtype t);
bool interval_fits(interval a, dtype t);

/** The values of an op whose operands lie in a and b. Divisors are at least 1. */
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

/** The values of either; those of a loop over `extent`: 0 … extent − 1. */
interval interval_join(interval a, interval b);
interval interval_below(interval extent);

/** Division rounding towards −∞; the divisor is not 0. */
int64_t floor_div(int64_t a, int64_t b);
int64_t floor_mod(int64_t a, int64_t b);

#endif
