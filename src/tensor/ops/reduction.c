/* Reductions: sum, prod, max, min, any, all, mean, var, std, logsumexp, argmax and argmin, as in
   NumPy and PyTorch. f16 and bf16 are summed in f32; variance is by two passes, and logsumexp
   subtracts the maximum. */
#include "tensor/ops/reduction.h"

#include "ir/index/build_tensor.h"
#include "ir/index/index_arithmetic.h"
#include "ir/index/index_proof.h"
#include "tensor/ops/axes_and_broadcasting.h"
#include "tensor/ops/computed_sizes.h"
#include "tensor/ops/expressions.h"
#include "tensor/ops/type_promotion.h"

#include <math.h>

const node *node_reduce(builder *b, op o, const node *x, const axis_list *axes, bool keepdims) {
  dtype t = (dtype)x->dtype;
  sizes kept = sizes_of(x);
  for (size_t i = 0; i < axes->n; i++)
    kept = sizes_with(kept, (size_t)axes->at[i], ix_const(b->ir, 1));
  if (axes->n) {
    if (o == OP_ADD || o == OP_MUL || dtype_is_storage(t)) x = ex_cast(b, x, accumulation_type(t));
    x = ex_cast(b, ir_reduce(b->ir, x, o, axes->n, axes->at), t);
  }
  return keepdims ? shape_reshape(b, x, &kept) : x;
}

/* ---- Sum, maximum, any ---- */

static value reduce_sum(builder *b, op o, value x, tn_axes axes, bool keepdims) {
  const node *n = value_typed(b, x).node;
  axis_list l = axes_of(b, axes, n->rank);
  return value_of(node_reduce(b, o, ex_cast(b, n, sum_type((dtype)n->dtype)), &l, keepdims));
}

static value reduce_max(builder *b, op o, value x, tn_axes axes, bool keepdims) {
  const node *n = value_typed(b, x).node;
  axis_list l = axes_of(b, axes, n->rank);
  check_operand_type(b, RULE_NUMBER, (dtype)n->dtype);
  return value_of(node_reduce(b, o, n, &l, keepdims));
}

const node *axes_not_empty(builder *b, const node *x, const axis_list *l) {
  for (size_t i = 0; i < l->n; i++) {
    const node *size = x->dims[l->at[i]];
    if (size->hi == 0)
      diag_raise(b->diag, TN_ERR_SHAPE, "axis %lld is empty, so that it has no maximum or minimum",
                 (long long)l->at[i]);
    b->needed = ix_add_const(b->ir, size, -1);
    if (ix_prove_nonnegative(b->ir, b->needed)) continue;
    if (!b->is_in_branch && !size_is_computed(b, size))
      diag_raise(b->diag, TN_ERR_SHAPE,
                 "axis %lld, of size %s, can be empty, without a maximum or minimum: give its "
                 "variables a minimum that rules this out",
                 (long long)l->at[i], size_text(b, size));
    x = shape_agreed(b, x, (size_t)l->at[i], size_at_least(b, size, 1));
  }
  return x;
}

static value reduce_bool(builder *b, op o, value x, tn_axes axes, bool keepdims) {
  const node *n = build_cast(b, x, DT_BOOL).node;
  axis_list l = axes_of(b, axes, n->rank);
  return value_of(node_reduce(b, o, n, &l, keepdims));
}

value build_sum(builder *b, value x, tn_axes axes, bool keepdims) {
  return reduce_sum(b, OP_ADD, x, axes, keepdims);
}

value build_prod(builder *b, value x, tn_axes axes, bool keepdims) {
  return reduce_sum(b, OP_MUL, x, axes, keepdims);
}

value build_max(builder *b, value x, tn_axes axes, bool keepdims) {
  return reduce_max(b, OP_MAX, x, axes, keepdims);
}

value build_min(builder *b, value x, tn_axes axes, bool keepdims) {
  return reduce_max(b, OP_MIN, x, axes, keepdims);
}

value build_any(builder *b, value x, tn_axes axes, bool keepdims) {
  return reduce_bool(b, OP_OR, x, axes, keepdims);
}

value build_all(builder *b, value x, tn_axes axes, bool keepdims) {
  return reduce_bool(b, OP_AND, x, axes, keepdims);
}

/* ---- Mean, variance, logsumexp ---- */

/** The number of elements reduced to one, as an index node. */
static const node *count_reduced(builder *b, const node *x, const axis_list *axes) {
  const node *count = ix_const(b->ir, 1);
  for (size_t i = 0; i < axes->n; i++) count = ix_mul(b->ir, count, x->dims[axes->at[i]]);
  return count;
}

static const node *divide_by_scalar(builder *b, const node *x, const node *scalar) {
  sizes s = sizes_of(x);
  return ex_binary(b, OP_DIV, x, ex_fill(b, scalar, &s));
}

const node *node_mean(builder *b, const node *x, const axis_list *axes, bool keepdims) {
  const node *count = ex_size(b, count_reduced(b, x, axes), (dtype)x->dtype);
  return divide_by_scalar(b, node_reduce(b, OP_ADD, x, axes, keepdims), count);
}

/** Σ (x − mean)², with the axes kept. */
static const node *sum_squared_deviations(builder *b, const node *x, const node *mean,
                                          const axis_list *axes) {
  sizes s = sizes_of(x);
  const node *deviation = ex_binary(b, OP_SUB, x, shape_expand(b, mean, &s));
  return node_reduce(b, OP_ADD, ex_binary(b, OP_MUL, deviation, deviation), axes, true);
}

const node *node_variance(builder *b, const node *x, const node *mean, const axis_list *axes) {
  const node *count = ex_size(b, count_reduced(b, x, axes), (dtype)x->dtype);
  return divide_by_scalar(b, sum_squared_deviations(b, x, mean, axes), count);
}

value build_mean(builder *b, value x, tn_axes axes, bool keepdims) {
  float_operand f = float_operand_of(b, x);
  axis_list l = axes_of(b, axes, f.x->rank);
  return value_of(ex_cast(b, node_mean(b, f.x, &l, keepdims), f.result));
}

/** count − ddof as a scalar of type t, or NaN if that is not positive. */
static const node *degrees_of_freedom(builder *b, const node *count, int ddof, dtype t) {
  const node *n = ix_add_const(b->ir, count, -(int64_t)ddof), *nan = ir_const(b->ir, t, NAN);
  if (n->lo > 0) return ex_size(b, n, t);
  if (n->hi <= 0) return nan;
  const node *zero = ir_const_int(b->ir, DT_I64, 0);
  return ex_where(b, ex_binary(b, OP_LT, zero, ex_size(b, n, DT_I64)), ex_size(b, n, t), nan);
}

/** The variance, in the type to compute in. */
static float_operand variance(builder *b, value x, tn_axes axes, int ddof, bool keepdims) {
  float_operand f = float_operand_of(b, x);
  if (ddof < 0) diag_raise(b->diag, TN_ERR_ARGUMENT, "ddof is %d; it must be 0 or more", ddof);
  axis_list l = axes_of(b, axes, f.x->rank);
  const node *sum = sum_squared_deviations(b, f.x, node_mean(b, f.x, &l, true), &l);
  const node *count = count_reduced(b, f.x, &l);
  f.x = divide_by_scalar(b, sum, degrees_of_freedom(b, count, ddof, (dtype)sum->dtype));
  if (keepdims) return f;
  sizes s = sizes_of(f.x);
  for (size_t i = s.rank; i-- > 0;)
    if (axis_is_in(&l, i)) s = sizes_remove(s, i);
  f.x = shape_reshape(b, f.x, &s);
  return f;
}

value build_var(builder *b, value x, tn_axes axes, int ddof, bool keepdims) {
  float_operand f = variance(b, x, axes, ddof, keepdims);
  return value_of(ex_cast(b, f.x, f.result));
}

value build_std(builder *b, value x, tn_axes axes, int ddof, bool keepdims) {
  float_operand f = variance(b, x, axes, ddof, keepdims);
  return value_of(ex_cast(b, ex_unary(b, OP_SQRT, f.x), f.result));
}

/** log Σ e^(x − m) + m, with m the largest x, or 0 where that is infinite. */
value build_logsumexp(builder *b, value x, tn_axes axes, bool keepdims) {
  float_operand f = float_operand_of(b, x);
  axis_list l = axes_of(b, axes, f.x->rank);
  sizes s = sizes_of(f.x);
  const node *m = node_reduce(b, OP_MAX, f.x, &l, true);
  m = ex_where(b, ex_binary_num(b, OP_EQ, ex_unary(b, OP_ABS, m), INFINITY), ex_int(b, m, 0), m);
  const node *e = ex_unary(b, OP_EXP, ex_binary(b, OP_SUB, f.x, shape_expand(b, m, &s)));
  const node *log = ex_unary(b, OP_LOG, node_reduce(b, OP_ADD, e, &l, keepdims));
  sizes out = sizes_of(log);
  return value_of(ex_cast(b, ex_binary(b, OP_ADD, log, shape_reshape(b, m, &out)), f.result));
}

/* ---- argmax and argmin ---- */

/** The least coordinate at which x equals its maximum, or is NaN. */
static value arg_reduce(builder *b, op o, value x, int64_t axis, bool keepdims) {
  const node *n = value_typed(b, x).node;
  check_operand_type(b, RULE_NUMBER, (dtype)n->dtype);
  if (dtype_is_storage((dtype)n->dtype)) n = storage_widen(b, n);
  size_t at = axis_of(b, axis, n->rank);
  axis_list l = axes_from(at, at + 1);
  sizes s = sizes_of(n);
  dtype t = s.at[at]->hi <= INT32_MAX ? DT_I32 : DT_I64;
  const node *best = shape_expand(b, node_reduce(b, o, n, &l, true), &s);
  const node *hit = ex_binary(b, OP_EQ, n, best);
  if (dtype_is_float((dtype)n->dtype)) hit = ex_binary(b, OP_OR, hit, ex_binary(b, OP_NE, n, n));
  const node *i = ex_iota(b, t, &s, at), *none = ex_int(b, i, dtype_max(t));
  const node *first = node_reduce(b, OP_MIN, ex_where(b, hit, i, none), &l, keepdims);
  return value_of(ex_cast(b, first, DT_I64));
}

value build_argmax(builder *b, value x, int64_t axis, bool keepdims) {
  return arg_reduce(b, OP_MAX, x, axis, keepdims);
}

value build_argmin(builder *b, value x, int64_t axis, bool keepdims) {
  return arg_reduce(b, OP_MIN, x, axis, keepdims);
}

/* ---- Public functions ---- */

typedef struct reduce_call {
  value (*build)(builder *b, value x, tn_axes axes, bool keepdims);
  tn_axes axes;
  bool keepdims;
} reduce_call;

static value call_reduce(builder *b, const value in[], size_t n, const void *options) {
  const reduce_call *c = options;
  (void)n;
  value x = in[0];
  axis_list l = axes_of(b, c->axes, x.node->rank);
  if (c->build == build_max || c->build == build_min) x.node = axes_not_empty(b, x.node, &l);
  return c->build(b, x, c->axes, c->keepdims);
}

#define REDUCE(name, rule, meaning)                                                             \
  tn_tensor *tn_##name(tn_tensor *x, tn_axes axes, bool keepdims) {                             \
    return op_call(#name, &x, 1, 0, call_reduce, &(reduce_call){build_##name, axes, keepdims}); \
  }
TN_REDUCE_LIST(REDUCE)
#undef REDUCE

typedef struct variance_call {
  value (*build)(builder *b, value x, tn_axes axes, int ddof, bool keepdims);
  tn_axes axes;
  int ddof;
  bool keepdims;
} variance_call;

static value call_variance(builder *b, const value in[], size_t n, const void *options) {
  const variance_call *c = options;
  (void)n;
  return c->build(b, in[0], c->axes, c->ddof, c->keepdims);
}

tn_tensor *tn_var(tn_tensor *x, tn_axes axes, int ddof, bool keepdims) {
  variance_call c = {build_var, axes, ddof, keepdims};
  return op_call("var", &x, 1, 0, call_variance, &c);
}

tn_tensor *tn_std(tn_tensor *x, tn_axes axes, int ddof, bool keepdims) {
  variance_call c = {build_std, axes, ddof, keepdims};
  return op_call("std", &x, 1, 0, call_variance, &c);
}

typedef struct arg_call {
  value (*build)(builder *b, value x, int64_t axis, bool keepdims);
  int axis;
  bool keepdims;
} arg_call;

static value call_arg(builder *b, const value in[], size_t n, const void *options) {
  const arg_call *c = options;
  (void)n;
  size_t at = axis_of(b, c->axis, in[0].node->rank);
  axis_list l = axes_from(at, at + 1);
  return c->build(b, value_of(axes_not_empty(b, in[0].node, &l)), c->axis, c->keepdims);
}

tn_tensor *tn_argmax(tn_tensor *x, int axis, bool keepdims) {
  return op_call("argmax", &x, 1, 0, call_arg, &(arg_call){build_argmax, axis, keepdims});
}

tn_tensor *tn_argmin(tn_tensor *x, int axis, bool keepdims) {
  return op_call("argmin", &x, 1, 0, call_arg, &(arg_call){build_argmin, axis, keepdims});
}
