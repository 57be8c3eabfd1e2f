/* Shrinks a failing tensor graph to a small test case, as delta debugging does. */
#ifndef TENON_TESTS_RANDOM_SHRINK_H
#define TENON_TESTS_RANDOM_SHRINK_H

#include "check.h"

/** Checks a prepared graph; the report says whether and how it fails. */
typedef void (*shrink_check)(void *user, const graph *g, report *r);

/** Replaces the roots of *g, which fails `check`, by a smaller graph that fails too: drops roots,
    replaces nodes by operands or BUFFERs, and reduces sizes, as long as that makes progress and
    `seconds` last. *r becomes the report of the result. Raises. */
void shrink(graph *g, shrink_check check, void *user, double seconds, report *r);

#endif
