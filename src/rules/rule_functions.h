/* Declares the C functions behind the (guard …) and (build …) forms of rewrite rule files. A guard
   returns true if a rule may fire on node n; a builder returns a part of the result, or NULL: the
   rule does not fire. */
#ifndef TENON_RULES_RULE_FUNCTIONS_H
#define TENON_RULES_RULE_FUNCTIONS_H

#include "ir/transform/rewrite.h"

/* Guards. */

/** True if casting from the type of `from` to that of `to` preserves every value, and the cast n of
    the result saturates nowhere that a direct cast would not. */
bool guard_exact_cast(rewriter *rw, const node *n, const node *from, const node *to);
/** True if the type of b has at most as many bits as that of a. */
bool guard_no_wider(rewriter *rw, const node *n, const node *b, const node *a);
/** True if c compares x with something, or is the AND of two comparisons one of which does. */
bool guard_tests(rewriter *rw, const node *n, const node *c, const node *x);
/** True if c is a power of two: a positive integer, or a float whose reciprocal is exact. */
bool guard_power_of_two(rewriter *rw, const node *n, const node *c);

/* Movement. */

bool guard_same_shape(rewriter *rw, const node *n, const node *a, const node *b);
bool guard_identity_axes(rewriter *rw, const node *n);
/** True if the SLICE n is all of x in order; true if the PAD n adds nothing to x. */
bool guard_whole_slice(rewriter *rw, const node *n, const node *x);
bool guard_no_padding(rewriter *rw, const node *n, const node *x);
/** True if the REDUCE n is over no axis and equal to its source. */
bool guard_no_axes(rewriter *rw, const node *n);

/* Lowering. */

/** True if x has a 16-bit float type in which the target does not compute. */
bool guard_emulated(rewriter *rw, const node *n, const node *x);
bool guard_emulated_cast(rewriter *rw, const node *n, const node *x);
/** True if a shift count is a constant in range, or masked to the range by AND. */
bool guard_count_in_range(rewriter *rw, const node *n, const node *c);
/** True if the operand of the cast n is clamped to the integer type's range:
    WHERE(lo ≤ x AND x < hi, x, constant). */
bool guard_in_integer_range(rewriter *rw, const node *n, const node *x);

/* Indices: p and q are comparisons a < b. */

/** True if p implies q; true if p and q cannot both hold. */
bool guard_implies(rewriter *rw, const node *n, const node *p, const node *q);
bool guard_excludes(rewriter *rw, const node *n, const node *p, const node *q);

/** True if the integer type of `to` holds all values of the index `from`, by its bounds. */
bool guard_fits(rewriter *rw, const node *n, const node *to, const node *from);

/* Builders. */

/** outer(inner(x)) as one op. */
const node *build_composed_permute(rewriter *rw, const node *n, const node *outer,
                                   const node *inner, const node *x);
const node *build_composed_slice(rewriter *rw, const node *n, const node *outer, const node *inner,
                                 const node *x);
const node *build_composed_pad(rewriter *rw, const node *n, const node *outer, const node *inner,
                               const node *x, const node *value);
/** The constant c in the shape of n, as EXPAND of RESHAPE; NULL if n is already part of that form.
 */
const node *build_filled(rewriter *rw, const node *n, const node *c);

/** a = b as a constant, if it can be proved or refuted; else NULL. */
const node *build_known_equal(rewriter *rw, const node *n, const node *a, const node *b);

/** Word index + word (a constant below 4) of a table of 64-bit words: 64 zero bits, then the bits
   of 2/π (Payne and Hanek reduction). Selected by WHERE; the index is a u32 or u64 below 17. */
const node *build_two_over_pi_word(rewriter *rw, const node *n, const node *index,
                                   const node *word);

/** The base-2 logarithm of a power of two, and its reciprocal, in the shape of n. */
const node *build_log2_of(rewriter *rw, const node *n, const node *c);
const node *build_reciprocal_of(rewriter *rw, const node *n, const node *c);

#endif
