/* FACTOR: Σ(x·y) and Σ(x/y) become (Σx)·y and (Σx)/y, where y is the same for all terms. A sum may
   overflow where that of what is divided does not: so this is done beside a factor e^(s − max s)
   alone, which is 1 at most, so that only terms near the largest number of the type overflow; and
   for such y that are neither 0 nor infinite: sums of such powers, which are 1 at least, and 1
   divided by one. NaN passes. */
#include "schedule/law_groups.h"
#include "schedule/term.h"

#include "ir/binder.h"

#include <string.h>

/** Whether a reduction is a sum of powers that are 1 at most, one of which is 1. */
static bool is_sum_of_powers(ir *g, const values *v, const value *y) {
  term_product p;
  term_power power;
  if (y->reduce != OP_ADD || !term_factors(g, v, y->body, &p) || p.n != 1) return false;
  for (size_t i = 0; i < y->n_reduced; i++)
    if (range_extent(y->reduced[i])->lo < 1) return false;
  return term_is_power(g, v, y, p.at[0].at, &power);
}

static bool is_one(const node *x) {
  return x->op == OP_CONST && scalar_to_double((dtype)x->dtype, (uint64_t)node_int(x)) == 1;
}

/** Whether something is neither 0 nor infinite: a sum of powers, and 1, multiplied and divided. A
    product of two sums could be infinite: it stays in the terms. */
static bool is_safe(ir *g, const values *v, const node *x) {
  term_product p;
  size_t sums = 0;
  if (!term_factors(g, v, x, &p)) return false;
  for (size_t i = 0; i < p.n; i++) {
    const node *y = term_original(g, v, p.at[i].at);
    const value *of = y->op == OP_INDEX ? map_get(&v->of, y->src[0]) : NULL;
    if (is_one(y)) continue;
    if (!of || !is_sum_of_powers(g, v, of)) return false;
    sums++;
  }
  return sums == 1;
}

/** Whether there are as many terms as elements for each y at least: so often is something done. */
static bool pays(const value *t, const node *y) {
  double terms = 1, elements = 1;
  for (size_t i = 0; i < t->n_reduced; i++) terms *= price_size(range_extent(t->reduced[i]));
  for (size_t i = 0; i < t->rank; i++)
    if (t->coords[i]->op == OP_RANGE && !node_is_free_in(t->coords[i], y))
      elements *= price_size(t->dims[i]);
  return terms >= elements;
}

/** Takes out of a sum's terms what is the same for all of them; whether there is such. */
static bool take_out(ir *g, const values *v, const value *t, term_product *in, term_product *out) {
  bool has_power = false;
  size_t kept = 0;
  term_power power;
  out->n = 0;
  for (size_t i = 0; i < in->n; i++) {
    term_factor f = in->at[i];
    bool varies = term_varies(t, f.at);
    if (is_one(f.at)) continue;
    if (!varies && is_safe(g, v, f.at) && pays(t, f.at)) {
      out->at[out->n++] = f;
      continue;
    }
    has_power |= varies && !f.divides && term_is_power(g, v, t, f.at, &power);
    in->at[kept++] = f;
  }
  in->n = kept;
  return has_power && out->n;
}

/** What is taken out is one number for a row of results: with a name of its own, so that the nest
   of the row has one sum in it. */
static void name_sums(ir *g, const values *v, const term_product *out) {
  for (size_t i = 0; i < out->n; i++) {
    term_product p;
    if (!term_factors(g, v, out->at[i].at, &p)) continue;
    for (size_t k = 0; k < p.n; k++) {
      const node *y = term_original(g, v, p.at[k].at);
      value *of = y->op == OP_INDEX ? map_get(&v->of, y->src[0]) : NULL;
      if (of) of->is_array = true;
    }
  }
}

static void factor(ir *g, values *v, value *t) {
  term_product in, out;
  dtype type = (dtype)t->tensor->dtype;
  bool is_sum = t->reduce == OP_ADD && dtype_is_float(type) && dtype_bytes(type) >= 4;
  if (!is_sum || !term_factors(g, v, t->body, &in) || !take_out(g, v, t, &in, &out)) return;
  value *sum = value_make(g, v, OP_ADD, type, t->rank, t->dims);
  sum->reduce = OP_ADD;
  sum->reduced = t->reduced;
  sum->n_reduced = t->n_reduced;
  sum->coords = t->coords;
  value_set_body(g, v, sum, term_of(g, type, &in));
  const node *made = index_make(g, type, sum->tensor, 0, t->rank, t->coords);
  for (size_t i = 0; i < out.n; i++)
    made = ir_op2(g, out.at[i].divides ? OP_DIV : OP_MUL, made, out.at[i].at);
  name_sums(g, v, &out);
  t->reduce = OP_LIMIT;
  t->n_reduced = 0;
  value_set_body(g, v, t, made);
}

void schedule_factor(ir *g, values *v) {
  values before = *v;
  memset(&v->at, 0, sizeof v->at);
  for (size_t i = 0; i < before.at.n; i++) { /* a new sum stands before what reads it */
    factor(g, v, before.at.at[i]);
    vec_push(ir_arena(g), &v->at, before.at.at[i]);
  }
}
