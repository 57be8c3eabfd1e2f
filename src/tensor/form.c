#include "tensor/form.h"

#include <stdlib.h>

bool form_holds(const form *f, const scalar_list *s) {
  for (size_t i = 0; i < f->n; i++) {
    uint32_t var = f->which[i];
    int64_t wanted = var ? s->at[f->first[var - 1]].value : f->values[i];
    if (s->at[i].value != wanted) return false;
  }
  return f->n == s->n;
}

static const int64_t *values_of(arena *a, const scalar_list *s) {
  int64_t *values = arena_alloc(a, (s->n + 1) * sizeof *values);
  for (size_t i = 0; i < s->n; i++) values[i] = s->at[i].value;
  return values;
}

form form_of(arena *a, const scalar_list *s) {
  return (form){.values = values_of(a, s),
                .which = arena_calloc(a, s->n + 1, sizeof *(form){0}.which),
                .n = s->n};
}

/* Widening: scalars are one variable if they were one, or equal, and are equal now. */

typedef struct member {
  uint32_t which;
  dtype dtype;
  int64_t before, now;
  size_t at;
} member;

static int compare(int64_t a, int64_t b) { return (a > b) - (a < b); }

static int by_group(const member *x, const member *y) {
  int c = compare(x->which, y->which);
  if (!c) c = compare(x->dtype, y->dtype);
  if (!c) c = compare(x->before, y->before);
  return c ? c : compare(x->now, y->now);
}

static int by_group_and_place(const void *a, const void *b) {
  const member *x = a, *y = b;
  int c = by_group(x, y);
  return c ? c : compare((int64_t)x->at, (int64_t)y->at);
}

static member *sorted_members(arena *a, const form *f, const scalar_list *s) {
  member *m = arena_alloc(a, (s->n + 1) * sizeof *m);
  for (size_t i = 0; i < s->n; i++)
    m[i] = (member){f->which[i], s->at[i].dtype, f->values[i], s->at[i].value, i};
  if (s->n) qsort(m, s->n, sizeof *m, by_group_and_place);
  return m;
}

/** The first scalar of each one's variable; SIZE_MAX: it has the value that it had. */
static size_t *firsts(arena *a, const form *f, const scalar_list *s) {
  size_t *first = arena_alloc(a, (s->n + 1) * sizeof *first);
  member *m = sorted_members(a, f, s);
  for (size_t i = 0, begin = 0; i < s->n; i++) {
    if (by_group(&m[begin], &m[i])) begin = i;
    first[m[i].at] = m[i].which || m[i].before != m[i].now ? m[begin].at : SIZE_MAX;
  }
  return first;
}

/** Variables are numbered in the order of scalars: values decide nothing. */
form form_widened(arena *a, const form *f, const scalar_list *s) {
  uint32_t *which = arena_calloc(a, s->n + 1, sizeof *which);
  size_t *of = firsts(a, f, s), *first = arena_alloc(a, (s->n + 1) * sizeof *first), n = 0;
  for (size_t i = 0; i < s->n; i++) {
    if (of[i] == i) first[n++] = i;
    if (of[i] != SIZE_MAX) which[i] = of[i] == i ? (uint32_t)n : which[of[i]];
  }
  return (form){values_of(a, s), which, s->n, first, n};
}

form form_copy(arena *a, const form *f) {
  return (form){arena_copy(a, f->values, f->n * sizeof *f->values),
                arena_copy(a, f->which, f->n * sizeof *f->which), f->n,
                arena_copy(a, f->first, f->n_vars * sizeof *f->first), f->n_vars};
}

const scalar *form_vars(arena *a, const form *f, const scalar_list *s) {
  scalar *vars = arena_alloc(a, (f->n_vars + 1) * sizeof *vars);
  for (size_t i = 0; i < f->n_vars; i++) vars[i] = s->at[f->first[i]];
  for (size_t i = 0; i < f->n; i++) {
    scalar *v = f->which[i] ? &vars[f->which[i] - 1] : NULL;
    if (v && s->at[i].min > v->min) v->min = s->at[i].min;
    if (v && s->at[i].max < v->max) v->max = s->at[i].max;
  }
  return vars;
}
