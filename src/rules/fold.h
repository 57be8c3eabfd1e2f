/* Folding constructors: elementwise nodes with constants evaluated and what ops.def knows applied.
   The templates of rules are built with them. Floats fold only where the result is the same for
   every value, NaN, infinities and −0 included; functions such as exp do not fold, so that a
   constant gets what the kernel would compute. Index arithmetic goes through index.h. */
#ifndef TENON_RULES_FOLD_H
#define TENON_RULES_FOLD_H

#include "ir/rewrite.h"

/** The scalar constant that every element of a node is, through SPLAT, EXPAND and RESHAPE, or NULL.
 */
const node *fold_constant(const node *n);

/** A constant with the shape and the lanes of `like`. */
const node *fold_fill(ir *g, const node *like, dtype t, uint64_t bits);

/** Elementwise ops of operands with equal shapes and lanes; types follow from the op. */
const node *fold_op1(ir *g, op o, const node *a);
const node *fold_op2(ir *g, op o, const node *a, const node *b);
const node *fold_op3(ir *g, op o, const node *a, const node *b, const node *c);
const node *fold_cast(ir *g, const node *a, dtype to);
const node *fold_bitcast(ir *g, const node *a, dtype to);

/** The same as a set of rules. */
const node *rules_fold(rewriter *rw, const node *n);

#endif
