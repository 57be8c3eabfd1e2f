/* Checks scalar lifting: turns the scalars that differ between otherwise equal graphs into
   variables of one graph, and compares its results for several sets of values with the reference
   evaluator. */
#ifndef TENON_TESTS_RANDOM_VARYING_H
#define TENON_TESTS_RANDOM_VARYING_H

#include "compiled.h"

/** Changes the scalars of a graph twice, all of them or some, and makes one graph in which those
    that changed are variables. With the scalars of `g` that must be what `e` says, by the
    interpreter; with each of the others what the interpreter says, by the linear programs and, if
    `c` is not NULL, by each compiler. */
void check_varying(compiled *c, const target *t, const graph *g, const expected *e, report *r);

#endif
