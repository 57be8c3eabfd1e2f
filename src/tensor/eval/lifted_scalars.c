/* Scalar lifting: turns constants that differ between structurally equal graphs into runtime
   parameters of one executable, so that new values need no compilation. Constants that have
   always been equal share a parameter. */
#include "tensor/eval/lifted_scalars.h"

#include <stdlib.h>

bool lifted_scalars_match(const lifted_scalars *f, const liftable_scalar_list *s) {
  for (size_t i = 0; i < f->n; i++) {
    uint32_t var = f->var_of[i];
    int64_t wanted = var ? s->at[f->first_of_var[var - 1]].value : f->values[i];
    if (s->at[i].value != wanted) return false;
  }
  return f->n == s->n;
}

static const int64_t *values_of(arena *a, const liftable_scalar_list *s) {
  int64_t *values = arena_alloc(a, (s->n + 1) * sizeof *values);
  for (size_t i = 0; i < s->n; i++) values[i] = s->at[i].value;
  return values;
}

lifted_scalars lifted_scalars_fixed(arena *a, const liftable_scalar_list *s) {
  return (lifted_scalars){.values = values_of(a, s),
                          .var_of = arena_calloc(a, s->n + 1, sizeof *(lifted_scalars){0}.var_of),
                          .n = s->n};
}

/* Widening: scalars share a variable if they shared one before, or were equal, and are equal now.
   Sorting by these properties makes each variable a run of consecutive members. */

typedef struct member {
  uint32_t var_of;
  dtype dtype;
  int64_t before, now;
  size_t at;
} member;

static int compare(int64_t a, int64_t b) { return (a > b) - (a < b); }

static int by_group(const member *x, const member *y) {
  int c = compare(x->var_of, y->var_of);
  if (!c) c = compare(x->dtype, y->dtype);
  if (!c) c = compare(x->before, y->before);
  return c ? c : compare(x->now, y->now);
}

static int by_group_and_place(const void *a, const void *b) {
  const member *x = a, *y = b;
  int c = by_group(x, y);
  return c ? c : compare((int64_t)x->at, (int64_t)y->at);
}

static member *sorted_members(arena *a, const lifted_scalars *f, const liftable_scalar_list *s) {
  member *m = arena_alloc(a, (s->n + 1) * sizeof *m);
  for (size_t i = 0; i < s->n; i++)
    m[i] = (member){f->var_of[i], s->at[i].dtype, f->values[i], s->at[i].value, i};
  if (s->n) qsort(m, s->n, sizeof *m, by_group_and_place);
  return m;
}

/** The first scalar of each scalar's variable; SIZE_MAX: it is fixed, with the value that it had.
 */
static size_t *first_of_group(arena *a, const lifted_scalars *f, const liftable_scalar_list *s) {
  size_t *first = arena_alloc(a, (s->n + 1) * sizeof *first);
  member *m = sorted_members(a, f, s);
  for (size_t i = 0, begin = 0; i < s->n; i++) {
    if (by_group(&m[begin], &m[i])) begin = i;
    first[m[i].at] = m[i].var_of || m[i].before != m[i].now ? m[begin].at : SIZE_MAX;
  }
  return first;
}

/** Variables are numbered in the order of their first scalars, which does not depend on values. */
lifted_scalars lifted_scalars_widen(arena *a, const lifted_scalars *f,
                                    const liftable_scalar_list *s) {
  uint32_t *which = arena_calloc(a, s->n + 1, sizeof *which);
  size_t *of = first_of_group(a, f, s), *first = arena_alloc(a, (s->n + 1) * sizeof *first), n = 0;
  for (size_t i = 0; i < s->n; i++) {
    if (of[i] == i) first[n++] = i;
    if (of[i] != SIZE_MAX) which[i] = of[i] == i ? (uint32_t)n : which[of[i]];
  }
  return (lifted_scalars){values_of(a, s), which, s->n, first, n};
}

lifted_scalars lifted_scalars_copy(arena *a, const lifted_scalars *f) {
  return (lifted_scalars){arena_copy(a, f->values, f->n * sizeof *f->values),
                          arena_copy(a, f->var_of, f->n * sizeof *f->var_of), f->n,
                          arena_copy(a, f->first_of_var, f->n_vars * sizeof *f->first_of_var),
                          f->n_vars};
}

const liftable_scalar *lifted_scalars_vars(arena *a, const lifted_scalars *f,
                                           const liftable_scalar_list *s) {
  liftable_scalar *vars = arena_alloc(a, (f->n_vars + 1) * sizeof *vars);
  for (size_t i = 0; i < f->n_vars; i++) vars[i] = s->at[f->first_of_var[i]];
  for (size_t i = 0; i < f->n; i++) {
    liftable_scalar *v = f->var_of[i] ? &vars[f->var_of[i] - 1] : NULL;
    if (v && s->at[i].min > v->min) v->min = s->at[i].min;
    if (v && s->at[i].max < v->max) v->max = s->at[i].max;
  }
  return vars;
}
