/* Implements host steps on strings. Case is changed by the C library's tables of code points; bytes
   that are no UTF-8 stay as they are. */
#include "formats/host/string_steps.h"

#include <locale.h>
#include <stdio.h>
#include <string.h>
#include <wctype.h>

/** A text under construction. */
typedef struct text {
  const mem *mem;
  char *at;
  size_t n, cap;
} text;

static bool add_bytes(text *s, const char *at, size_t n) {
  if (s->n + n > s->cap) {
    size_t cap = 2 * (s->n + n) + 64;
    char *more = mem_resize(s->mem, s->at, s->cap, cap);
    if (!more) return false;
    s->at = more;
    s->cap = cap;
  }
  if (n) memcpy(s->at + s->n, at, n);
  s->n += n;
  return true;
}

static void free_text(text *s) { mem_free(s->mem, s->at, s->cap); }

static tn_status fail_memory(tn_failure *f) { return tn_fail(f, TN_ERR_MEMORY, "out of memory"); }

static tn_status fail_number(tn_failure *f, int64_t number) {
  return tn_fail(f, TN_ERR_ARGUMENT, "%lld is the number of no string of the model",
                 (long long)number);
}

static size_t count_of(const host_arrays *a, size_t i) {
  return (size_t)a->bytes[i] / sizeof(int64_t);
}

/* Concatenation. */

tn_status string_concat(const void *none, string_table *t, const host_arrays *a, tn_failure *f) {
  const int64_t *x = a->data[0], *y = a->data[1];
  int64_t *out = a->data[2];
  text s = {.mem = string_table_mem(t)};
  tn_status status = TN_OK;
  (void)none;
  for (size_t i = 0; i < count_of(a, 2) && status == TN_OK; i++) {
    size_t n, m;
    const char *first = string_table_get(t, x[i], &n), *second = string_table_get(t, y[i], &m);
    s.n = 0;
    if (!first || !second)
      status = fail_number(f, first ? y[i] : x[i]);
    else if (!add_bytes(&s, first, n) || !add_bytes(&s, second, m) ||
             (out[i] = string_table_add(t, s.at ? s.at : "", s.n)) < 0)
      status = fail_memory(f);
  }
  free_text(&s);
  return status;
}

/* Splitting. */

typedef struct splitter {
  const split_options *o;
  const char *at, *end; /* what is left; NULL: nothing is */
  int64_t n;            /* parts so far */
} splitter;

static bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

static const char *skip_spaces(const char *at, const char *end) {
  while (at < end && is_space(*at)) at++;
  return at;
}

static const char *find_delimiter(const splitter *s) {
  for (const char *at = s->at; at + s->o->n <= s->end; at++)
    if (!memcmp(at, s->o->delimiter, s->o->n)) return at;
  return NULL;
}

/** The next part at stretches of white space. */
static bool next_word(splitter *s, const char **part, size_t *n) {
  *part = s->at = skip_spaces(s->at, s->end);
  if (s->at == s->end) return false;
  if (s->o->most >= 0 && s->n++ >= s->o->most) {
    while (is_space(s->end[-1])) s->end--;
    *n = (size_t)(s->end - s->at);
    s->at = s->end;
    return true;
  }
  while (s->at < s->end && !is_space(*s->at)) s->at++;
  *n = (size_t)(s->at - *part);
  return true;
}

/** The next part, if there is one. An empty string has one empty part at delimiters. */
static bool next_part(splitter *s, const char **part, size_t *n) {
  if (!s->o->n) return next_word(s, part, n);
  if (!s->at) return false;
  bool may_split = s->o->most < 0 || s->n++ < s->o->most;
  const char *delimiter = may_split ? find_delimiter(s) : NULL;
  *part = s->at;
  *n = (size_t)((delimiter ? delimiter : s->end) - s->at);
  s->at = delimiter ? delimiter + s->o->n : NULL;
  return true;
}

static splitter split_of(const split_options *o, const char *at, size_t n) {
  return (splitter){o, at, at + n, 0};
}

tn_status string_count_parts(const void *options, string_table *t, const host_arrays *a,
                             tn_failure *f) {
  const int64_t *x = a->data[0];
  int64_t *out = a->data[1];
  for (size_t i = 0; i < count_of(a, 1); i++) {
    size_t n;
    const char *at = string_table_get(t, x[i], &n), *part;
    if (!at) return fail_number(f, x[i]);
    splitter s = split_of(options, at, n);
    for (out[i] = 0; next_part(&s, &part, &n);) out[i]++;
  }
  return TN_OK;
}

tn_status string_split(const void *options, string_table *t, const host_arrays *a, tn_failure *f) {
  const int64_t *x = a->data[0];
  int64_t *out = a->data[1];
  size_t strings = count_of(a, 0), parts = strings ? count_of(a, 1) / strings : 0;
  memset(out, 0, (size_t)a->bytes[1]);
  for (size_t i = 0; i < strings; i++) {
    size_t n;
    const char *at = string_table_get(t, x[i], &n), *part;
    if (!at) return fail_number(f, x[i]);
    splitter s = split_of(options, at, n);
    for (size_t k = 0; k < parts && next_part(&s, &part, &n); k++)
      if ((out[i * parts + k] = string_table_add(t, part, n)) < 0) return fail_memory(f);
  }
  return TN_OK;
}

/* Case. */

void *string_locale_open(const char *name) {
  char text[64];
  snprintf(text, sizeof text, "%s.UTF-8", name);
  locale_t l = *name && strlen(name) < 32 && !strchr(name, '.')
                   ? newlocale(LC_CTYPE_MASK, text, (locale_t)0)
                   : (locale_t)0;
  return l ? l : newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
}

void string_locale_close(void *locale) {
  if (locale) freelocale(locale);
}

/** The length of the code point at the beginning of a text, and its number; a byte that begins none
    is one of its own, −1. */
static size_t decode(const unsigned char *at, size_t n, int32_t *point) {
  static const int32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
  size_t length = *at < 0x80         ? 1
                  : *at >> 5 == 0x6  ? 2
                  : *at >> 4 == 0xe  ? 3
                  : *at >> 3 == 0x1e ? 4
                                     : 0;
  *point = length == 1 ? *at : length ? *at & (0x7f >> length) : -1;
  for (size_t i = 1; i < length && *point >= 0; i++)
    *point = i < n && at[i] >> 6 == 2 ? *point << 6 | (at[i] & 0x3f) : -1;
  if (*point < 0 || *point < least[length] || *point > 0x10ffff || *point >> 11 == 0x1b)
    *point = -1;
  return *point < 0 ? 1 : length;
}

static size_t encode(int32_t point, char out[4]) {
  size_t length = point < 0x80 ? 1 : point < 0x800 ? 2 : point < 0x10000 ? 3 : 4;
  static const unsigned char first[] = {0, 0, 0xc0, 0xe0, 0xf0};
  for (size_t i = length - 1; i > 0; i--, point >>= 6) out[i] = (char)(0x80 | (point & 0x3f));
  out[0] = (char)(first[length] | point);
  return length;
}

static int32_t change_point(int32_t point, case_change change, void *locale) {
  if (locale)
    return (int32_t)(change == CASE_LOWER ? towlower_l((wint_t)point, locale)
                                          : towupper_l((wint_t)point, locale));
  if (change == CASE_LOWER) return point >= 'A' && point <= 'Z' ? point + 32 : point;
  return point >= 'a' && point <= 'z' ? point - 32 : point;
}

int64_t string_change_case(string_table *t, int64_t number, case_change change, void *locale) {
  size_t n;
  const char *at = string_table_get(t, number, &n);
  text s = {.mem = string_table_mem(t)};
  bool has_memory = true;
  if (change == CASE_KEEP || !at) return number;
  for (size_t i = 0; i < n && has_memory;) {
    int32_t point;
    char changed[4];
    size_t length = decode((const unsigned char *)at + i, n - i, &point);
    has_memory = point < 0
                     ? add_bytes(&s, at + i, length)
                     : add_bytes(&s, changed, encode(change_point(point, change, locale), changed));
    i += length;
  }
  int64_t changed = has_memory ? string_table_add(t, s.at ? s.at : "", s.n) : -1;
  free_text(&s);
  return changed;
}

/* Normalisation. */

/** The string as it stays, -1 if it is left out; fails with -2 without memory. */
static int64_t normal_form(const normal_options *o, string_table *t, int64_t number) {
  int64_t compared =
      o->is_case_sensitive ? number : string_change_case(t, number, CASE_LOWER, o->locale);
  if (compared < 0) return -2;
  for (size_t i = 0; i < o->n_stops; i++)
    if (o->stops[i] == compared) return -1;
  int64_t changed = string_change_case(t, number, o->change, o->locale);
  return changed < 0 ? -2 : changed;
}

/** Writes the strings that stay, as far as there is room, and counts them. */
static tn_status normalise(const normal_options *o, string_table *t, const host_arrays *a,
                           int64_t *out, size_t room, size_t *kept, tn_failure *f) {
  const int64_t *x = a->data[0];
  *kept = 0;
  for (size_t i = 0; i < count_of(a, 0); i++) {
    if (!string_table_get(t, x[i], NULL)) return fail_number(f, x[i]);
    int64_t y = normal_form(o, t, x[i]);
    if (y == -2) return fail_memory(f);
    if (y < 0) continue;
    if (*kept < room) out[*kept] = y;
    ++*kept;
  }
  return TN_OK;
}

tn_status string_count_kept(const void *options, string_table *t, const host_arrays *a,
                            tn_failure *f) {
  size_t kept;
  tn_status s = normalise(options, t, a, NULL, 0, &kept, f);
  *(int64_t *)a->data[1] = s == TN_OK && kept ? (int64_t)kept : 1;
  return s;
}

tn_status string_normalise(const void *options, string_table *t, const host_arrays *a,
                           tn_failure *f) {
  size_t kept;
  memset(a->data[1], 0, (size_t)a->bytes[1]);
  return normalise(options, t, a, a->data[1], count_of(a, 1), &kept, f);
}
