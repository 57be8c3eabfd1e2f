/* Collapses reductions over comparisons of indices (arange, one-hot, triangular masks, gathers) to
   closed forms or single elements. */
#ifndef TENON_SCHEDULE_VALUES_COLLAPSE_REDUCTION_H
#define TENON_SCHEDULE_VALUES_COLLAPSE_REDUCTION_H

#include "schedule/values/value.h"

/** A reduction of a term over ranges. */
typedef struct collapse_request {
  const map *values; /* tensor → value, of all that the term reads */
  int math;          /* math_mode */
  op reduce;
  const node *term;
  size_t n; /* ranges; never none */
  const node **ranges;
} collapse_request;

/** The term of the same reduction over fewer ranges; those removed are taken out of `ranges`. Once
    none is left, the term is the result. NULL: no range can be removed. */
const node *collapse_reduction(ir *g, collapse_request *r);

#endif
