/* Index arithmetic: unbounded integers with interval bounds. Sums are kept in one canonical form,
   AFFINE (k + Σ cᵢ·atomᵢ, atoms sorted by node id, coefficients ≠ 0), so that equal expressions are
   the same node. Division and modulus round towards −∞. Coefficients that would overflow 64 bits
   raise TN_ERR_SHAPE. */
#ifndef TENON_IR_INDEX_H
#define TENON_IR_INDEX_H

#include "ir/ir.h"

/** The terms that a sum in canonical form can have. */
enum { IX_MOST_TERMS = 256 };

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
/** a < b and a ≤ b as booleans, folded where bounds decide. */
const node *ix_lt(ir *g, const node *a, const node *b);
const node *ix_le(ir *g, const node *a, const node *b);

/** Both of two conditions; those known to be true vanish. */
const node *ix_and(ir *g, const node *a, const node *b);

/** Whether each of n indices is from 0 to below its extent. */
const node *ix_inside(ir *g, size_t n, const node *const at[], const node *const extents[]);

/** An index op with other sources, put in canonical form again. */
const node *ix_rebuild(ir *g, const node *n, const node *const src[]);

/** Canonical order, of nodes of one ir: what was made first stands first. The i-th pair of nodes
    that stand so in n; false after the last. */
bool ix_ordered_pair(const node *n, size_t i, const node **first, const node **second);

/** Puts atoms and their factors in that order. */
void ix_sort_terms(const node *atom[], int64_t factor[], size_t n);

/** b − a, or NULL where it does not fit in 64 bits. */
const node *ix_gap(ir *g, const node *a, const node *b);

/** Whether a ≥ 0, a ≤ b, a < b can be shown: by bounds, then by putting extents for ranges, in a
    limited number of steps. False: not shown, also where a difference would not fit in 64 bits. */
bool ix_prove(ir *g, const node *a);
bool ix_prove_le(ir *g, const node *a, const node *b);
bool ix_prove_lt(ir *g, const node *a, const node *b);
/** How many indices make a block: the number nearest below `most` that divides an extent, or where
    none is near it `most`. */
int64_t ix_block(const node *extent, int64_t most);
/** Whether coordinates are shown to lie inside of an array. */
bool ix_prove_inside(ir *g, size_t rank, const node *const extents[], const node *const coords[]);

/** The coefficient of an atom in an affine form (0 if it is not there). */
int64_t ix_coefficient(const node *a, const node *atom);

/** The constant term of an affine form. */
int64_t ix_offset(const node *a);

/** The number of terms of an affine form, and its i-th atom and coefficient; a node that is no
    AFFINE is one term with coefficient 1, a constant none. */
size_t ix_terms(const node *a);
const node *ix_atom(const node *a, size_t i);
int64_t ix_factor(const node *a, size_t i);

#endif
