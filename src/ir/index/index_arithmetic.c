/* Implements constant folding and canonicalisation of index arithmetic. Division splits a dividend
   into a part that the divisor divides and a rest, and drops the rest where a proof bounds it;
   comparisons move negative terms to the left and positive ones to the right. */
#include "ir/index/index_arithmetic.h"

#include "ir/core/build.h"
#include "ir/core/interval.h"
#include "ir/index/affine_form.h"
#include "ir/index/index_proof.h"

const node *ix_const(ir *g, int64_t value) { return ir_const_bits(g, DT_INDEX, (uint64_t)value); }

static const node *combine(ir *g, const node *a, int64_t p, const node *b, int64_t q, int64_t k) {
  affine_form f;
  affine_form_init(&f, k);
  affine_add_scaled(&f, a, p);
  affine_add_scaled(&f, b, q);
  return affine_finish(g, &f);
}

const node *ix_difference_or_null(ir *g, const node *a, const node *b) {
  affine_form f;
  affine_form_init(&f, 0);
  affine_add_scaled(&f, b, 1);
  affine_add_scaled(&f, a, -1);
  return affine_finish_or_null(g, &f);
}

const node *ix_add(ir *g, const node *a, const node *b) { return combine(g, a, 1, b, 1, 0); }
const node *ix_sub(ir *g, const node *a, const node *b) { return combine(g, a, 1, b, -1, 0); }
const node *ix_add_const(ir *g, const node *a, int64_t k) { return combine(g, a, 1, a, 0, k); }
const node *ix_scale(ir *g, const node *a, int64_t k) { return combine(g, a, k, a, 0, 0); }

const node *ix_mul(ir *g, const node *a, const node *b) {
  if (a->op == OP_CONST) return ix_scale(g, b, node_int(a));
  if (b->op == OP_CONST) return ix_scale(g, a, node_int(b));
  affine_form f;
  affine_multiply(g, &f, a, b);
  return affine_finish(g, &f);
}

/** True if c ÷ by, by ≠ 0, is an integer of 64 bits. */
static bool divides(int64_t by, int64_t c) { return by == -1 ? c != INT64_MIN : c % by == 0; }

/** c·atom ÷ b if b is a constant that divides c, or a constant times a product of atoms that are
    all factors of the atom; otherwise NULL. */
static const node *exact_quotient(ir *g, const node *atom, int64_t c, const node *b) {
  if (b->op == OP_CONST) return c % node_int(b) ? NULL : ix_scale(g, atom, c / node_int(b));
  if (ix_terms(b) != 1 || ix_offset(b) || !divides(ix_coefficient_at(b, 0), c)) return NULL;
  const node *have[AFFINE_MAX_FACTORS], *need[AFFINE_MAX_FACTORS];
  size_t n = 0, m = 0;
  if (!affine_factors(atom, have, &n) || !affine_factors(ix_atom(b, 0), need, &m)) return NULL;
  for (size_t i = 0; i < m; i++) {
    size_t k = 0;
    while (k < n && have[k] != need[i]) k++;
    if (k == n) return NULL;
    have[k] = have[--n];
  }
  return ix_scale(g, affine_product(g, have, n), c / ix_coefficient_at(b, 0));
}

/** Adds a term that b does not divide: c ÷ b times the atom to the quotient, the remainder to
    `rest`. */
static void split_term(const node *atom, int64_t c, const node *b, affine_form *whole,
                       affine_form *rest) {
  int64_t q = b->op == OP_CONST ? c / node_int(b) : 0;
  if (q) affine_add_scaled(whole, atom, q);
  affine_add_term(rest, atom, q ? c % node_int(b) : c);
}

/** Writes a = q·b + r term by term, with all that b divides in q. */
static void divide_terms(ir *g, const node *a, const node *b, const node **q, const node **r) {
  affine_form whole, rest;
  affine_form_init(&whole, 0);
  affine_form_init(&rest, 0);
  if (b->op == OP_CONST) {
    whole.offset = floor_div(ix_offset(a), node_int(b));
    rest.offset = floor_mod(ix_offset(a), node_int(b));
  } else {
    rest.offset = ix_offset(a);
  }
  for (size_t i = 0; i < ix_terms(a); i++) {
    const node *exact = exact_quotient(g, ix_atom(a, i), ix_coefficient_at(a, i), b);
    if (exact)
      affine_add_scaled(&whole, exact, 1);
    else
      split_term(ix_atom(a, i), ix_coefficient_at(a, i), b, &whole, &rest);
  }
  *q = affine_finish(g, &whole);
  *r = affine_finish(g, &rest);
}

/** Finds the j with j·b ≤ a < (j + 1)·b for every value of a; false if none is proved. */
static bool find_quotient(ir *g, const node *a, const node *b, int64_t *j) {
  *j = 0;
  if (b->op != OP_CONST) return ix_prove_nonnegative(g, a) && ix_prove_lt(g, a, b);
  if (a->lo != BOUND_LOW && a->hi != BOUND_HIGH) {
    *j = floor_div(a->lo, node_int(b));
    if (*j == floor_div(a->hi, node_int(b))) return true;
    *j = 0;
  }
  return ix_prove_nonnegative(g, a) && ix_prove_lt(g, a, b);
}

/** The greatest number that divides b and every coefficient of a. */
static int64_t common_factor(const node *a, int64_t b) {
  for (size_t i = 0; i < ix_terms(a); i++) b = greatest_common_divisor(b, ix_coefficient_at(a, i));
  return b;
}

/** The sum with each coefficient divided by `by`, which divides all of them; rounds the offset
    down. */
static const node *divide_coefficients(ir *g, const node *a, int64_t by) {
  affine_form f;
  affine_form_init(&f, floor_div(ix_offset(a), by));
  for (size_t i = 0; i < ix_terms(a); i++)
    affine_add_term(&f, ix_atom(a, i), ix_coefficient_at(a, i) / by);
  return affine_finish(g, &f);
}

/** Applies (x div a + c) div b = (x + a·c) div (a·b) for positive constants a and b: the sizes of
    strided windows one after the other. */
static bool merge_divisions(ir *g, const node **a, const node **b) {
  bool is_sum = (*a)->op == OP_AFFINE && ix_terms(*a) == 1 && ix_coefficient_at(*a, 0) == 1;
  const node *x = is_sum ? ix_atom(*a, 0) : *a;
  int64_t ab, more;
  if (x->op != OP_FLOORDIV || x->src[1]->op != OP_CONST || (*b)->op != OP_CONST) return false;
  if (x->src[1]->lo < 1 || __builtin_mul_overflow(node_int(x->src[1]), node_int(*b), &ab))
    return false;
  if (__builtin_mul_overflow(node_int(x->src[1]), is_sum ? ix_offset(*a) : 0, &more)) return false;
  affine_form f;
  affine_form_init(&f, more);
  affine_add_scaled(&f, x->src[0], 1);
  const node *sum = affine_finish_or_null(g, &f);
  if (!sum) return false;
  *b = ix_const(g, ab);
  *a = sum;
  return true;
}

/** Applies (x mod (a·b)) mod b = x mod b for positive constants. */
static bool merge_moduli(const node **a, const node *b) {
  const node *x = *a;
  if (x->op != OP_MOD || x->src[1]->op != OP_CONST || b->op != OP_CONST) return false;
  if (node_int(x->src[1]) <= 0 || node_int(x->src[1]) % node_int(b)) return false;
  *a = x->src[0];
  return true;
}

static const node *divide_by_unknown_sign(ir *g, op o, const node *a, const node *b) {
  if (b->op == OP_CONST && a->op == OP_CONST && node_int(b))
    return ix_const(g, o == OP_MOD ? floor_mod(node_int(a), node_int(b))
                                   : floor_div(node_int(a), node_int(b)));
  return ir_op2(g, o, a, b);
}

const node *ix_floordiv(ir *g, const node *a, const node *b) {
  if (b->lo <= 0) return divide_by_unknown_sign(g, OP_FLOORDIV, a, b);
  if (node_is_bits(b, 1)) return a;
  const node *q, *r;
  int64_t j;
  divide_terms(g, a, b, &q, &r);
  if (find_quotient(g, r, b, &j)) return ix_add_const(g, q, j);
  if (merge_divisions(g, &r, &b)) return ix_add(g, q, ix_floordiv(g, r, b));
  int64_t f = b->op == OP_CONST ? common_factor(r, node_int(b)) : 1;
  if (f > 1)
    return ix_add(g, q, ix_floordiv(g, divide_coefficients(g, r, f), ix_const(g, node_int(b) / f)));
  return ix_add(g, q, ir_op2(g, OP_FLOORDIV, r, b));
}

const node *ix_mod(ir *g, const node *a, const node *b) {
  if (b->lo <= 0) return divide_by_unknown_sign(g, OP_MOD, a, b);
  if (node_is_bits(b, 1)) return ix_const(g, 0);
  const node *q, *r;
  int64_t j;
  divide_terms(g, a, b, &q, &r);
  if (find_quotient(g, r, b, &j)) return ix_sub(g, r, ix_scale(g, b, j));
  if (merge_moduli(&r, b)) return ix_mod(g, r, b);
  int64_t f = b->op == OP_CONST ? common_factor(r, node_int(b)) : 1;
  if (f > 1) {
    /* (f·y + k) mod (f·c) = f·(y mod c) + k for 0 ≤ k < f */
    const node *inner = ix_mod(g, divide_coefficients(g, r, f), ix_const(g, node_int(b) / f));
    return ix_add_const(g, ix_scale(g, inner, f), floor_mod(ix_offset(r), f));
  }
  return ir_op2(g, OP_MOD, r, b);
}

/** Makes a commutative pair sorted by node id, constants second, whenever they were made. */
static const node *make_sorted_pair(ir *g, op o, const node *a, const node *b) {
  bool swap = a->op == OP_CONST || (b->op != OP_CONST && a->id > b->id);
  return swap ? ir_op2(g, o, b, a) : ir_op2(g, o, a, b);
}

const node *ix_min(ir *g, const node *a, const node *b) {
  if (ix_prove_le(g, a, b)) return a;
  if (ix_prove_le(g, b, a)) return b;
  return make_sorted_pair(g, OP_MIN, a, b);
}

const node *ix_max(ir *g, const node *a, const node *b) {
  if (ix_prove_le(g, b, a)) return a;
  if (ix_prove_le(g, a, b)) return b;
  return make_sorted_pair(g, OP_MAX, a, b);
}

const node *ix_clamp_const(ir *g, const node *a, int64_t far) {
  if (!node_is_const(a) || (a->lo >= -far && a->hi <= far)) return a;
  return ix_const(g, a->lo < 0 ? -far : far);
}

/* Canonical comparisons: of b − a, negative terms go to the left and positive ones, with the
   constant, to the right. Comparisons whose difference does not fit in 64 bits stay as they are. */

static const node *compare_sides(ir *g, const node *d) {
  affine_form left, right;
  affine_form_init(&left, 0);
  affine_form_init(&right, ix_offset(d));
  for (size_t i = 0; i < ix_terms(d); i++) {
    int64_t c = ix_coefficient_at(d, i);
    if (c < 0)
      affine_add_term(&left, ix_atom(d, i), affine_mul_exact(&left, c, -1));
    else
      affine_add_term(&right, ix_atom(d, i), c);
  }
  const node *l = affine_finish_or_null(g, &left), *r = affine_finish_or_null(g, &right);
  return l && r ? ir_op2(g, OP_LT, l, r) : NULL;
}

const node *ix_lt(ir *g, const node *a, const node *b) {
  if (ix_prove_lt(g, a, b)) return ir_const_bits(g, DT_BOOL, 1);
  if (ix_prove_le(g, b, a)) return ir_const_bits(g, DT_BOOL, 0);
  const node *d = ix_difference_or_null(g, a, b), *lt = d ? compare_sides(g, d) : NULL;
  return lt ? lt : ir_op2(g, OP_LT, a, b);
}

const node *ix_le(ir *g, const node *a, const node *b) {
  if (ix_prove_le(g, a, b)) return ir_const_bits(g, DT_BOOL, 1);
  if (ix_prove_lt(g, b, a)) return ir_const_bits(g, DT_BOOL, 0);
  affine_form f;
  affine_form_init(&f, 1);
  affine_add_scaled(&f, b, 1);
  const node *above = affine_finish_or_null(g, &f);
  return above ? ix_lt(g, a, above) : ir_op2(g, OP_LE, a, b);
}

const node *ix_and(ir *g, const node *a, const node *b) {
  if (node_is_bits(a, 1)) return b;
  return node_is_bits(b, 1) ? a : ir_op2(g, OP_AND, a, b);
}

const node *ix_in_bounds(ir *g, size_t n, const node *const at[], const node *const extents[]) {
  const node *all = ir_const_bits(g, DT_BOOL, 1);
  for (size_t i = 0; i < n; i++) {
    all = ix_and(g, all, ix_le(g, ix_const(g, 0), at[i]));
    all = ix_and(g, all, ix_lt(g, at[i], extents[i]));
  }
  return all;
}

bool ix_ordered_pair(const node *n, size_t i, const node **first, const node **second) {
  bool is_pair = n->op == OP_MIN || n->op == OP_MAX || n->op == OP_MUL;
  if (n->dtype != DT_INDEX || (!is_pair && n->op != OP_AFFINE) || i + 1 >= n->n_src) return false;
  const node *a = n->src[i];
  *first = n->op == OP_MUL && a->op == OP_MUL ? a->src[1] : a;
  *second = n->src[i + 1];
  return true;
}

void ix_sort_terms(const node *atom[], int64_t factor[], size_t n) {
  for (size_t i = 1; i < n; i++)
    for (size_t k = i; k > 0 && atom[k - 1]->id > atom[k]->id; k--) {
      const node *a = atom[k];
      int64_t c = factor[k];
      atom[k] = atom[k - 1], factor[k] = factor[k - 1];
      atom[k - 1] = a, factor[k - 1] = c;
    }
}

/** The number that an ITEM of a constant is, if it is within its bounds; NULL: it is none. */
static const node *constant_item(ir *g, const node *n, const node *const src[]) {
  const node *most = src[n->n_src - 1];
  if (src[0]->op != OP_CONST || src[0]->rank || most->op != OP_CONST) return NULL;
  int64_t value = node_int(src[0]);
  return value >= n->ints[0] && value <= node_int(most) ? ix_const(g, value) : NULL;
}

const node *ix_rebuild(ir *g, const node *n, const node *const src[]) {
  const node *number;
  affine_form f;
  switch (n->op) {
  case OP_AFFINE:
    affine_form_init(&f, n->ints[0]);
    for (size_t i = 0; i < n->n_src; i++) affine_add_scaled(&f, src[i], n->ints[i + 1]);
    return affine_finish(g, &f);
  case OP_ADD: return ix_add(g, src[0], src[1]);
  case OP_SUB: return ix_sub(g, src[0], src[1]);
  case OP_MUL: return ix_mul(g, src[0], src[1]);
  case OP_FLOORDIV: return ix_floordiv(g, src[0], src[1]);
  case OP_MOD: return ix_mod(g, src[0], src[1]);
  case OP_MIN: return ix_min(g, src[0], src[1]);
  case OP_MAX: return ix_max(g, src[0], src[1]);
  case OP_WHERE:
    if (src[0]->op == OP_CONST) return src[node_int(src[0]) ? 1 : 2];
    return src[1] == src[2] ? src[1] : ir_with_sources(g, n, src);
  case OP_ITEM:
    number = constant_item(g, n, src);
    return number ? number : ir_with_sources(g, n, src);
  default: return ir_with_sources(g, n, src);
  }
}

int64_t ix_block_size(const node *extent, int64_t most) {
  if (!node_is_const(extent) || most < 1) return most;
  int64_t size = node_int(extent), blocks = (size + most - 1) / most;
  for (int64_t n = most; n > most / 2; n--)
    if (size % n == 0) return n;
  return (size + blocks - 1) / blocks;
}
