#include "ir/index.h"

#include "ir/build.h"
#include "ir/infer.h"

#include <string.h>

enum { MOST_TERMS = IX_MOST_TERMS, MOST_FACTORS = 32, PROOF_STEPS = 48 };

/** An affine form in the making: terms sorted by atom id. `lost` says why it has none: a
    coefficient or the number of terms outgrew it. */
typedef struct form {
  const char *lost;
  int64_t k;
  size_t n;
  const node *atom[MOST_TERMS];
  int64_t c[MOST_TERMS];
} form;

static const char too_large[] = "an index expression is too large for 64 bits";
static const char too_long[] = "an index expression has too many terms";

static void form_init(form *f, int64_t k) {
  f->lost = NULL;
  f->k = k;
  f->n = 0;
}

static int64_t add_exact(form *f, int64_t a, int64_t b) {
  int64_t r;
  if (__builtin_add_overflow(a, b, &r)) f->lost = too_large;
  return r;
}

static int64_t mul_exact(form *f, int64_t a, int64_t b) {
  int64_t r;
  if (__builtin_mul_overflow(a, b, &r)) f->lost = too_large;
  return r;
}

/* Reading affine forms. */

size_t ix_terms(const node *a) { return a->op == OP_AFFINE ? a->n_src : a->op != OP_CONST; }
const node *ix_atom(const node *a, size_t i) { return a->op == OP_AFFINE ? a->src[i] : a; }
int64_t ix_factor(const node *a, size_t i) { return a->op == OP_AFFINE ? a->ints[i + 1] : 1; }

int64_t ix_offset(const node *a) {
  return a->op == OP_AFFINE || a->op == OP_CONST ? a->ints[0] : 0;
}

int64_t ix_coefficient(const node *a, const node *atom) {
  for (size_t i = 0; i < ix_terms(a); i++)
    if (ix_atom(a, i) == atom) return ix_factor(a, i);
  return 0;
}

/* Making them. */

static void add_term(form *f, const node *atom, int64_t c) {
  size_t i = 0;
  while (i < f->n && f->atom[i]->id < atom->id) i++;
  if (i < f->n && f->atom[i] == atom) {
    f->c[i] = add_exact(f, f->c[i], c);
    if (f->c[i]) return;
    f->n--;
    memmove(f->atom + i, f->atom + i + 1, (f->n - i) * sizeof *f->atom);
    memmove(f->c + i, f->c + i + 1, (f->n - i) * sizeof *f->c);
    return;
  }
  if (f->n == MOST_TERMS) {
    f->lost = too_long;
    return;
  }
  memmove(f->atom + i + 1, f->atom + i, (f->n - i) * sizeof *f->atom);
  memmove(f->c + i + 1, f->c + i, (f->n - i) * sizeof *f->c);
  f->atom[i] = atom;
  f->c[i] = c;
  f->n++;
}

/** f += scale · a */
static void add_scaled(form *f, const node *a, int64_t scale) {
  if (!scale) return;
  f->k = add_exact(f, f->k, mul_exact(f, ix_offset(a), scale));
  for (size_t i = 0; i < ix_terms(a); i++)
    add_term(f, ix_atom(a, i), mul_exact(f, ix_factor(a, i), scale));
}

/** What c·div + mod is for mod = x mod c: x where div is x div c, also as y div (c·m) for an x that
    is y div m; y where div is y div c and y mod c is the same. NULL: they do not belong together.
 */
static const node *divided_number(ir *g, const node *div, const node *mod) {
  const node *x = mod->src[0], *c = mod->src[1];
  if (div->op != OP_FLOORDIV || div->src[1]->op != OP_CONST) return NULL;
  const node *y = div->src[0];
  int64_t by = node_int(div->src[1]), m = by / node_int(c);
  if (ix_floordiv(g, x, c) == div) return x;
  if (by == node_int(c)) return ix_mod(g, y, c) == mod ? y : NULL;
  return m > 1 && m * node_int(c) == by && ix_floordiv(g, y, ix_const(g, m)) == x ? x : NULL;
}

/** Puts k·c·(x div c) + k·(x mod c) together to k·x, once; false if there is no such pair. */
static bool recombine(ir *g, form *f) {
  for (size_t m = 0; m < f->n; m++) {
    const node *mod = f->atom[m];
    int64_t k = f->c[m], kc;
    if (mod->op != OP_MOD || mod->src[1]->op != OP_CONST || mod->src[1]->lo < 1) continue;
    if (__builtin_mul_overflow(k, node_int(mod->src[1]), &kc)) continue;
    for (size_t d = 0; d < f->n; d++) {
      const node *div = f->atom[d], *x = f->c[d] == kc ? divided_number(g, div, mod) : NULL;
      if (!x) continue;
      add_term(f, mod, mul_exact(f, k, -1));
      add_term(f, div, mul_exact(f, kc, -1));
      add_scaled(f, x, k);
      return true;
    }
  }
  return false;
}

/** The form as a node; NULL if it was lost. */
static const node *finish_or_null(ir *g, form *f) {
  while (!f->lost && recombine(g, f)) {}
  if (f->lost) return NULL;
  if (!f->n) return ix_const(g, f->k);
  if (f->n == 1 && f->c[0] == 1 && !f->k) return f->atom[0];
  int64_t ints[MOST_TERMS + 1];
  ints[0] = f->k;
  memcpy(ints + 1, f->c, f->n * sizeof *ints);
  return ir_node(g, OP_AFFINE, DT_INDEX, f->atom, f->n, ints, f->n + 1);
}

static const node *finish(ir *g, form *f) {
  const node *n = finish_or_null(g, f);
  if (!n) diag_raise(ir_diag(g), TN_ERR_SHAPE, "%s", f->lost);
  return n;
}

const node *ix_const(ir *g, int64_t value) { return ir_const_bits(g, DT_INDEX, (uint64_t)value); }

static const node *combine(ir *g, const node *a, int64_t p, const node *b, int64_t q, int64_t k) {
  form f;
  form_init(&f, k);
  add_scaled(&f, a, p);
  add_scaled(&f, b, q);
  return finish(g, &f);
}

const node *ix_gap(ir *g, const node *a, const node *b) {
  form f;
  form_init(&f, 0);
  add_scaled(&f, b, 1);
  add_scaled(&f, a, -1);
  return finish_or_null(g, &f);
}

const node *ix_add(ir *g, const node *a, const node *b) { return combine(g, a, 1, b, 1, 0); }
const node *ix_sub(ir *g, const node *a, const node *b) { return combine(g, a, 1, b, -1, 0); }
const node *ix_add_const(ir *g, const node *a, int64_t k) { return combine(g, a, 1, a, 0, k); }
const node *ix_scale(ir *g, const node *a, int64_t k) { return combine(g, a, k, a, 0, 0); }

/* Products: an atom is a chain MUL(MUL(x, y), z) of factors sorted by id. */

/** Appends the factors of an atom to into[*n…]; false if there are more than MOST_FACTORS. */
static bool factors(const node *atom, const node *into[], size_t *n) {
  for (;; atom = atom->src[0]) {
    if (*n == MOST_FACTORS) return false;
    into[(*n)++] = atom->op == OP_MUL ? atom->src[1] : atom;
    if (atom->op != OP_MUL) return true;
  }
}

static const node *product(ir *g, const node *f[], size_t n) {
  for (size_t i = 1; i < n; i++)
    for (size_t k = i; k > 0 && f[k - 1]->id > f[k]->id; k--) {
      const node *t = f[k];
      f[k] = f[k - 1];
      f[k - 1] = t;
    }
  const node *p = n ? f[0] : ix_const(g, 1);
  for (size_t i = 1; i < n; i++) p = ir_op2(g, OP_MUL, p, f[i]);
  return p;
}

static void add_product(ir *g, form *f, const node *x, const node *y, int64_t c) {
  const node *all[MOST_FACTORS];
  size_t n = 0;
  if (factors(x, all, &n) && factors(y, all, &n))
    add_term(f, product(g, all, n), c);
  else
    f->lost = too_long;
}

static void multiply(ir *g, form *f, const node *a, const node *b) {
  form_init(f, 0);
  f->k = mul_exact(f, ix_offset(a), ix_offset(b));
  for (size_t i = 0; i < ix_terms(a); i++)
    for (size_t k = 0; k < ix_terms(b); k++)
      add_product(g, f, ix_atom(a, i), ix_atom(b, k),
                  mul_exact(f, ix_factor(a, i), ix_factor(b, k)));
  for (size_t i = 0; i < ix_terms(a) && ix_offset(b); i++)
    add_term(f, ix_atom(a, i), mul_exact(f, ix_factor(a, i), ix_offset(b)));
  for (size_t k = 0; k < ix_terms(b) && ix_offset(a); k++)
    add_term(f, ix_atom(b, k), mul_exact(f, ix_factor(b, k), ix_offset(a)));
}

const node *ix_mul(ir *g, const node *a, const node *b) {
  if (a->op == OP_CONST) return ix_scale(g, b, node_int(a));
  if (b->op == OP_CONST) return ix_scale(g, a, node_int(b));
  form f;
  multiply(g, &f, a, b);
  return finish(g, &f);
}

/** Whether c ÷ by, by ≠ 0, is an integer, and one of 64 bits. */
static bool divides(int64_t by, int64_t c) { return by == -1 ? c != INT64_MIN : c % by == 0; }

/** c·atom ÷ b if it is exact: b a constant that divides c, or (up to a constant) a product of
    atoms that are all factors of the atom. NULL otherwise. */
static const node *exact_quotient(ir *g, const node *atom, int64_t c, const node *b) {
  if (b->op == OP_CONST) return c % node_int(b) ? NULL : ix_scale(g, atom, c / node_int(b));
  if (ix_terms(b) != 1 || ix_offset(b) || !divides(ix_factor(b, 0), c)) return NULL;
  const node *have[MOST_FACTORS], *need[MOST_FACTORS];
  size_t n = 0, m = 0;
  if (!factors(atom, have, &n) || !factors(ix_atom(b, 0), need, &m)) return NULL;
  for (size_t i = 0; i < m; i++) {
    size_t k = 0;
    while (k < n && have[k] != need[i]) k++;
    if (k == n) return NULL;
    have[k] = have[--n];
  }
  return ix_scale(g, product(g, have, n), c / ix_factor(b, 0));
}

/** Adds a term that b does not divide: what of its coefficient is above b goes to the quotient. */
static void split_term(const node *atom, int64_t c, const node *b, form *whole, form *rest) {
  int64_t q = b->op == OP_CONST ? c / node_int(b) : 0;
  if (q) add_scaled(whole, atom, q);
  add_term(rest, atom, q ? c % node_int(b) : c);
}

/** Writes a = q·b + r, with everything that b divides in q. */
static void split_by(ir *g, const node *a, const node *b, const node **q, const node **r) {
  form whole, rest;
  form_init(&whole, 0);
  form_init(&rest, 0);
  if (b->op == OP_CONST) {
    whole.k = floor_div(ix_offset(a), node_int(b));
    rest.k = floor_mod(ix_offset(a), node_int(b));
  } else {
    rest.k = ix_offset(a);
  }
  for (size_t i = 0; i < ix_terms(a); i++) {
    const node *exact = exact_quotient(g, ix_atom(a, i), ix_factor(a, i), b);
    if (exact)
      add_scaled(&whole, exact, 1);
    else
      split_term(ix_atom(a, i), ix_factor(a, i), b, &whole, &rest);
  }
  *q = finish(g, &whole);
  *r = finish(g, &rest);
}

/** The number j with j·b ≤ a < (j + 1)·b for every value of a, if there is one. */
static bool in_one_block(ir *g, const node *a, const node *b, int64_t *j) {
  *j = 0;
  if (b->op != OP_CONST) return ix_prove(g, a) && ix_prove_lt(g, a, b);
  if (a->lo != BOUND_LOW && a->hi != BOUND_HIGH) {
    *j = floor_div(a->lo, node_int(b));
    if (*j == floor_div(a->hi, node_int(b))) return true;
    *j = 0;
  }
  return ix_prove(g, a) && ix_prove_lt(g, a, b);
}

static int64_t gcd(int64_t a, int64_t b) {
  while (b) {
    int64_t t = a % b;
    a = b;
    b = t;
  }
  return a < 0 ? -a : a;
}

/** The greatest number that divides b and every coefficient of a. */
static int64_t common_factor(const node *a, int64_t b) {
  for (size_t i = 0; i < ix_terms(a); i++) b = gcd(b, ix_factor(a, i));
  return b;
}

static const node *divided(ir *g, const node *a, int64_t by) {
  form f;
  form_init(&f, floor_div(ix_offset(a), by));
  for (size_t i = 0; i < ix_terms(a); i++) add_term(&f, ix_atom(a, i), ix_factor(a, i) / by);
  return finish(g, &f);
}

/** (x div a) div b = x div (a·b) for positive constants. */
static bool nested_division(ir *g, const node **a, const node **b) {
  const node *x = *a;
  int64_t ab;
  if (x->op != OP_FLOORDIV || x->src[1]->op != OP_CONST || (*b)->op != OP_CONST) return false;
  if (__builtin_mul_overflow(node_int(x->src[1]), node_int(*b), &ab)) return false;
  *b = ix_const(g, ab);
  *a = x->src[0];
  return true;
}

/** (x mod (a·b)) mod b = x mod b for positive constants. */
static bool nested_modulus(const node **a, const node *b) {
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
  split_by(g, a, b, &q, &r);
  if (in_one_block(g, r, b, &j)) return ix_add_const(g, q, j);
  if (nested_division(g, &r, &b)) return ix_add(g, q, ix_floordiv(g, r, b));
  int64_t f = b->op == OP_CONST ? common_factor(r, node_int(b)) : 1;
  if (f > 1) return ix_add(g, q, ix_floordiv(g, divided(g, r, f), ix_const(g, node_int(b) / f)));
  return ix_add(g, q, ir_op2(g, OP_FLOORDIV, r, b));
}

const node *ix_mod(ir *g, const node *a, const node *b) {
  if (b->lo <= 0) return divide_by_unknown_sign(g, OP_MOD, a, b);
  if (node_is_bits(b, 1)) return ix_const(g, 0);
  const node *q, *r;
  int64_t j;
  split_by(g, a, b, &q, &r);
  if (in_one_block(g, r, b, &j)) return ix_sub(g, r, ix_scale(g, b, j));
  if (nested_modulus(&r, b)) return ix_mod(g, r, b);
  int64_t f = b->op == OP_CONST ? common_factor(r, node_int(b)) : 1;
  if (f > 1) {
    /* (f·y + k) mod (f·c) = f·(y mod c) + k for 0 ≤ k < f */
    const node *inner = ix_mod(g, divided(g, r, f), ix_const(g, node_int(b) / f));
    return ix_add_const(g, ix_scale(g, inner, f), floor_mod(ix_offset(r), f));
  }
  return ir_op2(g, OP_MOD, r, b);
}

/** By node id; a constant, which may be older or younger than the rest, is always second. */
static const node *sorted_pair(ir *g, op o, const node *a, const node *b) {
  bool swap = a->op == OP_CONST || (b->op != OP_CONST && a->id > b->id);
  return swap ? ir_op2(g, o, b, a) : ir_op2(g, o, a, b);
}

const node *ix_min(ir *g, const node *a, const node *b) {
  if (ix_prove_le(g, a, b)) return a;
  if (ix_prove_le(g, b, a)) return b;
  return sorted_pair(g, OP_MIN, a, b);
}

const node *ix_max(ir *g, const node *a, const node *b) {
  if (ix_prove_le(g, b, a)) return a;
  if (ix_prove_le(g, a, b)) return b;
  return sorted_pair(g, OP_MAX, a, b);
}

/* Comparisons: positive terms to the left, negative ones and the constant to the right. A
   difference that does not fit leaves them as they are. */

static const node *sides(ir *g, const node *d) {
  form left, right;
  form_init(&left, 0);
  form_init(&right, ix_offset(d));
  for (size_t i = 0; i < ix_terms(d); i++) {
    int64_t c = ix_factor(d, i);
    if (c < 0)
      add_term(&left, ix_atom(d, i), mul_exact(&left, c, -1));
    else
      add_term(&right, ix_atom(d, i), c);
  }
  const node *l = finish_or_null(g, &left), *r = finish_or_null(g, &right);
  return l && r ? ir_op2(g, OP_LT, l, r) : NULL;
}

const node *ix_lt(ir *g, const node *a, const node *b) {
  if (ix_prove_lt(g, a, b)) return ir_const_bits(g, DT_BOOL, 1);
  if (ix_prove_le(g, b, a)) return ir_const_bits(g, DT_BOOL, 0);
  const node *d = ix_gap(g, a, b), *lt = d ? sides(g, d) : NULL;
  return lt ? lt : ir_op2(g, OP_LT, a, b);
}

const node *ix_le(ir *g, const node *a, const node *b) {
  if (ix_prove_le(g, a, b)) return ir_const_bits(g, DT_BOOL, 1);
  if (ix_prove_lt(g, b, a)) return ir_const_bits(g, DT_BOOL, 0);
  form f;
  form_init(&f, 1);
  add_scaled(&f, b, 1);
  const node *above = finish_or_null(g, &f);
  return above ? ix_lt(g, a, above) : ir_op2(g, OP_LE, a, b);
}

const node *ix_and(ir *g, const node *a, const node *b) {
  if (node_is_bits(a, 1)) return b;
  return node_is_bits(b, 1) ? a : ir_op2(g, OP_AND, a, b);
}

const node *ix_inside(ir *g, size_t n, const node *const at[], const node *const extents[]) {
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

const node *ix_rebuild(ir *g, const node *n, const node *const src[]) {
  form f;
  switch (n->op) {
  case OP_AFFINE:
    form_init(&f, n->ints[0]);
    for (size_t i = 0; i < n->n_src; i++) add_scaled(&f, src[i], n->ints[i + 1]);
    return finish(g, &f);
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
  default: return ir_with_sources(g, n, src);
  }
}

/* Proof of a ≥ 0: where bounds do not show it, a term that pulls the value down is replaced by
   something at least as low, and the rest is tried again. Inner ranges, which the extents of outer
   ones know nothing of, go first; so one order does, and only a minimum or a maximum leaves two
   ways. */

typedef struct proof {
  ir *g;
  int steps; /* left */
} proof;

/** The innermost range among the factors of a product that is not negative; NULL if there is none,
    or a factor may be negative. */
static const node *innermost_factor(const node *atom) {
  const node *all[MOST_FACTORS], *range = NULL;
  size_t n = 0;
  if (!factors(atom, all, &n)) return NULL;
  for (size_t i = 0; i < n; i++) {
    if (all[i]->lo < 0) return NULL;
    if (all[i]->op == OP_RANGE && (!range || all[i]->id > range->id)) range = all[i];
  }
  return range;
}

/** The node that goes if the term c·atom is replaced: the atom or a factor of it; NULL if nothing
    is known to replace it by. */
static const node *replaceable(const node *atom, int64_t c) {
  if (atom->op == OP_MAX) return c > 0 ? atom : NULL;
  if (c > 0) return NULL;
  switch (atom->op) {
  case OP_MIN: return atom;
  case OP_MUL: return innermost_factor(atom);
  case OP_RANGE: return atom->src[0]->op != OP_CONST ? atom : NULL;
  case OP_MOD: return atom->src[1]->lo > 0 && atom->src[1]->op != OP_CONST ? atom : NULL;
  case OP_FLOORDIV: return atom->src[1]->op == OP_CONST && atom->src[1]->lo > 0 ? atom : NULL;
  default: return NULL;
  }
}

/** The term to replace next: of the youngest node that can go. False if there is none. */
static bool next_term(const form *f, size_t *term) {
  const node *goes = NULL;
  for (size_t i = 0; i < f->n; i++) {
    const node *n = replaceable(f->atom[i], f->c[i]);
    if (!n || (goes && goes->id > n->id)) continue;
    goes = n;
    *term = i;
  }
  return goes != NULL;
}

/** −|c|·r·y ≥ −|c|·(extent − 1)·y for a range r and a product y ≥ 0 of other factors. */
static void lower_product(proof *p, form *f, const node *atom, int64_t c) {
  const node *range = innermost_factor(atom), *rest[MOST_FACTORS];
  size_t n = 0, i = 0;
  factors(atom, rest, &n);
  while (rest[i] != range) i++;
  rest[i] = rest[--n];
  form most;
  const node *y = product(p->g, rest, n);
  multiply(p->g, &most, range->src[0], y);
  add_scaled(&most, y, -1);
  if (most.lost) f->lost = most.lost;
  f->k = add_exact(f, f->k, mul_exact(f, most.k, c));
  for (i = 0; i < most.n; i++) add_term(f, most.atom[i], mul_exact(f, most.c[i], c));
}

/** c·floor(x/d) ≥ c·x/d for c < 0: of the whole form, times what makes c·x/d whole. */
static void lower_quotient(form *f, const node *atom, int64_t c) {
  int64_t d = node_int(atom->src[1]), times = d / gcd(d, c);
  f->k = mul_exact(f, f->k, times);
  for (size_t i = 0; i < f->n; i++) f->c[i] = mul_exact(f, f->c[i], times);
  add_scaled(f, atom->src[0], mul_exact(f, c, times) / d);
}

/** Replaces a term: a minimum or maximum by its source `side`, all others in the one way known. */
static void lower(proof *p, form *f, size_t term, size_t side) {
  const node *atom = f->atom[term];
  int64_t c = f->c[term];
  add_term(f, atom, mul_exact(f, c, -1));
  switch (atom->op) {
  case OP_MIN:
  case OP_MAX: add_scaled(f, atom->src[side], c); return;
  case OP_MUL: lower_product(p, f, atom, c); return;
  case OP_FLOORDIV: lower_quotient(f, atom, c); return;
  default: /* a range below its extent, a remainder below its divisor */
    add_scaled(f, atom->src[atom->op == OP_MOD], c);
    f->k = add_exact(f, f->k, mul_exact(f, c, -1));
    return;
  }
}

static bool prove(proof *p, form *f) {
  size_t term;
  for (;;) {
    while (!f->lost && recombine(p->g, f)) {}
    if (f->lost) return false;
    interval bounds = infer_affine(f->k, f->n, f->atom, f->c);
    if (bounds.lo >= 0) return true;
    if (bounds.hi < 0 || !p->steps || !next_term(f, &term)) return false;
    p->steps--;
    if (f->atom[term]->op == OP_MIN || f->atom[term]->op == OP_MAX) {
      form first = *f;
      lower(p, &first, term, 0);
      if (prove(p, &first)) return true;
    }
    lower(p, f, term, 1);
  }
}

/** k + b − a ≥ 0 */
static bool prove_gap(ir *g, int64_t k, const node *a, const node *b) {
  proof p = {g, PROOF_STEPS};
  form f;
  form_init(&f, k);
  add_scaled(&f, b, 1);
  add_scaled(&f, a, -1);
  return prove(&p, &f);
}

bool ix_prove(ir *g, const node *a) {
  if (a->lo >= 0 || a->hi < 0) return a->lo >= 0;
  proof p = {g, PROOF_STEPS};
  form f;
  form_init(&f, 0);
  add_scaled(&f, a, 1);
  return prove(&p, &f);
}

bool ix_prove_le(ir *g, const node *a, const node *b) {
  return a->hi <= b->lo || (a->lo <= b->hi && prove_gap(g, 0, a, b));
}

bool ix_prove_lt(ir *g, const node *a, const node *b) {
  return a->hi < b->lo || (a->lo < b->hi && prove_gap(g, -1, a, b));
}

int64_t ix_block(const node *extent, int64_t most) {
  for (int64_t n = most; n > most / 2 && node_is_const(extent); n--)
    if (node_int(extent) % n == 0) return n;
  return most;
}

bool ix_prove_inside(ir *g, size_t rank, const node *const extents[], const node *const coords[]) {
  for (size_t i = 0; i < rank; i++)
    if (!ix_prove(g, coords[i]) || !ix_prove_lt(g, coords[i], extents[i])) return false;
  return true;
}
