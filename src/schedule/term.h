/* What the term of a reduction is made of, over however many values it was spelt. */
#ifndef TENON_SCHEDULE_TERM_H
#define TENON_SCHEDULE_TERM_H

#include "schedule/values.h"

enum { TERM_MOST_FACTORS = 8, TERM_MOST_OPENED = 32 };

typedef struct term_factor {
  const node *at;
  bool divides;
} term_factor;

/** A product; none of its factors is one again. */
typedef struct term_product {
  term_factor at[TERM_MOST_FACTORS];
  size_t n;
} term_product;

/** Takes a term apart; false: it has too many factors. */
bool term_factors(ir *g, const values *v, const node *term, term_product *to);

/** A product as one expression; a missing numerator is 1. */
const node *term_of(ir *g, dtype t, const term_product *p);

/** e^(scale · (s − m)) or a power of 2, where m is the largest s over the ranges of a reduction. */
typedef struct term_power {
  op base;           /* OP_EXP or OP_EXP2 */
  const node *scale; /* a positive constant; NULL: 1 */
  value *most;       /* m, a reduction, */
  const node *m;     /* read so */
} term_power;

/** Whether an expression is such a power, for the reduction `t` of which it is a factor. */
bool term_is_power(ir *g, const values *v, const value *t, const node *x, term_power *to);

/** The power of a difference. */
const node *term_raised(ir *g, const term_power *p, const node *difference);

/** The expression that an INDEX of an elementwise value reads; NULL: it is of none. */
const node *term_opened(ir *g, const values *v, const node *x);

/** An INDEX of a value as what it is a copy of. */
const node *term_original(ir *g, const values *v, const node *x);

/** Whether a node depends on one of a reduction's ranges. */
bool term_varies(const value *t, const node *x);

#endif
