/* Implements the host steps between numbers and strings by the C library, in the locale "C", so
   that the point is one whatever the process has chosen. */
#include "formats/host/string_numbers.h"

#include <errno.h>
#include <float.h>
#include <inttypes.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { DIGITS_F32 = 9, DIGITS_F64 = 17, NUMBER_TEXT = 40 };

/** Exponents of ten that are written out, as ONNX Runtime does: from the first to before the last,
    of f32 and of f64. */
enum { PLAIN_FIRST = -4, PLAIN_LAST_F32 = 8, PLAIN_LAST_F64 = 17 };

typedef tn_status (*number_step)(const number_options *o, string_table *t, const host_arrays *a,
                                 tn_failure *f);

/** Runs a step while the thread has the locale "C". */
static tn_status run_in_c(number_step step, const void *options, string_table *t,
                          const host_arrays *a, tn_failure *f) {
  locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
  if (!c) return tn_fail(f, TN_ERR_MEMORY, "out of memory");
  locale_t before = uselocale(c);
  tn_status s = step(options, t, a, f);
  uselocale(before);
  freelocale(c);
  return s;
}

/* Numbers to strings. */

/** Writes so many significant digits. */
static void write_digits(double v, int digits, int last, char text[NUMBER_TEXT]) {
  snprintf(text, NUMBER_TEXT, "%.*e", digits - 1, v);
  int exponent = atoi(strchr(text, 'e') + 1), decimals = digits - 1 - exponent;
  if (exponent >= PLAIN_FIRST && exponent < last)
    snprintf(text, NUMBER_TEXT, "%.*f", decimals > 0 ? decimals : 0, v);
}

/** True if so many significant digits, which it writes, give the number back. */
static bool reads_back(double v, bool is_single, int digits, char text[NUMBER_TEXT]) {
  snprintf(text, NUMBER_TEXT, "%.*e", digits - 1, v);
  return is_single ? strtof(text, NULL) == (float)v : strtod(text, NULL) == v;
}

/** The fewest digits that give a number back. Normal numbers keep decimals of FLT_DIG or DBL_DIG
    digits: fewer digits than those are enough just where zeros end them. */
static int fewest_digits(double v, bool is_single) {
  char text[NUMBER_TEXT];
  int most = is_single ? DIGITS_F32 : DIGITS_F64, digits = 1;
  if (is_single ? isnormal((float)v) : isnormal(v)) digits = is_single ? FLT_DIG : DBL_DIG;
  while (!reads_back(v, is_single, digits, text) && digits < most) digits++;
  for (const char *last = strchr(text, 'e') - 1; digits > 1 && *last == '0'; last--) digits--;
  return digits;
}

static void write_float(double v, bool is_single, char text[NUMBER_TEXT]) {
  if (isnan(v) || isinf(v)) {
    snprintf(text, NUMBER_TEXT, "%s", isnan(v) ? "NaN" : v < 0 ? "-INF" : "INF");
    return;
  }
  write_digits(v, fewest_digits(v, is_single), is_single ? PLAIN_LAST_F32 : PLAIN_LAST_F64, text);
}

static void write_number(dtype t, const void *data, size_t i, char text[NUMBER_TEXT]) {
  if (t == DT_F32)
    write_float((double)((const float *)data)[i], true, text);
  else if (t == DT_F64)
    write_float(((const double *)data)[i], false, text);
  else if (t == DT_I64)
    snprintf(text, NUMBER_TEXT, "%" PRId64, ((const int64_t *)data)[i]);
  else
    snprintf(text, NUMBER_TEXT, "%" PRIu64, ((const uint64_t *)data)[i]);
}

static tn_status write_all(const number_options *o, string_table *t, const host_arrays *a,
                           tn_failure *f) {
  int64_t *out = a->data[1];
  char text[NUMBER_TEXT];
  for (size_t i = 0; i < a->bytes[1] / sizeof *out; i++) {
    write_number(o->held, a->data[0], i, text);
    out[i] = string_table_add(t, text, strlen(text));
    if (out[i] < 0) return tn_fail(f, TN_ERR_MEMORY, "out of memory");
  }
  return TN_OK;
}

tn_status strings_of_numbers(const void *options, string_table *t, const host_arrays *a,
                             tn_failure *f) {
  return run_in_c(write_all, options, t, a, f);
}

/* Strings to numbers. */

static bool is_white(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

/** True if digits, points, signs and exponents are all there is: strtod reads hexadecimal numbers
    and names besides. */
static bool is_plain(const char *at, size_t n) {
  for (size_t i = 0; i < n; i++)
    if (!strchr("0123456789+-.eE", at[i])) return false;
  return n > 0;
}

static bool is_word(const char *at, size_t n, const char *word) {
  return n == strlen(word) && !strncasecmp(at, word, n);
}

/** Numbers that have a name; false: this is none. */
static bool read_name(const char *at, size_t n, double *v) {
  *v = is_word(at, n, "NaN") ? NAN : is_word(at, n, "-INF") ? -INFINITY : INFINITY;
  return isnan(*v) || *v < 0 || is_word(at, n, "INF") || is_word(at, n, "+INF");
}

static bool read_float(dtype t, const char *at, size_t n, void *out, size_t i) {
  char *end = NULL;
  double v;
  if (read_name(at, n, &v))
    end = (char *)at + n;
  else if (is_plain(at, n))
    v = t == DT_F32 ? (double)strtof(at, &end) : strtod(at, &end);
  if (t == DT_F32)
    ((float *)out)[i] = (float)v;
  else
    ((double *)out)[i] = v;
  return end == at + n;
}

/** Reads a number by way of f64, and drops a fraction; false: it is no number of 64 bits. */
static bool read_rounded(dtype t, const char *at, size_t n, void *out) {
  char *end;
  double v = trunc(strtod(at, &end));
  if (end != at + n || !(v >= (t == DT_I64 ? -0x1p63 : 0)) ||
      !(v < (t == DT_I64 ? 0x1p63 : 0x1p64)))
    return false;
  if (t == DT_I64)
    *(int64_t *)out = (int64_t)v;
  else
    *(uint64_t *)out = (uint64_t)v;
  return true;
}

static const char *skip_digits(const char *at) {
  while (*at >= '0' && *at <= '9') at++;
  return at;
}

/** Reads a number without an exponent, and drops a fraction; false: it is no number of 64 bits. */
static bool read_digits(dtype t, const char *at, size_t n, void *out) {
  const char *first = *at == '-' || *at == '+' ? at + 1 : at, *point = skip_digits(first);
  bool has_point = *point == '.';
  const char *end = has_point ? skip_digits(point + 1) : point;
  if (end != at + n || end - first == has_point) return false;
  errno = 0; /* a fraction alone is read as 0 */
  if (t == DT_I64)
    *(int64_t *)out = strtoll(at, NULL, 10);
  else
    *(uint64_t *)out = strtoull(first, NULL, 10);
  return errno != ERANGE && (t == DT_I64 || *at != '-' || !*(uint64_t *)out);
}

static bool read_integer(dtype t, const char *at, size_t n, void *out) {
  if (!is_plain(at, n)) return false;
  bool has_exponent = memchr(at, 'e', n) || memchr(at, 'E', n);
  return has_exponent ? read_rounded(t, at, n, out) : read_digits(t, at, n, out);
}

/** True if an integer of 64 bits is in the range of the type that is wanted. */
static bool is_in_range(const number_options *o, const void *v) {
  int bits = dtype_value_bits(o->wanted);
  if (o->wanted == DT_BOOL || bits >= 64) return true;
  if (o->held == DT_U64) return *(const uint64_t *)v >> bits == 0;
  int64_t half = (int64_t)1 << (bits - 1), i = *(const int64_t *)v;
  return i >= -half && i < half;
}

static bool read_number(const number_options *o, const char *at, size_t n, void *out, size_t i) {
  if (o->held == DT_F32 || o->held == DT_F64) return read_float(o->held, at, n, out, i);
  void *to = (int64_t *)out + i;
  return read_integer(o->held, at, n, to) && is_in_range(o, to);
}

static tn_status read_all(const number_options *o, string_table *t, const host_arrays *a,
                          tn_failure *f) {
  const int64_t *x = a->data[0];
  for (size_t i = 0; i < a->bytes[0] / sizeof *x; i++) {
    size_t n;
    const char *at = string_table_get(t, x[i], &n);
    if (!at)
      return tn_fail(f, TN_ERR_ARGUMENT, "%lld is the number of no string of the model",
                     (long long)x[i]);
    while (n && is_white(*at)) at++, n--;
    size_t kept = n;
    while (kept && is_white(at[kept - 1])) kept--;
    if (!read_number(o, at, kept, a->data[1], i))
      return tn_fail(f, TN_ERR_ARGUMENT, "'%.100s' is no number of type %s", at,
                     dtype_name(o->wanted));
  }
  return TN_OK;
}

tn_status numbers_of_strings(const void *options, string_table *t, const host_arrays *a,
                             tn_failure *f) {
  return run_in_c(read_all, options, t, a, f);
}
