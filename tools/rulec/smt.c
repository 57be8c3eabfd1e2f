/* Translates scalar ops to SMT-LIB terms. A table gives each op's meaning by class of types; a
   second one gives the conditions under which C leaves the op undefined. 16-bit float arithmetic is
   computed in f32 and rounded back, as the IR defines it. */
#include "smt.h"

#include <stdlib.h>
#include <string.h>

void smt_unsupported(script *s, const char *why) {
  s->why = why;
  longjmp(s->give_up, 1);
}

/* Sorts. */

bool smt_has_class(int type, const char *cls) { return !strcmp(type_table[type].cls, cls); }

static bool is_signed(int type) { return !smt_has_class(type, "UINT"); }
static int bits_of(int type) { return 8 * type_table[type].bytes; }

/** True if values of a type are bit-vectors. */
static bool is_vector(const script *s, int type) {
  return smt_has_class(type, "INT") || smt_has_class(type, "UINT") ||
         (smt_has_class(type, "INDEX") && s->converts);
}

static const char *sort_of(const script *s, int type) {
  const type_row *t = &type_table[type];
  if (is_vector(s, type)) return text_of("(_ BitVec %d)", bits_of(type));
  if (smt_has_class(type, "FLOAT"))
    return text_of("(_ FloatingPoint %d %d)", t->exponent, t->mantissa + 1);
  return smt_has_class(type, "BOOL") ? "Bool" : "Int";
}

/** The conversion to a float: "((_ to_fp 8 24)". */
static const char *to_float(int type, const char *suffix) {
  const type_row *t = &type_table[type];
  return text_of("((_ to_fp%s %d %d)", suffix, t->exponent, t->mantissa + 1);
}

/* Scripts. */

static void add(script *s, const char *line) { s->text = text_of("%s%s\n", s->text, line); }

static const char *fresh(script *s) { return text_of("x%d", s->fresh++); }

term smt_fresh(script *s, int type) {
  term t = {fresh(s), type};
  add(s, text_of("(declare-const %s %s)", t.text, sort_of(s, type)));
  return t;
}

term smt_define(script *s, term t) {
  if (!strpbrk(t.text, " (")) return t; /* already a name or a number */
  term named = {fresh(s), t.type};
  add(s, text_of("(define-fun %s () %s %s)", named.text, sort_of(s, t.type), t.text));
  return named;
}

void smt_assert(script *s, const char *text) { add(s, text_of("(assert %s)", text)); }

/* Numbers. */

static const char *vector_number(uint64_t v, int bits) {
  uint64_t mask = bits == 64 ? UINT64_MAX : (UINT64_C(1) << bits) - 1;
  return text_of("(_ bv%llu %d)", (unsigned long long)(v & mask), bits);
}

static const char *float_number(double v, int type) {
  uint64_t bits;
  memcpy(&bits, &v, sizeof bits);
  return text_of("%s RNE ((_ to_fp 11 53) #x%016llx))", to_float(type, ""),
                 (unsigned long long)bits);
}

term smt_number(script *s, const number *v, int type) {
  if (smt_has_class(type, "FLOAT"))
    return (term){float_number(v->is_float ? v->value : (double)(int64_t)v->bits, type), type};
  if (v->is_float) smt_unsupported(s, "a fraction of an integer type");
  if (smt_has_class(type, "BOOL")) return (term){v->bits ? "true" : "false", type};
  if (is_vector(s, type)) return (term){vector_number(v->bits, bits_of(type)), type};
  unsigned long long size = v->negative ? 0 - v->bits : v->bits;
  return (term){text_of(v->negative ? "(- %llu)" : "%llu", size), type};
}

/* Meaning of ops. */

typedef struct meaning {
  int op;
  /* $a $b $c are the operands, $0 is 0, $n the number of bits. NULL: the op has no meaning. */
  const char *boolean, *index, *is_signed, *is_unsigned, *floating;
} meaning;

static const meaning meanings[] = {
    {O_NEG, NULL, NULL, "(bvneg $a)", "(bvneg $a)", "(fp.neg $a)"},
    {O_ABS, NULL, NULL, "(ite (bvslt $a $0) (bvneg $a) $a)", "$a", "(fp.abs $a)"},
    {O_NOT, "(not $a)", NULL, "(bvnot $a)", "(bvnot $a)", NULL},
    {O_SQRT, NULL, NULL, NULL, NULL, "(fp.sqrt RNE $a)"},
    {O_FLOOR, NULL, NULL, NULL, NULL, "(fp.roundToIntegral RTN $a)"},
    {O_CEIL, NULL, NULL, NULL, NULL, "(fp.roundToIntegral RTP $a)"},
    {O_TRUNC, NULL, NULL, NULL, NULL, "(fp.roundToIntegral RTZ $a)"},
    {O_ROUND, NULL, NULL, NULL, NULL, "(fp.roundToIntegral RNE $a)"},
    {O_ADD, NULL, "(+ $a $b)", "(bvadd $a $b)", "(bvadd $a $b)", "(fp.add RNE $a $b)"},
    {O_SUB, NULL, "(- $a $b)", "(bvsub $a $b)", "(bvsub $a $b)", "(fp.sub RNE $a $b)"},
    {O_MUL, NULL, "(* $a $b)", "(bvmul $a $b)", "(bvmul $a $b)", "(fp.mul RNE $a $b)"},
    {O_DIV, NULL, NULL, NULL, NULL, "(fp.div RNE $a $b)"},
    {O_AND, "(and $a $b)", NULL, "(bvand $a $b)", "(bvand $a $b)", NULL},
    {O_OR, "(or $a $b)", NULL, "(bvor $a $b)", "(bvor $a $b)", NULL},
    {O_XOR, "(xor $a $b)", NULL, "(bvxor $a $b)", "(bvxor $a $b)", NULL},
    {O_MAX, "(or $a $b)", "(ite (> $a $b) $a $b)", "(ite (bvsgt $a $b) $a $b)",
     "(ite (bvugt $a $b) $a $b)", "(ite (or (fp.gt $a $b) (fp.isNaN $a)) $a $b)"},
    {O_MIN, "(and $a $b)", "(ite (< $a $b) $a $b)", "(ite (bvslt $a $b) $a $b)",
     "(ite (bvult $a $b) $a $b)", "(ite (or (fp.lt $a $b) (fp.isNaN $a)) $a $b)"},
    {O_LT, "(and (not $a) $b)", "(< $a $b)", "(bvslt $a $b)", "(bvult $a $b)", "(fp.lt $a $b)"},
    {O_LE, "(=> $a $b)", "(<= $a $b)", "(bvsle $a $b)", "(bvule $a $b)", "(fp.leq $a $b)"},
    {O_EQ, "(= $a $b)", "(= $a $b)", "(= $a $b)", "(= $a $b)", "(fp.eq $a $b)"},
    {O_NE, "(distinct $a $b)", "(distinct $a $b)", "(distinct $a $b)", "(distinct $a $b)",
     "(not (fp.eq $a $b))"},
    {O_SHL, NULL, NULL, "(bvshl $a $b)", "(bvshl $a $b)", NULL},
    {O_SHR, NULL, NULL, "(bvashr $a $b)", "(bvlshr $a $b)", NULL},
    {O_MOD, NULL, NULL, "(ite (= $b $0) $0 (bvsmod $a $b))",
     "(bvurem $a (ite (= $b $0) (bvneg (bvnot $0)) $b))", NULL}, /* x mod 0 is x mod 1 */
    {O_FLOORDIV, NULL, NULL,
     "(ite (= $b $0) $0 (ite (and (distinct (bvsrem $a $b) $0) (bvslt (bvxor $a $b) $0)) "
     "(bvadd (bvsdiv $a $b) (bvnot $0)) (bvsdiv $a $b)))",
     "(ite (= $b $0) $0 (bvudiv $a $b))", NULL},
    {O_CDIV, NULL, NULL, "(bvsdiv $a $b)", "(bvudiv $a $b)", NULL},
    {O_CMOD, NULL, NULL, "(bvsrem $a $b)", "(bvurem $a $b)", NULL},
    {O_WHERE, "(ite $a $b $c)", "(ite $a $b $c)", "(ite $a $b $c)", "(ite $a $b $c)",
     "(ite $a $b $c)"},
    {O_FMA, NULL, NULL, NULL, NULL, "(fp.fma RNE $a $b $c)"},
    /* A lane stands for all. */
    {O_SPLAT, "$a", "$a", "$a", "$a", "$a"},
    {O_EXTRACT, "$a", "$a", "$a", "$a", "$a"},
};

/** Conditions under which C leaves an op on bit-vectors undefined. */
static const meaning undefined_if[] = {
    {O_SHL, NULL, NULL, "(bvuge $b $n)", "(bvuge $b $n)", NULL},
    {O_SHR, NULL, NULL, "(bvuge $b $n)", "(bvuge $b $n)", NULL},
    {O_CDIV, NULL, NULL,
     "(or (= $b $0) (and (= $b (bvnot $0)) (= $a (bvneg $a)) (distinct $a $0)))", "(= $b $0)",
     NULL},
    {O_CMOD, NULL, NULL,
     "(or (= $b $0) (and (= $b (bvnot $0)) (= $a (bvneg $a)) (distinct $a $0)))", "(= $b $0)",
     NULL},
};

/** The text for an op on a type, or NULL. */
static const char *meaning_of(const script *s, const meaning *table, size_t n, int op, int type) {
  for (size_t i = 0; i < n; i++) {
    const meaning *m = &table[i];
    if (m->op != op) continue;
    if (smt_has_class(type, "BOOL")) return m->boolean;
    if (smt_has_class(type, "FLOAT")) return m->floating;
    if (!is_vector(s, type)) return m->index;
    return is_signed(type) ? m->is_signed : m->is_unsigned;
  }
  return NULL;
}

/** The type that selects the meaning of an op: that of its last operand. */
static int operand_type(int op, const term args[]) { return args[op_table[op].most - 1].type; }

static const char *fill_in(const char *text, const term args[], int type) {
  char *out = text_of("%s", "");
  for (; *text; text++) {
    if (*text != '$')
      out = text_of("%s%c", out, *text);
    else if (*++text == '0' || *text == 'n')
      out = text_of("%s%s", out,
                    vector_number(*text == 'n' ? (uint64_t)bits_of(type) : 0, bits_of(type)));
    else
      out = text_of("%s%s", out, args[*text - 'a'].text);
  }
  return out;
}

static bool is_arithmetic(int op) {
  switch (op) {
  case O_ADD:
  case O_SUB:
  case O_MUL:
  case O_DIV:
  case O_SQRT: return true;
  default: return false;
  }
}

static term float_to_float(term from, int to) {
  return (term){text_of("%s RNE %s)", to_float(to, ""), from.text), to};
}

/** An op on 16-bit floats: computed in f32 and rounded back, which equals rounding once, except for
    a multiply-add. */
static term half_op(script *s, int op, const term args[], int made) {
  int single = find_type("f32", 3);
  term wide[3];
  for (int i = 0; i < op_table[op].most; i++)
    wide[i] = smt_define(s, float_to_float(args[i], single));
  return float_to_float(smt_define(s, smt_op(s, op, wide, single)), made);
}

term smt_op(script *s, int op, const term args[], int made) {
  int type = operand_type(op, args);
  if (smt_has_class(type, "FLOAT") && type_table[type].bytes == 2 && is_arithmetic(op))
    return half_op(s, op, args, made);
  const char *text = meaning_of(s, meanings, sizeof meanings / sizeof *meanings, op, type);
  bool arithmetic =
      text && smt_has_class(type, "INDEX") && s->converts && op_table[op].type == SAME;
  if (!text || arithmetic)
    smt_unsupported(s, text_of("%s has no meaning there", op_table[op].text));
  return (term){fill_in(text, args, type), made};
}

term smt_machine_op(script *s, int op, const term args[], int made) {
  int type = operand_type(op, args);
  const char *when =
      meaning_of(s, undefined_if, sizeof undefined_if / sizeof *undefined_if, op, type);
  term result = smt_op(s, op, args, made);
  if (!when) return result;
  return (term){
      text_of("(ite %s %s %s)", fill_in(when, args, type), smt_fresh(s, made).text, result.text),
      made};
}

/* Conversions. */

static int unsigned_type(int bits) {
  const char *name = text_of("u%d", bits);
  return find_type(name, strlen(name));
}

static void know_bits(script *s, term of, term bits) {
  if (s->n_bits == SMT_MOST_FLOATS) smt_unsupported(s, "the bits of too many floats");
  s->bits[s->n_bits].of = of.text;
  s->bits[s->n_bits++].bits = bits;
}

term smt_bits(script *s, term of) {
  for (size_t i = 0; i < s->n_bits; i++)
    if (!strcmp(s->bits[i].of, of.text)) return s->bits[i].bits;
  term bits = smt_fresh(s, unsigned_type(bits_of(of.type)));
  smt_assert(s, text_of("(= %s %s) %s)", to_float(of.type, ""), bits.text, of.text));
  know_bits(s, of, bits);
  return bits;
}

static term from_boolean(const script *s, term from, int to) {
  const char *zero = is_vector(s, to) ? vector_number(0, bits_of(to)) : "0";
  const char *one = is_vector(s, to) ? vector_number(1, bits_of(to)) : "1";
  if (smt_has_class(to, "FLOAT")) zero = float_number(0, to), one = float_number(1, to);
  return (term){text_of("(ite %s %s %s)", from.text, one, zero), to};
}

static term to_boolean(term from, int to) {
  if (smt_has_class(from.type, "FLOAT"))
    return (term){text_of("(not (fp.isZero %s))", from.text), to};
  return (term){text_of("(distinct %s %s)", from.text, vector_number(0, bits_of(from.type))), to};
}

term smt_bitcast(script *s, term from, int to) {
  if (from.type == to) return from;
  if (smt_has_class(from.type, "BOOL")) return from_boolean(s, from, to);
  if (smt_has_class(to, "BOOL")) return to_boolean(from, to);
  if (smt_has_class(from.type, "FLOAT")) from = smt_bits(s, from);
  if (!smt_has_class(to, "FLOAT")) return (term){from.text, to};
  term made = smt_define(s, (term){text_of("%s %s)", to_float(to, ""), from.text), to});
  know_bits(s, made, from);
  return made;
}

static term integer_to_integer(term from, int to) {
  int more = bits_of(to) - bits_of(from.type);
  if (!more) return (term){from.text, to};
  if (more < 0) return (term){text_of("((_ extract %d 0) %s)", bits_of(to) - 1, from.text), to};
  return (term){
      text_of("((_ %s_extend %d) %s)", is_signed(from.type) ? "sign" : "zero", more, from.text),
      to};
}

/** The least value of an integer type, and its greatest value plus one, as doubles. */
static double least_of(int type) {
  return is_signed(type) ? -(double)(UINT64_C(1) << (bits_of(type) - 1)) : 0;
}
static double beyond(int type) {
  return 2 * (double)(UINT64_C(1) << (bits_of(type) - 1 - is_signed(type)));
}

static const char *truncated(term from, int to) {
  return text_of("((_ fp.to_%s %d) RTZ %s)", is_signed(to) ? "sbv" : "ubv", bits_of(to), from.text);
}

static term float_to_integer(term from, int to) {
  int bits = bits_of(to);
  uint64_t least = is_signed(to) ? UINT64_C(1) << (bits - 1) : 0;
  const char *low = float_number(least_of(to), from.type),
             *high = float_number(beyond(to), from.type);
  return (term){text_of("(ite (fp.isNaN %s) %s (ite (fp.leq %s %s) %s (ite (fp.geq %s %s) %s "
                        "%s)))",
                        from.text, vector_number(0, bits), from.text, low,
                        vector_number(least, bits), from.text, high, vector_number(least - 1, bits),
                        truncated(from, to)),
                to};
}

term smt_cast(script *s, term from, int to) {
  if (from.type == to) return from;
  from = smt_define(s, from);
  if (smt_has_class(from.type, "BOOL")) return from_boolean(s, from, to);
  if (smt_has_class(to, "BOOL")) return to_boolean(from, to);
  if (smt_has_class(from.type, "FLOAT"))
    return smt_has_class(to, "FLOAT") ? float_to_float(from, to) : float_to_integer(from, to);
  if (!smt_has_class(to, "FLOAT")) return integer_to_integer(from, to);
  return (term){
      text_of("%s RNE %s)", to_float(to, is_signed(from.type) ? "" : "_unsigned"), from.text), to};
}

term smt_machine_cast(script *s, term from, int to) {
  bool saturates = smt_has_class(from.type, "FLOAT") && is_vector(s, to);
  if (!saturates) return smt_cast(s, from, to);
  from = smt_define(s, from);
  const char *inside = text_of("(and (fp.geq %s %s) (fp.lt %s %s))", from.text,
                               float_number(least_of(to), from.type), from.text,
                               float_number(beyond(to), from.type));
  return (term){text_of("(ite %s %s %s)", inside, truncated(from, to), smt_fresh(s, to).text), to};
}

const char *smt_same_number(script *s, term a, term b) {
  enum { WIDE = 65 };
  const term *both[] = {&a, &b};
  const char *text[2];
  for (int i = 0; i < 2; i++) {
    if (smt_has_class(both[i]->type, "BOOL"))
      text[i] = from_boolean(s, *both[i], find_type("i64", 3)).text;
    else if (is_vector(s, both[i]->type))
      text[i] = both[i]->text;
    else
      smt_unsupported(s, "whether numbers are the same is not asked of floats");
    int bits = smt_has_class(both[i]->type, "BOOL") ? 64 : bits_of(both[i]->type);
    text[i] = text_of("((_ %s_extend %d) %s)", is_signed(both[i]->type) ? "sign" : "zero",
                      WIDE - bits, text[i]);
  }
  return text_of("(= %s %s)", text[0], text[1]);
}
