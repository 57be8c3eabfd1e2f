/* Matches patterns in the terms of reductions, for factoring and online softmax: splits a term into
   factors, through values that are computed where they are read, and recognises powers e^(s − max
   s) among them. */
#ifndef TENON_SCHEDULE_VALUES_REDUCTION_TERM_H
#define TENON_SCHEDULE_VALUES_REDUCTION_TERM_H

#include "schedule/values/value.h"

enum { TERM_MOST_FACTORS = 8, TERM_MOST_OPENED = 32 };

/** A factor or divisor of a product. */
typedef struct term_factor {
  const node *at; /* NULL: it was taken out */
  bool divides;
  size_t split_from; /* the factor that was its left-hand side; of factor 0: none */
} term_factor;

/** A product, none of whose factors is a product again, with the grouping of the source: factor i
    was the right-hand side of a product or quotient whose left-hand side is in split_from. */
typedef struct term_product {
  term_factor at[TERM_MOST_FACTORS];
  size_t n;
  size_t first; /* this factor's side comes first in each product that it is in */
} term_product;

/** Splits a term into factors; false: it has too many. */
bool term_split_factors(ir *g, const values *v, const node *term, term_product *to);

/** The expression of a product, grouped as in the source, without the factors that were taken out;
    a missing numerator is 1. NULL: all factors were taken out. */
const node *term_build(ir *g, dtype t, const term_product *p);

/** e^(scale · (s − m)), or 2^…, where m is the maximum of s over the ranges of a reduction. */
typedef struct term_power {
  op base;           /* OP_EXP or OP_EXP2 */
  const node *scale; /* a positive constant; NULL: 1 */
  value *most;       /* m, a reduction */
  const node *m;     /* the INDEX by which m is read */
} term_power;

/** True if an expression is such a power, for the reduction `t` of which it is a factor. */
bool term_match_power(ir *g, const values *v, const value *t, const node *x, term_power *to);

/** The power with another difference as its exponent. */
const node *term_make_power(ir *g, const term_power *p, const node *difference);

/** The body behind an INDEX of an elementwise value, at its indices; NULL: x is no such INDEX. */
const node *term_inline_read(ir *g, const values *v, const node *x);

/** x, or the INDEX that it copies through elementwise values that only move. */
const node *term_skip_copies(ir *g, const values *v, const node *x);

/** True if a node depends on one of a reduction's ranges. */
bool term_varies_in_reduction(const value *t, const node *x);

#endif
