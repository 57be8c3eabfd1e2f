/* Formats text for people and for JSON. Names come from files and may hold anything, so they are
   escaped before they are printed. */
#ifndef TENON_CLI_CORE_TEXT_FORMAT_H
#define TENON_CLI_CORE_TEXT_FORMAT_H

#include "base/str.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

/** Escapes control characters and bytes that are not UTF-8, as \n, \t or \x1b. The second function
    keeps newlines. In the arena. */
const char *text_escape(arena *a, const char *text);
const char *text_escape_keep_newlines(arena *a, const char *text);

/** The columns of an escaped text in a terminal, one for each character. */
size_t text_columns(const char *text);

/** The factor of a suffix of a number of bytes: 1024 for k, its powers for M, G and T; 1 for other
    letters. */
int64_t text_byte_multiplier(char letter);

/** "1.5 MiB", "512 B". In the arena. */
const char *text_bytes(arena *a, uint64_t bytes);

/** A unit as a multiple of the base unit. */
typedef struct text_unit {
  const char *name;
  double factor;
} text_unit;

/** The largest unit in which a time in ms is at least 1, else the smallest. */
text_unit text_time_unit(double ms);

/** "1.5 ms", "86.9 µs". In the arena. */
const char *text_time(arena *a, double ms);

/** A count: "7", "1.5 M". In the arena. */
const char *text_si_number(arena *a, double n);

/** A number: "1.5", "-inf", "nan" without a sign. In the arena. */
const char *text_number(arena *a, double x);

/** A rate: "12.3", "123"; "-" for NAN. In the arena. */
const char *text_rate(arena *a, double x);

/** "1 kernel", "2 kernels". In the arena. */
const char *text_count(arena *a, uint64_t n, const char *what);

/** The candidate with the smallest edit distance to a misspelt word; NULL if none is near. */
const char *text_nearest_word(const char *word, const char *const candidates[], size_t n);

/** "; did you mean NEAREST?" or "". In the arena. */
const char *text_suggestion(arena *a, const char *nearest);

/** A JSON string, escaped by text_escape if it is not UTF-8; null for NULL. */
json_t *text_json(arena *a, const char *text);

/** A JSON number; null for NaN and infinities. */
json_t *text_json_number(double value);

/** A JSON number, or one of the strings "NaN", "Infinity" and "-Infinity". */
json_t *text_json_float(double value);

/** Writes a JSON value to standard output, with enough digits to restore each number, and frees it.
    Raises TN_ERR_MEMORY for NULL. */
void text_json_print(arena *a, json_t *value);

#endif
