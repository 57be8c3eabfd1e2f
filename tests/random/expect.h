/* Computes the expected values of a graph's roots with the reference evaluator (interpreter) of
   tensor graphs, and for each element an error bound: how far the result of compiled code may
   differ.

   The bound is 0 where no node behind an element is approximate (generate.h): then bits must be
   equal (any NaN equals any NaN). Else it follows from the tolerances of approximate nodes by
   first-order propagation: each op is evaluated at both ends of its operands' intervals. Where that
   is inconclusive (an integer that depends on a rounded value, a possible overflow) the bound is
   infinite and the element is not compared; such elements are counted. */
#ifndef TENON_TESTS_RANDOM_EXPECT_H
#define TENON_TESTS_RANDOM_EXPECT_H

#include "graph.h"

typedef struct expected {
  interp_array value;
  const double *bound; /* by element; NULL: 0 everywhere */
} expected;

/** Computes the expectations of a graph's roots, in its arena. Raises. */
const expected *expect(const graph *g);

/** Returns the first element outside of its bound, or SIZE_MAX. */
size_t expect_differs(const expected *e, const void *data);

/** Number of elements compared, and of those with an infinite bound, since the program began. */
typedef struct expect_counts {
  uint64_t exact, bounded, unknown;
} expect_counts;
extern expect_counts expect_counted;

/** True if two scalars have the same bits, or are both NaN. */
bool same_scalar(dtype t, uint64_t a, uint64_t b);

#endif
