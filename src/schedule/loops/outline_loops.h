/* Outlines loops: moves the body of each LOOP, the tensor graph's loop with carried states, into a
   graph of its own that is scheduled apart. The graph around it reads the loop's outputs (RESULT
   nodes) as it reads those of a user kernel. */
#ifndef TENON_SCHEDULE_LOOPS_OUTLINE_LOOPS_H
#define TENON_SCHEDULE_LOOPS_OUTLINE_LOOPS_H

#include "schedule/values/normalise.h"

/** A loop whose body is a graph of its own, over PARAMs for the arrays that it reads and writes. */
typedef struct extracted_loop {
  const node *loop; /* the LOOP that it was */
  const node *trip; /* a variable: the number of the trip */
  size_t depth;     /* loops around it */
  normalised body;
  size_t *now, *next; /* slots of each state before and after a trip; equal: changed in place */
  size_t *emits;      /* slots of the emitted arrays */
  size_t *captured; /* slots of the arrays of the graph around it that it reads, beyond the inits */
  size_t n_captured;
  bool *is_written; /* each slot */
} extracted_loop;

/** Takes the outermost LOOPs out of a graph that has `depth` loops around it. */
void loops_extract(ir *g, const schedule_request *r, normalised *n, size_t depth);

/** True if a result is a state that no trip changes: the loop's step leaves it out. */
bool loops_is_invariant(const extracted_loop *p, size_t component);

/** True if a trip may write the array of a PARAM; `user`: its extracted_loop. */
bool loops_may_write(void *user, const node *param);

#endif
