/* Infers the types of patterns by unification: nodes that must have the same type form a class
   (union-find), and each class keeps the set of types that its nodes may have. Patterns that no
   types fit are errors. */
#include "rule_ast.h"

#include <string.h>

static type_set all_types(void) {
  type_set all = 0;
  for (size_t i = 0; i < type_table_rows; i++)
    if (strcmp(type_table[i].cls, "NONE")) all |= (type_set)1 << i;
  return all;
}

type_set types_of_class(const char *cls) {
  type_set set = 0;
  for (size_t i = 0; i < type_table_rows; i++)
    if (!strcmp(type_table[i].cls, cls)) set |= (type_set)1 << i;
  return set;
}

/** Types that the operands of an op may have. */
static type_set operand_types(int op) {
  int operands = op_table[op].operands;
  return (operands & TAKES_BOOL ? types_of_class("BOOL") : 0) |
         (operands & TAKES_INT ? types_of_class("INT") | types_of_class("UINT") : 0) |
         (operands & TAKES_FLOAT ? types_of_class("FLOAT") : 0) |
         (operands & TAKES_INDEX ? types_of_class("INDEX") : 0);
}

typedef struct typing {
  rule *r;
  int same_as[RULE_MOST_CLASSES]; /* union-find parent of each class */
  size_t n;
  const char *name[RULE_MOST_CAPTURES]; /* captures met so far */
  int of[RULE_MOST_CAPTURES];           /* their classes */
  size_t names;
} typing;

static int new_class(typing *t, place at, type_set types) {
  if (t->n == RULE_MOST_CLASSES) fail(at, "too many types in one pattern");
  t->same_as[t->n] = (int)t->n;
  t->r->class_types[t->n] = types;
  return (int)t->n++;
}

static int find_class(const typing *t, int c) {
  while (t->same_as[c] != c) c = t->same_as[c];
  return c;
}

static void restrict_class(typing *t, place at, int c, type_set types) {
  type_set *set = &t->r->class_types[find_class(t, c)];
  *set &= types;
  if (!*set) fail(at, "no type fits here");
}

static void join_classes(typing *t, place at, int a, int b) {
  a = find_class(t, a);
  b = find_class(t, b);
  if (a == b) return;
  t->same_as[b] = a;
  restrict_class(t, at, a, t->r->class_types[b]);
}

/** Joins the class `own` of a pattern with that of earlier captures of the same name; returns it.
 */
static int join_capture(typing *t, const pattern *p, int own) {
  for (size_t i = 0; i < t->names && p->name; i++)
    if (!strcmp(t->name[i], p->name)) {
      join_classes(t, p->at, t->of[i], own);
      return own;
    }
  if (!p->name) return own;
  if (t->names == RULE_MOST_CAPTURES) fail(p->at, "too many captures");
  t->name[t->names] = p->name;
  t->of[t->names++] = own;
  return own;
}

static void type_pattern(typing *t, pattern *p);

static void type_sources(typing *t, const pattern *p) {
  const op_row *o = &op_table[p->op];
  int operand = -1; /* class of the sources that have the same type */
  for (size_t i = 0; i < p->n; i++) {
    pattern *c = p->child[i];
    if (c->kind == P_TAIL) continue;
    type_pattern(t, c);
    bool condition = o->type == SELECT && !i;
    if (condition) restrict_class(t, c->at, c->type_class, types_of_class("BOOL"));
    if (condition || (o->type == FIRST && i)) continue;
    if (operand < 0) restrict_class(t, c->at, c->type_class, operand_types(p->op));
    if (operand >= 0) join_classes(t, c->at, operand, c->type_class);
    operand = c->type_class;
  }
  bool has_operand_type =
      o->type == SAME || o->type == SHIFT || o->type == SELECT || o->type == FIRST;
  if (has_operand_type && operand >= 0) join_classes(t, p->at, p->type_class, operand);
}

static void type_pattern(typing *t, pattern *p) {
  type_set types = all_types();
  if (p->kind == P_OP && op_table[p->op].type == COMPARE) types = types_of_class("BOOL");
  if (p->kind == P_OP && op_table[p->op].type == FREE) types = operand_types(p->op);
  if (p->kind == P_NUMBER && p->number.is_float) types = types_of_class("FLOAT");
  p->type_class = join_capture(t, p, new_class(t, p->at, types));
  if (p->types) restrict_class(t, p->at, p->type_class, p->types);
  if (p->kind == P_OP) type_sources(t, p);
}

/** Replaces classes by their representatives. */
static void resolve_classes(const typing *t, pattern *p) {
  if (p->kind == P_TAIL) return;
  p->type_class = find_class(t, p->type_class);
  for (size_t i = 0; i < p->n; i++) resolve_classes(t, p->child[i]);
}

void rules_infer_types(rule_file *f) {
  for (size_t i = 0; i < f->n_rules; i++) {
    typing t = {.r = &f->rules[i]};
    type_pattern(&t, t.r->pattern);
    resolve_classes(&t, t.r->pattern);
    t.r->n_classes = t.n;
    for (size_t k = 0; k < t.n; k++)
      if (t.same_as[k] != (int)k) t.r->class_types[k] = 0;
  }
}
