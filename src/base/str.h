/* A growing string in an arena. */
#ifndef TENON_BASE_STR_H
#define TENON_BASE_STR_H

#include "base/arena.h"

typedef struct str {
  arena *arena;
  char *at; /* always ends in NUL once something was added; NULL before */
  size_t n, cap;
} str;

/** An empty string. */
str str_new(arena *a);

/** Appends text made as by printf. Raises when there is no memory. */
void str_addf(str *s, const char *format, ...) BASE_PRINTF(2, 3);

/** Appends `bytes` bytes. */
void str_add_bytes(str *s, const char *from, size_t bytes);
void str_add(str *s, const char *text);

/** Its text; "" while it is empty. Valid until the string grows. */
const char *str_text(const str *s);

#endif
