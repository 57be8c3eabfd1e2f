/* Implements string builders: geometric growth in an arena, and formatting. */
#include "base/str.h"

#include <stdio.h>
#include <string.h>

str str_new(arena *a) { return (str){.arena = a}; }

static void reserve(str *s, size_t more) {
  if (s->cap - s->n > more) return;
  size_t cap = (s->n + more + 1) * 2;
  if (cap < 64) cap = 64;
  char *at = arena_alloc(s->arena, cap);
  if (s->n) memcpy(at, s->at, s->n);
  at[s->n] = 0;
  s->at = at;
  s->cap = cap;
}

void str_add_bytes(str *s, const char *from, size_t bytes) {
  reserve(s, bytes);
  memcpy(s->at + s->n, from, bytes);
  s->n += bytes;
  s->at[s->n] = 0;
}

void str_add(str *s, const char *text) { str_add_bytes(s, text, strlen(text)); }

void str_addf(str *s, const char *format, ...) {
  va_list list, again;
  va_start(list, format);
  va_copy(again, list);
  reserve(s, 96);
  int n = vsnprintf(s->at + s->n, s->cap - s->n, format, list);
  va_end(list);
  if (n > 0 && (size_t)n >= s->cap - s->n) {
    reserve(s, (size_t)n);
    vsnprintf(s->at + s->n, s->cap - s->n, format, again);
  }
  va_end(again);
  if (n > 0) s->n += (size_t)n;
}

const char *str_text(const str *s) { return s->at ? s->at : ""; }
