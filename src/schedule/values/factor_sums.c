/* Factors invariant terms out of sums: Σ(x·y) and Σ(x/y) become (Σx)·y and (Σx)/y, where y is the
   same for all terms. A sum may overflow where that of the quotients does not. So it is done only
   beside a factor e^(s − max s), which is 1 at most, so that only terms near the largest number of
   the type overflow, and only for y that are neither 0 nor infinite: sums of such powers, which are
   at least 1, and 1 divided by one. NaN passes through. */
#include "schedule/values/factor_sums.h"

#include "schedule/values/reduction_term.h"

#include "ir/core/binder.h"

#include <string.h>

/** True if a reduction is a sum of powers e^(s − max s): each is 1 at most, and one is 1. */
static bool is_sum_of_powers(ir *g, const values *v, const value *y) {
  term_product p;
  term_power power;
  if (y->reduction.op != OP_ADD || !term_split_factors(g, v, y->body, &p) || p.n != 1) return false;
  for (size_t i = 0; i < y->reduction.n; i++)
    if (range_extent(y->reduction.ranges[i])->lo < 1) return false;
  return term_match_power(g, v, y, p.at[0].at, &power);
}

static bool is_one(const node *x) {
  return x->op == OP_CONST && scalar_to_double((dtype)x->dtype, (uint64_t)node_int(x)) == 1;
}

/** True if an expression is neither 0 nor infinite: one sum of powers, and 1, multiplied and
   divided. A product of two sums could be infinite. */
static bool is_nonzero_finite(ir *g, const values *v, const node *x) {
  term_product p;
  size_t sums = 0;
  if (!term_split_factors(g, v, x, &p)) return false;
  for (size_t i = 0; i < p.n; i++) {
    const node *y = term_skip_copies(g, v, p.at[i].at);
    const value *of = y->op == OP_INDEX ? map_get(&v->of, y->src[0]) : NULL;
    if (is_one(y)) continue;
    if (!of || !is_sum_of_powers(g, v, of)) return false;
    sums++;
  }
  return sums == 1;
}

/** True if there are at least as many terms as elements for each y: operations are saved then. */
static bool saves_operations(const value *t, const node *y) {
  double terms = 1, elements = 1;
  for (size_t i = 0; i < t->reduction.n; i++)
    terms *= ix_likely(range_extent(t->reduction.ranges[i]));
  for (size_t i = 0; i < t->rank; i++)
    if (t->coords[i]->op == OP_RANGE && !node_is_free_in(t->coords[i], y))
      elements *= ix_likely(t->dims[i]);
  return terms >= elements;
}

/** Moves the factors that are the same for all terms from `in` to `out`; false: none, or no power
 * stays. */
static bool split_invariant_factors(ir *g, const values *v, const value *t, term_product *in,
                                    term_product *out) {
  bool has_power = false;
  term_power power;
  out->n = 0;
  for (size_t i = 0; i < in->n; i++) {
    term_factor f = in->at[i];
    bool varies = term_varies_in_reduction(t, f.at);
    bool is_out =
        !varies && !is_one(f.at) && is_nonzero_finite(g, v, f.at) && saves_operations(t, f.at);
    if (is_out) out->at[out->n++] = f;
    if (is_out || is_one(f.at)) in->at[i].at = NULL;
    has_power |= varies && !f.divides && term_match_power(g, v, t, f.at, &power);
  }
  return has_power && out->n;
}

/** Holds the sums among the factors taken out, one number for a row of results, in an array of one
    element: then the nest of a row has only one sum in it. */
static void hold_sums_in_arrays(ir *g, const values *v, const term_product *out) {
  for (size_t i = 0; i < out->n; i++) {
    term_product p;
    if (!term_split_factors(g, v, out->at[i].at, &p)) continue;
    for (size_t k = 0; k < p.n; k++) {
      const node *y = term_skip_copies(g, v, p.at[k].at);
      value *of = y->op == OP_INDEX ? map_get(&v->of, y->src[0]) : NULL;
      if (of) of->local.is_array = true;
    }
  }
}

static void factor_sum(ir *g, values *v, value *t) {
  term_product in, out;
  dtype type = (dtype)t->tensor->dtype;
  bool is_sum = t->reduction.op == OP_ADD && dtype_is_float(type) && dtype_bytes(type) >= 4;
  if (!is_sum || !term_split_factors(g, v, t->body, &in) ||
      !split_invariant_factors(g, v, t, &in, &out))
    return;
  value *sum = value_make(g, v, OP_ADD, type, t->rank, t->dims);
  sum->reduction.op = OP_ADD;
  sum->reduction.ranges = t->reduction.ranges;
  sum->reduction.n = t->reduction.n;
  sum->coords = t->coords;
  value_set_body(g, v, sum, term_build(g, type, &in));
  const node *made = index_make(g, type, sum->tensor, 0, t->rank, t->coords);
  for (size_t i = 0; i < out.n; i++)
    made = ir_op2(g, out.at[i].divides ? OP_DIV : OP_MUL, made, out.at[i].at);
  hold_sums_in_arrays(g, v, &out);
  t->reduction.op = OP_LIMIT;
  t->reduction.n = 0;
  value_set_body(g, v, t, made);
}

void factor_sums(ir *g, values *v) {
  values before = *v;
  memset(&v->at, 0, sizeof v->at);
  for (size_t i = 0; i < before.at.n; i++) { /* a new sum comes before its reader */
    factor_sum(g, v, before.at.at[i]);
    vec_push(ir_arena(g), &v->at, before.at.at[i]);
  }
}
