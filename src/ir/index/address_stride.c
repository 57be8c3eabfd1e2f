/* Implements strides of addresses, on the sums of terms that index arithmetic keeps. */
#include "ir/index/address_stride.h"

#include "ir/core/affine.h"

/** The growth of a sum with a range, of which it is linear; 0: it is not. `of_term`: that of a term
    that is neither the range nor free of it. */
static int64_t growth(const node *sum, const node *range,
                      int64_t (*of_term)(const node *term, const node *range)) {
  int64_t all = 0;
  for (size_t i = 0; i < ix_terms(sum); i++) {
    const node *t = ix_atom(sum, i);
    if (!node_is_free_in(range, t)) continue;
    int64_t own = t == range ? 1 : of_term(t, range);
    if (!own || __builtin_mul_overflow(own, ix_coefficient_at(sum, i), &own)) return 0;
    if (__builtin_add_overflow(all, own, &all)) return 0;
  }
  return all;
}

/** The side of a minimum that the range has a part in, where the other has none; else NULL. */
static const node *side_of_minimum(const node *t, const node *range) {
  if (t->op != OP_MIN) return NULL;
  bool first = node_is_free_in(range, t->src[0]), second = node_is_free_in(range, t->src[1]);
  return first != second ? t->src[second] : NULL;
}

static int64_t not_linear(const node *term, const node *range) {
  (void)term, (void)range;
  return 0;
}

static int64_t growth_of_minimum(const node *t, const node *range) {
  const node *side = side_of_minimum(t, range);
  return side ? growth(side, range, not_linear) : 0;
}

/** Of a product of a range and sizes too. */
static int64_t likely_growth(const node *t, const node *range) {
  const node *side = side_of_minimum(t, range);
  if (side) return growth(side, range, likely_growth);
  if (t->op != OP_MUL) return 0;
  bool first = node_is_free_in(range, t->src[0]), second = node_is_free_in(range, t->src[1]);
  int64_t own = first == second ? 0 : growth(t->src[second], range, likely_growth);
  return __builtin_mul_overflow(own, node_likely(t->src[first]), &own) ? 0 : own;
}

int64_t address_stride(const node *a, const node *range) {
  return growth(a, range, growth_of_minimum);
}

int64_t address_likely_stride(const node *a, const node *range) {
  const int64_t most = INT64_C(1) << 56;
  int64_t stride = growth(a, range, likely_growth);
  return stride > most ? most : stride < -most ? -most : stride;
}
