#include "codegen/strides.h"

#include "ir/index.h"

/** The coefficient of a range in an expression that depends on it otherwise nowhere; else 0. */
static int64_t coefficient_of(const node *a, const node *range) {
  for (size_t i = 0; i < ix_terms(a); i++)
    if (ix_atom(a, i) != range && node_is_free_in(range, ix_atom(a, i))) return 0;
  return ix_coefficient(a, range);
}

int64_t stride_along(const node *a, const node *range) {
  int64_t step = 0;
  for (size_t i = 0; i < ix_terms(a); i++) {
    const node *t = ix_atom(a, i), *k = t;
    if (!node_is_free_in(range, t)) continue;
    if (t->op == OP_MIN && node_is_free_in(range, t->src[0]) != node_is_free_in(range, t->src[1]))
      k = t->src[!node_is_free_in(range, t->src[0])];
    int64_t own = coefficient_of(k, range), all;
    if (!own || __builtin_mul_overflow(ix_factor(a, i), own, &all)) return 0;
    if (__builtin_add_overflow(step, all, &step)) return 0;
  }
  return step;
}

const node *access_address(const node *access) {
  const node *a = access->src[1];
  return a->op == OP_WHERE && a->src[2]->op == OP_INVALID ? a->src[1] : a;
}

const node *access_marked(ir *g, const node *access, int64_t mark) {
  node_spec s = ir_spec(access, access->src, access->n_src);
  s.ints = &mark;
  s.n_int = 1;
  return ir_make(g, &s);
}
