/* Solves integer comparisons for a range: both sides become index expressions (affine forms with
   div and mod) whose arithmetic provably does not wrap around; the range's factor and divisors are
   moved to the other side. */
#include "schedule/values/solve_comparison.h"

#include "ir/core/affine.h"
#include "ir/core/binder.h"
#include "ir/core/shape_inference.h"
#include "ir/index/index_arithmetic.h"
#include "ir/index/index_proof.h"
#include "rules/simplifying_builder.h"

#define SMALL (INT64_C(1) << 32)

enum { MOST_DEPTH = 16, MOST_FACTOR = 1 << 24, MOST_DIVISOR = 1 << 20, MOST_SHIFT = 20 };

bool solve_is_solvable(const node *n, const node *range) {
  if (n->op != OP_LT && n->op != OP_LE && n->op != OP_EQ && n->op != OP_NE) return false;
  dtype t = (dtype)n->src[0]->dtype;
  return (t == DT_INDEX || dtype_is_int(t)) && node_is_free_in(range, n);
}

static bool is_between(const node *n, int64_t lo, int64_t hi) { return n->lo >= lo && n->hi <= hi; }

bool solve_is_small(const node *n) {
  bool small = is_between(n, -SMALL, SMALL) && ix_offset(n) <= SMALL && ix_offset(n) >= -SMALL;
  for (size_t i = 0; small && i < ix_terms(n); i++)
    small = ix_coefficient_at(n, i) <= MOST_FACTOR && ix_coefficient_at(n, i) >= -MOST_FACTOR;
  return small;
}

/* Integers as indices. */

static const node *index_of(ir *g, const node *n, const node *range, int depth);

static bool is_divisor(const node *n, int64_t most) {
  return n->op == OP_CONST && node_int(n) > 0 && node_int(n) <= most;
}

static const node *apply_to_indices(ir *g, const node *n, const node *a, const node *b) {
  switch (n->op) {
  case OP_NEG: return ix_scale(g, a, -1);
  case OP_ADD: return ix_add(g, a, b);
  case OP_SUB: return ix_sub(g, a, b);
  case OP_MUL: return a->op == OP_CONST || b->op == OP_CONST ? ix_mul(g, a, b) : NULL;
  case OP_MIN: return ix_min(g, a, b);
  case OP_MAX: return ix_max(g, a, b);
  case OP_FLOORDIV: return is_divisor(b, MOST_DIVISOR) ? ix_floordiv(g, a, b) : NULL;
  case OP_SHR:
    if (!is_divisor(b, MOST_SHIFT)) return NULL;
    return ix_floordiv(g, a, ix_const(g, INT64_C(1) << node_int(b)));
  default: return NULL;
  }
}

/** An integer op whose exact result fits its type, as an index; NULL: its operands are none. */
static const node *index_of_operation(ir *g, const node *n, const node *range, int depth) {
  const node *of[2] = {0};
  if (!op_has_scalar_eval((op)n->op) || n->n_src > 2) return NULL;
  if (n->op != OP_SHR && !infer_never_wraps(n)) return NULL;
  for (uint32_t i = 0; i < n->n_src; i++) {
    of[i] = index_of(g, n->src[i], range, depth - 1);
    if (!of[i] || !solve_is_small(of[i])) return NULL;
  }
  return apply_to_indices(g, n, of[0], of[1]);
}

static bool is_short(dtype t) { return dtype_is_int(t) && dtype_bytes(t) < 8; }

static const node *index_of(ir *g, const node *n, const node *range, int depth) {
  dtype t = (dtype)n->dtype;
  if (t == DT_INDEX) return n;
  if (!dtype_is_int(t) || !depth) return NULL;
  if (n->op == OP_CONST) return t == DT_U64 && node_int(n) < 0 ? NULL : ix_const(g, node_int(n));
  const node *x = n->op == OP_CAST ? index_of(g, n->src[0], range, depth - 1)
                                   : index_of_operation(g, n, range, depth);
  if (x && (n->op != OP_CAST || is_between(x, dtype_min(t), dtype_max(t)))) return x;
  return is_short(t) && !node_is_free_in(range, n) ? ir_cast(g, n, DT_INDEX) : NULL;
}

const node *solve_index(ir *g, const node *n, const node *range) {
  return index_of(g, n, range, MOST_DEPTH);
}

const node *solve_equal(ir *g, const node *a, const node *b) {
  if (a == b) return ir_const_bits(g, DT_BOOL, 1);
  if (ix_prove_lt(g, a, b) || ix_prove_lt(g, b, a)) return ir_const_bits(g, DT_BOOL, 0);
  return ir_op2(g, OP_EQ, a, b);
}

/* Both sides of a comparison as indices: `a` has the range, `b` has not. */

typedef struct sides {
  const node *a, *b;
  const node *gate; /* where it does not hold, the sides differ; NULL: it always holds */
  bool swapped;     /* b stands to the left */
} sides;

/** Moves all operands without the range to the other side, which is exact modulo 2ⁿ. */
static void isolate_range(ir *g, const node *range, const node **a, const node **b) {
  const node *x = *a;
  while (x->dtype != DT_INDEX && (x->op == OP_ADD || x->op == OP_SUB)) {
    bool left = node_is_free_in(range, x->src[0]);
    if (left == node_is_free_in(range, x->src[1])) break;
    if (x->op == OP_ADD) *b = simple_op2(g, OP_SUB, *b, x->src[left]);
    if (x->op == OP_SUB && left) *b = simple_op2(g, OP_ADD, *b, x->src[1]);
    if (x->op == OP_SUB && !left) *b = simple_op2(g, OP_SUB, x->src[0], *b);
    x = x->src[!left];
  }
  *a = x;
}

/** An index that compares with a as the integer b does. */
static const node *clamp_to_bounds(ir *g, const node *b, const node *a) {
  const node *lo = ix_const(g, a->lo - 1), *hi = ix_const(g, a->hi + 1);
  if (b->dtype == DT_U64) b = simple_op2(g, OP_MIN, b, ir_const_int(g, DT_U64, a->hi + 1));
  return ix_min(g, ix_max(g, ir_cast(g, b, DT_INDEX), lo), hi);
}

/** An integer as an index of the range, with the gate that it is one. */
static void clamp_to_range(ir *g, const node *b, const node *range, sides *s) {
  const node *last =
      ix_add_const(g, range_extent(range), -1); /* the size may be no number of the type */
  const node *zero = ir_const_int(g, (dtype)b->dtype, 0);
  const node *above = simple_op2(g, OP_LE, zero, b);
  s->gate =
      simple_op2(g, OP_AND, above, simple_op2(g, OP_LE, b, simple_cast(g, last, (dtype)b->dtype)));
  s->b = ix_max(g, ir_cast(g, b, DT_INDEX), ix_const(g, 0));
  s->b = ix_min(g, s->b, last);
}

/** Finds the sides of a comparison of which only one has the range. */
static bool split_sides(ir *g, const node *n, const node *range, sides *s) {
  bool equates = n->op == OP_EQ || n->op == OP_NE;
  const node *a = n->src[s->swapped], *b = n->src[!s->swapped];
  if (equates && !solve_index(g, a, range)) isolate_range(g, range, &a, &b);
  s->a = solve_index(g, a, range);
  s->b = solve_index(g, b, range);
  if (!s->a || !solve_is_small(s->a)) return false;
  bool is_small = s->b && solve_is_small(s->b), is_data = !is_small || s->b->op == OP_CAST;
  if (is_data && equates && s->a == range && dtype_is_signed((dtype)b->dtype))
    clamp_to_range(g, b, range, s);
  else if (!is_small)
    s->b = clamp_to_bounds(g, b, s->a);
  return true;
}

static bool find_sides(ir *g, const node *n, const node *range, sides *s) {
  *s = (sides){.swapped = !node_is_free_in(range, n->src[0])};
  if (!node_is_free_in(range, n->src[!s->swapped])) return split_sides(g, n, range, s);
  const node *a = solve_index(g, n->src[0], range), *b = solve_index(g, n->src[1], range);
  s->a = a && b ? ix_difference_or_null(g, b, a) : NULL;
  s->b = ix_const(g, 0);
  return s->a && solve_is_small(s->a);
}

/* Forms: factor · (range, or an atom that has it) + rest. */

typedef struct affine_form {
  const node *atom, *rest;
  int64_t factor;
} affine_form;

static bool find_affine_form(ir *g, const node *a, const node *range, affine_form *f) {
  f->atom = NULL;
  for (size_t i = 0; i < ix_terms(a); i++) {
    if (!node_is_free_in(range, ix_atom(a, i))) continue;
    if (f->atom) return false;
    f->atom = ix_atom(a, i);
    f->factor = ix_coefficient_at(a, i);
  }
  if (!f->atom) return false;
  f->rest = ix_sub(g, a, ix_scale(g, f->atom, f->factor));
  return true;
}

/** The dividend of x div c; NULL: it is no such division. */
static const node *dividend(const node *x) {
  bool known = x->op == OP_FLOORDIV && is_divisor(x->src[1], MOST_DIVISOR);
  return known && solve_is_small(x->src[0]) ? x->src[0] : NULL;
}

/** Solves a < b as range < *limit, or the opposite. */
static bool solve_less(ir *g, const node *a, const node *b, const node *range, const node **limit,
                       bool *is_negated) {
  affine_form f;
  for (;;) {
    if (!find_affine_form(g, a, range, &f)) return false;
    const node *by = ix_sub(g, b, f.rest);
    if (f.factor > 0) {
      b = ix_floordiv(g, ix_add_const(g, by, f.factor - 1), ix_const(g, f.factor));
    } else {
      by = ix_floordiv(g, ix_scale(g, by, -1), ix_const(g, -f.factor));
      b = ix_add_const(g, by, 1);
      *is_negated = !*is_negated;
    }
    a = f.atom;
    *limit = b;
    if (a == range) return true;
    const node *x = dividend(a);
    if (!x || !solve_is_small(b)) return false;
    b = ix_scale(g, b, node_int(a->src[1]));
    a = x;
  }
}

/** Solves x div c = e: c·e ≤ x < c·e + c. */
static bool solve_quotient(ir *g, const node *quotient, const node *e, const node *range,
                           solution *s) {
  const node *x = dividend(quotient), *limit[2];
  bool falls[2] = {0};
  if (!x || !solve_is_small(e)) return false;
  const node *from = ix_scale(g, e, node_int(quotient->src[1]));
  const node *to = ix_add_const(g, from, node_int(quotient->src[1]));
  if (!solve_less(g, x, from, range, &limit[0], &falls[0])) return false;
  if (!solve_less(g, x, to, range, &limit[1], &falls[1])) return false;
  s->first = limit[falls[0]];
  s->last = limit[!falls[1]];
  return true;
}

static bool solve_equality(ir *g, const sides *at, const node *range, solution *s) {
  affine_form f;
  if (!find_affine_form(g, at->a, range, &f)) return false;
  const node *by = ix_sub(g, at->b, f.rest);
  s->gate = at->gate;
  if (f.factor < 0) by = ix_scale(g, by, -1);
  int64_t c = f.factor < 0 ? -f.factor : f.factor;
  if (c > 1) s->gate = solve_equal(g, ix_mod(g, by, ix_const(g, c)), ix_const(g, 0));
  s->first = ix_floordiv(g, by, ix_const(g, c));
  return f.atom == range || (c == 1 && solve_quotient(g, f.atom, s->first, range, s));
}

bool solve_comparison(ir *g, const node *n, const node *range, solution *s) {
  sides at;
  *s = (solution){0};
  if (!find_sides(g, n, range, &at)) return false;
  if (n->op == OP_EQ || n->op == OP_NE) {
    s->is_negated = n->op == OP_NE;
    return solve_equality(g, &at, range, s);
  }
  s->is_negated = at.swapped; /* b < a: not a < b + 1 */
  const node *limit = (n->op == OP_LE) != at.swapped ? ix_add_const(g, at.b, 1) : at.b;
  return solve_less(g, at.a, limit, range, &s->last, &s->is_negated);
}
