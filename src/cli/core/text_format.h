/* Formats text for people and for JSON. Names come from files and may hold anything, so they are
   escaped before they are printed. */
#ifndef TENON_CLI_CORE_TEXT_FORMAT_H
#define TENON_CLI_CORE_TEXT_FORMAT_H

#include "base/str.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

/** Escapes characters that could steer a terminal, and bytes that are not UTF-8, as \n, \t or \x1b.
    The second one keeps newlines. In the arena. */
const char *text_escape(arena *a, const char *text);
const char *text_escape_keep_newlines(arena *a, const char *text);

/** Columns that an escaped text takes in a terminal, at one column a character. */
size_t text_columns(const char *text);

/** The factor of a letter after a number of bytes: 1024 for k, its powers for M, G and T, and 1 for
    all others. */
int64_t text_byte_multiplier(char letter);

/** "1.5 MiB", "512 B". In the arena. */
const char *text_bytes(arena *a, uint64_t bytes);

/** A unit, as a multiple of the unit that values are in. */
typedef struct text_unit {
  const char *name;
  double factor;
} text_unit;

/** The largest unit of which a time in ms is at least one; else the smallest. */
text_unit text_time_unit(double ms);

/** "1.5 ms", "86.9 µs". In the arena. */
const char *text_time(arena *a, double ms);

/** A count: "7", "1.5 M". In the arena. */
const char *text_si_number(arena *a, double n);

/** "1.5", "-inf", "nan" without a sign. In the arena. */
const char *text_number(arena *a, double x);

/** A rate in its unit: "12.3", "123"; "-" for NAN. In the arena. */
const char *text_rate(arena *a, double x);

/** "1 kernel", "2 kernels". In the arena. */
const char *text_count(arena *a, uint64_t n, const char *what);

/** The candidate nearest to a misspelt word, by insertions, deletions, replacements and swaps of
    neighbours; NULL if none is near. */
const char *text_nearest_word(const char *word, const char *const candidates[], size_t n);

/** ", did you mean NEAREST?" or "". In the arena. */
const char *text_suggestion(arena *a, const char *nearest);

/** A JSON string; bytes that are not UTF-8 are written as text_escape does. NULL gives null. */
json_t *text_json(arena *a, const char *text);

/** A JSON number; null for values that are not finite. */
json_t *text_json_number(double value);

/** A JSON number, or one of the strings "NaN", "Infinity" and "-Infinity". */
json_t *text_json_float(double value);

/** Writes a JSON value to standard output, with enough digits to read back the same numbers, and
    frees it. Raises TN_ERR_MEMORY for NULL. */
void text_json_print(arena *a, json_t *value);

#endif
