/* Text for people and for JSON: names come from files and may hold anything. */
#ifndef TENON_CLI_TEXT_H
#define TENON_CLI_TEXT_H

#include "base/str.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

/** A text without what could steer a terminal: control characters and bytes that are not UTF-8 come
    out as \n, \t or \x1b. With `lines`, newlines stay. In the arena. */
const char *text_safe(arena *a, const char *text);
const char *text_safe_lines(arena *a, const char *text);

/** Columns that a safe text takes in a terminal, taking each character as one. */
size_t text_columns(const char *text);

/** What a letter after a number of bytes stands for: 1024 for k, its powers for M, G and T, and 1
   for all else. */
int64_t text_byte_unit(char letter);

/** "1.5 MiB", "512 B". In the arena. */
const char *text_bytes(arena *a, uint64_t bytes);

/** A unit, and what it is in that of the numbers that are told. */
typedef struct text_unit {
  const char *name;
  double is;
} text_unit;

/** The largest unit of which a time in ms is at least one, or the smallest. */
text_unit text_time_unit(double ms);

/** "1.5 ms", "86.9 µs". In the arena. */
const char *text_time(arena *a, double ms);

/** A count: "7", "1.5 M". In the arena. */
const char *text_amount(arena *a, double n);

/** "1.5", "-inf", "nan", which has no sign. In the arena. */
const char *text_number(arena *a, double x);

/** A rate in its unit: "12.3", "123"; "-" where it is not known (NAN). In the arena. */
const char *text_rate(arena *a, double x);

/** "1 kernel", "2 kernels". In the arena. */
const char *text_count(arena *a, uint64_t n, const char *what);

/** The candidate nearest to a misspelt word, by insertions, deletions, replacements and swaps of
    neighbours; NULL if none is near. */
const char *text_nearest(const char *word, const char *const candidates[], size_t n);

/** ", did you mean NEAREST?" or "". In the arena. */
const char *text_suggestion(arena *a, const char *nearest);

/** A JSON string; bytes that are not UTF-8 are written as text_safe does. NULL gives null. */
json_t *text_json(arena *a, const char *text);

/** A JSON number; null for what JSON has no number for. */
json_t *text_json_number(double value);

/** The same, with "NaN", "Infinity" and "-Infinity" as strings. */
json_t *text_json_float(double value);

/** Writes a JSON value, which it frees, to standard output; numbers are read back as they were.
    Raises where there was no memory to make it (NULL). */
void text_json_print(arena *a, json_t *value);

#endif
