/* An affine sum of index terms under construction: offset + Σ factorᵢ·atomᵢ, atoms sorted by node
   id and distinct, factors not 0. affine_finish makes the canonical node. Arithmetic that leaves
   64 bits or the term limit marks the form as failed instead of raising, so that proofs can give
   up. */
#ifndef TENON_IR_INDEX_AFFINE_FORM_H
#define TENON_IR_INDEX_AFFINE_FORM_H

#include "ir/core/affine.h"
#include "ir/core/ir.h"

/** The most factors of a product. */
enum { AFFINE_MAX_FACTORS = 32 };

typedef struct affine_form {
  const char *failure; /* the limit that was exceeded, as a message; NULL: none */
  int64_t offset;
  size_t n;
  const node *atom[IX_MAX_TERMS];
  int64_t factor[IX_MAX_TERMS];
} affine_form;

/** A form of no terms. */
void affine_form_init(affine_form *f, int64_t offset);

/** a + b and a · b; the form fails if they do not fit in 64 bits. */
int64_t affine_add_exact(affine_form *f, int64_t a, int64_t b);
int64_t affine_mul_exact(affine_form *f, int64_t a, int64_t b);

/** f += factor · atom, f += scale · a, and f = a · b. `atom` is no sum and no constant. */
void affine_add_term(affine_form *f, const node *atom, int64_t factor);
void affine_add_scaled(affine_form *f, const node *a, int64_t scale);
void affine_multiply(ir *g, affine_form *f, const node *a, const node *b);

/** Replaces k·c·(x div c) + k·(x mod c) by k·x once; false if there is no such pair. */
bool affine_recombine(ir *g, affine_form *f);

/** The canonical node of a form: a constant, its only atom or an AFFINE. A failed form gives NULL
    or raises TN_ERR_SHAPE. */
const node *affine_finish_or_null(ir *g, affine_form *f);
const node *affine_finish(ir *g, affine_form *f);

/* A product of atoms is one atom, a chain MUL(MUL(x, y), z) of factors sorted by id. */

/** Appends the factors of an atom to into[*n…]; false if there are more than AFFINE_MAX_FACTORS. */
bool affine_factors(const node *atom, const node *into[], size_t *n);

/** The product of n factors, which are sorted in place; 1 for none. */
const node *affine_product(ir *g, const node *factors[], size_t n);

#endif
