/* Implements the readers of canonical index sums, which treat constants, AFFINE (k + Σ cᵢ·atomᵢ)
   and all other index nodes alike as sums. */
#include "ir/core/affine.h"

size_t ix_terms(const node *a) { return a->op == OP_AFFINE ? a->n_src : a->op != OP_CONST; }
const node *ix_atom(const node *a, size_t i) { return a->op == OP_AFFINE ? a->src[i] : a; }
int64_t ix_coefficient_at(const node *a, size_t i) {
  return a->op == OP_AFFINE ? a->ints[i + 1] : 1;
}

int64_t ix_offset(const node *a) {
  return a->op == OP_AFFINE || a->op == OP_CONST ? a->ints[0] : 0;
}

int64_t ix_coefficient(const node *a, const node *atom) {
  for (size_t i = 0; i < ix_terms(a); i++)
    if (ix_atom(a, i) == atom) return ix_coefficient_at(a, i);
  return 0;
}
