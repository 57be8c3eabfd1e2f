/* Implements the runtime of compiled rewrite rules: matching and building of literals, polynomials
   and movement ops, and the bookkeeping when a rule fires. tools/rulec (emit_c.c) generates the
   calls. */
#include "rules/rule_runtime.h"

#include "ir/core/build.h"
#include "ir/index/index_arithmetic.h"
#include "rules/simplifying_builder.h"

static uint64_t int_bits(dtype t, int64_t value) {
  return dtype_is_float(t) ? scalar_from_double(t, (double)value)
                           : scalar_cast(t, DT_I64, (uint64_t)value);
}

bool rule_is_int(const node *n, int64_t value) {
  const node *c = simple_constant(n);
  return c && node_is_bits(c, int_bits((dtype)n->dtype, value));
}

bool rule_is_float(const node *n, double value) {
  const node *c = simple_constant(n);
  return c && dtype_is_float((dtype)n->dtype) &&
         node_is_bits(c, scalar_from_double((dtype)n->dtype, value));
}

const node *rule_int(rewriter *rw, const node *like, dtype t, int64_t value) {
  if (t == DT_INDEX) return ix_const(rw->ir, value);
  return simple_fill(rw->ir, like, t, int_bits(t, value));
}

const node *rule_float(rewriter *rw, const node *like, dtype t, double value) {
  return simple_fill(rw->ir, like, t, scalar_from_double(t, value));
}

const node *rule_poly(rewriter *rw, const node *like, const node *x, size_t n, const double c[]) {
  dtype t = (dtype)x->dtype;
  const node *sum = rule_float(rw, like, t, c[n - 1]);
  for (size_t i = n - 1; i-- > 0;)
    sum = simple_op3(rw->ir, OP_FMA, sum, x, rule_float(rw, like, t, c[i]));
  return sum;
}

const node *rule_movement(rewriter *rw, op o, const node *const first[], size_t n_first,
                          const node *const rest[], size_t n_rest) {
  const node *src[IR_MAX_MOVEMENT_SOURCES];
  size_t n = 0;
  if (n_first + n_rest > IR_MAX_MOVEMENT_SOURCES) return NULL;
  for (size_t i = 0; i < n_first; i++) src[n++] = first[i];
  for (size_t i = 0; i < n_rest; i++) src[n++] = rest[i];
  return ir_node(rw->ir, o, (dtype)src[0]->dtype, src, n, NULL, 0);
}

const node *rule_fire(rewriter *rw, const char *rule, const node *before, const node *after) {
  if (!after || after == before) return NULL;
  if (after->dtype != before->dtype || after->lanes != before->lanes || after->rank != before->rank)
    diag_raise(ir_diag(rw->ir), TN_ERR_INTERNAL,
               "the rule %s makes %s, %d lanes, rank %d of %s, %d lanes, rank %d", rule,
               dtype_name((dtype)after->dtype), after->lanes, after->rank,
               dtype_name((dtype)before->dtype), before->lanes, before->rank);
  rw->fires++;
  if (rw->fired) rw->fired(rw->user, rule, before, after);
  return after;
}
