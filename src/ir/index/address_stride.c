/* Implements strides of addresses, on the sums of terms that index arithmetic keeps. */
#include "ir/index/address_stride.h"

#include "ir/core/affine.h"

/** The coefficient of a range in an expression that is linear in it; else 0. */
static int64_t coefficient_of(const node *a, const node *range) {
  for (size_t i = 0; i < ix_terms(a); i++)
    if (ix_atom(a, i) != range && node_is_free_in(range, ix_atom(a, i))) return 0;
  return ix_coefficient(a, range);
}

int64_t address_stride(const node *a, const node *range) {
  int64_t step = 0;
  for (size_t i = 0; i < ix_terms(a); i++) {
    const node *t = ix_atom(a, i), *k = t;
    if (!node_is_free_in(range, t)) continue;
    if (t->op == OP_MIN && node_is_free_in(range, t->src[0]) != node_is_free_in(range, t->src[1]))
      k = t->src[!node_is_free_in(range, t->src[0])];
    int64_t own = coefficient_of(k, range), all;
    if (!own || __builtin_mul_overflow(ix_coefficient_at(a, i), own, &all)) return 0;
    if (__builtin_add_overflow(step, all, &step)) return 0;
  }
  return step;
}
