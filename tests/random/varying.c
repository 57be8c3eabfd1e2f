/* Checks scalar lifting: changes scalars of a random graph twice, builds one graph in which those
   that changed are variables, and compares its results for each set of values with the reference
   evaluator, by linear programs and by compiled code. */
#include "varying.h"

#include "random.h"

#include "ir/text/graph_key.h"
#include "tensor/eval/lifted_scalars.h"

#include <string.h>

typedef struct varying {
  const graph *g;
  arena *a;
  rng rng;
  node_list order;
  liftable_scalar_list scalars; /* scalars of g */
  lifted_scalars form;
  graph lifted;
  report *r;
} varying;

/* Other values. */

static int64_t other_float(rng *r, dtype t) {
  static const double specials[] = {0.0, -0.0, 1.0, -1.0, 0.5, 100.0, 3.0, 0.1};
  double v = rng_chance(r, 20) ? specials[rng_below(r, 8)] : (double)rng_between(r, -16, 16) / 4;
  return (int64_t)scalar_from_double(t, v);
}

static int64_t other_value(rng *r, const liftable_scalar *s) {
  if (dtype_is_float(s->dtype)) return other_float(r, s->dtype);
  if (s->dtype == DT_BOOL) return rng_chance(r, 50);
  if (s->dtype == DT_INDEX) return rng_between(r, s->min, s->max);
  int64_t v = rng_chance(r, 2) ? (int64_t)rng_next(r) : rng_between(r, -4, 20);
  return (int64_t)scalar_cast(s->dtype, DT_I64, (uint64_t)v);
}

/** True if a SET changes a scalar: its view is of the same scalar, which must stay. */
static bool has_set_of_number(const varying *v) {
  for (size_t i = 0; i < v->order.n; i++)
    if (v->order.at[i]->op == OP_SET && liftable_fill_constant(v->order.at[i]->src[0])) return true;
  return false;
}

/** Returns the new value in `l` of a scalar equal to scalar i, else another value. */
static int64_t value_like(varying *v, const liftable_scalar_list *l, size_t i) {
  const liftable_scalar *s = &v->scalars.at[i];
  for (size_t k = 0; k < i; k++) {
    int64_t value = l->at[k].value;
    bool is_equal = l->at[k].dtype == s->dtype && v->scalars.at[k].value == s->value;
    if (is_equal && value >= s->min && value <= s->max) return value;
  }
  return other_value(&v->rng, s);
}

/** Returns scalars of an equal graph, with `percent` of a hundred changed. */
static liftable_scalar_list others(varying *v, unsigned percent) {
  liftable_scalar_list l = {0};
  bool together = has_set_of_number(v) || rng_chance(&v->rng, 50);
  for (size_t i = 0; i < v->scalars.n; i++) {
    vec_push(v->a, &l, v->scalars.at[i]);
    if (together)
      l.at[i].value = value_like(v, &l, i);
    else if (rng_chance(&v->rng, percent))
      l.at[i].value = other_value(&v->rng, &l.at[i]);
  }
  return l;
}

/* The graph with variables. */

static void list_scalars(varying *v) {
  str ignored = str_new(v->a);
  graph_key key = {.to = &ignored, .scalars = &v->scalars};
  v->order = topo_sort(v->a, v->g->roots, v->g->n_roots, NULL, NULL);
  for (size_t i = 0; i < v->order.n; i++) graph_key_add(&key, v->order.at[i], 0);
  for (size_t i = 0; i < v->g->n_roots; i++) graph_key_add_root(&key, v->g->roots[i]);
}

static void lift(varying *v) {
  graph *l = &v->lifted;
  map originals = {0};
  const liftable_scalar *vars = lifted_scalars_vars(v->a, &v->form, &v->scalars);
  l->roots = arena_alloc(v->a, (v->g->n_roots + 1) * sizeof *l->roots);
  l->n_roots = v->g->n_roots;
  lift_scalars(l->ir, v->a, &v->order, v->g->roots, v->g->n_roots,
               &(lifted_var_map){v->form.var_of, vars, v->form.n_vars}, &originals, l->roots);
  graph_prepare(l);
}

/** Sets the variables to the values of these scalars. */
static void set_values(varying *v, const liftable_scalar_list *s) {
  char name[LIFTED_VAR_NAME_BYTES];
  if (!lifted_scalars_match(&v->form, s))
    report_fail(v->r, "a form does not hold for what it was made of");
  for (size_t i = 0; i < v->form.n_vars; i++) {
    lifted_var_name(name, LIFTED_VAR_OF_GRAPH, i);
    for (size_t k = 0; k < v->lifted.vars.n; k++)
      if (!strcmp(v->lifted.vars.at[k].name, name))
        v->lifted.vars.at[k].value = s->at[v->form.first_of_var[i]].value;
  }
}

/* Checking. */

static void check_same(varying *v, const expected *want, const expected *got) {
  for (size_t i = 0; i < v->g->n_roots && !v->r->failed; i++) {
    dtype t = want[i].value.dtype;
    size_t each = dtype_bytes(t), n = want[i].value.bytes / each;
    for (size_t k = 0; k < n && !v->r->failed; k++) {
      uint64_t w = scalar_load(t, (const char *)want[i].value.data + k * each);
      uint64_t x = scalar_load(t, (const char *)got[i].value.data + k * each);
      if (!same_scalar(t, w, x)) report_element(v->r, "with variables, a root", k, t, w, x);
    }
  }
}

static void check_values(varying *v, compiled *c, const target *t, const liftable_scalar_list *s) {
  report_stage(v->r, "scalars that vary");
  set_values(v, s);
  if (v->r->failed) return;
  void **results = arena_calloc(v->a, v->g->n_roots + 1, sizeof *results);
  const expected *e = expect(&v->lifted);
  check_programs(&v->lifted, t, e, results, v->r);
  if (!v->r->failed && c) compiled_check(c, &v->lifted, results, v->r);
}

static void check(varying *v, compiled *c, const target *t, const expected *e) {
  list_scalars(v);
  unsigned percent = rng_chance(&v->rng, 50) ? 100 : 50;
  liftable_scalar_list one = others(v, percent), other = others(v, percent);
  lifted_scalars f = lifted_scalars_fixed(v->a, &v->scalars);
  f = lifted_scalars_widen(v->a, &f, &one);
  v->form = lifted_scalars_widen(v->a, &f, &other);
  lift(v);
  report_stage(v->r, "scalars as variables");
  set_values(v, &v->scalars);
  if (!v->r->failed && e) check_same(v, e, expect(&v->lifted));
  if (!v->r->failed) check_values(v, c, t, &one);
  if (!v->r->failed) check_values(v, c, t, &other);
}

void check_varying(compiled *c, const target *t, const graph *g, const expected *e, report *r) {
  varying v = {.g = g, .a = g->a, .rng = {g->seed + g->n_roots}, .r = r};
  *r = (report){0};
  if (graph_has_items(g)) return; /* other scalars would compute other sizes */
  v.lifted = (graph){.ir = ir_new(g->a->mem, g->a->diag, true), .a = g->a, .math = g->math};
  if (!v.lifted.ir) diag_raise(g->a->diag, TN_ERR_MEMORY, "out of memory");
  check(&v, c, t, e);
  ir_free(v.lifted.ir);
}
