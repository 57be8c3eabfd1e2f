/* Evaluates scalar expressions (one or two roots over the same inputs: PARAMs of rank 0 and VARs)
   for many inputs, op by op as scalar_eval defines them. Prepared once, so that a run is a loop
   over the nodes in topological order. */
#ifndef TENON_TESTS_RULES_EVALUATE_H
#define TENON_TESTS_RULES_EVALUATE_H

#include "ir/core/topo_sort.h"

enum { MOST_INPUTS = 8 };

typedef struct program {
  node_list order;
  uint32_t *source; /* positions of the sources of all nodes, one after the other */
  uint64_t *value;  /* of each node */
  const node *input[MOST_INPUTS];
  size_t position[MOST_INPUTS];
  size_t inputs, root[2], roots;
} program;

/** Prepares at most two roots, in the arena. */
program program_make(arena *a, const node *const roots[], size_t n);

/** Evaluates for some inputs; results are read by program_result. False if an index overflowed. */
bool program_run(program *p, const uint64_t inputs[]);
static inline uint64_t program_result(const program *p, size_t root) {
  return p->value[p->root[root]];
}

/** True if a node is an input. Inputs are numbered by slot. */
bool is_input(const node *n);

/** Edge cases of a type: zeros, ones, extremes, infinities, NaN, subnormals, halves. Returns their
    number. */
size_t edge_values(dtype t, uint64_t out[64]);

/** A random value of a type: random bits; for floats often one of moderate size. */
uint64_t random_value(dtype t, uint64_t *state);

/** Returns the distance of two floats of a type in units in the last place; 0 for two NaNs; huge
    for a NaN and a number. */
uint64_t ulp_distance(dtype t, uint64_t a, uint64_t b);

#endif
