/* Generates random valid tensor graphs from a seed, the inputs of the differential tests. */
#ifndef TENON_TESTS_RANDOM_GENERATE_H
#define TENON_TESTS_RANDOM_GENERATE_H

#include "graph.h"

/** Generates the graph of a seed: sets the seed, roots and math mode of *g, whose ir and arena are
    set. Raises. */
void generate(graph *g, uint64_t seed);

/** True if an op's results may differ between stages within a tolerance: functions of the C
    library, sums and products of floats as reductions, and sums where contraction is allowed. */
bool is_approximate(const node *n, int math);

#endif
