/* Reads the addresses and strides of LOADs and STOREs in a lowered graph, and sets their hints. */
#include "codegen/lower/memory_access.h"

#include "ir/index/index_arithmetic.h"

/** The coefficient of a range in an expression that is linear in it; else 0. */
static int64_t coefficient_of(const node *a, const node *range) {
  for (size_t i = 0; i < ix_terms(a); i++)
    if (ix_atom(a, i) != range && node_is_free_in(range, ix_atom(a, i))) return 0;
  return ix_coefficient(a, range);
}

int64_t memory_access_stride(const node *a, const node *range) {
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

const node *memory_access_unmask(const node *address, const node **mask) {
  bool is_masked = address->op == OP_WHERE && address->src[2]->op == OP_INVALID;
  *mask = is_masked ? address->src[0] : NULL;
  return is_masked ? address->src[1] : address;
}

const node *memory_access_address(const node *access) {
  const node *mask;
  return memory_access_unmask(access->src[1], &mask);
}

const node *memory_access_with_hint(ir *g, const node *access, int64_t hint) {
  node_spec s = node_spec_with_sources(access, access->src, access->n_src);
  s.ints = &hint;
  s.n_int = 1;
  return ir_make(g, &s);
}
