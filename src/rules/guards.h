/* What compiled rules call: matching and building of literals, and the guards and builders that
   rule files declare. A guard tells whether a rule may fire on node n; a builder makes a part of
   its result, or returns NULL: then the rule does not match. */
#ifndef TENON_RULES_GUARDS_H
#define TENON_RULES_GUARDS_H

#include "ir/rewrite.h"

/** Whether a node is that constant everywhere; floats by their bits: 0 is not −0. */
bool rule_is_int(const node *n, int64_t value);
bool rule_is_float(const node *n, double value);

/** A number of type t with the shape and lanes of `like`. */
const node *rule_int(rewriter *rw, const node *like, dtype t, int64_t value);
const node *rule_float(rewriter *rw, const node *like, dtype t, double value);

/** c[0] + x·(c[1] + x·(…)) by fma, in the type of x. */
const node *rule_poly(rewriter *rw, const node *like, const node *x, size_t n, const double c[]);

/** A movement op of sources and a list of them. */
const node *rule_movement(rewriter *rw, op o, const node *const first[], size_t n_first,
                          const node *const rest[], size_t n_rest);

/** Counts and tells that a rule fired; checks that type, lanes and rank stayed. */
const node *rule_fire(rewriter *rw, const char *rule, const node *before, const node *after);

/* Guards. */

/** Whether every value of `from` is one of the type of `to`, unchanged by the cast. */
bool guard_exact_cast(rewriter *rw, const node *n, const node *from, const node *to);
/** Whether b has as many bits as a or fewer. */
bool guard_no_wider(rewriter *rw, const node *n, const node *b, const node *a);
/** Whether c is a comparison with x, or two of them joined by and. */
bool guard_tests(rewriter *rw, const node *n, const node *c, const node *x);
/** A positive power of two: an integer, or a float whose reciprocal is exact. */
bool guard_power_of_two(rewriter *rw, const node *n, const node *c);

/* Movement. */

bool guard_same_shape(rewriter *rw, const node *n, const node *a, const node *b);
bool guard_identity_axes(rewriter *rw, const node *n);
/** Whether the SLICE n is all of x in order; whether the PAD n adds nothing to x. */
bool guard_whole_slice(rewriter *rw, const node *n, const node *x);
bool guard_no_padding(rewriter *rw, const node *n, const node *x);
/** Whether the REDUCE n is over no axis, and equal to its source. */
bool guard_no_axes(rewriter *rw, const node *n);

/* Lowering. */

/** Whether x is a 16-bit float that the target does not compute with. */
bool guard_emulated(rewriter *rw, const node *n, const node *x);
/** Whether a shift's count is a constant in range, or was cut to it by AND. */
bool guard_count_in_range(rewriter *rw, const node *n, const node *c);
/** Whether the operand of the cast n was cut to the integer type's range:
    WHERE(lo ≤ x AND x < hi, x, constant). */
bool guard_in_integer_range(rewriter *rw, const node *n, const node *x);

/* Indices: p and q are comparisons a < b. */

/** Whether p true makes q true; whether they cannot both be. */
bool guard_implies(rewriter *rw, const node *n, const node *p, const node *q);
bool guard_excludes(rewriter *rw, const node *n, const node *p, const node *q);

/** Whether the integer `to`, cast from the index `from`, is the same number for all its bounds. */
bool guard_fits(rewriter *rw, const node *n, const node *to, const node *from);

/* Builders. */

/** outer of inner of x as one op. */
const node *build_composed_permute(rewriter *rw, const node *n, const node *outer,
                                   const node *inner, const node *x);
const node *build_composed_slice(rewriter *rw, const node *n, const node *outer, const node *inner,
                                 const node *x);
const node *build_composed_pad(rewriter *rw, const node *n, const node *outer, const node *inner,
                               const node *x, const node *value);
/** The constant that c is, in the shape of n; NULL where n is the innermost form of it. */
const node *build_filled(rewriter *rw, const node *n, const node *c);

/** a = b as a constant, where it can be shown either way. */
const node *build_known_equal(rewriter *rw, const node *n, const node *a, const node *b);

/** The 64-bit word number index + word (a constant below 4) of a table of 64 zeros and the bits of
    2/π, by WHERE; the index is a u32 or u64 below 17. */
const node *build_two_over_pi_word(rewriter *rw, const node *n, const node *index,
                                   const node *word);

/** The base-2 logarithm of a power of two, in its type and shape. */
const node *build_log2_of(rewriter *rw, const node *n, const node *c);
const node *build_reciprocal_of(rewriter *rw, const node *n, const node *c);

#endif
