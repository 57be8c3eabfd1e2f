/* Softmax, log-softmax and normalisations (layer, RMS, batch, group, instance). Softmax subtracts
   the maximum; the scheduler may turn it into online softmax. */
#include "ir/index/index_arithmetic.h"
#include "tensor/ops/op_helpers.h"

/* ---- Softmax ---- */

/** x − max along an axis, and Σ e^(x − max). */
typedef struct softened {
  const node *shifted, *sum;
  dtype result;
} softened;

static softened exponentiate(builder *b, value x, int64_t axis) {
  floating f = floating_operand(b, x);
  size_t at = axis_of(b, axis, f.x->rank);
  axis_list l = axes_from(at, at + 1);
  sizes s = sizes_of(f.x);
  const node *most = shape_expand(b, ex_reduce(b, OP_MAX, f.x, &l, true), &s);
  softened r = {.shifted = ex_binary(b, OP_SUB, f.x, most), .result = f.result};
  r.sum = ex_reduce(b, OP_ADD, ex_unary(b, OP_EXP, r.shifted), &l, true);
  return r;
}

value build_softmax(builder *b, value x, int64_t axis) {
  softened r = exponentiate(b, x, axis);
  sizes s = sizes_of(r.shifted);
  const node *part = build_reciprocal(b, value_of(r.sum)).node; /* one division a row */
  const node *y = ex_binary(b, OP_MUL, ex_unary(b, OP_EXP, r.shifted), shape_expand(b, part, &s));
  return value_of(ir_cast(b->ir, y, r.result));
}

value build_log_softmax(builder *b, value x, int64_t axis) {
  softened r = exponentiate(b, x, axis);
  sizes s = sizes_of(r.shifted);
  const node *log = shape_expand(b, ex_unary(b, OP_LOG, r.sum), &s);
  return value_of(ir_cast(b->ir, ex_binary(b, OP_SUB, r.shifted, log), r.result));
}

/* ---- Normalisation ---- */

/** Operands in the type to compute in; absent ones stay NULL. */
enum { MOST_NORM_OPERANDS = 5 };
typedef struct norm {
  const node *at[MOST_NORM_OPERANDS];
  dtype result;
} norm;

static norm norm_operands(builder *b, const value in[], size_t n) {
  norm r = {0};
  meeting m = floating_result_type((meeting){values_promoted_dtype(in, n), WEAK_NO});
  r.result = m.dtype;
  for (size_t i = 0; i < n; i++)
    if (in[i].node) r.at[i] = type_convert(b, in[i], accumulation_type(m.dtype));
  return r;
}

/** x · weight + bias, both broadcast to x. */
static value scaled(builder *b, const norm *r, const node *x, const node *weight,
                    const node *bias) {
  sizes s = sizes_of(x);
  if (weight) x = ex_binary(b, OP_MUL, x, shape_broadcast(b, weight, &s));
  if (bias) x = ex_binary(b, OP_ADD, x, shape_broadcast(b, bias, &s));
  return value_of(ir_cast(b->ir, x, r->result));
}

/** 1 / sqrt(x + eps) in x's shape. */
static const node *inverse_root(builder *b, const node *x, double eps) {
  const node *root = ex_unary(b, OP_SQRT, ex_binary_num(b, OP_ADD, x, eps));
  return ex_binary(b, OP_DIV, ex_num(b, root, 1), root);
}

static const node *standardised(builder *b, const node *x, const axis_list *over, double eps) {
  sizes s = sizes_of(x);
  const node *mean = node_mean(b, x, over, true), *variance = node_variance(b, x, mean, over);
  const node *distance = ex_binary(b, OP_SUB, x, shape_expand(b, mean, &s));
  return ex_binary(b, OP_MUL, distance, shape_expand(b, inverse_root(b, variance, eps), &s));
}

/** A weight or bias that broadcasts to the last axes of x, from `first` on. */
static void check_tail(builder *b, const char *name, const node *w, const node *x, size_t first) {
  if (!w) return;
  sizes own = sizes_of(w), tail = {.rank = x->rank - first};
  for (size_t i = 0; i < tail.rank; i++) tail.at[i] = x->dims[first + i];
  sizes all = sizes_broadcast(b, (sizes[]){own, tail}, 2);
  if (!sizes_equal(&all, &tail))
    diag_raise(b->diag, TN_ERR_SHAPE, "%s of shape %s does not fit the normalised axes %s", name,
               sizes_text(b, &own), sizes_text(b, &tail));
}

value build_layer_norm(builder *b, value x, value weight, value bias, int64_t axis, double eps) {
  norm r = norm_operands(b, (value[]){x, weight, bias}, 3);
  size_t first = axis_of(b, axis, r.at[0]->rank);
  axis_list over = axes_from(first, r.at[0]->rank);
  check_tail(b, "weight", r.at[1], r.at[0], first);
  check_tail(b, "bias", r.at[2], r.at[0], first);
  return scaled(b, &r, standardised(b, r.at[0], &over, eps), r.at[1], r.at[2]);
}

value build_rms_norm(builder *b, value x, value weight, int64_t axis, double eps) {
  norm r = norm_operands(b, (value[]){x, weight}, 2);
  const node *n = r.at[0];
  size_t first = axis_of(b, axis, n->rank);
  axis_list over = axes_from(first, n->rank);
  sizes s = sizes_of(n);
  check_tail(b, "weight", r.at[1], n, first);
  const node *square = node_mean(b, ex_binary(b, OP_MUL, n, n), &over, true);
  const node *y = ex_binary(b, OP_MUL, n, shape_expand(b, inverse_root(b, square, eps), &s));
  return scaled(b, &r, y, r.at[1], NULL);
}

/* By channels: x (N, C, …). */

static void check_channels_first(builder *b, const node *x) {
  sizes s = sizes_of(x);
  if (x->rank < 2)
    diag_raise(b->diag, TN_ERR_SHAPE, "x is (N, C, …), and not of shape %s", sizes_text(b, &s));
}

/** A vector (C) as (C, 1, …), which broadcasts to x; NULL stays. */
static const node *by_channel(builder *b, const char *name, const node *w, const node *x) {
  if (!w) return NULL;
  sizes own = sizes_of(w), to = {.rank = x->rank - 1};
  if (w->rank != 1 || w->dims[0] != x->dims[1])
    diag_raise(b->diag, TN_ERR_SHAPE, "%s has shape %s, where there are %s channels", name,
               sizes_text(b, &own), size_text(b, x->dims[1]));
  for (size_t i = 0; i < to.rank; i++) to.at[i] = i ? ix_const(b->ir, 1) : own.at[0];
  return shape_reshape(b, w, &to);
}

value build_group_norm(builder *b, value x, value weight, value bias, int64_t groups, double eps) {
  norm r = norm_operands(b, (value[]){x, weight, bias}, 3);
  const node *n = r.at[0];
  check_channels_first(b, n);
  if (groups < 1)
    diag_raise(b->diag, TN_ERR_ARGUMENT, "groups is %lld, below 1", (long long)groups);
  const node *count = ix_const(b->ir, groups), *channels = n->dims[1];
  const node *each = ix_floordiv(b->ir, channels, count);
  if (ix_scale(b->ir, each, groups) != channels)
    diag_raise(b->diag, TN_ERR_SHAPE, "%lld groups do not divide %s channels", (long long)groups,
               size_text(b, channels));
  sizes whole = sizes_of(n), split = sizes_insert(b, sizes_with(whole, 1, each), 1, count);
  axis_list over = axes_from(2, split.rank);
  const node *y = standardised(b, shape_reshape(b, n, &split), &over, eps);
  return scaled(b, &r, shape_reshape(b, y, &whole), by_channel(b, "weight", r.at[1], n),
                by_channel(b, "bias", r.at[2], n));
}

value build_instance_norm(builder *b, value x, value weight, value bias, double eps) {
  norm r = norm_operands(b, (value[]){x, weight, bias}, 3);
  const node *n = r.at[0];
  check_channels_first(b, n);
  axis_list over = axes_from(2, n->rank);
  return scaled(b, &r, standardised(b, n, &over, eps), by_channel(b, "weight", r.at[1], n),
                by_channel(b, "bias", r.at[2], n));
}

value build_batch_norm(builder *b, value x, value mean, value variance, value weight, value bias,
                       double eps) {
  norm r = norm_operands(b, (value[]){x, mean, variance, weight, bias}, 5);
  const node *n = r.at[0];
  check_channels_first(b, n);
  sizes s = sizes_of(n);
  const node *m = by_channel(b, "mean", r.at[1], n);
  const node *scale = inverse_root(b, by_channel(b, "variance", r.at[2], n), eps);
  const node *w = by_channel(b, "weight", r.at[3], n);
  const node *distance = ex_binary(b, OP_SUB, n, shape_broadcast(b, m, &s));
  return scaled(b, &r, distance, w ? ex_binary(b, OP_MUL, scale, w) : scale,
                by_channel(b, "bias", r.at[4], n));
}

/* ---- The public functions ---- */

typedef struct norm_call {
  int axis, groups;
  double eps;
} norm_call;

static value call_softmax(builder *b, const value in[], size_t n, const void *options) {
  (void)n;
  return build_softmax(b, in[0], *(const int *)options);
}

static value call_log_softmax(builder *b, const value in[], size_t n, const void *options) {
  (void)n;
  return build_log_softmax(b, in[0], *(const int *)options);
}

static value call_layer_norm(builder *b, const value in[], size_t n, const void *options) {
  const norm_call *c = options;
  (void)n;
  return build_layer_norm(b, in[0], in[1], in[2], c->axis, c->eps);
}

static value call_rms_norm(builder *b, const value in[], size_t n, const void *options) {
  const norm_call *c = options;
  (void)n;
  return build_rms_norm(b, in[0], in[1], c->axis, c->eps);
}

static value call_group_norm(builder *b, const value in[], size_t n, const void *options) {
  const norm_call *c = options;
  (void)n;
  return build_group_norm(b, in[0], in[1], in[2], c->groups, c->eps);
}

static value call_instance_norm(builder *b, const value in[], size_t n, const void *options) {
  const norm_call *c = options;
  (void)n;
  return build_instance_norm(b, in[0], in[1], in[2], c->eps);
}

static value call_batch_norm(builder *b, const value in[], size_t n, const void *options) {
  const norm_call *c = options;
  (void)n;
  return build_batch_norm(b, in[0], in[1], in[2], in[3], in[4], c->eps);
}

tn_tensor *tn_softmax(tn_tensor *x, int axis) {
  return op_call("softmax", &x, 1, 0, call_softmax, &axis);
}

tn_tensor *tn_log_softmax(tn_tensor *x, int axis) {
  return op_call("log_softmax", &x, 1, 0, call_log_softmax, &axis);
}

enum { OPTIONAL_WEIGHT = 2, OPTIONAL_BIAS = 4 };

tn_tensor *tn_layer_norm(tn_tensor *x, tn_tensor *weight, tn_tensor *bias, int axis, double eps) {
  return op_call("layer_norm", (tn_tensor *[]){x, weight, bias}, 3, OPTIONAL_WEIGHT | OPTIONAL_BIAS,
                 call_layer_norm, &(norm_call){.axis = axis, .eps = eps});
}

tn_tensor *tn_rms_norm(tn_tensor *x, tn_tensor *weight, int axis, double eps) {
  return op_call("rms_norm", (tn_tensor *[]){x, weight}, 2, OPTIONAL_WEIGHT, call_rms_norm,
                 &(norm_call){.axis = axis, .eps = eps});
}

tn_tensor *tn_group_norm(tn_tensor *x, tn_tensor *weight, tn_tensor *bias, int groups, double eps) {
  return op_call("group_norm", (tn_tensor *[]){x, weight, bias}, 3, OPTIONAL_WEIGHT | OPTIONAL_BIAS,
                 call_group_norm, &(norm_call){.groups = groups, .eps = eps});
}

tn_tensor *tn_instance_norm(tn_tensor *x, tn_tensor *weight, tn_tensor *bias, double eps) {
  return op_call("instance_norm", (tn_tensor *[]){x, weight, bias}, 3,
                 OPTIONAL_WEIGHT | OPTIONAL_BIAS, call_instance_norm, &(norm_call){.eps = eps});
}

tn_tensor *tn_batch_norm(tn_tensor *x, tn_tensor *mean, tn_tensor *variance, tn_tensor *weight,
                         tn_tensor *bias, double eps) {
  return op_call("batch_norm", (tn_tensor *[]){x, mean, variance, weight, bias}, 5, 8 | 16,
                 call_batch_norm, &(norm_call){.eps = eps});
}
