/* Implements guards as sorted lists of literals, each list once. */
#include "ir/core/guard.h"

#include <string.h>

/** The ITEM or variable from 0 to 1 that a comparison finds to be 1; NULL for others: a RANGE
   changes inside of a run, so no step can be skipped by it. */
static const node *tested_index(const node *condition) {
  if (condition->op != OP_LT || !node_is_bits(condition->src[0], 0)) return NULL;
  const node *c = condition->src[1];
  bool is_one_per_run = c->op == OP_ITEM || c->op == OP_VAR;
  return is_one_per_run && c->lo >= 0 && c->hi <= 1 ? c : NULL;
}

const node *guard_condition(const node *n) {
  if (n->op == OP_WHERE && n->dtype == DT_INDEX) return tested_index(n->src[0]);
  return n->op == OP_PICK ? n->src[0] : NULL;
}

/** The guard of a list in order, of which the table takes a copy. */
static const guard *find_guard(guard_table *t, const guard_literal list[], size_t n) {
  for (size_t i = 0; i < t->at.n; i++)
    if (t->at.at[i]->n == n && (!n || !memcmp(t->at.at[i]->at, list, n * sizeof *list)))
      return t->at.at[i];
  guard *made = arena_alloc(t->a, sizeof *made);
  guard_literal *at = arena_calloc(t->a, n + 1, sizeof *at);
  if (n) memcpy(at, list, n * sizeof *at);
  *made = (guard){n, at};
  vec_push(t->a, &t->at, made);
  return made;
}

static int compare_literals(const guard_literal *a, const guard_literal *b) {
  if (a->condition != b->condition) return a->condition->id < b->condition->id ? -1 : 1;
  return (int)a->is_one - (int)b->is_one;
}

const guard *guard_always(guard_table *t) { return find_guard(t, NULL, 0); }

/** Merges two guards: all literals, or those of both. */
static const guard *merge(guard_table *t, const guard *a, const guard *b, bool all) {
  guard_literal *list = arena_calloc(t->a, a->n + b->n + 1, sizeof *list);
  size_t i = 0, k = 0, n = 0;
  while (i < a->n || k < b->n) {
    int order = i == a->n ? 1 : k == b->n ? -1 : compare_literals(&a->at[i], &b->at[k]);
    const guard_literal *from = order <= 0 ? &a->at[i] : &b->at[k];
    if (all || !order) {
      list[n].condition = from->condition;
      list[n++].is_one = from->is_one;
    }
    i += order <= 0;
    k += order >= 0;
  }
  return find_guard(t, list, n);
}

const guard *guard_both(guard_table *t, const guard *a, const guard *b) {
  return a == b || !b->n ? a : !a->n ? b : merge(t, a, b, true);
}

const guard *guard_with(guard_table *t, const guard *of, const node *condition, bool is_one) {
  guard_literal one[1];
  memset(one, 0, sizeof one);
  one->condition = condition;
  one->is_one = is_one;
  return guard_both(t, of, find_guard(t, one, 1));
}

const guard *guard_common(guard_table *t, const guard *a, const guard *b) {
  if (!a || !b || a == b) return a ? a : b;
  return !a->n || !b->n ? guard_always(t) : merge(t, a, b, false);
}

const guard *guard_of_source(guard_table *t, const guard *of, const node *n, size_t i) {
  const node *c = of && (i == 1 || i == 2) ? guard_condition(n) : NULL;
  return c ? guard_with(t, of, c, i == 1) : of;
}
