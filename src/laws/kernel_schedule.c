/* Prints and parses schedules in their text form: a printer and a recursive-descent parser, both
   driven by the argument words of laws.def. The parser accepts hostile input: lines, ranges and
   numbers are limited. */
#include "laws/kernel_schedule.h"

#include "ir/core/tensor_rows.h"

#include <string.h>

static const law_facts facts[LAWS] = {
#define LAW(name, function, arguments, new_ranges, file, about) \
  [LAW_##name] = {#name, arguments, new_ranges, file, about},
#include "laws/laws.def"
};

const law_facts *law_facts_of(law which) { return &facts[which]; }

size_t law_named_ranges(law which, const law_args *a) {
  return facts[which].new_ranges == LAW_ONE_PER_RANGE ? a->n : (size_t)facts[which].new_ranges;
}

/* Argument words of a row. */

/** The next word at *at, which moves behind it; NULL after the last. */
static const char *next_word(const char **at, size_t *bytes) {
  *at += **at == ' ';
  const char *word = *at;
  *at += *bytes = strcspn(word, " ");
  return *bytes ? word : NULL;
}

typedef enum argument {
  WORD,
  SUBJECT,
  OTHER,
  NUMBER,
  POINT,
  KIND,
  SIDE,
  ROW,
  LIST
} argument; /* WORD: stands for itself */

static argument argument_of(const char *word, size_t bytes) {
  static const struct {
    const char *name;
    argument kind;
  } known[] = {
#define LAW_WORD(name, argument, about) {#name, argument},
#include "laws/laws.def"
  };
  for (size_t i = 0; i < sizeof known / sizeof *known; i++)
    if (strlen(known[i].name) == bytes && !memcmp(known[i].name, word, bytes)) return known[i].kind;
  return WORD;
}

/* Printing. */

static void print_range(str *out, int64_t number) {
  if (number == LAW_NO_RANGE)
    str_add(out, " -");
  else
    str_addf(out, " r%" PRId64, number);
}

static void print_argument(str *out, const law_schedule_line *line, argument what) {
  switch (what) {
  case SUBJECT: str_addf(out, " %c%" PRId64, line->subject_kind, line->subject); break;
  case OTHER: print_range(out, line->other); break;
  case NUMBER: str_addf(out, " %" PRId64, line->number); break;
  case POINT: str_addf(out, " %s %" PRId64, line->is_multiple ? "by" : "at", line->number); break;
  case KIND:
    str_addf(out, " %s", range_kind_name((range_kind)(line->number % KIND_LIMIT)));
    if (line->number >= KIND_LIMIT) str_addf(out, " %" PRId64, line->number / KIND_LIMIT);
    break;
  case ROW: str_addf(out, " %s", op_name(tensor_rows[line->number].op)); break;
  case SIDE: str_addf(out, " %s", line->number ? "last" : "first"); break;
  default:
    for (size_t i = 0; i < line->list.n; i++) print_range(out, line->list.at[i]);
  }
}

void law_schedule_print_line(str *out, const law_schedule_line *line) {
  const char *at = facts[line->which].arguments, *word;
  size_t bytes;
  str_add(out, facts[line->which].name);
  while ((word = next_word(&at, &bytes))) {
    argument what = argument_of(word, bytes);
    if (what == WORD)
      str_addf(out, " %.*s", (int)bytes, word);
    else
      print_argument(out, line, what);
  }
  if (line->new_ranges.n) str_add(out, ":");
  for (size_t i = 0; i < line->new_ranges.n; i++) print_range(out, line->new_ranges.at[i]);
}

void law_schedule_print(str *out, const law_schedule *list) {
  for (size_t i = 0; i < list->n; i++) {
    law_schedule_print_line(out, &list->at[i]);
    str_add(out, "\n");
  }
}

/* Parsing. */

enum { MOST_LINES = 4096, MOST_LISTED = 256 };

typedef struct reader {
  arena *a;
  const char *at, *end;
  size_t line;
} reader;

static bool is_end_of_line(const reader *r) {
  return r->at == r->end || *r->at == '\n' || *r->at == ';';
}

static void skip_blanks(reader *r) {
  while (r->at < r->end && (*r->at == ' ' || *r->at == '\t' || *r->at == '\r')) r->at++;
}

static _Noreturn void fail_expected(reader *r, const char *what) {
  int n = 0;
  skip_blanks(r);
  while (r->at + n < r->end && n < 24 && r->at[n] > ' ' && r->at[n] <= '~') n++;
  bool at_end = is_end_of_line(r);
  diag_raise(r->a->diag, TN_ERR_FORMAT, "line %zu of the schedule: expected %s, found %s%.*s%s",
             r->line, what, at_end ? "the end of the line" : "'", at_end ? 0 : n, r->at,
             at_end ? "" : "'");
}

static bool is_word(char c) { return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z'); }

/** Consumes a word if it comes next; true if it did. */
static bool parse_word(reader *r, const char *word, size_t bytes) {
  skip_blanks(r);
  if ((size_t)(r->end - r->at) < bytes || memcmp(r->at, word, bytes)) return false;
  if (r->at + bytes < r->end && is_word(r->at[bytes]) && is_word(word[bytes - 1])) return false;
  r->at += bytes;
  return true;
}

/** Numbers have at most 31 bits: their sums and products with extents cannot overflow unnoticed. */
static int64_t parse_number(reader *r, const char *what) {
  int64_t value = 0;
  const char *start = r->at;
  for (; r->at < r->end && *r->at >= '0' && *r->at <= '9' && value <= INT32_MAX; r->at++)
    value = value * 10 + (*r->at - '0');
  if (r->at > start && value <= INT32_MAX) return value;
  r->at = start;
  fail_expected(r, what);
}

static bool is_at_range(reader *r) {
  skip_blanks(r);
  return r->at < r->end && *r->at == 'r';
}

static int64_t parse_range(reader *r, bool may_be_none) {
  if (may_be_none && parse_word(r, "-", 1)) return LAW_NO_RANGE;
  if (!is_at_range(r)) fail_expected(r, may_be_none ? "a range, as r0, or -" : "a range, as r0");
  r->at++;
  return parse_number(r, "the number of a range");
}

/** `form`: first letter of RANGE, BINDER or EXPRESSION. */
static void parse_subject(reader *r, law_schedule_line *line, char form) {
  const char *letters = form == 'R' ? "r" : form == 'B' ? "rs" : "e";
  const char *what = form == 'R'   ? "a range, as r0"
                     : form == 'B' ? "a binder, as r0 or s0"
                                   : "an expression, as e0";
  skip_blanks(r);
  if (r->at == r->end || !*r->at || !strchr(letters, *r->at)) fail_expected(r, what);
  line->subject_kind = *r->at++;
  line->subject = parse_number(r, "its number");
}

static void parse_point(reader *r, law_schedule_line *line) {
  line->is_multiple = parse_word(r, "by", 2);
  if (!line->is_multiple && !parse_word(r, "at", 2)) fail_expected(r, "'at' or 'by'");
  skip_blanks(r);
  line->number = parse_number(r, "a number");
}

static const char *list_kinds(arena *a) {
  str text = str_new(a);
  str_add(&text, "a kind of ranges");
  for (int k = 0; k < KIND_LIMIT; k++)
    str_addf(&text, "%s%s", k ? ", " : ": ", range_kind_name((range_kind)k));
  return str_text(&text);
}

static int64_t parse_kind(reader *r) {
  for (int k = 0; k < KIND_LIMIT; k++) {
    const char *name = range_kind_name((range_kind)k);
    if (!parse_word(r, name, strlen(name))) continue;
    skip_blanks(r);
    bool has_axis = r->at < r->end && *r->at >= '0' && *r->at <= '9';
    return law_kind_number((range_kind)k, has_axis ? parse_number(r, "an axis") : 0);
  }
  fail_expected(r, list_kinds(r->a));
}

static int64_t parse_row(reader *r) {
  for (int i = 0; i < TENSOR_ROWS; i++) {
    const char *name = op_name(tensor_rows[i].op);
    if (parse_word(r, name, strlen(name))) return i;
  }
  fail_expected(r, "an op for groups of elements, as dot_u8i8");
}

static bool parse_side(reader *r) {
  if (parse_word(r, "first", 5)) return false;
  if (parse_word(r, "last", 4)) return true;
  fail_expected(r, "'first' or 'last'");
}

static void parse_list(reader *r, law_schedule_line *line) {
  do {
    vec_push(r->a, &line->list, parse_range(r, false));
  } while (is_at_range(r) && line->list.n < MOST_LISTED);
}

static void parse_argument(reader *r, law_schedule_line *line, argument what, char form) {
  switch (what) {
  case SUBJECT: parse_subject(r, line, form); break;
  case OTHER: line->other = parse_range(r, form == 'L'); break;
  case NUMBER: skip_blanks(r), line->number = parse_number(r, "a number"); break;
  case POINT: parse_point(r, line); break;
  case KIND: line->number = parse_kind(r); break;
  case SIDE: line->number = parse_side(r); break;
  case ROW: line->number = parse_row(r); break;
  default: parse_list(r, line);
  }
}

static law parse_law(reader *r) {
  for (int i = 0; i < LAWS; i++)
    if (parse_word(r, facts[i].name, strlen(facts[i].name))) return (law)i;
  fail_expected(r, "the name of a law");
}

static law_schedule_line parse_line(reader *r) {
  law_schedule_line line = {.which = parse_law(r), .other = LAW_NO_RANGE};
  const char *at = facts[line.which].arguments, *word;
  size_t bytes;
  while ((word = next_word(&at, &bytes))) {
    argument what = argument_of(word, bytes);
    if (what != WORD)
      parse_argument(r, &line, what, *word);
    else if (!parse_word(r, word, bytes))
      fail_expected(r, arena_printf(r->a, "'%.*s'", (int)bytes, word));
  }
  if (parse_word(r, ":", 1)) do {
      vec_push(r->a, &line.new_ranges, parse_range(r, true));
      skip_blanks(r);
    } while (!is_end_of_line(r) && line.new_ranges.n < MOST_LISTED);
  skip_blanks(r);
  if (!is_end_of_line(r)) fail_expected(r, "the end of the line");
  return line;
}

law_schedule law_schedule_parse(arena *a, const char *text, size_t bytes) {
  law_schedule list = {0};
  reader r = {a, text, text + bytes, 1};
  for (; r.at < r.end; r.line++) {
    skip_blanks(&r);
    if (!is_end_of_line(&r)) vec_push(a, &list, parse_line(&r));
    if (list.n > MOST_LINES)
      diag_raise(a->diag, TN_ERR_FORMAT, "the schedule has more than %d lines", MOST_LINES);
    while (r.at < r.end && *r.at != '\n') r.at++;
    r.at += r.at < r.end;
  }
  return list;
}
