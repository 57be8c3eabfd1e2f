/* Implements the recursive-descent parser of the IR's text form, one line a node. Every node is
   checked before it is made, so texts may come from anywhere; failures name line and column. */
#include "ir/text/parse.h"

#include "base/hash_table.h"
#include "ir/core/affine.h"
#include "ir/core/binder.h"
#include "ir/core/check_node.h"
#include "ir/index/index_arithmetic.h"
#include "ir/text/print.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Limits for untrusted texts: nodes store the list of their free ranges. */
enum { MOST_FREE = 256, MOST_DIGITS = 64 };

typedef struct parser {
  ir *g;
  arena work;
  const char *at, *end, *line_at;
  size_t line;
  hash_table names;
  VEC(const node *) src;
  VEC(int64_t) ints;
  VEC(char) text;
  arena *a; /* of the roots */
  node_list roots;
} parser;

/* Failure. */

static size_t column(const parser *p) { return (size_t)(p->at - p->line_at) + 1; }

/** Describes the text at the cursor, for a message. */
static const char *describe_cursor(const parser *p, char out[32]) {
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

static _Noreturn void fail_expected(const parser *p, const char *what) {
  char here[32];
  diag_raise(ir_diag(p->g), TN_ERR_FORMAT, "line %zu, column %zu: expected %s, found %s", p->line,
             column(p), what, describe_cursor(p, here));
}

static _Noreturn void fail_parse(const parser *p, const char *what) {
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

static void skip_empty_lines(parser *p) {
  for (skip_comment(p); at_char(p, '\n'); skip_comment(p)) {
    p->at++;
    p->line++;
    p->line_at = p->at;
  }
}

static void end_line(parser *p) {
  skip_comment(p);
  if (p->at < p->end && *p->at != '\n') fail_expected(p, "the end of the line");
}

static void skip_char(parser *p, char c, const char *what) {
  if (!at_char(p, c)) fail_expected(p, what);
  p->at++;
}

/** Skips a word; false if the cursor is not at it. */
static bool skip_word(parser *p, const char *word, size_t bytes) {
  if ((size_t)(p->end - p->at) < bytes || memcmp(p->at, word, bytes)) return false;
  if (p->at + bytes < p->end && is_name(p->at[bytes])) return false;
  p->at += bytes;
  return true;
}

/** Length of the word at the cursor. */
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

static name parse_name(parser *p) {
  skip_char(p, '%', "a node's name");
  name n = {.at = p->at, .bytes = word_bytes(p)};
  if (!n.bytes) fail_expected(p, "a node's name");
  p->at += n.bytes;
  return n;
}

static void define_name(parser *p, name wanted, const node *n) {
  uint64_t hash = hash_bytes(wanted.at, wanted.bytes);
  hash_table_reserve(&p->names, ir_mem(p->g), ir_diag(p->g));
  hash_slot *slot = hash_table_find(&p->names, hash, &wanted, same_name);
  if (slot->entry) {
    p->at = wanted.at;
    fail_parse(p, "a line above has this name already");
  }
  wanted.n = n;
  hash_table_insert(&p->names, slot, hash, arena_copy(&p->work, &wanted, sizeof wanted));
}

static const node *parse_reference(parser *p) {
  const char *start = p->at;
  name wanted = parse_name(p);
  const name *n =
      hash_table_get(&p->names, hash_bytes(wanted.at, wanted.bytes), &wanted, same_name);
  if (n) return n->n;
  p->at = start;
  fail_parse(p, "no line above has this name");
}

/* Numbers. */

/** Parses an integer as sign and magnitude. */
static uint64_t parse_magnitude(parser *p, bool *negative) {
  uint64_t value = 0;
  const char *start = p->at;
  *negative = at_char(p, '-');
  p->at += *negative;
  if (p->at == p->end || !is_digit(*p->at)) {
    p->at = start;
    fail_expected(p, "a number");
  }
  for (; p->at < p->end && is_digit(*p->at); p->at++)
    if (__builtin_mul_overflow(value, 10, &value) ||
        __builtin_add_overflow(value, (uint64_t)(*p->at - '0'), &value)) {
      p->at = start;
      fail_parse(p, "a number beyond 64 bits");
    }
  return value;
}

static int64_t parse_integer(parser *p) {
  bool negative;
  const char *start = p->at;
  uint64_t value = parse_magnitude(p, &negative);
  if (value <= (uint64_t)INT64_MAX + negative) return (int64_t)(negative ? 0 - value : value);
  p->at = start;
  fail_parse(p, "a number beyond 64 bits");
}

static uint64_t parse_bits(parser *p) {
  uint64_t bits = 0;
  const char *start = p->at;
  for (; p->at < p->end; p->at++) {
    const char *digits = "0123456789abcdef", *digit = strchr(digits, *p->at);
    if (!*p->at || !digit) break;
    if (bits >> 60) fail_parse(p, "a number beyond 64 bits");
    bits = bits << 4 | (uint64_t)(digit - digits);
  }
  if (p->at == start) fail_expected(p, "a hexadecimal digit");
  return bits;
}

static uint64_t parse_nan(parser *p, dtype t) {
  if (!at_char(p, '(')) return print_quiet_nan(t);
  p->at++;
  skip_char(p, '0', "'0x'");
  skip_char(p, 'x', "'0x'");
  uint64_t bits = parse_bits(p);
  skip_char(p, ')', "')'");
  return bits;
}

/** Parses a decimal number. strtod reads it without a point, because the point depends on the
    locale. */
static double parse_decimal(parser *p) {
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
      fail_parse(p, "a number of too many digits");
  }
  if (p->at - start == (point != NULL)) fail_expected(p, "a number");
  if (point) exponent = point + 1 - p->at;
  if (at_char(p, 'e')) {
    p->at++;
    int64_t e = parse_integer(p);
    if (e < -10000 || e > 10000) fail_parse(p, "an exponent that no type has");
    exponent += e;
  }
  snprintf(text + n, sizeof text - n, "e%d", (int)exponent);
  return strtod(text, NULL);
}

static uint64_t parse_float(parser *p, dtype t) {
  if (skip_word(p, "nan", 3)) return parse_nan(p, t);
  if (skip_word(p, "inf", 3)) return scalar_from_double(t, INFINITY);
  if (skip_word(p, "-inf", 4)) return scalar_from_double(t, -INFINITY);
  return scalar_from_double(t, parse_decimal(p));
}

static uint64_t parse_scalar(parser *p, dtype t) {
  bool negative;
  if (dtype_is_float(t)) return parse_float(p, t);
  if (t != DT_U64) return (uint64_t)parse_integer(p);
  uint64_t value = parse_magnitude(p, &negative);
  if (negative && value) fail_parse(p, "a number outside its type");
  return value;
}

/* The parts of a line. */

static op parse_op(parser *p) {
  size_t bytes = word_bytes(p);
  op o = op_from_name(p->at, bytes);
  if (o == OP_LIMIT) fail_expected(p, "an op");
  p->at += bytes;
  return o;
}

/** Parses a type and, after an x, its lanes. */
static dtype parse_type(parser *p, uint16_t *lanes) {
  bool known;
  const char *start = p->at;
  size_t bytes = word_bytes(p), digits = 0;
  while (digits < bytes && is_digit(start[bytes - digits - 1])) digits++;
  bool vector = digits && digits < bytes && start[bytes - digits - 1] == 'x';
  dtype t = dtype_from_name(start, vector ? bytes - digits - 1 : bytes, &known);
  if (!known) fail_expected(p, "a type");
  *lanes = 1;
  if (vector) {
    p->at = start + bytes - digits;
    int64_t n = parse_integer(p);
    if (n < 1 || n > UINT16_MAX) fail_parse(p, "no number of lanes");
    *lanes = (uint16_t)n;
  }
  p->at = start + bytes;
  return t;
}

static bool at_operand(const parser *p) {
  return at_char(p, '%') || at_char(p, '-') || (p->at < p->end && is_digit(*p->at));
}

static const node *parse_operand(parser *p) {
  return at_char(p, '%') ? parse_reference(p) : ir_const_int(p->g, DT_INDEX, parse_integer(p));
}

static int64_t parse_argument(parser *p, argument_style style) {
  if (style == ARGUMENT_OP && at_char(p, '-')) {
    p->at++;
    return -1;
  }
  if (style == ARGUMENT_OP) return parse_op(p);
  if (style == ARGUMENT_NUMBER) return parse_integer(p);
  for (int k = 0; k < KIND_LIMIT; k++) {
    const char *kind = range_kind_name((range_kind)k);
    if (skip_word(p, kind, strlen(kind))) return k;
  }
  fail_expected(p, "a kind of range");
}

static void parse_integers(parser *p, op o, argument_layout form) {
  skip_char(p, '[', "'['");
  for (size_t i = 0;; i++) {
    skip_spaces(p);
    if (i >= form.named && !form.list) break;
    if (i >= form.named - form.optional && at_char(p, ']')) break;
    argument_field f = argument_field_of(o, p->ints.at, i);
    if (*f.name) {
      char what[32];
      snprintf(what, sizeof what, "'%s='", f.name);
      if (!skip_word(p, f.name, strlen(f.name))) fail_expected(p, what);
      skip_char(p, '=', what);
    }
    vec_push(&p->work, &p->ints, parse_argument(p, f.style));
  }
  skip_char(p, ']', "']'");
}

static char parse_escape(parser *p) {
  static const char from[] = "n\"\\", to[] = "\n\"\\";
  const char *c = p->at < p->end && *p->at ? strchr(from, *p->at) : NULL;
  if (c) {
    p->at++;
    return to[c - from];
  }
  skip_char(p, 'x', "an escape: n, x, \\ or \"");
  const char *digits = p->at;
  if (p->end - p->at < 2) fail_expected(p, "two hexadecimal digits");
  const char *end = p->end;
  p->end = digits + 2;
  uint64_t byte = parse_bits(p);
  p->end = end;
  if (p->at != digits + 2) fail_expected(p, "two hexadecimal digits");
  return (char)byte;
}

static void parse_text(parser *p) {
  skip_char(p, '"', "a text in quotes");
  while (!at_char(p, '"')) {
    if (p->at == p->end || *p->at == '\n') fail_expected(p, "'\"'");
    char c = *p->at++;
    vec_push(&p->work, &p->text, c == '\\' ? parse_escape(p) : c);
  }
  p->at++;
}

/* Lines. */

static void parse_arguments(parser *p, op o, dtype t) {
  argument_layout form = argument_layout_of(o);
  skip_spaces(p);
  if (o == OP_CONST) {
    if (!op_takes(o, t)) fail_parse(p, "the op does not make this type");
    vec_push(&p->work, &p->ints, (int64_t)parse_scalar(p, t));
    return;
  }
  for (; at_operand(p); skip_spaces(p)) vec_push(&p->work, &p->src, parse_operand(p));
  bool may_have = form.named || form.list;
  if (form.named > form.optional || (may_have && at_char(p, '['))) parse_integers(p, o, form);
  skip_spaces(p);
  if (form.text) parse_text(p);
}

static const node *make_node(parser *p, const char *line, op o, dtype t, uint16_t lanes) {
  node_spec s = {.op = o,
                 .dtype = t,
                 .lanes = lanes,
                 .src = p->src.at,
                 .n_src = p->src.n,
                 .ints = p->ints.at,
                 .n_int = p->ints.n,
                 .text = p->text.at,
                 .n_text = p->text.n};
  if (o == OP_AFFINE && p->src.n <= IX_MAX_TERMS && p->ints.n == p->src.n + 1)
    ix_sort_terms(p->src.at, p->ints.at + 1, p->src.n); /* otherwise ir_check_spec fails */
  const char *why = ir_check_spec(&s);
  p->at = line;
  if (why) fail_parse(p, why);
  const node *n = ir_make(p->g, &s);
  if (n->free->n > MOST_FREE) fail_parse(p, "more than 256 free ranges");
  return n;
}

static void parse_node(parser *p) {
  uint16_t lanes;
  p->src.n = p->ints.n = p->text.n = 0;
  name wanted = parse_name(p);
  skip_spaces(p);
  skip_char(p, '=', "'='");
  skip_spaces(p);
  const char *start = p->at;
  op o = parse_op(p);
  skip_spaces(p);
  dtype t = parse_type(p, &lanes);
  parse_arguments(p, o, t);
  end_line(p);
  const char *end = p->at;
  define_name(p, wanted, make_node(p, start, o, t, lanes));
  p->at = end;
}

static void parse_lines(void *arg) {
  parser *p = arg;
  for (skip_empty_lines(p); at_char(p, '%'); skip_empty_lines(p)) parse_node(p);
  if (!skip_word(p, "return", 6)) fail_expected(p, "a node's name or 'return'");
  for (skip_spaces(p); at_operand(p); skip_spaces(p)) vec_push(p->a, &p->roots, parse_operand(p));
  skip_empty_lines(p);
  if (p->at < p->end) fail_expected(p, "the end of the text");
}

node_list parse_graph(ir *g, arena *a, const char *text, size_t bytes) {
  parser p = {.g = g, .at = text, .end = text + bytes, .line_at = text, .line = 1, .a = a};
  arena_init(&p.work, ir_mem(g), ir_diag(g));
  tn_status s = diag_catch(ir_diag(g), parse_lines, &p);
  hash_table_free(&p.names, ir_mem(g));
  arena_free(&p.work);
  if (s != TN_OK) diag_rethrow(ir_diag(g));
  return p.roots;
}
