#include "cli/check.h"

#include "cli/testset.h"
#include "cli/text.h"
#include "ir/scalar.h"

#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

double check_number(command *c, const char *option, const char *text, double otherwise) {
  char *end;
  if (!text) return otherwise;
  double v = strtod(text, &end);
  if (end == text || *end || !isfinite(v) || v < 0)
    command_misuse(c, "--%s is a number from 0 on, not \"%s\"", option, text);
  return v;
}

/* The sets of a folder. */

static const char set_prefix[] = "test_data_set_";

typedef VEC(const char *) set_names;

/** Numbers in their order: shorter ones first. */
static int by_number(const void *a, const void *b) {
  const char *x = *(const char *const *)a, *y = *(const char *const *)b;
  size_t n = strlen(x), k = strlen(y);
  return n != k ? (n < k ? -1 : 1) : strcmp(x, y);
}

typedef struct listing {
  command *c;
  DIR *open;
  set_names names;
} listing;

static bool is_set(const char *name) {
  size_t n = sizeof set_prefix - 1;
  return !strncmp(name, set_prefix, n) && name[n] && !name[n + strspn(name + n, "0123456789")];
}

static void list_body(void *arg) {
  listing *l = arg;
  for (const struct dirent *e; (e = readdir(l->open));)
    if (is_set(e->d_name))
      vec_push(&l->c->arena, &l->names, arena_printf(&l->c->arena, "%s", e->d_name));
}

static set_names list_sets(command *c, const char *folder) {
  listing l = {.c = c, .open = opendir(folder)};
  if (!l.open) diag_raise(&c->diag, TN_ERR_IO, "%s: %s", folder, strerror(errno));
  tn_status s = diag_catch(&c->diag, list_body, &l);
  closedir(l.open);
  if (s != TN_OK) diag_rethrow(&c->diag);
  if (l.names.n) qsort(l.names.at, l.names.n, sizeof *l.names.at, by_number);
  return l.names;
}

/* One array and what is expected. */

typedef struct comparison {
  size_t differ, first; /* how many elements differ, the first that does */
  double most;          /* the largest difference, of all of which it is a number */
  double most_differ;   /* the same of those that differ */
} comparison;

static bool agree(dtype type, uint64_t a, uint64_t e, check_tolerance t) {
  if (!dtype_is_float(type) || a == e) return a == e;
  double x = array_number(type, a), y = array_number(type, e);
  if (isnan(x) || isnan(y)) return isnan(x) && isnan(y);
  if (isinf(x) || isinf(y)) return x == y;
  return fabs(x - y) <= t.absolute + t.relative * fabs(y);
}

static comparison compare(const array *a, const array *expected, check_tolerance t) {
  comparison r = {0};
  dtype type = (dtype)a->dtype;
  for (size_t i = 0; i < a->elements; i++) {
    uint64_t x = array_element(a, i), y = array_element(expected, i);
    double away = fabs(array_number(type, x) - array_number(type, y));
    if (!isfinite(away)) away = 0;
    if (away > r.most) r.most = away;
    if (agree(type, x, y, t)) continue;
    if (away > r.most_differ) r.most_differ = away;
    if (!r.differ++) r.first = i;
  }
  return r;
}

/** "[1, 0, 3]": where element i is. */
static const char *place_text(command *c, const array *a, size_t i) {
  int64_t at[TN_MAX_RANK];
  str s = str_new(&c->arena);
  for (int32_t k = a->shape.rank; k-- > 0; i /= (size_t)a->shape.size[k])
    at[k] = (int64_t)(i % (size_t)a->shape.size[k]);
  for (int32_t k = 0; k < a->shape.rank; k++)
    str_addf(&s, "%s%lld", k ? ", " : "", (long long)at[k]);
  return arena_printf(&c->arena, "[%s]", str_text(&s));
}

static bool same_type(const array *a, const array *b) {
  bool same = a->dtype == b->dtype && a->shape.rank == b->shape.rank;
  for (int32_t i = 0; same && i < a->shape.rank; i++) same = a->shape.size[i] == b->shape.size[i];
  return same;
}

/** By how much element i differs, and by how much it may, where these are numbers. */
static void add_distance(str *s, const array *a, const array *expected, size_t i,
                         check_tolerance t) {
  dtype type = (dtype)a->dtype;
  double y = array_number(type, array_element(expected, i)),
         away = fabs(array_number(type, array_element(a, i)) - y);
  if (!isfinite(away)) return;
  str_addf(s, ": off by %.6g", away);
  if (dtype_is_float(type))
    str_addf(s, ", more than %.6g (--rtol %g, --atol %g)", t.absolute + t.relative * fabs(y),
             t.relative, t.absolute);
}

/** Why an output is not what is expected; NULL if it is. *most is raised to its largest difference.
 */
static const char *objection(command *c, const array *a, const array *expected, check_tolerance t,
                             double *most) {
  if (!same_type(a, expected))
    return arena_printf(&c->arena, "is %s, not %s", array_type(c, a), array_type(c, expected));
  comparison r = compare(a, expected, t);
  if (r.most > *most) *most = r.most;
  if (!r.differ) return NULL;
  str s = str_new(&c->arena);
  str_addf(&s, "is %s at %s, not %s", array_text(c, a, r.first), place_text(c, a, r.first),
           array_text(c, expected, r.first));
  add_distance(&s, a, expected, r.first, t);
  str_addf(&s, "; %zu of %zu differ", r.differ, a->elements);
  if (r.most_differ > 0) str_addf(&s, ", by up to %.6g", r.most_differ);
  return str_text(&s);
}

/* One set. */

/** The first set binds the model: what is wrong with its files is told before that is compiled. */
static bool check_set(command *c, tn_model *m, tn_binding **binding, const char *folder,
                      const char *name, check_tolerance t) {
  double most = 0;
  feeds in = testset_read(c, folder, m, TN_PORT_INPUT);
  feeds expected = testset_read(c, folder, m, TN_PORT_OUTPUT);
  if (!*binding) command_check(c, tn_model_bind(m, binding));
  tn_binding *b = *binding;
  feed_bind(c, &in, b);
  command_check_binding(c, tn_binding_run(b), b);
  for (size_t i = 0; i < expected.n; i++) {
    array a = array_of_output(c, b, expected.at[i].name);
    const char *why = objection(c, &a, &expected.at[i].value, t, &most);
    if (!why) continue;
    printf("%s: output %s %s\n", text_safe(&c->arena, name),
           text_safe(&c->arena, expected.at[i].name), why);
    return false;
  }
  printf("%s: %s as expected, off by up to %.6g\n", text_safe(&c->arena, name),
         text_count(&c->arena, expected.n, "output"), most);
  return true;
}

int check_sets(command *c, tn_model *m, const char *folder, check_tolerance t) {
  tn_binding *b = NULL;
  set_names sets = {0};
  bool is_set = testset_is(c, folder), same = true;
  if (!is_set) sets = list_sets(c, folder);
  if (!is_set && !sets.n)
    diag_raise(&c->diag, TN_ERR_IO, "%s has neither input_0.pb, output_0.pb nor a folder %s0",
               folder, set_prefix);
  if (is_set) same = check_set(c, m, &b, folder, folder, t);
  for (size_t i = 0; i < sets.n && same; i++) {
    arena_mark here = arena_here(&c->arena);
    const char *path = arena_printf(&c->arena, "%s/%s", folder, sets.at[i]);
    same = check_set(c, m, &b, path, sets.at[i], t);
    arena_reset(&c->arena, here);
  }
  return same ? EXIT_DONE : EXIT_FAILED;
}
