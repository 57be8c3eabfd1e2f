/* Proof obligations in SMT-LIB: for each rule on integers, booleans or indices, and each of the
   types it may be about, that both sides cannot differ. Integers are bit-vectors of 8 bits (16
   where the rule says so), indices are integers. What C leaves undefined is a function nothing is
   known of. A guard that is not known here is left out, which only asks for more. */
#include "rule.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

typedef struct sort {
  char kind; /* 'b' boolean, 'i' index, 'v' bit-vector, 0 unknown */
  bool is_signed;
  int bits;
} sort;

static const sort boolean = {'b', false, 0}, unknown = {0, false, 0};

typedef struct term {
  const char *text;
  sort sort;
} term;

typedef struct prover {
  const rule_file *file;
  const rule *rule;
  sort subject; /* the type at hand */
  char *head;   /* declarations */
  const char *name[128];
  term value[128];
  size_t names;
  int fresh;
  const char *why; /* it cannot be said */
  jmp_buf give_up;
} prover;

static _Noreturn void give_up(prover *p, const char *why) {
  p->why = why;
  longjmp(p->give_up, 1);
}

#if defined(__GNUC__)
__attribute__((format(printf, 1, 2)))
#endif
static char *
text_of(const char *format, ...) {
  va_list list, again;
  va_start(list, format);
  va_copy(again, list);
  int n = vsnprintf(NULL, 0, format, list);
  char *text = allocate((size_t)n + 1);
  vsnprintf(text, (size_t)n + 1, format, again);
  va_end(list);
  va_end(again);
  return text;
}

static bool same_sort(sort a, sort b) {
  return a.kind == b.kind && a.bits == b.bits && a.is_signed == b.is_signed;
}

static const char *sort_text(sort s) {
  if (s.kind == 'v') return text_of("(_ BitVec %d)", s.bits);
  return s.kind == 'b' ? "Bool" : "Int";
}

static sort sort_of_row(prover *p, size_t row) {
  const type_row *t = &type_table[row];
  if (!strcmp(t->cls, "BOOL")) return boolean;
  if (!strcmp(t->cls, "INDEX")) return (sort){'i', true, 0};
  if (!strcmp(t->cls, "FLOAT")) give_up(p, "floats");
  if (t->bytes > 2) give_up(p, "the same at fewer bits");
  return (sort){'v', !strcmp(t->cls, "INT"), 8 * t->bytes};
}

static bool admits(prover *p, type_set types, sort s) {
  for (size_t i = 0; i < type_count; i++) {
    if (!(types >> i & 1) || !strcmp(type_table[i].cls, "FLOAT")) continue;
    if (type_table[i].bytes <= 2 || s.kind == 'i')
      if (strcmp(type_table[i].cls, "NONE") && same_sort(sort_of_row(p, i), s)) return true;
  }
  return false;
}

static void bind(prover *p, const char *name, term value) {
  if (p->names == 128) give_up(p, "too many names");
  p->name[p->names] = name;
  p->value[p->names++] = value;
}

static const term *look_up(const prover *p, const char *name) {
  for (size_t i = p->names; i-- > 0;)
    if (!strcmp(p->name[i], name)) return &p->value[i];
  return NULL;
}

static const char *declare(prover *p, sort s) {
  const char *name = text_of("x%d", p->fresh++);
  p->head = text_of("%s(declare-const %s %s)\n", p->head, name, sort_text(s));
  return name;
}

/** A subexpression under a name of its own. */
static term define(prover *p, term t) {
  const char *name = text_of("x%d", p->fresh++);
  p->head = text_of("%s(define-fun %s () %s %s)\n", p->head, name, sort_text(t.sort), t.text);
  return (term){name, t.sort};
}

static term literal(prover *p, const number *v, sort s) {
  if (!s.kind) give_up(p, "a number of unknown type");
  if (v->is_float) give_up(p, "floats");
  if (s.kind == 'b') return (term){v->bits ? "true" : "false", s};
  if (s.kind == 'i')
    return (term){v->negative ? text_of("(- %llu)", (unsigned long long)(0 - v->bits))
                              : text_of("%llu", (unsigned long long)v->bits),
                  s};
  return (term){
      text_of("(_ bv%llu %d)", (unsigned long long)(v->bits & ((1u << s.bits) - 1)), s.bits), s};
}

/* What ops mean. */

typedef struct meaning {
  int op;
  const char *boolean, *index, *is_signed, *is_unsigned; /* $a $b $c, or NULL; $0 is zero */
} meaning;

static const meaning meanings[] = {
    {O_NEG, NULL, "(- $a)", "(bvneg $a)", "(bvneg $a)"},
    {O_ABS, NULL, NULL, "(ite (bvslt $a $0) (bvneg $a) $a)", "$a"},
    {O_NOT, "(not $a)", NULL, "(bvnot $a)", "(bvnot $a)"},
    {O_ADD, NULL, "(+ $a $b)", "(bvadd $a $b)", "(bvadd $a $b)"},
    {O_SUB, NULL, "(- $a $b)", "(bvsub $a $b)", "(bvsub $a $b)"},
    {O_MUL, NULL, "(* $a $b)", "(bvmul $a $b)", "(bvmul $a $b)"},
    {O_AND, "(and $a $b)", NULL, "(bvand $a $b)", "(bvand $a $b)"},
    {O_OR, "(or $a $b)", NULL, "(bvor $a $b)", "(bvor $a $b)"},
    {O_XOR, "(xor $a $b)", NULL, "(bvxor $a $b)", "(bvxor $a $b)"},
    {O_MAX, "(or $a $b)", "(ite (> $a $b) $a $b)", "(ite (bvsgt $a $b) $a $b)",
     "(ite (bvugt $a $b) $a $b)"},
    {O_MIN, "(and $a $b)", "(ite (< $a $b) $a $b)", "(ite (bvslt $a $b) $a $b)",
     "(ite (bvult $a $b) $a $b)"},
    {O_LT, "(and (not $a) $b)", "(< $a $b)", "(bvslt $a $b)", "(bvult $a $b)"},
    {O_LE, "(=> $a $b)", "(<= $a $b)", "(bvsle $a $b)", "(bvule $a $b)"},
    {O_EQ, "(= $a $b)", "(= $a $b)", "(= $a $b)", "(= $a $b)"},
    {O_NE, "(distinct $a $b)", "(distinct $a $b)", "(distinct $a $b)", "(distinct $a $b)"},
    {O_SHL, NULL, NULL, "(bvshl $a $b)", "(bvshl $a $b)"},
    {O_SHR, NULL, NULL, "(bvashr $a $b)", "(bvlshr $a $b)"},
    {O_MOD, NULL, NULL, "(ite (= $b $0) $0 (bvsmod $a $b))", "(ite (= $b $0) $0 (bvurem $a $b))"},
    {O_FLOORDIV, NULL, NULL,
     "(ite (= $b $0) $0 (ite (and (distinct (bvsrem $a $b) $0) (bvslt (bvxor $a $b) $0)) "
     "(bvadd (bvsdiv $a $b) (bvnot $0)) (bvsdiv $a $b)))",
     "(ite (= $b $0) $0 (bvudiv $a $b))"},
    {O_CDIV, NULL, NULL,
     "(ite (or (= $b $0) (and (= $b (bvnot $0)) (= $a (bvneg $a)) (distinct $a $0))) "
     "(undefined $a $b) (bvsdiv $a $b))",
     "(ite (= $b $0) (undefined $a $b) (bvudiv $a $b))"},
    {O_CMOD, NULL, NULL,
     "(ite (or (= $b $0) (and (= $b (bvnot $0)) (= $a (bvneg $a)) (distinct $a $0))) "
     "(undefined $a $b) (bvsrem $a $b))",
     "(ite (= $b $0) (undefined $a $b) (bvurem $a $b))"},
    {O_WHERE, "(ite $a $b $c)", "(ite $a $b $c)", "(ite $a $b $c)", "(ite $a $b $c)"},
};

static const char *meaning_of(prover *p, int op, sort s) {
  for (size_t i = 0; i < sizeof meanings / sizeof *meanings; i++) {
    if (meanings[i].op != op) continue;
    const char *text = s.kind == 'b'   ? meanings[i].boolean
                       : s.kind == 'i' ? meanings[i].index
                       : s.is_signed   ? meanings[i].is_signed
                                       : meanings[i].is_unsigned;
    if (text) return text;
  }
  give_up(p, "an op that has no meaning here");
}

/** An op on terms; `s` is the sort of its typed operand. */
static const char *fill(prover *p, int op, sort s, const term args[]) {
  char *out = text_of("%s", "");
  for (const char *m = meaning_of(p, op, s); *m; m++) {
    if (*m != '$') {
      out = text_of("%s%c", out, *m);
    } else if (*++m == '0') {
      out = text_of("%s(_ bv0 %d)", out, s.bits);
    } else {
      out = text_of("%s%s", out, args[*m - 'a'].text);
    }
  }
  return out;
}

/* Patterns. */

/** Whether a pattern can only be boolean. */
static bool is_boolean(prover *p, const pattern *q) {
  if (q->types && admits(p, q->types, boolean) && !(q->types & (q->types - 1))) return true;
  if (q->kind != P_OP) return false;
  type_rule rule = op_table[q->op].type;
  if (rule == COMPARE) return true;
  for (size_t i = rule == SELECT; i < q->n && (rule == SAME || rule == SELECT); i++)
    if (is_boolean(p, q->child[i])) return true;
  return false;
}

/** The sort of what is compared: boolean, or that of the one type written with it, or the subject.
 */
static sort compared(prover *p, const pattern *q) {
  for (size_t i = 0; i < q->n; i++) {
    const pattern *c = q->child[i];
    if (is_boolean(p, c)) return boolean;
    for (size_t k = 0; k < type_count; k++)
      if (c->types == (type_set)1 << k) return sort_of_row(p, k);
  }
  return p->subject;
}

static term pattern_term(prover *p, const pattern *q, sort s);

static term pattern_op(prover *p, const pattern *q, sort s) {
  const op_row *o = &op_table[q->op];
  term args[3];
  if (!o->elementwise || o->most > 3 || o->type == FREE) give_up(p, "conversions and arrays");
  sort operand = o->type == COMPARE ? compared(p, q) : s;
  int flag = operand.kind == 'b' ? TAKES_BOOL : operand.kind == 'i' ? TAKES_INDEX : TAKES_INT;
  if (!(o->operands & flag)) give_up(p, "floats");
  for (size_t i = 0; i < q->n; i++)
    args[i] = pattern_term(p, q->child[i], o->type == SELECT && !i ? boolean : operand);
  return (term){fill(p, q->op, operand, args), s};
}

static term pattern_term(prover *p, const pattern *q, sort s) {
  if (q->kind == P_TAIL) give_up(p, "conversions and arrays");
  if (q->types && !admits(p, q->types, s)) give_up(p, "another type");
  if (q->kind == P_NUMBER) return literal(p, &q->number, s);
  const term *known = q->name ? look_up(p, q->name) : NULL;
  if (known && !same_sort(known->sort, s)) give_up(p, "another type");
  if (known) return *known;
  term t = q->kind == P_OP ? pattern_op(p, q, s) : (term){declare(p, s), s};
  if (q->kind == P_OP) t = define(p, t);
  if (q->name) bind(p, q->name, t);
  return t;
}

/* Results. */

static term result_term(prover *p, const template *t, sort s);

/** The sort that an expression has by itself, or unknown. */
static sort own_sort(prover *p, const template *t) {
  if (t->kind == T_NAME) {
    const term *known = look_up(p, t->name);
    return known ? known->sort : unknown;
  }
  if (t->types)
    for (size_t i = 0; i < type_count; i++)
      if (t->types >> i & 1) return sort_of_row(p, i);
  if (t->kind != T_OP) return unknown;
  if (op_table[t->op].type == COMPARE) return boolean;
  for (size_t i = op_table[t->op].type == SELECT; i < t->n; i++) {
    sort s = own_sort(p, t->child[i]);
    if (s.kind) return s;
  }
  return unknown;
}

static term result_cast(prover *p, const template *t) {
  sort to = own_sort(p, t);
  term from = result_term(p, t->child[0], unknown);
  if (to.kind != 'v' || from.sort.kind != 'v' || to.bits != from.sort.bits)
    give_up(p, "conversions and arrays");
  return (term){from.text, to};
}

static term result_op(prover *p, const template *t, sort s) {
  const op_row *o = &op_table[t->op];
  term args[3];
  if (t->op == O_CAST) return result_cast(p, t);
  if (!o->elementwise || o->most > 3 || o->type == FREE) give_up(p, "conversions and arrays");
  sort operand = o->type == COMPARE ? unknown : s;
  for (size_t i = o->type == SELECT; i < t->n; i++) {
    sort own = own_sort(p, t->child[i]);
    if (own.kind) operand = own;
  }
  if (!operand.kind)
    for (size_t i = 0; i < t->n; i++)
      if (t->child[i]->kind != T_NUMBER) operand = result_term(p, t->child[i], unknown).sort;
  for (size_t i = 0; i < t->n; i++)
    args[i] = result_term(p, t->child[i], o->type == SELECT && !i ? boolean : operand);
  sort made = o->type == COMPARE ? boolean : o->type == SELECT ? args[1].sort : args[0].sort;
  return define(p, (term){fill(p, t->op, o->type == SELECT ? made : args[0].sort, args), made});
}

/** The logarithm l of a power of two: 1 << l is it, and l is in range. */
static term logarithm(prover *p, term of) {
  term l = {declare(p, of.sort), of.sort};
  p->head = text_of("%s(assert (= (bvshl (_ bv1 %d) %s) %s))\n(assert (bvult %s (_ bv%d %d)))\n",
                    p->head, of.sort.bits, l.text, of.text, l.text, of.sort.bits, of.sort.bits);
  return l;
}

static term result_call(prover *p, const template *t, sort s) {
  size_t names = p->names;
  if (!strcmp(t->name, "log2-of")) return logarithm(p, result_term(p, t->child[0], s));
  for (size_t i = 0; i < p->file->n_definitions; i++) {
    const definition *d = &p->file->definitions[i];
    if (strcmp(d->name, t->name)) continue;
    term args[16];
    for (size_t k = 0; k < t->n && k < 16; k++) args[k] = result_term(p, t->child[k], s);
    for (size_t k = 0; k < d->n && k < 16; k++) bind(p, d->parameters[k], args[k]);
    term r = result_term(p, d->body, s);
    p->names = names;
    return r;
  }
  give_up(p, "a function of guards.c");
}

static term result_let(prover *p, const template *t, sort s) {
  size_t names = p->names;
  for (size_t i = 0; i + 1 < t->n; i++) bind(p, t->names[i], result_term(p, t->child[i], unknown));
  term r = result_term(p, t->child[t->n - 1], s);
  p->names = names;
  return r;
}

static term result_term(prover *p, const template *t, sort s) {
  const term *known;
  switch (t->kind) {
  case T_NAME:
    known = look_up(p, t->name);
    if (!known) give_up(p, "conversions and arrays");
    return *known;
  case T_NUMBER: {
    sort own = own_sort(p, t);
    return literal(p, &t->number, own.kind ? own : s);
  }
  case T_OP: return result_op(p, t, s);
  case T_CALL: return result_call(p, t, s);
  case T_LET: return result_let(p, t, s);
  default: give_up(p, "floats");
  }
}

/* Guards, as far as they are assumed. */

static void assume(prover *p, const condition *c) {
  const term *a = c->n > 0 ? look_up(p, c->args[0]) : NULL;
  const term *b = c->n > 1 ? look_up(p, c->args[1]) : NULL;
  if (c->negated || !a) return;
  if (!strcmp(c->name, "power-of-two") && a->sort.kind == 'v')
    p->head = text_of("%s(assert (and (%s %s (_ bv0 %d)) (= (bvand %s (bvsub %s (_ bv1 %d))) "
                      "(_ bv0 %d))))\n",
                      p->head, a->sort.is_signed ? "bvsgt" : "bvugt", a->text, a->sort.bits,
                      a->text, a->text, a->sort.bits, a->sort.bits);
  else if (!strcmp(c->name, "implies") && b)
    p->head = text_of("%s(assert (=> %s %s))\n", p->head, a->text, b->text);
  else if (!strcmp(c->name, "excludes") && b)
    p->head = text_of("%s(assert (not (and %s %s)))\n", p->head, a->text, b->text);
}

static const char *say(prover *p) {
  if (p->subject.kind == 'v')
    p->head = text_of("(declare-fun undefined ((_ BitVec %d) (_ BitVec %d)) (_ BitVec %d))\n",
                      p->subject.bits, p->subject.bits, p->subject.bits);
  sort s = is_boolean(p, p->rule->pattern) ? boolean : p->subject;
  term before = pattern_term(p, p->rule->pattern, s);
  bind(p, "root", before);
  for (size_t i = 0; i < p->rule->n_conditions; i++) assume(p, &p->rule->conditions[i]);
  term after = result_term(p, p->rule->result, s);
  if (!same_sort(before.sort, after.sort)) give_up(p, "conversions and arrays");
  return text_of("%s(assert (distinct %s %s))\n", p->head, before.text, after.text);
}

static const char *say_or_why(prover *p) { return setjmp(p->give_up) ? NULL : say(p); }

static bool emit_for(FILE *out, const rule_file *f, const rule *r, sort subject, const char *type,
                     const char **why) {
  prover *p = allocate(sizeof *p);
  *p = (prover){.file = f, .rule = r, .subject = subject, .head = text_of("%s", "")};
  const char *text = say_or_why(p);
  *why = p->why;
  if (!text) return false;
  fprintf(out, "(push)\n(echo \"%s %s %s\")\n%s(check-sat)\n(pop)\n\n", f->set, r->name, type,
          text);
  return true;
}

static void emit_rule(FILE *out, const rule_file *f, const rule *r) {
  static const struct {
    sort sort;
    const char *name;
  } subjects[] = {{{'v', true, 8}, "i8"},
                  {{'v', false, 8}, "u8"},
                  {{'b', false, 0}, "bool"},
                  {{'i', true, 0}, "index"}};
  const char *why = "floats", *last = why;
  bool any = false;
  for (size_t i = 0; i < sizeof subjects / sizeof *subjects && !r->unproved; i++) {
    bool said = emit_for(out, f, r, subjects[i].sort, subjects[i].name, &last);
    any |= said;
    if (!said && strcmp(last, "another type")) why = last;
  }
  if (!any)
    fprintf(out, "(echo \"%s %s: %s\")\n\n", f->set, r->name, r->unproved ? r->unproved : why);
}

void emit_obligations(FILE *out, rule_file *const files[], size_t n) {
  fprintf(out, "; Made by rulec: every answer must be unsat.\n\n");
  for (size_t i = 0; i < n; i++)
    for (size_t k = 0; k < files[i]->n_rules; k++) emit_rule(out, files[i], &files[i]->rules[k]);
}
