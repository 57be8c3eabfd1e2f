/* Compares a model's outputs with recorded ones, element by element within tolerances. A folder may
   hold several test sets, which run in the order of their numbers until one differs. */
#include "cli/data/compare_outputs.h"

#include "cli/core/text_format.h"
#include "cli/data/onnx_test_set.h"

#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

double tolerance_parse(command *c, const char *option, const char *text, double default_value) {
  char *end;
  if (!text) return default_value;
  double v = strtod(text, &end);
  if (end == text || *end || !isfinite(v) || v < 0)
    command_usage_error(c, "--%s must be a nonnegative number, not \"%s\"", option, text);
  return v;
}

/* Test sets of a folder. */

static const char set_prefix[] = "test_data_set_";

typedef VEC(const char *) set_names;

/** Orders set names by their numbers: a shorter name has the smaller number. */
static int compare_set_names(const void *a, const void *b) {
  const char *x = *(const char *const *)a, *y = *(const char *const *)b;
  size_t n = strlen(x), k = strlen(y);
  return n != k ? (n < k ? -1 : 1) : strcmp(x, y);
}

/** The listing of a folder. */
typedef struct listing {
  command *c;
  DIR *open;
  set_names names;
} listing;

static bool is_set_name(const char *name) {
  size_t n = sizeof set_prefix - 1;
  return !strncmp(name, set_prefix, n) && name[n] && !name[n + strspn(name + n, "0123456789")];
}

static void list_body(void *arg) {
  listing *l = arg;
  for (const struct dirent *e; (e = readdir(l->open));)
    if (is_set_name(e->d_name))
      vec_push(&l->c->arena, &l->names, arena_printf(&l->c->arena, "%s", e->d_name));
}

static set_names list_sets(command *c, const char *folder) {
  listing l = {.c = c, .open = opendir(folder)};
  if (!l.open) diag_raise(&c->diag, TN_ERR_IO, "%s: %s", folder, strerror(errno));
  tn_status s = diag_catch(&c->diag, list_body, &l);
  closedir(l.open);
  if (s != TN_OK) diag_rethrow(&c->diag);
  if (l.names.n) qsort(l.names.at, l.names.n, sizeof *l.names.at, compare_set_names);
  return l.names;
}

/* Comparison of one array. */

typedef struct comparison {
  size_t n_different, first; /* number of elements that differ; index of the first */
  double largest;            /* largest finite difference of all elements */
  double largest_different;  /* largest finite difference of elements that differ */
} comparison;

/** True if element `i` of an output is within the tolerance. */
static bool matches(const host_array *a, const host_array *expected, size_t i,
                    comparison_tolerance t) {
  size_t size = tn_dtype_size(a->dtype);
  bool is_equal =
      !memcmp((const char *)a->data + i * size, (const char *)expected->data + i * size, size);
  if (is_equal || tn_dtype_kind_of(a->dtype) != TN_KIND_FLOAT) return is_equal;
  double x = host_array_value(a, i), y = host_array_value(expected, i);
  if (isnan(x) || isnan(y)) return isnan(x) && isnan(y);
  if (isinf(x) || isinf(y)) return x == y;
  return fabs(x - y) <= t.absolute + t.relative * fabs(y);
}

static comparison compare(const host_array *a, const host_array *expected, comparison_tolerance t) {
  comparison r = {0};
  for (size_t i = 0; i < a->elements; i++) {
    double difference = fabs(host_array_value(a, i) - host_array_value(expected, i));
    if (!isfinite(difference)) difference = 0;
    if (difference > r.largest) r.largest = difference;
    if (matches(a, expected, i, t)) continue;
    if (difference > r.largest_different) r.largest_different = difference;
    if (!r.n_different++) r.first = i;
  }
  return r;
}

/** Appends the difference of element i and its tolerance, if finite. */
static void add_difference(str *s, const host_array *a, const host_array *expected, size_t i,
                           comparison_tolerance t) {
  double y = host_array_value(expected, i), difference = fabs(host_array_value(a, i) - y);
  if (!isfinite(difference)) return;
  str_addf(s, ": off by %.6g", difference);
  if (tn_dtype_kind_of(a->dtype) == TN_KIND_FLOAT)
    str_addf(s, ", more than %.6g (--rtol %g, --atol %g)", t.absolute + t.relative * fabs(y),
             t.relative, t.absolute);
}

/** Describes how an output differs from the expected one; NULL if it matches. Raises *largest to
   its largest difference. */
static const char *describe_difference(command *c, const host_array *a, const host_array *expected,
                                       comparison_tolerance t, double *largest) {
  if (!host_array_is_like(a, expected))
    return arena_printf(&c->arena, "is %s, not %s", host_array_type_text(c, a),
                        host_array_type_text(c, expected));
  comparison r = compare(a, expected, t);
  if (r.largest > *largest) *largest = r.largest;
  if (!r.n_different) return NULL;
  str s = str_new(&c->arena);
  str_addf(&s, "is %s at %s, not %s", host_array_element_text(c, a, r.first),
           host_array_index_text(c, a, r.first), host_array_element_text(c, expected, r.first));
  add_difference(&s, a, expected, r.first, t);
  str_addf(&s, "; %zu of %zu differ", r.n_different, a->elements);
  if (r.largest_different > 0) str_addf(&s, ", by up to %.6g", r.largest_different);
  return str_text(&s);
}

/* Test sets. */

/** Runs a test set and prints a line for it. The first set binds, and so compiles, the model only
   after its files are read, so that a damaged file is reported early. */
static bool check_set(command *c, tn_model *m, tn_binding **binding, const char *folder,
                      const char *name, comparison_tolerance t) {
  double largest = 0;
  model_inputs in = onnx_test_set_read(c, folder, m, TN_PORT_INPUT);
  model_inputs expected = onnx_test_set_read(c, folder, m, TN_PORT_OUTPUT);
  if (!*binding) command_check_status(c, tn_model_bind(m, binding));
  tn_binding *b = *binding;
  model_inputs_bind(c, &in, b);
  command_check_binding(c, tn_binding_run(b), b);
  for (size_t i = 0; i < expected.n; i++) {
    host_array a = host_array_read_output(c, b, i, expected.at[i].name);
    const char *why = describe_difference(c, &a, &expected.at[i].value, t, &largest);
    if (!why) continue;
    printf("%s: output %s %s\n", text_escape(&c->arena, name),
           text_escape(&c->arena, expected.at[i].name), why);
    return false;
  }
  printf("%s: %s as expected, off by up to %.6g\n", text_escape(&c->arena, name),
         text_count(&c->arena, expected.n, "output"), largest);
  return true;
}

int compare_test_sets(command *c, tn_model *m, const char *folder, comparison_tolerance t) {
  tn_binding *b = NULL;
  set_names sets = {0};
  bool is_set = onnx_test_set_exists(c, folder), same = true;
  if (!is_set) sets = list_sets(c, folder);
  if (!is_set && !sets.n)
    diag_raise(&c->diag, TN_ERR_IO, "%s has neither input_0.pb or output_0.pb nor a folder %s0",
               folder, set_prefix);
  if (is_set) same = check_set(c, m, &b, folder, folder, t);
  for (size_t i = 0; i < sets.n && same; i++) {
    arena_mark here = arena_save(&c->arena);
    const char *path = arena_printf(&c->arena, "%s/%s", folder, sets.at[i]);
    same = check_set(c, m, &b, path, sets.at[i], t);
    arena_rewind(&c->arena, here);
  }
  return same ? EXIT_DONE : EXIT_FAILED;
}
