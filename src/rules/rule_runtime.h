/* Runtime of compiled rewrite rules: functions to match and build literals, polynomials and
   movement ops, and to report that a rule fired, called by the C code that tools/rulec
   generates. */
#ifndef TENON_RULES_RULE_RUNTIME_H
#define TENON_RULES_RULE_RUNTIME_H

#include "ir/transform/rewrite.h"

/** True if every element of a node is that constant; floats are compared by bits: 0 is not −0. */
bool rule_is_int(const node *n, int64_t value);
bool rule_is_float(const node *n, double value);

/** A number of type t with the shape and lanes of `like`. */
const node *rule_int(rewriter *rw, const node *like, dtype t, int64_t value);
const node *rule_float(rewriter *rw, const node *like, dtype t, double value);

/** c[0] + x·(c[1] + x·(…)), Horner's scheme by fma, in the type of x. */
const node *rule_poly(rewriter *rw, const node *like, const node *x, size_t n, const double c[]);

/** A movement op of the sources `first`, then `rest`; NULL if they are too many. */
const node *rule_movement(rewriter *rw, op o, const node *const first[], size_t n_first,
                          const node *const rest[], size_t n_rest);

/** Counts the firing of a rule, reports it to the rewriter's callback and returns `after`; NULL if
    there is no result or it is `before`. Raises TN_ERR_INTERNAL if type, lanes or rank changed. */
const node *rule_fire(rewriter *rw, const char *rule, const node *before, const node *after);

#endif
