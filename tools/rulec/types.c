/* What is known of the types in a pattern. Nodes that must have one type are a class; a class has
   the set of types that its nodes may have. */
#include "rule.h"

#include <string.h>

static type_set everything(void) {
  type_set all = 0;
  for (size_t i = 0; i < type_count; i++)
    if (strcmp(type_table[i].cls, "NONE")) all |= (type_set)1 << i;
  return all;
}

type_set types_of_class(const char *cls) {
  type_set set = 0;
  for (size_t i = 0; i < type_count; i++)
    if (!strcmp(type_table[i].cls, cls)) set |= (type_set)1 << i;
  return set;
}

static type_set types_taken(int op) {
  int operands = op_table[op].operands;
  return (operands & TAKES_BOOL ? types_of_class("BOOL") : 0) |
         (operands & TAKES_INT ? types_of_class("INT") | types_of_class("UINT") : 0) |
         (operands & TAKES_FLOAT ? types_of_class("FLOAT") : 0) |
         (operands & TAKES_INDEX ? types_of_class("INDEX") : 0);
}

typedef struct typing {
  rule *r;
  int same_as[MOST_CLASSES]; /* a class that was joined to another */
  size_t n;
  const char *name[MOST_CAPTURES]; /* captures that were met */
  int of[MOST_CAPTURES];
  size_t names;
} typing;

static int new_class(typing *t, place at, type_set types) {
  if (t->n == MOST_CLASSES) fail(at, "too many types in one pattern");
  t->same_as[t->n] = (int)t->n;
  t->r->class_types[t->n] = types;
  return (int)t->n++;
}

static int found(const typing *t, int c) {
  while (t->same_as[c] != c) c = t->same_as[c];
  return c;
}

static void restrict_class(typing *t, place at, int c, type_set types) {
  type_set *set = &t->r->class_types[found(t, c)];
  *set &= types;
  if (!*set) fail(at, "no type fits here");
}

static void join(typing *t, place at, int a, int b) {
  a = found(t, a);
  b = found(t, b);
  if (a == b) return;
  t->same_as[b] = a;
  restrict_class(t, at, a, t->r->class_types[b]);
}

/** The class of a capture, which is `own` if it is met for the first time. */
static int named(typing *t, const pattern *p, int own) {
  for (size_t i = 0; i < t->names && p->name; i++)
    if (!strcmp(t->name[i], p->name)) {
      join(t, p->at, t->of[i], own);
      return own;
    }
  if (!p->name) return own;
  if (t->names == MOST_CAPTURES) fail(p->at, "too many captures");
  t->name[t->names] = p->name;
  t->of[t->names++] = own;
  return own;
}

static void type_pattern(typing *t, pattern *p);

static void type_sources(typing *t, const pattern *p) {
  const op_row *o = &op_table[p->op];
  int operand = -1; /* the source that the others are like */
  for (size_t i = 0; i < p->n; i++) {
    pattern *c = p->child[i];
    if (c->kind == P_TAIL) continue;
    type_pattern(t, c);
    bool condition = o->type == SELECT && !i;
    if (condition) restrict_class(t, c->at, c->type_class, types_of_class("BOOL"));
    if (condition || (o->type == FIRST && i)) continue;
    if (operand < 0) restrict_class(t, c->at, c->type_class, types_taken(p->op));
    if (operand >= 0) join(t, c->at, operand, c->type_class);
    operand = c->type_class;
  }
  bool alike = o->type == SAME || o->type == SHIFT || o->type == SELECT || o->type == FIRST;
  if (alike && operand >= 0) join(t, p->at, p->type_class, operand);
}

static void type_pattern(typing *t, pattern *p) {
  type_set types = everything();
  if (p->kind == P_OP && op_table[p->op].type == COMPARE) types = types_of_class("BOOL");
  if (p->kind == P_OP && op_table[p->op].type == FREE) types = types_taken(p->op);
  if (p->kind == P_NUMBER && p->number.is_float) types = types_of_class("FLOAT");
  p->type_class = named(t, p, new_class(t, p->at, types));
  if (p->types) restrict_class(t, p->at, p->type_class, p->types);
  if (p->kind == P_OP) type_sources(t, p);
}

static void settle(const typing *t, pattern *p) {
  if (p->kind == P_TAIL) return;
  p->type_class = found(t, p->type_class);
  for (size_t i = 0; i < p->n; i++) settle(t, p->child[i]);
}

void rules_type(rule_file *f) {
  for (size_t i = 0; i < f->n_rules; i++) {
    typing t = {.r = &f->rules[i]};
    type_pattern(&t, t.r->pattern);
    settle(&t, t.r->pattern);
    t.r->n_classes = t.n;
    for (size_t k = 0; k < t.n; k++)
      if (t.same_as[k] != (int)k) t.r->class_types[k] = 0;
  }
}
