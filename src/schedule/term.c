#include "schedule/term.h"

#include "ir/binder.h"
#include "ir/subst.h"
#include "schedule/groups.h"

#include <math.h>

const node *term_opened(ir *g, const values *v, const node *x) {
  const value *from = x->op == OP_INDEX ? map_get(&v->of, x->src[0]) : NULL;
  if (!from || from->tensor != x->src[0] || !from->body) return NULL;
  if (value_is_reduction(from) || from->only_loaded || from->scan) return NULL;
  map with = coords_at(ir_arena(g), from, x, NULL);
  return subst_ranges(g, from->body, &with);
}

const node *term_original(ir *g, const values *v, const node *x) {
  for (size_t i = 0; i < TERM_MOST_OPENED; i++) {
    const node *inside = term_opened(g, v, x);
    if (!inside || inside->op != OP_INDEX) break;
    x = inside;
  }
  return x;
}

/** What an expression computes last. */
static const node *operation(ir *g, const values *v, const node *x) {
  const node *inside = term_opened(g, v, x = term_original(g, v, x));
  return inside ? inside : x;
}

bool term_factors(ir *g, const values *v, const node *term, term_product *to) {
  to->n = 0;
  to->at[to->n++] = (term_factor){term, false};
  for (size_t i = 0, steps = 0; i < to->n; steps++) {
    const node *x = operation(g, v, to->at[i].at);
    bool divides = to->at[i].divides;
    bool splits = x->op == OP_MUL ? !divides : x->op == OP_DIV && !divides;
    if (!splits) {
      i++;
      continue;
    }
    if (to->n == TERM_MOST_FACTORS || steps == TERM_MOST_OPENED) return false;
    to->at[i].at = x->src[0];
    to->at[to->n++] = (term_factor){x->src[1], x->op == OP_DIV};
  }
  return true;
}

const node *term_of(ir *g, dtype t, const term_product *p) {
  const node *made = NULL;
  for (size_t i = 0; i < p->n; i++) {
    if (p->at[i].divides) continue;
    made = made ? ir_op2(g, OP_MUL, made, p->at[i].at) : p->at[i].at;
  }
  if (!made) made = ir_const(g, t, 1);
  for (size_t i = 0; i < p->n; i++)
    if (p->at[i].divides) made = ir_op2(g, OP_DIV, made, p->at[i].at);
  return made;
}

bool term_varies(const value *t, const node *x) {
  for (size_t i = 0; i < t->n_reduced; i++)
    if (node_is_free_in(t->reduced[i], x)) return true;
  return false;
}

static bool is_positive(const node *n) {
  if (n->op != OP_CONST || !dtype_is_float((dtype)n->dtype)) return false;
  double x = scalar_to_double((dtype)n->dtype, (uint64_t)node_int(n));
  return x > 0 && isfinite(x);
}

/** A difference times a positive constant, if there is one. */
static const node *unscaled(ir *g, const values *v, const node *x, const node **scale) {
  x = operation(g, v, x);
  for (size_t i = 0; x->op == OP_MUL && i < 2; i++) {
    const node *c = operation(g, v, x->src[i]);
    if (!is_positive(c)) continue;
    *scale = c;
    return operation(g, v, x->src[1 - i]);
  }
  return x;
}

/** The two sides of a difference: s − m, s + −m or −m + s. */
static bool sides(ir *g, const values *v, const node *x, const node **s, const node **m) {
  if (x->op != OP_SUB && x->op != OP_ADD) return false;
  const node *minus = x->op == OP_SUB ? x->src[1] : NULL;
  *s = x->src[0];
  for (size_t i = 0; i < 2 && !minus; i++) {
    const node *negated = operation(g, v, x->src[i]);
    if (negated->op != OP_NEG) continue;
    minus = negated->src[0];
    *s = x->src[1 - i];
  }
  if (!minus) return false;
  *s = term_original(g, v, *s);
  *m = term_original(g, v, minus);
  return true;
}

/** Whether m is the largest s over the ranges of t. */
static bool is_largest(ir *g, const values *v, const value *t, const node *s, const node *m,
                       value **most) {
  value *of = m->op == OP_INDEX ? map_get(&v->of, m->src[0]) : NULL;
  if (!of || of->tensor != m->src[0] || of->scan || of->reduce != OP_MAX) return false;
  if (of->n_reduced != t->n_reduced || term_varies(t, m)) return false;
  map with = coords_at(ir_arena(g), of, m, NULL);
  for (size_t i = 0; i < of->n_reduced; i++) {
    if (range_extent(of->reduced[i]) != range_extent(t->reduced[i])) return false;
    map_set(ir_arena(g), &with, of->reduced[i], (void *)t->reduced[i]);
  }
  bool is = term_original(g, v, subst_ranges(g, of->body, &with)) == s;
  if (is) *most = of;
  return is;
}

bool term_is_power(ir *g, const values *v, const value *t, const node *x, term_power *to) {
  const node *power = operation(g, v, x), *s;
  *to = (term_power){.base = (op)power->op};
  if (power->op != OP_EXP && power->op != OP_EXP2) return false;
  const node *difference = unscaled(g, v, power->src[0], &to->scale);
  return sides(g, v, difference, &s, &to->m) && is_largest(g, v, t, s, to->m, &to->most);
}

const node *term_raised(ir *g, const term_power *p, const node *difference) {
  if (p->scale) difference = ir_op2(g, OP_MUL, difference, p->scale);
  return ir_op1(g, p->base, difference);
}
