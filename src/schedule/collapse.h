/* Reductions over comparisons of indices become closed forms or single elements. */
#ifndef TENON_SCHEDULE_COLLAPSE_H
#define TENON_SCHEDULE_COLLAPSE_H

#include "schedule/values.h"

/** A reduction of a term over ranges. */
typedef struct collapse_request {
  const map *values; /* tensor → value, of all that the term reads */
  int math;          /* math_mode */
  op reduce;
  const node *term;
  size_t n; /* ranges; never none */
  const node **ranges;
} collapse_request;

/** The term of the same reduction over fewer ranges, which are taken out of `ranges`; over none the
    term is the result. NULL: nothing can be done without. */
const node *schedule_collapse(ir *g, collapse_request *r);

/** Whether an element compares coordinates or computes with them, or reads values that do. */
bool schedule_has_places(ir *g, const map *values, const node *body);

#endif
