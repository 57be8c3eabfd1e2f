/* Expands commutative patterns of rewrite rules: each pattern becomes its variants with operands
   swapped in every way, so that matchers need no backtracking. Also rejects rules that never fire,
   because an earlier rule subsumes them. */
#include "rule_ast.h"

#include <string.h>

/* Variants. */

typedef struct patterns {
  pattern **at;
  size_t n;
} patterns;

enum { MOST_VARIANTS = 256 };

/** Number of captures of a name in a pattern. */
static int count_captures(const pattern *p, const char *name) {
  int n = p->name && !strcmp(p->name, name);
  for (size_t i = 0; i < p->n; i++) n += count_captures(p->child[i], name);
  return n;
}

/** True for a pattern that matches any node independently of the others: swapping two of these
    matches nothing new. */
static bool matches_anything(const pattern *p, const pattern *root) {
  return p->kind == P_ANY && !p->types && (!p->name || count_captures(root, p->name) == 1);
}

static pattern *with_children(const pattern *p, pattern *const child[]) {
  pattern *c = allocate(sizeof *c);
  *c = *p;
  c->child = allocate(p->n * sizeof *c->child);
  for (size_t i = 0; i < p->n; i++) c->child[i] = child[i];
  return c;
}

static patterns variants_of(const pattern *p, const rule *r);

/** True if swapping a pattern's operands never changes its value. MAX and MIN of floats choose
    between 0 and −0 by order. */
static bool commutes(const pattern *p, const rule *r) {
  if (p->kind != P_OP || !op_table[p->op].commutative || p->n != 2) return false;
  bool picks_zero = p->op == O_MAX || p->op == O_MIN;
  return !picks_zero || !(r->class_types[p->type_class] & types_of_class("FLOAT"));
}

/** Adds all combinations of the children's variants, with operands swapped if `swap`. */
static void add_combinations(patterns *all, const pattern *p, const patterns of[], bool swap) {
  size_t index[64] = {0}, n = p->n;
  if (n > 64) fail(p->at, "too many sources");
  for (;;) {
    pattern *child[64];
    for (size_t i = 0; i < n; i++) child[swap ? n - 1 - i : i] = of[i].at[index[i]];
    if (all->n == MOST_VARIANTS) fail(p->at, "too many ways to swap operands");
    append(all->at, all->n, with_children(p, child));
    size_t i = 0;
    while (i < n && ++index[i] == of[i].n) index[i++] = 0;
    if (i == n) return;
  }
}

static patterns variants_of(const pattern *p, const rule *r) {
  patterns all = {0}, *of = allocate(p->n * sizeof *of);
  for (size_t i = 0; i < p->n; i++) of[i] = variants_of(p->child[i], r);
  add_combinations(&all, p, of, false);
  if (commutes(p, r) &&
      !(matches_anything(p->child[0], r->pattern) && matches_anything(p->child[1], r->pattern)))
    add_combinations(&all, p, of, true);
  return all;
}

/* Subsumption: whether one pattern matches everything that another matches. */

typedef struct pairing {
  const char *name[64];
  const pattern *with[64];
  size_t n;
} pairing;

static bool same_number(const number *a, const number *b) {
  if (a->is_float != b->is_float || a->negative != b->negative) return false;
  return a->is_float ? !memcmp(&a->value, &b->value, sizeof a->value) : a->bits == b->bits;
}

/** True if pattern a accepts all types that b accepts. */
static bool types_within(const pattern *b, const pattern *a) {
  return !a->types || (b->types && !(b->types & ~a->types));
}

/** Pairs the capture of a with the pattern b; false if a repeated capture of a stands for different
    captures of b. */
static bool pair_captures(pairing *p, const pattern *a, const pattern *b) {
  for (size_t i = 0; i < p->n && a->name; i++)
    if (!strcmp(p->name[i], a->name))
      return p->with[i]->name && b->name && !strcmp(p->with[i]->name, b->name);
  if (a->name && p->n < 64) {
    p->name[p->n] = a->name;
    p->with[p->n++] = b;
  }
  return true;
}

static bool subsumes(pairing *p, const pattern *a, const pattern *b) {
  if (a->kind == P_TAIL || b->kind == P_TAIL) return a->kind == b->kind;
  if (!types_within(b, a) || !pair_captures(p, a, b)) return false;
  switch (a->kind) {
  case P_ANY: return true;
  case P_CONST: return b->kind == P_CONST || b->kind == P_NUMBER;
  case P_NUMBER: return b->kind == P_NUMBER && same_number(&a->number, &b->number);
  default: break;
  }
  if (b->kind != P_OP || a->op != b->op || a->n != b->n) return false;
  for (size_t i = 0; i < a->n; i++)
    if (!subsumes(p, a->child[i], b->child[i])) return false;
  return true;
}

static bool rule_subsumes(const rule *a, const rule *b) {
  if (a->n_conditions || (a->math && a->math != b->math)) return false;
  for (size_t i = 0; i < a->n_variants; i++) {
    pairing p = {.n = 0};
    if (subsumes(&p, a->variants[i], b->pattern)) return true;
  }
  return false;
}

void rules_expand_variants(rule_file *f) {
  for (size_t i = 0; i < f->n_rules; i++) {
    rule *r = &f->rules[i];
    patterns all = variants_of(r->pattern, r);
    r->variants = all.at;
    r->n_variants = all.n;
    for (size_t k = 0; k < i; k++)
      if (rule_subsumes(&f->rules[k], r))
        fail(r->at, "'%s' never fires: '%s' (line %d) matches all that it matches", r->name,
             f->rules[k].name, f->rules[k].at.line);
  }
}
