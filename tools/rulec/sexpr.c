/* Reads S-expressions by recursive descent of limited depth, and implements the text helpers of the
   rule compiler. */
#include "sexpr.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

_Noreturn void fail(place at, const char *format, ...) {
  va_list list;
  fprintf(stderr, "%s:%d: error: ", at.file, at.line);
  va_start(list, format);
  vfprintf(stderr, format, list);
  va_end(list);
  fputc('\n', stderr);
  exit(1);
}

void *enlarge(void *from, size_t bytes) {
  void *at = realloc(from, bytes ? bytes : 1);
  if (!at) {
    fputs("rulec: out of memory\n", stderr);
    exit(1);
  }
  return at;
}

void *allocate(size_t bytes) { return memset(enlarge(NULL, bytes), 0, bytes); }

char *copy_text(const char *from, size_t bytes) {
  char *to = allocate(bytes + 1);
  memcpy(to, from, bytes);
  return to;
}

char *text_of(const char *format, ...) {
  va_list list, again;
  va_start(list, format);
  va_copy(again, list);
  int n = vsnprintf(NULL, 0, format, list);
  char *text = allocate((size_t)n + 1);
  vsnprintf(text, (size_t)n + 1, format, again);
  va_end(list);
  va_end(again);
  return text;
}

static char *read_whole(const char *path) {
  FILE *f = fopen(path, "rb");
  char *text = NULL;
  size_t n = 0, got;
  if (!f) fail((place){path, 0}, "%s", strerror(errno));
  do {
    text = enlarge(text, n + 65536);
    got = fread(text + n, 1, 65535, f);
    n += got;
  } while (got);
  if (ferror(f)) fail((place){path, 0}, "cannot be read");
  fclose(f);
  text[n] = 0;
  if (strlen(text) != n) fail((place){path, 0}, "a zero byte in the text");
  return text;
}

typedef struct reader {
  const char *next;
  place at;
} reader;

static void skip_space(reader *r) {
  for (;; r->next++) {
    if (*r->next == ';')
      while (*r->next && *r->next != '\n') r->next++;
    if (!*r->next || !strchr(" \t\r\n", *r->next)) return;
    if (*r->next == '\n') r->at.line++;
  }
}

static sexpr *new_list(place at, char kind) {
  sexpr *s = allocate(sizeof *s);
  s->at = at;
  s->kind = kind;
  return s;
}

enum { MOST_DEPTH = 100 };

static sexpr *read_one(reader *r, int depth) {
  sexpr *s = new_list(r->at, *r->next);
  if (depth > MOST_DEPTH) fail(r->at, "nested too deeply");
  if (*r->next != '(' && *r->next != '{') {
    size_t n = strcspn(r->next, " \t\r\n(){};");
    if (!n) fail(r->at, "unexpected '%c'", *r->next);
    s->kind = 'a';
    s->text = copy_text(r->next, n);
    r->next += n;
    return s;
  }
  char end = *r->next++ == '(' ? ')' : '}';
  for (skip_space(r); *r->next != end; skip_space(r)) {
    if (!*r->next) fail(s->at, "no '%c' to this bracket", end);
    append(s->item, s->n, read_one(r, depth + 1));
  }
  r->next++;
  return s;
}

sexpr *sexpr_read(const char *path) {
  reader r = {read_whole(path), {path, 1}};
  sexpr *all = new_list(r.at, '(');
  for (skip_space(&r); *r.next; skip_space(&r)) append(all->item, all->n, read_one(&r, 0));
  return all;
}

bool sexpr_is(const sexpr *s, const char *text) { return s->kind == 'a' && !strcmp(s->text, text); }

bool sexpr_starts(const sexpr *s, const char *text) {
  return s->kind == '(' && s->n && sexpr_is(s->item[0], text);
}

/** An atom with each part between colons replaced; extents in brackets stay. */
static const char *replace_parts(const char *text, char *const from[], const sexpr *const to[],
                                 size_t n) {
  char *out = allocate(1);
  size_t length = 0;
  while (*text) {
    size_t part = strcspn(text, ":[");
    const char *with = text;
    size_t with_length = part;
    for (size_t i = 0; i < n; i++)
      if (part && strlen(from[i]) == part && !memcmp(from[i], text, part) && to[i]->kind == 'a') {
        with = to[i]->text;
        with_length = strlen(with);
      }
    size_t rest = text[part] == '[' ? strlen(text + part) : text[part] == ':';
    out = enlarge(out, length + with_length + rest + 1);
    memcpy(out + length, with, with_length);
    memcpy(out + length + with_length, text + part, rest);
    length += with_length + rest;
    text += part + rest;
  }
  out[length] = 0;
  return out;
}

sexpr *sexpr_replace(const sexpr *s, char *const from[], const sexpr *const to[], size_t n) {
  sexpr *r = allocate(sizeof *r);
  *r = *s;
  r->item = NULL;
  r->n = 0;
  if (s->kind != 'a') {
    for (size_t i = 0; i < s->n; i++) append(r->item, r->n, sexpr_replace(s->item[i], from, to, n));
    return r;
  }
  for (size_t i = 0; i < n; i++)
    if (!strcmp(s->text, from[i])) {
      *r = *to[i];
      r->at = s->at;
      return r;
    }
  r->text = replace_parts(s->text, from, to, n);
  return r;
}
