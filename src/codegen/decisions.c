/* Compares, prints and parses lists of decisions. Texts come from files that anybody may have
   written. */
#include "codegen/decisions.h"

#include <stdlib.h>
#include <string.h>

static const char *const words[] = {
#define KIND(name, text) text,
    DECISION_KINDS(KIND)
#undef KIND
};

/** Alternatives of one decision in a text, and decisions in one, at most. */
enum { MOST_ALTERNATIVES = 1 << 20, MOST_DECISIONS = 1 << 10 };

decision_list decisions_copy(arena *a, const decision_list *list) {
  decision_list copy = {0};
  for (size_t i = 0; i < list->n; i++) vec_push(a, &copy, list->at[i]);
  return copy;
}

bool decisions_equal(const decision_list *a, const decision_list *b) {
  bool equal = a->n == b->n;
  for (size_t i = 0; i < a->n && equal; i++)
    equal = a->at[i].kind == b->at[i].kind && a->at[i].n == b->at[i].n &&
            a->at[i].taken == b->at[i].taken;
  return equal;
}

const char *decisions_text(arena *a, const decision_list *list) {
  str s = str_new(a);
  for (size_t i = 0; i < list->n; i++)
    str_addf(&s, "%s%s:%zu/%zu", i ? "," : "", words[list->at[i].kind], list->at[i].taken,
             list->at[i].n);
  return list->n ? str_text(&s) : "-";
}

/** Reads a number that begins with a digit, and the character after it. */
static bool parse_number(const char **at, size_t *number) {
  char *end;
  if (**at < '0' || **at > '9') return false;
  unsigned long read = strtoul(*at, &end, 10);
  *number = (size_t)read;
  *at = end;
  return read <= MOST_ALTERNATIVES;
}

static bool parse_kind(const char **at, decision_kind *kind) {
  for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
    size_t n = strlen(words[i]);
    if (strncmp(*at, words[i], n) || (*at)[n] != ':') continue;
    *kind = (decision_kind)i;
    *at += n + 1;
    return true;
  }
  return false;
}

bool decisions_parse(arena *a, const char *text, decision_list *list) {
  *list = (decision_list){0};
  if (!strcmp(text, "-")) return true;
  for (const char *at = text;; at++) {
    decision d;
    bool is_read = parse_kind(&at, &d.kind) && parse_number(&at, &d.taken) && *at++ == '/' &&
                   parse_number(&at, &d.n) && d.taken < d.n;
    if (!is_read || list->n == MOST_DECISIONS) return false;
    vec_push(a, list, d);
    if (*at != ',') return !*at;
  }
}
