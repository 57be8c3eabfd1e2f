/* Checks scalar lifting: turns the scalars that differ between otherwise equal graphs into
   variables of one graph, and compares its results for several sets of values with the reference
   evaluator. */
#ifndef TENON_TESTS_RANDOM_VARYING_H
#define TENON_TESTS_RANDOM_VARYING_H

#include "compiled.h"

/** Changes all or some scalars of a graph twice, and builds one graph in which the changed ones are
    variables. With the scalars of `g` its results must be `e`; with each of the others those of the
    interpreter, by the linear programs and, if `c` is not NULL, by each compiler. */
void check_varying(compiled *c, const target *t, const graph *g, const expected *e, report *r);

#endif
