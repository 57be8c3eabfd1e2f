/* Builds elementwise nodes by simplifying ("smart") constructors, which fold constants and apply
   the algebraic facts of ops.def (identity, absorbing element, idempotence); compiled rules build
   their results with them. Float identities apply only if they hold for every value, NaN,
   infinities and −0 included; functions such as exp do not fold, so that a constant equals what the
   kernel would compute. Index arithmetic goes through ir/index/index_arithmetic.h. */
#ifndef TENON_RULES_SIMPLIFYING_BUILDER_H
#define TENON_RULES_SIMPLIFYING_BUILDER_H

#include "ir/transform/rewrite.h"

/** The scalar constant behind SPLAT, EXPAND and RESHAPE that all elements of a node equal, or NULL.
 */
const node *simple_constant(const node *n);

/** A constant with the shape and the lanes of `like`. */
const node *simple_fill(ir *g, const node *like, dtype t, uint64_t bits);

/** Elementwise ops of operands with equal shapes and lanes; types follow from the op. */
const node *simple_op1(ir *g, op o, const node *a);
const node *simple_op2(ir *g, op o, const node *a, const node *b);
const node *simple_op3(ir *g, op o, const node *a, const node *b, const node *c);
const node *simple_cast(ir *g, const node *a, dtype to);
const node *simple_bitcast(ir *g, const node *a, dtype to);

/** The same simplifications as a rule set, for existing nodes. */
const node *rules_fold_constants(rewriter *rw, const node *n);

#endif
