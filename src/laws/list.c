/* Lists of laws as text. */
#include "laws/list.h"

#include <string.h>

static const law_facts facts[LAWS] = {
#define LAW(name, function, arguments, made, file, about) \
  [LAW_##name] = {#name, arguments, made, file, about},
#include "laws/laws.def"
};

const law_facts *law_get(law which) { return &facts[which]; }

size_t law_principals(law which, const law_args *a) {
  return facts[which].made == LISTED ? a->n : (size_t)facts[which].made;
}

/* The arguments of a row. */

/** The next word of a row's arguments, NULL after the last; *at moves behind it. */
static const char *next_word(const char **at, size_t *bytes) {
  *at += **at == ' ';
  const char *word = *at;
  *at += *bytes = strcspn(word, " ");
  return *bytes ? word : NULL;
}

typedef enum argument { WORD, SUBJECT, OTHER, NUMBER, POINT, KIND, SIDE, LIST } argument;

static argument argument_of(const char *word, size_t bytes) {
  static const struct {
    const char *name;
    argument is;
  } known[] = {
#define LAW_WORD(name, argument, about) {#name, argument},
#include "laws/laws.def"
  };
  for (size_t i = 0; i < sizeof known / sizeof *known; i++)
    if (strlen(known[i].name) == bytes && !memcmp(known[i].name, word, bytes)) return known[i].is;
  return WORD;
}

/* Printing. */

static void print_range(str *out, int64_t number) {
  if (number == NO_RANGE)
    str_add(out, " -");
  else
    str_addf(out, " r%" PRId64, number);
}

static void print_argument(str *out, const law_line *line, argument what) {
  switch (what) {
  case SUBJECT: str_addf(out, " %c%" PRId64, line->subject_kind, line->subject); break;
  case OTHER: print_range(out, line->other); break;
  case NUMBER: str_addf(out, " %" PRId64, line->number); break;
  case POINT: str_addf(out, " %s %" PRId64, line->is_multiple ? "by" : "at", line->number); break;
  case KIND: str_addf(out, " %s", range_kind_name((range_kind)line->number)); break;
  case SIDE: str_addf(out, " %s", line->number ? "last" : "first"); break;
  default:
    for (size_t i = 0; i < line->list.n; i++) print_range(out, line->list.at[i]);
  }
}

void law_line_print(str *out, const law_line *line) {
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
  if (line->made.n) str_add(out, ":");
  for (size_t i = 0; i < line->made.n; i++) print_range(out, line->made.at[i]);
}

void law_list_print(str *out, const law_list *list) {
  for (size_t i = 0; i < list->n; i++) {
    law_line_print(out, &list->at[i]);
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

static _Noreturn void expected(reader *r, const char *what) {
  int n = 0;
  skip_blanks(r);
  while (r->at + n < r->end && n < 24 && r->at[n] > ' ' && r->at[n] <= '~') n++;
  bool at_end = is_end_of_line(r);
  diag_raise(r->a->diag, TN_ERR_FORMAT, "line %zu of the schedule: expected %s, found %s%.*s%s",
             r->line, what, at_end ? "the end of the line" : "'", at_end ? 0 : n, r->at,
             at_end ? "" : "'");
}

static bool is_word(char c) { return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z'); }

/** Whether this word comes next; if so, it is read. */
static bool take_word(reader *r, const char *word, size_t bytes) {
  skip_blanks(r);
  if ((size_t)(r->end - r->at) < bytes || memcmp(r->at, word, bytes)) return false;
  if (r->at + bytes < r->end && is_word(r->at[bytes]) && is_word(word[bytes - 1])) return false;
  r->at += bytes;
  return true;
}

/** Numbers have 31 bits: sums and products of them and of extents cannot overflow unnoticed. */
static int64_t take_number(reader *r, const char *what) {
  int64_t value = 0;
  const char *start = r->at;
  for (; r->at < r->end && *r->at >= '0' && *r->at <= '9' && value <= INT32_MAX; r->at++)
    value = value * 10 + (*r->at - '0');
  if (r->at > start && value <= INT32_MAX) return value;
  r->at = start;
  expected(r, what);
}

static bool is_at_range(reader *r) {
  skip_blanks(r);
  return r->at < r->end && *r->at == 'r';
}

static int64_t take_range(reader *r, bool may_be_none) {
  if (may_be_none && take_word(r, "-", 1)) return NO_RANGE;
  if (!is_at_range(r)) expected(r, may_be_none ? "a range, as r0, or -" : "a range, as r0");
  r->at++;
  return take_number(r, "the number of a range");
}

/** `form`: RANGE, BINDER or EXPRESSION. */
static void take_subject(reader *r, law_line *line, char form) {
  const char *letters = form == 'R' ? "r" : form == 'B' ? "rs" : "e";
  const char *what = form == 'R'   ? "a range, as r0"
                     : form == 'B' ? "a binder, as r0 or s0"
                                   : "an expression, as e0";
  skip_blanks(r);
  if (r->at == r->end || !*r->at || !strchr(letters, *r->at)) expected(r, what);
  line->subject_kind = *r->at++;
  line->subject = take_number(r, "its number");
}

static void take_point(reader *r, law_line *line) {
  line->is_multiple = take_word(r, "by", 2);
  if (!line->is_multiple && !take_word(r, "at", 2)) expected(r, "'at' or 'by'");
  skip_blanks(r);
  line->number = take_number(r, "a number");
}

static const char *kinds(arena *a) {
  str text = str_new(a);
  str_add(&text, "a kind of ranges");
  for (int k = 0; k < KIND_LIMIT; k++)
    str_addf(&text, "%s%s", k ? ", " : ": ", range_kind_name((range_kind)k));
  return str_text(&text);
}

static int64_t take_kind(reader *r) {
  for (int k = 0; k < KIND_LIMIT; k++) {
    const char *name = range_kind_name((range_kind)k);
    if (take_word(r, name, strlen(name))) return k;
  }
  expected(r, kinds(r->a));
}

static bool take_side(reader *r) {
  if (take_word(r, "first", 5)) return false;
  if (take_word(r, "last", 4)) return true;
  expected(r, "'first' or 'last'");
}

static void take_list(reader *r, law_line *line) {
  do {
    vec_push(r->a, &line->list, take_range(r, false));
  } while (is_at_range(r) && line->list.n < MOST_LISTED);
}

static void take_argument(reader *r, law_line *line, argument what, char form) {
  switch (what) {
  case SUBJECT: take_subject(r, line, form); break;
  case OTHER: line->other = take_range(r, form == 'L'); break;
  case NUMBER: skip_blanks(r), line->number = take_number(r, "a number"); break;
  case POINT: take_point(r, line); break;
  case KIND: line->number = take_kind(r); break;
  case SIDE: line->number = take_side(r); break;
  default: take_list(r, line);
  }
}

static law take_law(reader *r) {
  for (int i = 0; i < LAWS; i++)
    if (take_word(r, facts[i].name, strlen(facts[i].name))) return (law)i;
  expected(r, "the name of a law");
}

static law_line take_line(reader *r) {
  law_line line = {.which = take_law(r), .other = NO_RANGE};
  const char *at = facts[line.which].arguments, *word;
  size_t bytes;
  while ((word = next_word(&at, &bytes))) {
    argument what = argument_of(word, bytes);
    if (what != WORD)
      take_argument(r, &line, what, *word);
    else if (!take_word(r, word, bytes))
      expected(r, arena_printf(r->a, "'%.*s'", (int)bytes, word));
  }
  if (take_word(r, ":", 1)) do {
      vec_push(r->a, &line.made, take_range(r, true));
      skip_blanks(r);
    } while (!is_end_of_line(r) && line.made.n < MOST_LISTED);
  skip_blanks(r);
  if (!is_end_of_line(r)) expected(r, "the end of the line");
  return line;
}

law_list law_list_parse(arena *a, const char *text, size_t bytes) {
  law_list list = {0};
  reader r = {a, text, text + bytes, 1};
  for (; r.at < r.end; r.line++) {
    skip_blanks(&r);
    if (!is_end_of_line(&r)) vec_push(a, &list, take_line(&r));
    if (list.n > MOST_LINES)
      diag_raise(a->diag, TN_ERR_FORMAT, "the schedule has more than %d lines", MOST_LINES);
    while (r.at < r.end && *r.at != '\n') r.at++;
    r.at += r.at < r.end;
  }
  return list;
}
