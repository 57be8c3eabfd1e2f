/* Checks exact variants: graphs with numbers in place of the variables of sizes. */
#ifndef TENON_TESTS_RANDOM_EXACT_H
#define TENON_TESTS_RANDOM_EXACT_H

#include "compiled.h"

/** Copies a graph with the values of its sizes as numbers, as plans do for exact variants. The
    results must be `e`, by the linear programs and, if `c` is not NULL, by each compiler. Does
    nothing for a graph without variable sizes. */
void check_exact(compiled *c, const target *t, const graph *g, const expected *e, report *r);

#endif
