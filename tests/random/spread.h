/* Spreads the nodes of a random graph over devices. */
#ifndef TENON_TESTS_RANDOM_SPREAD_H
#define TENON_TESTS_RANDOM_SPREAD_H

#include "graph.h"
#include "random.h"

/** Devices of graphs that are spread: 0 … SPREAD_DEVICES − 1. */
enum { SPREAD_DEVICES = 3 };

/** Rebuilds the roots of a graph with some BUFFERs on other devices, and a TO wherever an operand
    is not on the device of its reader. Loops run on one device. Raises. */
void spread(graph *g, rng *r);

#endif
