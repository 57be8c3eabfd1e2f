/* Reductions, running ones too, and the index of an extreme. */
#include "tensor/ops_common.h"

#include <math.h>

/* ---- Sums and extremes ---- */

static dtype sum_type(dtype t) {
  if (dtype_is_float(t)) return t;
  return dtype_get(t)->cls == DC_UINT ? DT_U64 : DT_I64;
}

static value sum_like(builder *b, op o, value x, tn_axes axes, bool keepdims) {
  const node *n = value_typed(b, x).node;
  axis_list l = axes_of(b, axes, n->rank);
  return value_of(ex_reduce(b, o, ir_cast(b->ir, n, sum_type((dtype)n->dtype)), &l, keepdims));
}

static value extreme(builder *b, op o, value x, tn_axes axes, bool keepdims) {
  const node *n = value_typed(b, x).node;
  axis_list l = axes_of(b, axes, n->rank);
  type_check(b, RULE_NUMBER, (dtype)n->dtype);
  return value_of(ex_reduce(b, o, n, &l, keepdims));
}

void axes_check_elements(builder *b, const node *x, const axis_list *l) {
  for (size_t i = 0; i < l->n; i++) {
    const node *size = x->dims[l->at[i]];
    if (size->hi == 0)
      diag_raise(b->diag, TN_ERR_SHAPE, "axis %lld is empty: there is nothing to choose from",
                 (long long)l->at[i]);
    b->needed = ix_add_const(b->ir, size, -1);
    if (!ix_prove(b->ir, b->needed))
      diag_raise(b->diag, TN_ERR_SHAPE,
                 "axis %lld, of size %s, can be empty, with nothing to choose from: give its "
                 "variables a minimum that rules this out",
                 (long long)l->at[i], size_text(b, size));
  }
}

static value test_like(builder *b, op o, value x, tn_axes axes, bool keepdims) {
  const node *n = build_cast(b, x, DT_BOOL).node;
  axis_list l = axes_of(b, axes, n->rank);
  return value_of(ex_reduce(b, o, n, &l, keepdims));
}

value build_sum(builder *b, value x, tn_axes axes, bool keepdims) {
  return sum_like(b, OP_ADD, x, axes, keepdims);
}

value build_prod(builder *b, value x, tn_axes axes, bool keepdims) {
  return sum_like(b, OP_MUL, x, axes, keepdims);
}

value build_max(builder *b, value x, tn_axes axes, bool keepdims) {
  return extreme(b, OP_MAX, x, axes, keepdims);
}

value build_min(builder *b, value x, tn_axes axes, bool keepdims) {
  return extreme(b, OP_MIN, x, axes, keepdims);
}

value build_any(builder *b, value x, tn_axes axes, bool keepdims) {
  return test_like(b, OP_OR, x, axes, keepdims);
}

value build_all(builder *b, value x, tn_axes axes, bool keepdims) {
  return test_like(b, OP_AND, x, axes, keepdims);
}

/* ---- Floating functions ---- */

/** The number of elements that are reduced to one, an index. */
static const node *count_of(builder *b, const node *x, const axis_list *axes) {
  const node *count = ix_const(b->ir, 1);
  for (size_t i = 0; i < axes->n; i++) count = ix_mul(b->ir, count, x->dims[axes->at[i]]);
  return count;
}

static const node *divided(builder *b, const node *x, const node *scalar) {
  sizes s = sizes_of(x);
  return ex2(b, OP_DIV, x, ex_fill(b, scalar, &s));
}

const node *node_mean(builder *b, const node *x, const axis_list *axes, bool keepdims) {
  const node *count = ex_size(b, count_of(b, x, axes), (dtype)x->dtype);
  return divided(b, ex_reduce(b, OP_ADD, x, axes, keepdims), count);
}

static const node *squared_distances(builder *b, const node *x, const node *mean,
                                     const axis_list *axes) {
  sizes s = sizes_of(x);
  const node *distance = ex2(b, OP_SUB, x, shape_expand(b, mean, &s));
  return ex_reduce(b, OP_ADD, ex2(b, OP_MUL, distance, distance), axes, true);
}

const node *node_variance(builder *b, const node *x, const node *mean, const axis_list *axes) {
  const node *count = ex_size(b, count_of(b, x, axes), (dtype)x->dtype);
  return divided(b, squared_distances(b, x, mean, axes), count);
}

value build_mean(builder *b, value x, tn_axes axes, bool keepdims) {
  floating f = floating_operand(b, x);
  axis_list l = axes_of(b, axes, f.x->rank);
  return value_of(ir_cast(b->ir, node_mean(b, f.x, &l, keepdims), f.result));
}

/** count − ddof, or NaN where it is not positive. */
static const node *degrees_of_freedom(builder *b, const node *count, int ddof, dtype t) {
  const node *n = ix_add_const(b->ir, count, -(int64_t)ddof), *nan = ir_const(b->ir, t, NAN);
  if (n->lo > 0) return ex_size(b, n, t);
  if (n->hi <= 0) return nan;
  const node *zero = ir_const_int(b->ir, DT_I64, 0);
  return ex_where(b, ex2(b, OP_LT, zero, ex_size(b, n, DT_I64)), ex_size(b, n, t), nan);
}

/** The variance, in the type to compute in. */
static floating variance(builder *b, value x, tn_axes axes, int ddof, bool keepdims) {
  floating f = floating_operand(b, x);
  if (ddof < 0) diag_raise(b->diag, TN_ERR_ARGUMENT, "ddof is %d, below 0", ddof);
  axis_list l = axes_of(b, axes, f.x->rank);
  const node *sum = squared_distances(b, f.x, node_mean(b, f.x, &l, true), &l);
  const node *count = count_of(b, f.x, &l);
  f.x = divided(b, sum, degrees_of_freedom(b, count, ddof, (dtype)sum->dtype));
  if (keepdims) return f;
  sizes s = sizes_of(f.x);
  for (size_t i = s.rank; i-- > 0;)
    if (axis_is_in(&l, i)) s = sizes_remove(s, i);
  f.x = shape_reshape(b, f.x, &s);
  return f;
}

value build_var(builder *b, value x, tn_axes axes, int ddof, bool keepdims) {
  floating f = variance(b, x, axes, ddof, keepdims);
  return value_of(ir_cast(b->ir, f.x, f.result));
}

value build_std(builder *b, value x, tn_axes axes, int ddof, bool keepdims) {
  floating f = variance(b, x, axes, ddof, keepdims);
  return value_of(ir_cast(b->ir, ex1(b, OP_SQRT, f.x), f.result));
}

/** log Σ e^(x − m) + m, with m the largest x, or 0 where that is infinite. */
value build_logsumexp(builder *b, value x, tn_axes axes, bool keepdims) {
  floating f = floating_operand(b, x);
  axis_list l = axes_of(b, axes, f.x->rank);
  sizes s = sizes_of(f.x);
  const node *m = ex_reduce(b, OP_MAX, f.x, &l, true);
  m = ex_where(b, ex2_num(b, OP_EQ, ex1(b, OP_ABS, m), INFINITY), ex_int(b, m, 0), m);
  const node *e = ex1(b, OP_EXP, ex2(b, OP_SUB, f.x, shape_expand(b, m, &s)));
  const node *log = ex1(b, OP_LOG, ex_reduce(b, OP_ADD, e, &l, keepdims));
  sizes out = sizes_of(log);
  return value_of(ir_cast(b->ir, ex2(b, OP_ADD, log, shape_reshape(b, m, &out)), f.result));
}

/* ---- Where the extreme is ---- */

/** The least coordinate at which x is the extreme, or NaN where that is. */
static value arg_extreme(builder *b, op o, value x, int64_t axis, bool keepdims) {
  const node *n = value_typed(b, x).node;
  type_check(b, RULE_NUMBER, (dtype)n->dtype);
  size_t at = axis_of(b, axis, n->rank);
  axis_list l = axes_from(at, at + 1);
  sizes s = sizes_of(n);
  dtype t = s.at[at]->hi <= INT32_MAX ? DT_I32 : DT_I64;
  const node *best = shape_expand(b, ex_reduce(b, o, n, &l, true), &s);
  const node *hit = ex2(b, OP_EQ, n, best);
  if (dtype_is_float((dtype)n->dtype)) hit = ex2(b, OP_OR, hit, ex2(b, OP_NE, n, n));
  const node *i = ex_iota(b, t, &s, at), *none = ex_int(b, i, dtype_max(t));
  const node *first = ex_reduce(b, OP_MIN, ex_where(b, hit, i, none), &l, keepdims);
  return value_of(ir_cast(b->ir, first, DT_I64));
}

value build_argmax(builder *b, value x, int64_t axis, bool keepdims) {
  return arg_extreme(b, OP_MAX, x, axis, keepdims);
}

value build_argmin(builder *b, value x, int64_t axis, bool keepdims) {
  return arg_extreme(b, OP_MIN, x, axis, keepdims);
}

/* ---- Running reductions ----

   A short axis is one masked reduction: y[i] = Σ x[j] over j ≤ i, quadratic in its size. A long
   one is cut into blocks: each is scanned so, then the blocks' totals are, and each block gets the
   total of those before it. The work is SCAN_BLOCK times the size, in few kernels. */

enum { SCAN_BLOCK = 32, SCAN_WHOLE = 64 };

typedef struct scan {
  op o;
  const node *start; /* what leaves others as they are */
} scan;

static const node *scan_whole(builder *b, const scan *c, const node *x, size_t axis) {
  const node *size = x->dims[axis];
  sizes s = sizes_insert(b, sizes_of(x), axis, size); /* …, i, j, … */
  x = shape_expand(b, shape_insert(b, x, axis), &s);
  const node *i = ex_iota(b, DT_I64, &s, axis), *j = ex_iota(b, DT_I64, &s, axis + 1);
  axis_list over = axes_from(axis + 1, axis + 2);
  const node *masked = ex_where(b, ex2(b, OP_LE, j, i), x, ex_fill(b, c->start, &s));
  return ex_reduce(b, c->o, masked, &over, false);
}

/** x with one axis in blocks: (…, blocks, SCAN_BLOCK, …). */
static const node *in_blocks(builder *b, const scan *c, const node *x, size_t axis) {
  ir *g = b->ir;
  const node *size = x->dims[axis], *block = ix_const(g, SCAN_BLOCK);
  const node *count = ix_floordiv(g, ix_add_const(g, size, SCAN_BLOCK - 1), block);
  const node *more = ix_sub(g, ix_scale(g, count, SCAN_BLOCK), size);
  x = shape_pad(b, x, axis, ix_const(g, 0), more, c->start);
  sizes s = sizes_insert(b, sizes_with(sizes_of(x), axis, block), axis, count);
  return shape_reshape(b, x, &s);
}

/** Levels are as many as SCAN_BLOCK can divide a size: fewer than 13. */
static const node *scan_axis(builder *b, const scan *c, const node *x, size_t axis) {
  ir *g = b->ir;
  const node *size = x->dims[axis], *zero = ix_const(g, 0), *one = ix_const(g, 1);
  if (size->hi <= SCAN_WHOLE) return scan_whole(b, c, x, axis);
  const node *inner = scan_whole(b, c, in_blocks(b, c, x, axis), axis + 1);
  sizes s = sizes_of(inner), totals = sizes_remove(s, axis + 1);
  const node *last = shape_slice(b, inner, axis + 1, ix_const(g, SCAN_BLOCK - 1), one, 1);
  const node *before = scan_axis(b, c, shape_reshape(b, last, &totals), axis);
  before = shape_pad(b, before, axis, one, ix_const(g, -1), c->start);
  before = shape_expand(b, shape_insert(b, before, axis + 1), &s);
  const node *all = ex2(b, c->o, before, inner);
  sizes flat = sizes_remove(s, axis + 1);
  flat.at[axis] = ix_scale(g, s.at[axis], SCAN_BLOCK);
  return shape_slice(b, shape_reshape(b, all, &flat), axis, zero, size, 1);
}

static value running(builder *b, op o, value x, int64_t axis) {
  const node *n = value_typed(b, x).node;
  dtype t = sum_type((dtype)n->dtype);
  size_t at = axis_of(b, axis, n->rank);
  n = ir_cast(b->ir, n, type_wide(t));
  scan c = {.o = o, .start = ir_const_int(b->ir, (dtype)n->dtype, o == OP_MUL)};
  return value_of(ir_cast(b->ir, scan_axis(b, &c, n, at), t));
}

value build_cumsum(builder *b, value x, int64_t axis) { return running(b, OP_ADD, x, axis); }
value build_cumprod(builder *b, value x, int64_t axis) { return running(b, OP_MUL, x, axis); }

/* ---- The public functions ---- */

typedef struct reduce_call {
  value (*build)(builder *b, value x, tn_axes axes, bool keepdims);
  tn_axes axes;
  bool keepdims;
} reduce_call;

static bool chooses(value (*build)(builder *b, value x, tn_axes axes, bool keepdims)) {
  return build == build_max || build == build_min;
}

static value call_reduce(builder *b, const value in[], size_t n, const void *options) {
  const reduce_call *c = options;
  (void)n;
  axis_list l = axes_of(b, c->axes, in[0].node->rank);
  if (chooses(c->build)) axes_check_elements(b, in[0].node, &l);
  return c->build(b, in[0], c->axes, c->keepdims);
}

#define REDUCE(name, rule, meaning)                                   \
  tn_tensor *tn_##name(tn_tensor *x, tn_axes axes, bool keepdims) {   \
    return tensor_call(#name, &x, 1, 0, call_reduce,                  \
                       &(reduce_call){build_##name, axes, keepdims}); \
  }
TN_REDUCE_LIST(REDUCE)
#undef REDUCE

typedef struct spread_call {
  value (*build)(builder *b, value x, tn_axes axes, int ddof, bool keepdims);
  tn_axes axes;
  int ddof;
  bool keepdims;
} spread_call;

static value call_spread(builder *b, const value in[], size_t n, const void *options) {
  const spread_call *c = options;
  (void)n;
  return c->build(b, in[0], c->axes, c->ddof, c->keepdims);
}

tn_tensor *tn_var(tn_tensor *x, tn_axes axes, int ddof, bool keepdims) {
  spread_call c = {build_var, axes, ddof, keepdims};
  return tensor_call("var", &x, 1, 0, call_spread, &c);
}

tn_tensor *tn_std(tn_tensor *x, tn_axes axes, int ddof, bool keepdims) {
  spread_call c = {build_std, axes, ddof, keepdims};
  return tensor_call("std", &x, 1, 0, call_spread, &c);
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
  axes_check_elements(b, in[0].node, &l);
  return c->build(b, in[0], c->axis, c->keepdims);
}

tn_tensor *tn_argmax(tn_tensor *x, int axis, bool keepdims) {
  return tensor_call("argmax", &x, 1, 0, call_arg, &(arg_call){build_argmax, axis, keepdims});
}

tn_tensor *tn_argmin(tn_tensor *x, int axis, bool keepdims) {
  return tensor_call("argmin", &x, 1, 0, call_arg, &(arg_call){build_argmin, axis, keepdims});
}

typedef struct axis_call {
  value (*build)(builder *b, value x, int64_t axis);
  int axis;
} axis_call;

static value call_axis(builder *b, const value in[], size_t n, const void *options) {
  const axis_call *c = options;
  (void)n;
  return c->build(b, in[0], c->axis);
}

tn_tensor *tn_cumsum(tn_tensor *x, int axis) {
  return tensor_call("cumsum", &x, 1, 0, call_axis, &(axis_call){build_cumsum, axis});
}

tn_tensor *tn_cumprod(tn_tensor *x, int axis) {
  return tensor_call("cumprod", &x, 1, 0, call_axis, &(axis_call){build_cumprod, axis});
}
