#include "ir/parse.h"

#include "base/intern.h"
#include "ir/binder.h"
#include "ir/print.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A node's free ranges are listed in it, so their number is limited in a text from anywhere. */
enum { MOST_FREE = 256, MOST_DIGITS = 64 };

typedef struct parser {
  ir *g;
  arena work;
  const char *at, *end, *line_at;
  size_t line;
  intern_table names;
  VEC(const node *) src;
  VEC(int64_t) ints;
  VEC(char) text;
  arena *a; /* for the roots */
  node_list roots;
} parser;

/* Failure. */

static size_t column(const parser *p) { return (size_t)(p->at - p->line_at) + 1; }

/** What stands at the cursor, for a message. */
static const char *found(const parser *p, char out[32]) {
  size_t n = 0;
  if (p->at == p->end) return "the end of the text";
  if (*p->at == '\n') return "the end of the line";
  out[n++] = '\'';
  for (const char *c = p->at; c < p->end && n < 24 && *c > ' ' && *c <= '~'; c++) out[n++] = *c;
  if (n == 1) out[n++] = '?';
  out[n++] = '\'';
  out[n] = 0;
  return out;
}

static _Noreturn void expected(const parser *p, const char *what) {
  char here[32];
  diag_raise(ir_diag(p->g), TN_ERR_FORMAT, "line %zu, column %zu: expected %s, found %s", p->line,
             column(p), what, found(p, here));
}

static _Noreturn void refuse(const parser *p, const char *what) {
  diag_raise(ir_diag(p->g), TN_ERR_FORMAT, "line %zu, column %zu: %s", p->line, column(p), what);
}

/* Characters and words. */

static bool at_char(const parser *p, char c) { return p->at < p->end && *p->at == c; }

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

static bool is_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || is_digit(c) || c == '_' || c == '.';
}

static void skip_spaces(parser *p) {
  while (p->at < p->end && (*p->at == ' ' || *p->at == '\t' || *p->at == '\r')) p->at++;
}

static void skip_comment(parser *p) {
  skip_spaces(p);
  if (at_char(p, ';'))
    while (p->at < p->end && *p->at != '\n') p->at++;
}

static void next_line(parser *p) {
  p->at++;
  p->line++;
  p->line_at = p->at;
}

static void skip_empty_lines(parser *p) {
  for (skip_comment(p); at_char(p, '\n'); skip_comment(p)) next_line(p);
}

static void end_line(parser *p) {
  skip_comment(p);
  if (p->at < p->end && *p->at != '\n') expected(p, "the end of the line");
}

static void take(parser *p, char c, const char *what) {
  if (!at_char(p, c)) expected(p, what);
  p->at++;
}

/** Whether the cursor is at this word; steps over it if so. */
static bool take_word(parser *p, const char *word, size_t bytes) {
  if ((size_t)(p->end - p->at) < bytes || memcmp(p->at, word, bytes)) return false;
  if (p->at + bytes < p->end && is_name(p->at[bytes])) return false;
  p->at += bytes;
  return true;
}

/** The word at the cursor, which is not moved. */
static size_t word_bytes(const parser *p) {
  const char *c = p->at;
  while (c < p->end && is_name(*c)) c++;
  return (size_t)(c - p->at);
}

/* Names of nodes. */

typedef struct name {
  const char *at;
  size_t bytes;
  const node *n;
} name;

static bool same_name(const void *entry, const void *wanted) {
  const name *a = entry, *b = wanted;
  return a->bytes == b->bytes && !memcmp(a->at, b->at, a->bytes);
}

static name take_name(parser *p) {
  take(p, '%', "a node's name");
  name n = {.at = p->at, .bytes = word_bytes(p)};
  if (!n.bytes) expected(p, "a node's name");
  p->at += n.bytes;
  return n;
}

static void **name_slot(parser *p, const name *n, uint32_t *hash) {
  uint64_t h = intern_hash(n->at, n->bytes, 0);
  *hash = (uint32_t)(h ^ h >> 32);
  return intern_find(&p->names, *hash, n, same_name);
}

static void define(parser *p, name wanted, const node *n) {
  uint32_t hash;
  intern_reserve(&p->names, ir_mem(p->g), ir_diag(p->g));
  void **slot = name_slot(p, &wanted, &hash);
  if (*slot) {
    p->at = wanted.at;
    refuse(p, "this name is taken by a line above");
  }
  wanted.n = n;
  intern_put(&p->names, slot, arena_copy(&p->work, &wanted, sizeof wanted), hash);
}

static const node *used(parser *p) {
  uint32_t hash;
  const char *start = p->at;
  name wanted = take_name(p);
  void **slot = p->names.n ? name_slot(p, &wanted, &hash) : NULL;
  if (slot && *slot) return ((const name *)*slot)->n;
  p->at = start;
  refuse(p, "no line above has this name");
}

/* Numbers. */

/** An integer as a sign and a magnitude. */
static uint64_t take_magnitude(parser *p, bool *negative) {
  uint64_t value = 0;
  const char *start = p->at;
  *negative = at_char(p, '-');
  p->at += *negative;
  if (p->at == p->end || !is_digit(*p->at)) {
    p->at = start;
    expected(p, "a number");
  }
  for (; p->at < p->end && is_digit(*p->at); p->at++)
    if (__builtin_mul_overflow(value, 10, &value) ||
        __builtin_add_overflow(value, (uint64_t)(*p->at - '0'), &value)) {
      p->at = start;
      refuse(p, "a number beyond 64 bits");
    }
  return value;
}

static int64_t take_integer(parser *p) {
  bool negative;
  const char *start = p->at;
  uint64_t value = take_magnitude(p, &negative);
  if (value <= (uint64_t)INT64_MAX + negative) return (int64_t)(negative ? 0 - value : value);
  p->at = start;
  refuse(p, "a number beyond 64 bits");
}

static uint64_t take_bits(parser *p) {
  uint64_t bits = 0;
  const char *start = p->at;
  for (; p->at < p->end; p->at++) {
    const char *digits = "0123456789abcdef", *digit = strchr(digits, *p->at);
    if (!*p->at || !digit) break;
    if (bits >> 60) refuse(p, "a number beyond 64 bits");
    bits = bits << 4 | (uint64_t)(digit - digits);
  }
  if (p->at == start) expected(p, "a hexadecimal digit");
  return bits;
}

static uint64_t take_nan(parser *p, dtype t) {
  if (!at_char(p, '(')) return print_quiet_nan(t);
  p->at++;
  take(p, '0', "'0x'");
  take(p, 'x', "'0x'");
  uint64_t bits = take_bits(p);
  take(p, ')', "')'");
  return bits;
}

/** A decimal number. It is handed to strtod without its point, which would be the locale's. */
static double take_decimal(parser *p) {
  char text[MOST_DIGITS + 24];
  size_t n = 0;
  int64_t exponent = 0;
  if (at_char(p, '-')) text[n++] = *p->at++;
  const char *start = p->at, *point = NULL;
  for (; p->at < p->end && (is_digit(*p->at) || (*p->at == '.' && !point)); p->at++) {
    if (*p->at == '.')
      point = p->at;
    else if (n < MOST_DIGITS)
      text[n++] = *p->at;
    else
      refuse(p, "a number of too many digits");
  }
  if (p->at - start == (point != NULL)) expected(p, "a number");
  if (point) exponent = point + 1 - p->at;
  if (at_char(p, 'e')) {
    p->at++;
    int64_t e = take_integer(p);
    if (e < -10000 || e > 10000) refuse(p, "an exponent that no type has");
    exponent += e;
  }
  snprintf(text + n, sizeof text - n, "e%d", (int)exponent);
  return strtod(text, NULL);
}

static uint64_t take_float(parser *p, dtype t) {
  if (take_word(p, "nan", 3)) return take_nan(p, t);
  if (take_word(p, "inf", 3)) return scalar_from_double(t, INFINITY);
  if (take_word(p, "-inf", 4)) return scalar_from_double(t, -INFINITY);
  return scalar_from_double(t, take_decimal(p));
}

static uint64_t take_scalar(parser *p, dtype t) {
  bool negative;
  if (dtype_is_float(t)) return take_float(p, t);
  if (t != DT_U64) return (uint64_t)take_integer(p);
  uint64_t value = take_magnitude(p, &negative);
  if (negative && value) refuse(p, "a number outside its type");
  return value;
}

/* The parts of a line. */

static op take_op(parser *p) {
  size_t bytes = word_bytes(p);
  op o = op_find(p->at, bytes);
  if (o == OP_LIMIT) expected(p, "an op");
  p->at += bytes;
  return o;
}

/** A type, and after an x the lanes. */
static dtype take_type(parser *p, uint16_t *lanes) {
  bool known;
  const char *start = p->at;
  size_t bytes = word_bytes(p), digits = 0;
  while (digits < bytes && is_digit(start[bytes - digits - 1])) digits++;
  bool vector = digits && digits < bytes && start[bytes - digits - 1] == 'x';
  dtype t = dtype_find(start, vector ? bytes - digits - 1 : bytes, &known);
  if (!known) expected(p, "a type");
  *lanes = 1;
  if (vector) {
    p->at = start + bytes - digits;
    int64_t n = take_integer(p);
    if (n < 1 || n > UINT16_MAX) refuse(p, "no number of lanes");
    *lanes = (uint16_t)n;
  }
  p->at = start + bytes;
  return t;
}

static bool at_operand(const parser *p) {
  return at_char(p, '%') || at_char(p, '-') || (p->at < p->end && is_digit(*p->at));
}

static const node *take_operand(parser *p) {
  return at_char(p, '%') ? used(p) : ir_const_int(p->g, DT_INDEX, take_integer(p));
}

static int64_t take_styled(parser *p, argument_style style) {
  if (style == ARGUMENT_OP && at_char(p, '-')) {
    p->at++;
    return -1;
  }
  if (style == ARGUMENT_OP) return take_op(p);
  if (style == ARGUMENT_NUMBER) return take_integer(p);
  for (int k = 0; k < KIND_LIMIT; k++) {
    const char *kind = range_kind_name((range_kind)k);
    if (take_word(p, kind, strlen(kind))) return k;
  }
  expected(p, "a kind of range");
}

static void take_integers(parser *p, op o, argument_form form) {
  take(p, '[', "'['");
  for (size_t i = 0;; i++) {
    skip_spaces(p);
    if (i >= form.named && (!form.list || at_char(p, ']'))) break;
    argument_field f = argument_field_of(o, p->ints.at, i);
    if (*f.name) {
      char what[32];
      snprintf(what, sizeof what, "'%s='", f.name);
      if (!take_word(p, f.name, strlen(f.name))) expected(p, what);
      take(p, '=', what);
    }
    vec_push(&p->work, &p->ints, take_styled(p, f.style));
  }
  take(p, ']', "']'");
}

static char take_escape(parser *p) {
  static const char from[] = "n\"\\", to[] = "\n\"\\";
  const char *c = p->at < p->end && *p->at ? strchr(from, *p->at) : NULL;
  if (c) {
    p->at++;
    return to[c - from];
  }
  take(p, 'x', "an escape: n, x, \\ or \"");
  const char *digits = p->at;
  if (p->end - p->at < 2) expected(p, "two hexadecimal digits");
  const char *end = p->end;
  p->end = digits + 2;
  uint64_t byte = take_bits(p);
  p->end = end;
  if (p->at != digits + 2) expected(p, "two hexadecimal digits");
  return (char)byte;
}

static void take_text(parser *p) {
  take(p, '"', "a text in quotes");
  while (!at_char(p, '"')) {
    if (p->at == p->end || *p->at == '\n') expected(p, "'\"'");
    char c = *p->at++;
    vec_push(&p->work, &p->text, c == '\\' ? take_escape(p) : c);
  }
  p->at++;
}

/* Lines. */

static void take_arguments(parser *p, op o, dtype t) {
  argument_form form = argument_form_of(o);
  skip_spaces(p);
  if (o == OP_CONST) {
    if (!op_takes(o, t)) refuse(p, "the op does not make this type");
    vec_push(&p->work, &p->ints, (int64_t)take_scalar(p, t));
    return;
  }
  for (; at_operand(p); skip_spaces(p)) vec_push(&p->work, &p->src, take_operand(p));
  if (form.named || (form.list && at_char(p, '['))) take_integers(p, o, form);
  skip_spaces(p);
  if (form.text) take_text(p);
}

static const node *make(parser *p, const char *line, op o, dtype t, uint16_t lanes) {
  node_spec s = {.op = o,
                 .dtype = t,
                 .lanes = lanes,
                 .src = p->src.at,
                 .n_src = p->src.n,
                 .ints = p->ints.at,
                 .n_int = p->ints.n,
                 .text = p->text.at,
                 .n_text = p->text.n};
  if (o == OP_AFFINE && p->src.n <= IX_MOST_TERMS && p->ints.n == p->src.n + 1)
    ix_sort_terms(p->src.at, p->ints.at + 1, p->src.n); /* else ir_check refuses it */
  const char *why = ir_check(&s);
  p->at = line;
  if (why) refuse(p, why);
  const node *n = ir_make(p->g, &s);
  if (n->free->n > MOST_FREE) refuse(p, "more than 256 free ranges");
  return n;
}

static void take_node(parser *p) {
  uint16_t lanes;
  p->src.n = p->ints.n = p->text.n = 0;
  name wanted = take_name(p);
  skip_spaces(p);
  take(p, '=', "'='");
  skip_spaces(p);
  const char *start = p->at;
  op o = take_op(p);
  skip_spaces(p);
  dtype t = take_type(p, &lanes);
  take_arguments(p, o, t);
  end_line(p);
  const char *end = p->at;
  define(p, wanted, make(p, start, o, t, lanes));
  p->at = end;
}

static void take_all(void *arg) {
  parser *p = arg;
  for (skip_empty_lines(p); at_char(p, '%'); skip_empty_lines(p)) take_node(p);
  if (!take_word(p, "return", 6)) expected(p, "a node's name or 'return'");
  for (skip_spaces(p); at_operand(p); skip_spaces(p)) vec_push(p->a, &p->roots, take_operand(p));
  skip_empty_lines(p);
  if (p->at < p->end) expected(p, "the end of the text");
}

node_list parse_graph(ir *g, arena *a, const char *text, size_t bytes) {
  parser p = {.g = g, .at = text, .end = text + bytes, .line_at = text, .line = 1, .a = a};
  arena_init(&p.work, ir_mem(g), ir_diag(g));
  tn_status s = diag_catch(ir_diag(g), take_all, &p);
  intern_free(&p.names, ir_mem(g));
  arena_free(&p.work);
  if (s != TN_OK) diag_rethrow(ir_diag(g));
  return p.roots;
}
