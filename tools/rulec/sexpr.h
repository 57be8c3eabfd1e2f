/* Reads S-expressions with source positions, and declares the error, memory and text helpers of the
   rule compiler. The program runs once and exits: nothing that it allocates is freed. */
#ifndef RULEC_SEXPR_H
#define RULEC_SEXPR_H

#include <stdbool.h>
#include <stddef.h>

typedef struct place {
  const char *file;
  int line;
} place;

typedef struct sexpr {
  place at;
  char kind;        /* 'a': an atom; '(' or '{': a list in such brackets */
  const char *text; /* of an atom */
  struct sexpr **item;
  size_t n;
} sexpr;

/** Reads a file as the list of its forms. Comments run from ';' to the end of the line. */
sexpr *sexpr_read(const char *path);

/** True if an expression is the given atom; true if it is a list that starts with it. */
bool sexpr_is(const sexpr *s, const char *text);
bool sexpr_starts(const sexpr *s, const char *text);

/** A copy with atoms replaced: `from[i]` by `to[i]`, also where it is a part of the atom between
    colons ("cast:T" with T = f32 is "cast:f32"). */
sexpr *sexpr_replace(const sexpr *s, char *const from[], const sexpr *const to[], size_t n);

/** Prints an error at a place and exits with status 1. */
#if defined(__GNUC__)
__attribute__((format(printf, 2, 3)))
#endif
_Noreturn void
fail(place at, const char *format, ...);

/** Zeroed memory; memory grown by realloc; a copy of a text. Exit with status 1 if there is none.
 */
void *allocate(size_t bytes);
void *enlarge(void *from, size_t bytes);
char *copy_text(const char *from, size_t bytes);

/** A text formatted as by printf. */
#if defined(__GNUC__)
__attribute__((format(printf, 1, 2)))
#endif
char *
text_of(const char *format, ...);

/** Appends a value to an array of `n` at `at`, which is grown by doubling. */
#define append(at, n, ...)                                                                 \
  (((n) & ((n)-1)) == 0 ? (void)((at) = enlarge((at), ((n) ? 2 * (n) : 1) * sizeof *(at))) \
                        : (void)0,                                                         \
   (void)((at)[(n)++] = (__VA_ARGS__)))

#endif
