/* Simplifying constructors: elementwise nodes with constants folded and what ops.def knows applied.
   The templates of rules are built with them. Floats fold only where the result is the same for
   every value, NaN, infinities and −0 included; functions such as exp do not fold, so that a
   constant gets what the kernel would compute. Index arithmetic goes through index.h. */
#ifndef TENON_RULES_SIMPLE_H
#define TENON_RULES_SIMPLE_H

#include "ir/rewrite.h"

/** The scalar constant that every element of a node is, through SPLAT, EXPAND and RESHAPE, or NULL.
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

/** The same as a set of rules. */
const node *rules_simple(rewriter *rw, const node *n);

#endif
