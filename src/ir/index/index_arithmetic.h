/* Builds index expressions (integer arithmetic without overflow) in canonical form, with interval
   bounds. Sums are AFFINE (k + Σ cᵢ·atomᵢ, atoms sorted by node id, coefficients ≠ 0), so that
   equal sums are the same node. Division and modulus round towards −∞. Coefficients beyond 64 bits
   raise TN_ERR_SHAPE. */
#ifndef TENON_IR_INDEX_INDEX_ARITHMETIC_H
#define TENON_IR_INDEX_INDEX_ARITHMETIC_H

#include "ir/core/affine.h"
#include "ir/core/ir.h"

const node *ix_const(ir *g, int64_t value);
const node *ix_add(ir *g, const node *a, const node *b);
const node *ix_sub(ir *g, const node *a, const node *b);
const node *ix_add_const(ir *g, const node *a, int64_t k);
const node *ix_mul(ir *g, const node *a, const node *b);
const node *ix_scale(ir *g, const node *a, int64_t k);
const node *ix_floordiv(ir *g, const node *a, const node *b);
const node *ix_mod(ir *g, const node *a, const node *b);
const node *ix_min(ir *g, const node *a, const node *b);
const node *ix_max(ir *g, const node *a, const node *b);
/** A constant, clamped to −far … far; other nodes as they are. */
const node *ix_clamp_const(ir *g, const node *a, int64_t far);
/** a < b and a ≤ b as booleans, constant where a proof decides. */
const node *ix_lt(ir *g, const node *a, const node *b);
const node *ix_le(ir *g, const node *a, const node *b);

/** The conjunction of two conditions, without constant true ones. */
const node *ix_and(ir *g, const node *a, const node *b);

/** The condition that each of n indices is at least 0 and below its extent. */
const node *ix_in_bounds(ir *g, size_t n, const node *const at[], const node *const extents[]);

/** Remakes an index op with other sources, in canonical form. */
const node *ix_rebuild(ir *g, const node *n, const node *const src[]);

/** Canonical order is by creation in one ir: older nodes first. Writes the i-th pair of sources of
    n that stand in this order; false after the last. */
bool ix_ordered_pair(const node *n, size_t i, const node **first, const node **second);

/** Sorts atoms, with their factors, into canonical order. */
void ix_sort_terms(const node *atom[], int64_t factor[], size_t n);

/** b − a; NULL if it does not fit in 64 bits. */
const node *ix_difference_or_null(ir *g, const node *a, const node *b);

/** Block size for an extent: the largest divisor in most ÷ 2 + 1 … most, or `most` if there is none
    or the extent is symbolic. */
int64_t ix_block_size(const node *extent, int64_t most);

#endif
