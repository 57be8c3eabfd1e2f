/* Formats text for people and for JSON: escapes it so that it cannot steer a terminal, prints
   numbers with units, and suggests spellings by the Damerau-Levenshtein distance (optimal string
   alignment). */
#include "cli/core/text_format.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/** The bytes of the well-formed UTF-8 character at `s` (Unicode 15, table 3-7); 0: malformed. */
static size_t utf8_length(const unsigned char *s) {
  if (s[0] < 0x80) return 1;
  size_t n = s[0] >= 0xf0 ? 4 : s[0] >= 0xe0 ? 3 : 2;
  if (s[0] < 0xc2 || s[0] > 0xf4) return 0;
  for (size_t i = 1; i < n; i++)
    if ((s[i] & 0xc0) != 0x80) return 0;
  bool is_overlong_or_surrogate = (s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f) ||
                                  (s[0] == 0xf0 && s[1] < 0x90) || (s[0] == 0xf4 && s[1] > 0x8f);
  return is_overlong_or_surrogate ? 0 : n;
}

/** True for control characters (C0, DEL, C1) and those that change the direction of text. */
static bool is_control(const unsigned char *s) {
  if (s[0] < 0x20 || s[0] == 0x7f) return true;
  if (s[0] == 0xc2) return s[1] < 0xa0;
  if (s[0] != 0xe2) return false;
  return (s[1] == 0x80 && (s[2] == 0x8e || s[2] == 0x8f || (s[2] >= 0xaa && s[2] <= 0xae))) ||
         (s[1] == 0x81 && s[2] >= 0xa6 && s[2] <= 0xa9);
}

static const char *escape(arena *a, const char *text, bool keep_newlines) {
  str out = str_new(a);
  const unsigned char *s = (const unsigned char *)text;
  while (*s) {
    size_t n = utf8_length(s);
    bool keep = n && (!is_control(s) || (keep_newlines && *s == '\n'));
    if (keep)
      str_add_bytes(&out, (const char *)s, n);
    else if (*s == '\n' || *s == '\t')
      str_add(&out, *s == '\n' ? "\\n" : "\\t");
    else
      for (size_t i = 0; i < (n ? n : 1); i++) str_addf(&out, "\\x%02x", s[i]);
    s += n ? n : 1;
  }
  return str_text(&out);
}

const char *text_escape(arena *a, const char *text) { return escape(a, text, false); }
const char *text_escape_keep_newlines(arena *a, const char *text) { return escape(a, text, true); }

size_t text_columns(const char *text) {
  size_t n = 0;
  for (; *text; text++) n += ((unsigned char)*text & 0xc0) != 0x80;
  return n;
}

const char *text_bytes(arena *a, uint64_t bytes) {
  char text[MEM_TEXT_BYTES];
  return arena_printf(a, "%s", mem_format_bytes(bytes, text));
}

int64_t text_byte_multiplier(char letter) {
  static const char letters[] = "kMGT";
  const char *found = letter ? strchr(letters, letter) : NULL;
  return found ? INT64_C(1) << 10 * (found - letters + 1) : 1;
}

static text_unit choose_unit(const text_unit units[], size_t n, double x) {
  size_t i = 0;
  while (i < n - 1 && x < units[i].factor) i++;
  return units[i];
}

text_unit text_time_unit(double ms) {
  static const text_unit units[] = {{"s", 1e3}, {"ms", 1}, {"µs", 1e-3}, {"ns", 1e-6}};
  return choose_unit(units, sizeof units / sizeof *units, ms);
}

const char *text_time(arena *a, double ms) {
  text_unit unit = text_time_unit(ms);
  return arena_printf(a, "%.4g %s", ms / unit.factor, unit.name);
}

const char *text_si_number(arena *a, double n) {
  static const text_unit units[] = {{" T", 1e12}, {" G", 1e9}, {" M", 1e6}, {" k", 1e3}, {"", 1}};
  text_unit unit = choose_unit(units, sizeof units / sizeof *units, n);
  return arena_printf(a, "%.4g%s", n / unit.factor, unit.name);
}

const char *text_number(arena *a, double x) {
  return isnan(x) ? "nan" : arena_printf(a, "%.6g", x);
}

const char *text_rate(arena *a, double x) {
  return isnan(x) ? "-" : arena_printf(a, x < 99.95 ? "%.1f" : "%.0f", x);
}

const char *text_count(arena *a, uint64_t n, const char *what) {
  return arena_printf(a, "%llu %s%s", (unsigned long long)n, what, n == 1 ? "" : "s");
}

enum { WORD_BYTES = 32 };

static size_t minimum(size_t a, size_t b) { return a < b ? a : b; }

/** The edit distance with transpositions; words longer than WORD_BYTES are far from all others. */
static size_t edit_distance(const char *a, const char *b) {
  size_t n = strlen(a), m = strlen(b), d[WORD_BYTES + 1][WORD_BYTES + 1];
  if (n > WORD_BYTES || m > WORD_BYTES) return WORD_BYTES;
  for (size_t i = 0; i <= n; i++) {
    for (size_t j = 0; j <= m; j++) {
      if (!i || !j) {
        d[i][j] = i + j;
        continue;
      }
      d[i][j] =
          minimum(minimum(d[i - 1][j], d[i][j - 1]) + 1, d[i - 1][j - 1] + (a[i - 1] != b[j - 1]));
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        d[i][j] = minimum(d[i][j], d[i - 2][j - 2] + 1);
    }
  }
  return d[n][m];
}

const char *text_nearest_word(const char *word, const char *const candidates[], size_t n) {
  const char *best = NULL;
  size_t length = strlen(word), limit = length / 3 + 1;
  for (size_t i = 0; i < n; i++) {
    bool is_prefix = length > 1 && !strncmp(candidates[i], word, length);
    size_t distance = is_prefix ? 1 : edit_distance(word, candidates[i]);
    if (distance > limit || distance >= strlen(candidates[i])) continue;
    best = candidates[i];
    limit = distance ? distance - 1 : 0;
  }
  return best;
}

const char *text_suggestion(arena *a, const char *nearest) {
  return nearest ? arena_printf(a, "; did you mean %s?", nearest) : "";
}

json_t *text_json(arena *a, const char *text) {
  if (!text) return json_null();
  json_t *j = json_string(text);
  return j ? j : json_string(text_escape(a, text));
}

json_t *text_json_number(double value) { return isfinite(value) ? json_real(value) : json_null(); }

json_t *text_json_float(double value) {
  if (isfinite(value)) return json_real(value);
  return json_string(isnan(value) ? "NaN" : value > 0 ? "Infinity" : "-Infinity");
}

void text_json_print(arena *a, json_t *value) {
  enum { DIGITS = 17 }; /* identify every f64 */
  int failed = value ? json_dumpf(value, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(DIGITS)) : -1;
  json_decref(value);
  if (!value) diag_raise(a->diag, TN_ERR_MEMORY, "out of memory");
  if (!failed) putchar('\n');
}
