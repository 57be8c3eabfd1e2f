/* Generates proof obligations for rewrite rules in SMT-LIB: for each rule, and each assignment of
   types to its pattern, the formula that both sides differ, which must be unsatisfiable. Results
   that C leaves undefined are unconstrained. Some guards are decided by types; known guards are
   assumed; unknown guards are dropped, which only makes the obligation stronger. Rules with :math
   are inexact and have no obligation. */
#include "smt.h"

#include <stdlib.h>
#include <string.h>

enum { UNKNOWN = -1 };

typedef struct prover {
  script s;
  const rule_file *file;
  const rule *rule;
  const int *type;       /* of each class */
  const char *name[128]; /* bound names and their terms */
  term value[128];
  size_t names;
} prover;

static void bind(prover *p, const char *name, term value) {
  if (p->names == 128) smt_unsupported(&p->s, "too many names");
  p->name[p->names] = name;
  p->value[p->names++] = value;
}

static const term *look_up(const prover *p, const char *name) {
  for (size_t i = p->names; i-- > 0;)
    if (!strcmp(p->name[i], name)) return &p->value[i];
  return NULL;
}

static bool lacks(const prover *p, int op) {
  for (size_t i = 0; i < p->rule->n_conditions; i++) {
    const condition *c = &p->rule->conditions[i];
    if (!c->negated && !strcmp(c->name, "lacks") && c->op == op) return true;
  }
  return false;
}

static void check_op(prover *p, int op) {
  const op_row *o = &op_table[op];
  if (!o->elementwise || o->most > 3) smt_unsupported(&p->s, "no scalars");
}

/* Patterns. */

static term pattern_term(prover *p, const pattern *q) {
  if (q->kind == P_TAIL) smt_unsupported(&p->s, "no scalars");
  int type = p->type[q->type_class];
  if (q->kind == P_NUMBER) return smt_number(&p->s, &q->number, type);
  const term *known = q->name ? look_up(p, q->name) : NULL;
  if (known) return *known;
  term args[3], t;
  if (q->kind == P_OP) check_op(p, q->op);
  for (size_t i = 0; q->kind == P_OP && i < q->n; i++) args[i] = pattern_term(p, q->child[i]);
  if (q->kind != P_OP)
    t = smt_fresh(&p->s, type);
  else if (q->op == O_CAST)
    t = smt_cast(&p->s, args[0], type);
  else if (q->op == O_BITCAST)
    t = smt_bitcast(&p->s, args[0], type);
  else
    t = smt_op(&p->s, q->op, args, type);
  if (q->kind == P_OP) t = smt_define(&p->s, t);
  if (q->name) bind(p, q->name, t);
  return t;
}

/* Results. Types are inferred as in emit_c.c. */

static term result_term(prover *p, const template *t, int type);

/** Arguments of an op or call: the first one with a type of its own determines that of the others.
 */
static void argument_terms(prover *p, const template *t, size_t from, int type, term args[]) {
  size_t anchor = from;
  while (anchor < t->n && !template_is_typed(t->child[anchor])) anchor++;
  if (anchor < t->n) {
    args[anchor] = result_term(p, t->child[anchor], type);
    type = args[anchor].type;
  }
  for (size_t i = from; i < t->n; i++)
    if (i != anchor) args[i] = result_term(p, t->child[i], type);
}

static int written_type(prover *p, const template *t) {
  for (size_t i = 0; i < type_table_rows; i++)
    if (t->types >> i & 1) return (int)i;
  const term *of = t->type_of ? look_up(p, t->type_of) : NULL;
  return of ? of->type : UNKNOWN;
}

static term result_conversion(prover *p, const template *t) {
  term from = result_term(p, t->child[0], UNKNOWN);
  int to = written_type(p, t);
  if (t->op == O_BITCAST) return smt_bitcast(&p->s, from, to);
  return lacks(p, O_CAST) ? smt_machine_cast(&p->s, from, to) : smt_cast(&p->s, from, to);
}

static term result_op(prover *p, const template *t, int type) {
  const op_row *o = &op_table[t->op];
  int boolean = find_type("bool", 4);
  bool machine = lacks(p, t->op) || t->op == O_CDIV || t->op == O_CMOD;
  term args[3];
  check_op(p, t->op);
  if (o->type == FREE) return smt_define(&p->s, result_conversion(p, t));
  argument_terms(p, t, o->type == SELECT, o->type == COMPARE ? UNKNOWN : type, args);
  if (o->type == SELECT) args[0] = result_term(p, t->child[0], boolean);
  int made = o->type == COMPARE ? boolean : args[o->type == SELECT].type;
  return smt_define(&p->s, machine ? smt_machine_op(&p->s, t->op, args, made)
                                   : smt_op(&p->s, t->op, args, made));
}

/** A fresh l with 1 << l equal to a power of two, and l in range. */
static term logarithm_term(prover *p, term of) {
  term l = smt_fresh(&p->s, of.type);
  int bits = 8 * type_table[of.type].bytes;
  smt_assert(&p->s, text_of("(= (bvshl (_ bv1 %d) %s) %s)", bits, l.text, of.text));
  smt_assert(&p->s, text_of("(bvult %s (_ bv%d %d))", l.text, bits, bits));
  return l;
}

/** The result of a builder of rules/rule_functions.h, as documented. */
static term builder_term(prover *p, const template *t, const term args[]) {
  term one_over[] = {smt_number(&p->s, &(number){.bits = 1}, args[0].type), args[0]};
  if (!strcmp(t->name, "log2-of")) return logarithm_term(p, args[0]);
  if (!strcmp(t->name, "reciprocal-of")) return smt_op(&p->s, O_DIV, one_over, args[0].type);
  if (!strcmp(t->name, "known-equal")) return smt_op(&p->s, O_EQ, args, find_type("bool", 4));
  smt_unsupported(&p->s, "a function of rule_functions.c");
}

static term result_call(prover *p, const template *t, int type) {
  term args[16];
  if (t->n > 16) smt_unsupported(&p->s, "too many arguments");
  argument_terms(p, t, 0, type, args);
  for (size_t i = 0; i < p->file->n_definitions; i++) {
    const definition *d = &p->file->definitions[i];
    if (strcmp(d->name, t->name)) continue;
    size_t names = p->names;
    for (size_t k = 0; k < d->n; k++) bind(p, d->parameters[k], args[k]);
    term r = result_term(p, d->body, look_up(p, "root")->type);
    p->names = names;
    return r;
  }
  return builder_term(p, t, args);
}

static term result_let(prover *p, const template *t, int type) {
  size_t names = p->names;
  for (size_t i = 0; i + 1 < t->n; i++) bind(p, t->names[i], result_term(p, t->child[i], UNKNOWN));
  term r = result_term(p, t->child[t->n - 1], type);
  p->names = names;
  return r;
}

static term result_number(prover *p, const template *t, int type) {
  if (t->type) type = written_type(p, t);
  if (type == UNKNOWN) smt_unsupported(&p->s, "a number of unknown type");
  return smt_number(&p->s, &t->number, type);
}

static term result_term(prover *p, const template *t, int type) {
  const term *known;
  switch (t->kind) {
  case T_NAME:
    known = look_up(p, t->name);
    if (!known) smt_unsupported(&p->s, "no scalars");
    return *known;
  case T_NUMBER: return result_number(p, t, type);
  case T_OP: return result_op(p, t, type);
  case T_CALL: return result_call(p, t, type);
  case T_LET: return result_let(p, t, type);
  default: smt_unsupported(&p->s, "a polynomial");
  }
}

/* Guards. */

static void assume_power(prover *p, const term *c) {
  const type_row *t = &type_table[c->type];
  int bits = 8 * t->bytes;
  if (!smt_has_class(c->type, "FLOAT")) {
    const char *more = smt_has_class(c->type, "INT") ? "bvsgt" : "bvugt";
    smt_assert(&p->s, text_of("(%s %s (_ bv0 %d))", more, c->text, bits));
    smt_assert(&p->s, text_of("(= (bvand %s (bvsub %s (_ bv1 %d))) (_ bv0 %d))", c->text, c->text,
                              bits, bits));
    return;
  }
  /* The float and its reciprocal are normal: exponent bits 1 … 2·bias − 1. */
  const char *b = smt_bits(&p->s, *c).text;
  int most = (1 << t->exponent) - 3;
  const char *e = text_of("((_ extract %d %d) %s)", bits - 2, t->mantissa, b);
  smt_assert(&p->s,
             text_of("(= ((_ extract %d 0) %s) (_ bv0 %d))", t->mantissa - 1, b, t->mantissa));
  smt_assert(&p->s, text_of("(and (bvuge %s (_ bv1 %d)) (bvule %s (_ bv%d %d)))", e, t->exponent, e,
                            most, t->exponent));
}

static void assume_guard(prover *p, const condition *c) {
  const term *a = c->n > 0 ? look_up(p, c->args[0]) : NULL;
  const term *b = c->n > 1 ? look_up(p, c->args[1]) : NULL;
  if (c->negated || !a) return;
  if (!strcmp(c->name, "power-of-two"))
    assume_power(p, a);
  else if (!strcmp(c->name, "implies") && b)
    smt_assert(&p->s, text_of("(=> %s %s)", a->text, b->text));
  else if (!strcmp(c->name, "excludes") && b)
    smt_assert(&p->s, text_of("(not (and %s %s))", a->text, b->text));
  else if ((!strcmp(c->name, "exact-cast") || !strcmp(c->name, "fits")) && b)
    smt_assert(&p->s, smt_same_number(&p->s, *a, *b));
}

/** False if the types alone refute a guard. */
static bool types_allow(const prover *p, const condition *c) {
  if (c->negated || strcmp(c->name, "no-wider")) return true;
  return type_table[look_up(p, c->args[0])->type].bytes <=
         type_table[look_up(p, c->args[1])->type].bytes;
}

/** True if the pattern's nodes can have these types: a bitcast keeps the width. */
static bool types_are_possible(const pattern *q, const int type[]) {
  bool all =
      q->kind != P_OP || q->op != O_BITCAST ||
      type_table[type[q->type_class]].bytes == type_table[type[q->child[0]->type_class]].bytes;
  for (size_t i = 0; i < q->n; i++) all &= types_are_possible(q->child[i], type);
  return all;
}

/* Rules. */

static bool pattern_has(const pattern *q, int op) {
  bool any = q->kind == P_OP && q->op == op;
  for (size_t i = 0; i < q->n; i++) any |= pattern_has(q->child[i], op);
  return any;
}

static bool template_has(const template *t, int op) {
  bool any = t->kind == T_OP && t->op == op;
  for (size_t i = 0; i < t->n; i++) any |= template_has(t->child[i], op);
  return any;
}

/** The solver's command. Division circuits are too large to bit-blast: contextual simplification
    makes both sides syntactically equal instead. */
static const char *check_command(const rule *r) {
  return pattern_has(r->pattern, O_FLOORDIV)
             ? "(check-sat-using (then simplify ctx-simplify simplify default))"
             : "(check-sat)";
}

/** The script; "" if types refute a guard. */
static const char *write_script(prover *p) {
  term before = pattern_term(p, p->rule->pattern);
  bind(p, "root", before);
  for (size_t i = 0; i < p->rule->n_conditions; i++) {
    if (!types_allow(p, &p->rule->conditions[i])) return "";
    assume_guard(p, &p->rule->conditions[i]);
  }
  term after = result_term(p, p->rule->result, before.type);
  if (before.type != after.type) smt_unsupported(&p->s, "sides of different types");
  smt_assert(&p->s, text_of("(distinct %s %s)", before.text, after.text));
  return p->s.text;
}

/** The script; NULL if it cannot be expressed, for the reason p->s.why. */
static const char *try_script(prover *p) { return setjmp(p->s.give_up) ? NULL : write_script(p); }

/** Names of the types that a rule leaves open; of its root if it leaves none. */
static const char *type_names(const rule *r, const int type[]) {
  const char *names = "";
  for (size_t i = 0; i < r->n_classes; i++)
    if (r->class_types[i] & (r->class_types[i] - 1))
      names = text_of("%s%s%s", names, *names ? " " : "", type_table[type[i]].text);
  return *names ? names : type_table[type[r->pattern->type_class]].text;
}

static proof_exemption *find_exemption(proof_exemption *all, size_t n, const rule *r,
                                       const int type[]) {
  for (size_t i = 0; i < n; i++)
    for (size_t k = 0; k < r->n_classes; k++)
      if (r->class_types[k] && (all[i].types >> type[k] & 1)) return &all[i];
  return NULL;
}

static void emit_obligation(FILE *out, const rule_file *f, const rule *r, const int type[]) {
  proof_exemption *exemption = find_exemption(r->unproved, r->n_unproved, r, type);
  if (!exemption) exemption = find_exemption(f->unproved, f->n_unproved, r, type);
  prover *p = allocate(sizeof *p);
  *p = (prover){.file = f, .rule = r, .type = type, .s.text = text_of("%s", "")};
  p->s.converts = pattern_has(r->pattern, O_CAST) || template_has(r->result, O_CAST);
  const char *text = try_script(p);
  if (text && !*text) return;
  if (exemption) {
    exemption->used = true;
    return;
  }
  if (!text)
    fail(r->at, "'%s' has no proof for %s (%s): say why by :unproved TYPES WORDS", r->name,
         type_names(r, type), p->s.why);
  fprintf(out, "(reset)\n(echo \"%s %s %s\")\n%s%s\n\n", f->set, r->name, type_names(r, type), text,
          check_command(r));
}

static void emit_rule(FILE *out, const rule_file *f, const rule *r) {
  int type[RULE_MOST_CLASSES] = {0};
  size_t i;
  do {
    bool fits = true; /* enumerates the types of all classes like a counter */
    for (i = 0; i < r->n_classes; i++)
      fits &= !r->class_types[i] || (r->class_types[i] >> type[i] & 1);
    if (fits && types_are_possible(r->pattern, type)) emit_obligation(out, f, r, type);
    for (i = 0; i < r->n_classes; i++) {
      if (!r->class_types[i]) continue;
      if (++type[i] < (int)type_table_rows) break;
      type[i] = 0;
    }
  } while (i < r->n_classes);
}

static void emit_exemptions(FILE *out, const rule_file *f, const rule *r) {
  for (size_t i = 0; i < r->n_unproved; i++)
    if (r->unproved[i].used)
      fprintf(out, "(echo \"%s %s: %s\")\n\n", f->set, r->name, r->unproved[i].words);
  if (r->math) fprintf(out, "(echo \"%s %s: not exact\")\n\n", f->set, r->name);
}

/** True if any rule needs an exemption: rules that a loop copied share one, and one copy suffices.
 */
static bool is_needed(const rule_file *f, const proof_exemption *x) {
  for (size_t i = 0; i < f->n_rules; i++)
    for (size_t k = 0; k < f->rules[i].n_unproved; k++) {
      const proof_exemption *y = &f->rules[i].unproved[k];
      if (y->used && y->at.line == x->at.line && !strcmp(y->words, x->words)) return true;
    }
  return x->used;
}

static void check_exemptions(const rule_file *f, const proof_exemption *all, size_t n) {
  for (size_t i = 0; i < n; i++)
    if (!is_needed(f, &all[i])) fail(all[i].at, "no proof is missing for this reason");
}

void emit_proof_obligations(FILE *out, rule_file *const files[], size_t n) {
  fprintf(out, "; Made by rulec: every answer must be unsat.\n\n");
  for (size_t i = 0; i < n; i++) {
    const rule_file *f = files[i];
    for (size_t k = 0; k < f->n_rules; k++) {
      if (!f->rules[k].math) emit_rule(out, f, &f->rules[k]);
      emit_exemptions(out, f, &f->rules[k]);
    }
    for (size_t k = 0; k < f->n_unproved; k++)
      fprintf(out, "(echo \"%s: %s\")\n\n", f->set, f->unproved[k].words);
    for (size_t k = 0; k < f->n_rules; k++)
      check_exemptions(f, f->rules[k].unproved, f->rules[k].n_unproved);
    check_exemptions(f, f->unproved, f->n_unproved);
  }
}
