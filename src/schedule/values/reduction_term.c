/* Splits the terms of reductions into factors and matches softmax weights e^(scale·(s − max s)),
   looking through elementwise values and copies by substituting their bodies. */
#include "schedule/values/reduction_term.h"

#include "ir/core/binder.h"
#include "ir/transform/substitute.h"

#include <math.h>

const node *term_inline_read(ir *g, const values *v, const node *x) {
  const value *from = x->op == OP_INDEX ? map_get(&v->of, x->src[0]) : NULL;
  if (!from || from->tensor != x->src[0] || !from->body) return NULL;
  if (value_is_reduction(from) || from->memory.is_never_inlined || from->scan) return NULL;
  arena_mark here = arena_save(ir_scratch(g));
  map with = value_coords_at(ir_scratch(g), from, x);
  const node *inside = subst_ranges(g, from->body, &with);
  arena_rewind(ir_scratch(g), here);
  return inside;
}

const node *term_skip_copies(ir *g, const values *v, const node *x) {
  for (size_t i = 0; i < TERM_MOST_OPENED; i++) {
    const node *inside = term_inline_read(g, v, x);
    if (!inside || inside->op != OP_INDEX) break;
    x = inside;
  }
  return x;
}

/** The root operation of an expression, behind copies and elementwise values. */
static const node *root_operation(ir *g, const values *v, const node *x) {
  const node *inside = term_inline_read(g, v, x = term_skip_copies(g, v, x));
  return inside ? inside : x;
}

bool term_split_factors(ir *g, const values *v, const node *term, term_product *to) {
  *to = (term_product){.at = {{.at = term}}, .n = 1};
  for (size_t i = 0, steps = 0; i < to->n; steps++) {
    const node *x = root_operation(g, v, to->at[i].at);
    bool divides = to->at[i].divides;
    bool splits = x->op == OP_MUL ? !divides : x->op == OP_DIV && !divides;
    if (!splits) {
      i++;
      continue;
    }
    if (to->n == TERM_MOST_FACTORS || steps == TERM_MOST_OPENED) return false;
    to->at[i].at = x->src[0];
    to->at[to->n++] = (term_factor){x->src[1], x->op == OP_DIV, i};
  }
  return true;
}

/** Undoes the splits, the last one first. Multiplication commutes, so the order of two factors is
 * free. */
const node *term_build(ir *g, dtype t, const term_product *p) {
  const node *made[TERM_MOST_FACTORS];
  size_t rank[TERM_MOST_FACTORS];
  for (size_t i = 0; i < p->n; i++) {
    made[i] = p->at[i].at;
    rank[i] = i == p->first ? 0 : i + 1;
  }
  for (size_t i = p->n; i-- > 1;) {
    size_t left = p->at[i].split_from;
    if (!made[i]) continue;
    if (p->at[i].divides) {
      made[left] = ir_op2(g, OP_DIV, made[left] ? made[left] : ir_const(g, t, 1), made[i]);
      continue;
    }
    bool swaps = !made[left] || rank[i] < rank[left];
    const node *a = swaps ? made[i] : made[left], *b = swaps ? made[left] : made[i];
    made[left] = b ? ir_op2(g, OP_MUL, a, b) : a;
    if (swaps) rank[left] = rank[i];
  }
  return made[0];
}

bool term_varies_in_reduction(const value *t, const node *x) {
  for (size_t i = 0; i < t->reduction.n; i++)
    if (node_is_free_in(t->reduction.ranges[i], x)) return true;
  return false;
}

static bool is_positive_const(const node *n) {
  if (n->op != OP_CONST || !dtype_is_float((dtype)n->dtype)) return false;
  double x = scalar_to_double((dtype)n->dtype, (uint64_t)node_int(n));
  return x > 0 && isfinite(x);
}

/** The difference in x, which may be multiplied by a positive constant, put into `scale`. */
static const node *strip_scale(ir *g, const values *v, const node *x, const node **scale) {
  x = root_operation(g, v, x);
  for (size_t i = 0; x->op == OP_MUL && i < 2; i++) {
    const node *c = root_operation(g, v, x->src[i]);
    if (!is_positive_const(c)) continue;
    *scale = c;
    return root_operation(g, v, x->src[1 - i]);
  }
  return x;
}

/** The two sides of a difference s − m, s + −m or −m + s; false: x is none. */
static bool match_difference(ir *g, const values *v, const node *x, const node **s,
                             const node **m) {
  if (x->op != OP_SUB && x->op != OP_ADD) return false;
  const node *minus = x->op == OP_SUB ? x->src[1] : NULL;
  *s = x->src[0];
  for (size_t i = 0; i < 2 && !minus; i++) {
    const node *negated = root_operation(g, v, x->src[i]);
    if (negated->op != OP_NEG) continue;
    minus = negated->src[0];
    *s = x->src[1 - i];
  }
  if (!minus) return false;
  *s = term_skip_copies(g, v, *s);
  *m = term_skip_copies(g, v, minus);
  return true;
}

/** True if m is the maximum of s over the ranges of t; `most` becomes its value. */
static bool match_maximum(ir *g, const values *v, const value *t, const node *s, const node *m,
                          value **most) {
  value *of = m->op == OP_INDEX ? map_get(&v->of, m->src[0]) : NULL;
  if (!of || of->tensor != m->src[0] || of->scan || of->reduction.op != OP_MAX) return false;
  if (of->reduction.n != t->reduction.n || term_varies_in_reduction(t, m)) return false;
  for (size_t i = 0; i < of->reduction.n; i++)
    if (range_extent(of->reduction.ranges[i]) != range_extent(t->reduction.ranges[i])) return false;
  arena *work = ir_scratch(g);
  arena_mark here = arena_save(work);
  map with = value_coords_at(work, of, m);
  for (size_t i = 0; i < of->reduction.n; i++)
    map_set(work, &with, of->reduction.ranges[i], (void *)t->reduction.ranges[i]);
  bool is = term_skip_copies(g, v, subst_ranges(g, of->body, &with)) == s;
  arena_rewind(work, here);
  if (is) *most = of;
  return is;
}

bool term_match_power(ir *g, const values *v, const value *t, const node *x, term_power *to) {
  const node *power = root_operation(g, v, x), *s;
  *to = (term_power){.base = (op)power->op};
  if (power->op != OP_EXP && power->op != OP_EXP2) return false;
  const node *difference = strip_scale(g, v, power->src[0], &to->scale);
  return match_difference(g, v, difference, &s, &to->m) &&
         match_maximum(g, v, t, s, to->m, &to->most);
}

const node *term_make_power(ir *g, const term_power *p, const node *difference) {
  if (p->scale) difference = ir_op2(g, OP_MUL, difference, p->scale);
  return ir_op1(g, p->base, difference);
}
