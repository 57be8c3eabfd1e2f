/* What a comparison of integers says of one of the ranges in it. */
#ifndef TENON_SCHEDULE_SOLVE_H
#define TENON_SCHEDULE_SOLVE_H

#include "ir/node.h"

typedef struct ir ir;

/** A comparison holds exactly where `gate` does (NULL: always) and the range is `first`, or, if
    `last` is not NULL, where it is in `first` (NULL: from its start) … `last` − 1; or exactly where
    this is not so. The indices are free of the range, and first ≤ last. */
typedef struct solution {
  const node *gate, *first, *last;
  bool is_inverse;
} solution;

/** Whether a node is LT, LE, EQ or NE of integers or indices, and depends on a range. */
bool solve_is_comparison(const node *n, const node *range);

/** Solves such a comparison. False: it is not known what it says, be it that it may wrap around. */
bool solve_comparison(ir *g, const node *n, const node *range, solution *s);

/** An integer expression as the index that it always equals; NULL: none is known, be it that the
    expression may wrap around. What depends on the range is taken apart as far as it goes. */
const node *solve_index(ir *g, const node *n, const node *range);

/** a = b as a boolean, folded where that is known. */
const node *solve_equal(ir *g, const node *a, const node *b);

/** Whether an index and what it is made of are so small that sums and products of two such are
    known to fit in 64 bits. */
bool solve_is_small(const node *index);

#endif
