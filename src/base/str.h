/* A string builder in an arena. Its capacity at least doubles, so appending takes amortised
   constant time a byte. */
#ifndef TENON_BASE_STR_H
#define TENON_BASE_STR_H

#include "base/arena.h"

typedef struct str {
  arena *arena;
  char *at; /* NULL before the first addition, then n bytes and a NUL */
  size_t n, cap;
} str;

/** Returns an empty string. */
str str_new(arena *a);

/** Appends formatted text, as printf does. Raises TN_ERR_MEMORY. */
void str_addf(str *s, const char *format, ...) BASE_PRINTF(2, 3);

/** Append `bytes` bytes, and a string. Raise TN_ERR_MEMORY. */
void str_add_bytes(str *s, const char *from, size_t bytes);
void str_add(str *s, const char *text);

/** Returns the text, "" while it is empty. The pointer is valid until the string grows. */
const char *str_text(const str *s);

#endif
