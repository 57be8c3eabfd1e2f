/* Shrinks a failing tensor graph to a small test case, as delta debugging does. */
#ifndef TENON_TESTS_RANDOM_SHRINK_H
#define TENON_TESTS_RANDOM_SHRINK_H

#include "check.h"

/** Whether a graph, which is prepared, fails, and how. */
typedef void (*shrink_check)(void *user, const graph *g, report *r);

/** Replaces the roots of *g, which fails by `check`, by a smaller graph that fails too: roots are
    dropped, nodes replaced by their operands or by leaves, sizes made smaller, as long as something
    is gained and `seconds` last. *r becomes the report of what is left. Raises. */
void shrink(graph *g, shrink_check check, void *user, double seconds, report *r);

#endif
