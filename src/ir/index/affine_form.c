/* Implements the construction of affine sums. Terms are kept sorted by insertion, as sums of index
   expressions have few terms; arithmetic that overflows or exceeds the term limit marks the form as
   failed. */
#include "ir/index/affine_form.h"

#include "ir/core/build.h"
#include "ir/index/index_arithmetic.h"

#include <string.h>

static const char too_large[] = "an index expression is too large for 64 bits";
static const char too_long[] = "an index expression has too many terms";

void affine_form_init(affine_form *f, int64_t offset) {
  f->failure = NULL;
  f->offset = offset;
  f->n = 0;
}

int64_t affine_add_exact(affine_form *f, int64_t a, int64_t b) {
  int64_t r;
  if (__builtin_add_overflow(a, b, &r)) f->failure = too_large;
  return r;
}

int64_t affine_mul_exact(affine_form *f, int64_t a, int64_t b) {
  int64_t r;
  if (__builtin_mul_overflow(a, b, &r)) f->failure = too_large;
  return r;
}

void affine_add_term(affine_form *f, const node *atom, int64_t c) {
  size_t i = 0;
  while (i < f->n && f->atom[i]->id < atom->id) i++;
  if (i < f->n && f->atom[i] == atom) {
    f->factor[i] = affine_add_exact(f, f->factor[i], c);
    if (f->factor[i]) return;
    f->n--;
    memmove(f->atom + i, f->atom + i + 1, (f->n - i) * sizeof *f->atom);
    memmove(f->factor + i, f->factor + i + 1, (f->n - i) * sizeof *f->factor);
    return;
  }
  if (f->n == IX_MAX_TERMS) {
    f->failure = too_long;
    return;
  }
  memmove(f->atom + i + 1, f->atom + i, (f->n - i) * sizeof *f->atom);
  memmove(f->factor + i + 1, f->factor + i, (f->n - i) * sizeof *f->factor);
  f->atom[i] = atom;
  f->factor[i] = c;
  f->n++;
}

void affine_add_scaled(affine_form *f, const node *a, int64_t scale) {
  if (!scale) return;
  f->offset = affine_add_exact(f, f->offset, affine_mul_exact(f, ix_offset(a), scale));
  for (size_t i = 0; i < ix_terms(a); i++)
    affine_add_term(f, ix_atom(a, i), affine_mul_exact(f, ix_coefficient_at(a, i), scale));
}

/** The dividend x with c·div + mod = x, for mod = x mod c: div is x div c, or y div (c·m) where x
    is y div m; or y, where div is y div c and mod is y mod c too. NULL if div and mod have none in
    common. */
static const node *common_dividend(ir *g, const node *div, const node *mod) {
  const node *x = mod->src[0], *c = mod->src[1];
  if (div->op != OP_FLOORDIV || div->src[1]->op != OP_CONST) return NULL;
  const node *y = div->src[0];
  int64_t by = node_int(div->src[1]), m = by / node_int(c);
  if (ix_floordiv(g, x, c) == div) return x;
  if (by == node_int(c)) return ix_mod(g, y, c) == mod ? y : NULL;
  return m > 1 && m * node_int(c) == by && ix_floordiv(g, y, ix_const(g, m)) == x ? x : NULL;
}

bool affine_recombine(ir *g, affine_form *f) {
  for (size_t m = 0; m < f->n; m++) {
    const node *mod = f->atom[m];
    int64_t k = f->factor[m], kc;
    if (mod->op != OP_MOD || mod->src[1]->op != OP_CONST || mod->src[1]->lo < 1) continue;
    if (__builtin_mul_overflow(k, node_int(mod->src[1]), &kc)) continue;
    for (size_t d = 0; d < f->n; d++) {
      const node *div = f->atom[d], *x = f->factor[d] == kc ? common_dividend(g, div, mod) : NULL;
      if (!x) continue;
      affine_add_term(f, mod, affine_mul_exact(f, k, -1));
      affine_add_term(f, div, affine_mul_exact(f, kc, -1));
      affine_add_scaled(f, x, k);
      return true;
    }
  }
  return false;
}

const node *affine_finish_or_null(ir *g, affine_form *f) {
  while (!f->failure && affine_recombine(g, f)) {}
  if (f->failure) return NULL;
  if (!f->n) return ix_const(g, f->offset);
  if (f->n == 1 && f->factor[0] == 1 && !f->offset) return f->atom[0];
  int64_t ints[IX_MAX_TERMS + 1];
  ints[0] = f->offset;
  memcpy(ints + 1, f->factor, f->n * sizeof *ints);
  return ir_node(g, OP_AFFINE, DT_INDEX, f->atom, f->n, ints, f->n + 1);
}

const node *affine_finish(ir *g, affine_form *f) {
  const node *n = affine_finish_or_null(g, f);
  if (!n) diag_raise(ir_diag(g), TN_ERR_SHAPE, "%s", f->failure);
  return n;
}

/* Products. */

bool affine_factors(const node *atom, const node *into[], size_t *n) {
  for (;; atom = atom->src[0]) {
    if (*n == AFFINE_MAX_FACTORS) return false;
    into[(*n)++] = atom->op == OP_MUL ? atom->src[1] : atom;
    if (atom->op != OP_MUL) return true;
  }
}

const node *affine_product(ir *g, const node *f[], size_t n) {
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

static void add_product(ir *g, affine_form *f, const node *x, const node *y, int64_t c) {
  const node *all[AFFINE_MAX_FACTORS];
  size_t n = 0;
  if (affine_factors(x, all, &n) && affine_factors(y, all, &n))
    affine_add_term(f, affine_product(g, all, n), c);
  else
    f->failure = too_long;
}

void affine_multiply(ir *g, affine_form *f, const node *a, const node *b) {
  affine_form_init(f, 0);
  f->offset = affine_mul_exact(f, ix_offset(a), ix_offset(b));
  for (size_t i = 0; i < ix_terms(a); i++)
    for (size_t k = 0; k < ix_terms(b); k++)
      add_product(g, f, ix_atom(a, i), ix_atom(b, k),
                  affine_mul_exact(f, ix_coefficient_at(a, i), ix_coefficient_at(b, k)));
  for (size_t i = 0; i < ix_terms(a) && ix_offset(b); i++)
    affine_add_term(f, ix_atom(a, i), affine_mul_exact(f, ix_coefficient_at(a, i), ix_offset(b)));
  for (size_t k = 0; k < ix_terms(b) && ix_offset(a); k++)
    affine_add_term(f, ix_atom(b, k), affine_mul_exact(f, ix_coefficient_at(b, k), ix_offset(a)));
}
