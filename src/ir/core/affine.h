/* Reads index expressions in canonical form as sums of terms: AFFINE, k + Σ cᵢ·atomᵢ. Constants and
   all other nodes read as sums too, so that callers need no case for them. The builders of these
   sums are in ir/index/index_arithmetic.h. */
#ifndef TENON_IR_CORE_AFFINE_H
#define TENON_IR_CORE_AFFINE_H

#include "ir/core/node.h"

/** The most terms of a sum in canonical form. */
enum { IX_MAX_TERMS = 256 };

/** The coefficient of an atom in a sum; 0 if the atom is not in it. */
int64_t ix_coefficient(const node *a, const node *atom);

/** The constant term of a sum. */
int64_t ix_offset(const node *a);

/** The number of terms of a sum, and its i-th atom and coefficient. A node that is no AFFINE is one
    term with coefficient 1, a constant has none. */
size_t ix_terms(const node *a);
const node *ix_atom(const node *a, size_t i);
int64_t ix_coefficient_at(const node *a, size_t i);

#endif
