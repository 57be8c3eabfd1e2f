/* Searches for the first node that computes something else than the interpreter. Fusion hides
   values, so the values to be compared are made outputs; with all of them little is fused, so the
   bisection asks for a few in a run: it goes to the first of them that differs, and continues among
   its sources. It ends at a value that differs while all that its node reads is equal, which holds
   whether or not differences grow monotonously. */
#include "cli/data/find_difference.h"

#include <stdio.h>
#include <string.h>

/** Numbers the strings of two arrays, which are of two models, anew: an element of `computed` is 1
    where it differs from that of `interpreted`, which is 0. */
static void compare_strings(const host_array *computed, const host_array *interpreted) {
  int64_t *of = computed->data, *expected = interpreted->data;
  for (size_t i = 0; i < computed->elements; i++) {
    of[i] = strcmp(computed->strings[i], interpreted->strings[i]) != 0;
    expected[i] = 0;
  }
}

checked_value check_value(const checked_model *m, const char *name, const host_array *computed,
                          const host_array *interpreted) {
  checked_value v = {.name = name,
                     .computed = computed,
                     .interpreted = interpreted,
                     .has_same_type = host_array_is_like(computed, interpreted)};
  double tolerance = value_tolerance(interpreted->dtype);
  if (tolerance > 0 && m->tolerance >= 0) tolerance = m->tolerance;
  if (v.has_same_type && computed->strings) compare_strings(computed, interpreted);
  if (v.has_same_type)
    v.difference = compare_values(&m->c->arena, computed->dtype, computed->data, interpreted->data,
                                  computed->elements, tolerance);
  return v;
}

bool checked_value_differs(const checked_value *v) {
  return !v->has_same_type || v->difference.beyond;
}

/* Runs. */

typedef VEC(size_t) value_list;

/** Compiles the model with some values as outputs, and runs it. */
static value_map compute_compiled(const checked_model *m, const value_list *which) {
  command *c = m->c;
  tn_model_desc desc = m->desc;
  value_map made = {0};
  const char **names = arena_alloc(&c->arena, (which->n + 1) * sizeof *names);
  for (size_t i = 0; i < which->n; i++) names[i] = m->nodes.values.at[which->at[i]].name;
  desc.outputs = names;
  desc.n_outputs = which->n;
  model_values_compute(c, &desc, &m->inputs, &made);
  return made;
}

/** The first of some values that differs, as an index in `which`; SIZE_MAX: none. */
static size_t first_difference(const checked_model *m, const value_list *which,
                               checked_value *check) {
  arena_mark here = arena_save(&m->c->arena);
  value_map made = compute_compiled(m, which);
  for (size_t i = 0; i < which->n; i++) {
    const char *name = m->nodes.values.at[which->at[i]].name;
    const host_array *computed = string_map_get(&made, name);
    const host_array *interpreted = string_map_get(&m->interpreted, name);
    if (!computed || !interpreted) continue;
    *check = check_value(m, name, computed, interpreted);
    if (checked_value_differs(check)) return i; /* its array is kept */
  }
  arena_rewind(&m->c->arena, here);
  return SIZE_MAX;
}

static bool is_known(const checked_model *m, size_t v) {
  return string_map_get(&m->interpreted, m->nodes.values.at[v].name) != NULL;
}

found_difference find_difference(const checked_model *m, checked_values *all) {
  command *c = m->c;
  value_list which = {0};
  found_difference found = {.runs = 1};
  for (size_t i = 0; i < m->nodes.values.n; i++)
    if (is_known(m, i)) vec_push(&c->arena, &which, i);
  if (!which.n) return found;
  value_map made = compute_compiled(m, &which);
  for (size_t i = 0; i < which.n; i++) {
    const char *name = m->nodes.values.at[which.at[i]].name;
    const host_array *computed = string_map_get(&made, name);
    if (!computed) continue;
    checked_value v = check_value(m, name, computed, string_map_get(&m->interpreted, name));
    if (all) vec_push(&c->arena, all, v);
    if (found.is_found || !checked_value_differs(&v)) continue;
    found.is_found = true;
    found.value = which.at[i];
    found.check = v;
  }
  return found;
}

/* Bisection. */

enum { OUTPUTS_OF_A_RUN = 7 };

typedef struct bisection {
  const checked_model *m;
  found_difference found; /* the value that differs */
  size_t low;             /* values up to this one are taken to be equal; SIZE_MAX: none */
  bool *marks;
} bisection;

/** The known sources of the value, beyond `low`. */
static value_list list_candidates(bisection *k) {
  value_list all = {0};
  size_t v = k->found.value, first = k->low == SIZE_MAX ? 0 : k->low + 1;
  memset(k->marks, 0, k->m->nodes.values.n * sizeof *k->marks);
  model_nodes_mark_sources(&k->m->nodes, v, k->marks);
  for (size_t i = first; i < v; i++)
    if (k->marks[i] && is_known(k->m, i)) vec_push(&k->m->c->arena, &all, i);
  return all;
}

/** The values that the node reads, then its own. */
static value_list list_neighbours(const bisection *k) {
  const model_nodes *nodes = &k->m->nodes;
  const tn_model_node *n = &nodes->at.at[nodes->values.at[k->found.value].node];
  value_list all = {0};
  memset(k->marks, 0, nodes->values.n * sizeof *k->marks);
  for (size_t i = 0; i < n->n_inputs; i++) {
    size_t from = model_nodes_find(nodes, n->inputs[i]);
    if (from != SIZE_MAX) k->marks[from] = true;
  }
  for (size_t i = 0; i < k->found.value; i++)
    if (k->marks[i] && is_known(k->m, i)) vec_push(&k->m->c->arena, &all, i);
  vec_push(&k->m->c->arena, &all, k->found.value);
  return all;
}

static void show_progress(const bisection *k, size_t left) {
  char text[96];
  snprintf(text, sizeof text, "run %zu, %zu node value%s left", k->found.runs + 1, left,
           left == 1 ? "" : "s");
  progress_show(&k->m->c->progress, text);
}

/** Goes to the first of some values that differs, or, if none does, beyond the last. */
static void narrow(bisection *k, const value_list *all) {
  value_list chosen = {0};
  checked_value check;
  size_t n = all->n < OUTPUTS_OF_A_RUN ? all->n : OUTPUTS_OF_A_RUN;
  for (size_t i = 0; i < n; i++)
    vec_push(&k->m->c->arena, &chosen, all->at[(i + 1) * all->n / (n + 1)]);
  if (n == all->n) chosen = *all;
  show_progress(k, all->n);
  size_t first = first_difference(k->m, &chosen, &check);
  k->found.runs++;
  if (first == SIZE_MAX) {
    k->low = vec_last(&chosen);
    return;
  }
  if (first) k->low = chosen.at[first - 1];
  k->found.value = chosen.at[first];
  k->found.check = check;
}

/** Compares all that the node reads, in one run with its own value. True if the search has ended.
 */
static bool check_neighbours(bisection *k) {
  value_list all = list_neighbours(k);
  checked_value check;
  show_progress(k, all.n);
  size_t first = first_difference(k->m, &all, &check);
  k->found.runs++;
  if (first == SIZE_MAX) {
    k->found.cause = CAUSE_FUSION;
    return true;
  }
  k->found.check = check;
  if (first + 1 == all.n) return true;
  k->found.value = all.at[first];
  k->low = SIZE_MAX;
  return false;
}

found_difference bisect_difference(const checked_model *m, size_t v, const checked_value *check) {
  bisection k = {.m = m, .low = SIZE_MAX, .found = {.is_found = true, .value = v, .check = *check}};
  k.marks = arena_calloc(&m->c->arena, m->nodes.values.n + 1, sizeof *k.marks);
  for (bool ended = false; !ended;) {
    value_list candidates = list_candidates(&k);
    if (candidates.n)
      narrow(&k, &candidates);
    else
      ended = check_neighbours(&k);
  }
  progress_clear(&m->c->progress);
  return k.found;
}

/* Causes. */

/** The computation of a node alone. */
typedef struct single_node {
  const checked_model *m;
  const found_difference *found;
  tn_model_desc desc;
  value_map inputs;
  double tolerance;
  bool is_equal;
} single_node;

/** Makes the values that the node reads inputs of the part to be loaded, except constants. */
static void cut_node(single_node *k) {
  const checked_model *m = k->m;
  arena *a = &m->c->arena;
  const node_value *v = &m->nodes.values.at[k->found->value];
  const tn_model_node *n = &m->nodes.at.at[v->node];
  VEC(tn_model_value) cut = {0};
  bool *varying = arena_calloc(a, m->nodes.values.n + 1, sizeof *varying);
  model_nodes_mark_varying(&m->nodes, &m->inputs, varying);
  for (size_t i = 0; i < n->n_inputs; i++) {
    size_t from = model_nodes_find(&m->nodes, n->inputs[i]);
    bool is_constant = from != SIZE_MAX && !varying[from];
    host_array *x = string_map_get(from == SIZE_MAX ? &m->inputs : &m->interpreted, n->inputs[i]);
    if (is_constant || !x) continue;
    vec_push(a, &cut, (tn_model_value){n->inputs[i], {x->dtype, x->shape}});
    string_map_set(a, &k->inputs, n->inputs[i], x);
  }
  const char **name = arena_alloc(a, sizeof *name);
  *name = v->name;
  k->desc = m->desc;
  k->desc.outputs = name;
  k->desc.n_outputs = 1;
  k->desc.inputs = cut.at;
  k->desc.n_inputs = cut.n;
  k->desc.n_sizes = 0; /* all sizes are numbers */
}

static void compute_alone(void *arg) {
  single_node *k = arg;
  const checked_model *m = k->m;
  value_map made = {0};
  model_values_compute(m->c, &k->desc, &k->inputs, &made);
  const char *name = *k->desc.outputs;
  const host_array *computed = string_map_get(&made, name);
  if (!computed) diag_raise(&m->c->diag, TN_ERR_UNSUPPORTED, "%s is no output", name);
  checked_model by = *m;
  by.tolerance = k->tolerance;
  checked_value v = check_value(&by, name, computed, string_map_get(&m->interpreted, name));
  k->is_equal = !checked_value_differs(&v);
}

/** Opens a context of exact arithmetic in the place of the command's, and computes the node. */
static void compute_exactly(void *arg) {
  single_node *k = arg;
  command *c = k->m->c;
  const host_array *expected = k->found->check.interpreted;
  double least = value_tolerance(expected->dtype); /* sums in order are rounded, too */
  if (k->tolerance < least) k->tolerance = least;
  c->math = TN_MATH_EXACT;
  command_open_context(c, k->m->device, k->m->threads, NULL);
  command_check_context(c);
  compute_alone(k);
}

static tn_status compute_in_exact_context(single_node *k) {
  command *c = k->m->c;
  tn_context *context = c->context;
  tn_math math = c->math;
  c->context = NULL;
  tn_status s = diag_catch(&c->diag, compute_exactly, k);
  tn_close(c->context);
  c->context = context;
  c->math = math;
  return s;
}

/** Tells why the node could not be computed alone. */
static difference_cause fail_alone(command *c, tn_status s) {
  if (s == TN_ERR_MEMORY) diag_rethrow(&c->diag);
  command_print_note(c, "the node cannot be computed alone: %s", c->diag.text);
  diag_clear(&c->diag);
  return CAUSE_UNKNOWN;
}

difference_cause find_cause(const checked_model *m, const found_difference *found) {
  command *c = m->c;
  single_node k = {.m = m, .found = found, .tolerance = m->tolerance};
  if (found->cause == CAUSE_FUSION) return CAUSE_FUSION;
  cut_node(&k);
  tn_status s = diag_catch(&c->diag, compute_alone, &k);
  if (s == TN_OK && k.is_equal) return CAUSE_INPUTS;
  if (s == TN_OK) s = compute_in_exact_context(&k);
  if (s != TN_OK) return fail_alone(c, s);
  return k.is_equal ? CAUSE_SUMS : CAUSE_WRONG;
}
