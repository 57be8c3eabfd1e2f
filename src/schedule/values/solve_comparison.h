/* Solves comparisons of integers for one of the ranges (loop indices) in them: a comparison holds
   at one index, or between two, or nowhere. */
#ifndef TENON_SCHEDULE_VALUES_SOLVE_COMPARISON_H
#define TENON_SCHEDULE_VALUES_SOLVE_COMPARISON_H

#include "ir/core/node.h"

typedef struct ir ir;

/** The solution of a comparison, which holds exactly where `gate` holds (NULL: always) and the
   range equals `first`, or, if `last` is not NULL, lies in `first` (NULL: 0) … `last` − 1; the
   opposite if `is_negated`. `first` and `last` do not depend on the range, and first ≤ last. */
typedef struct solution {
  const node *gate, *first, *last;
  bool is_negated;
} solution;

/** True if a node is LT, LE, EQ or NE of integers or indices, and depends on a range. */
bool solve_is_solvable(const node *n, const node *range);

/** Solves such a comparison. False: no solution is found, for instance as it may wrap around. */
bool solve_comparison(ir *g, const node *n, const node *range, solution *s);

/** An index that always equals an integer expression; NULL: none is found, for instance as the
    expression may wrap around. Operands that depend on the range are converted as far as possible.
 */
const node *solve_index(ir *g, const node *n, const node *range);

/** a = b as a boolean, constant where bounds decide it. */
const node *solve_equal(ir *g, const node *a, const node *b);

/** True if an index and its coefficients are so small that sums and products of two such indices
   fit in 64 bits. */
bool solve_is_small(const node *index);

#endif
