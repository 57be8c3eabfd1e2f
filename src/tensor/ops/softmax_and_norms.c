/* Softmax, log-softmax and normalisations (layer, RMS, batch, group, instance) with the formulas of
   PyTorch and ONNX. Softmax subtracts the maximum; the scheduler may turn it into online softmax
   (schedule/values/online_softmax.c). */
#include "ir/index/index_arithmetic.h"
#include "tensor/ops/axes_and_broadcasting.h"
#include "tensor/ops/expressions.h"
#include "tensor/ops/reduction.h"
#include "tensor/ops/type_promotion.h"

/* ---- Softmax ---- */

/** The parts that softmax and log-softmax share. */
typedef struct softmax_parts {
  const node *shifted; /* x − max along the axis */
  const node *sum;     /* Σ e^shifted along the axis, which is kept */
  dtype result;        /* type of the result */
} softmax_parts;

static softmax_parts shift_and_sum(builder *b, value x, int64_t axis) {
  float_operand f = float_operand_of(b, x);
  size_t at = axis_of(b, axis, f.x->rank);
  axis_list l = axes_from(at, at + 1);
  sizes s = sizes_of(f.x);
  const node *max = shape_expand(b, node_reduce(b, OP_MAX, f.x, &l, true), &s);
  softmax_parts p = {.shifted = ex_binary(b, OP_SUB, f.x, max), .result = f.result};
  p.sum = node_reduce(b, OP_ADD, ex_unary(b, OP_EXP, p.shifted), &l, true);
  return p;
}

value build_softmax(builder *b, value x, int64_t axis) {
  softmax_parts p = shift_and_sum(b, x, axis);
  sizes s = sizes_of(p.shifted);
  const node *inverse = build_reciprocal(b, value_of(p.sum)).node; /* one division a row */
  inverse = shape_expand(b, inverse, &s);
  const node *y = ex_binary(b, OP_MUL, ex_unary(b, OP_EXP, p.shifted), inverse);
  return value_of(ex_cast(b, y, p.result));
}

value build_log_softmax(builder *b, value x, int64_t axis) {
  softmax_parts p = shift_and_sum(b, x, axis);
  sizes s = sizes_of(p.shifted);
  const node *log = shape_expand(b, ex_unary(b, OP_LOG, p.sum), &s);
  return value_of(ex_cast(b, ex_binary(b, OP_SUB, p.shifted, log), p.result));
}

/* ---- Normalisation ---- */

enum { MOST_NORM_OPERANDS = 5 };

/** Promoted operands of a normalisation. */
typedef struct norm {
  const node *at[MOST_NORM_OPERANDS]; /* in the type to compute in; NULL: absent */
  dtype result;                       /* type of the result */
} norm;

static norm norm_operands(builder *b, const value in[], size_t n) {
  norm r = {0};
  promoted_type m = float_result_type((promoted_type){values_promoted_dtype(b, in, n), WEAK_NO});
  r.result = m.dtype;
  for (size_t i = 0; i < n; i++)
    if (in[i].node) r.at[i] = type_convert(b, in[i], accumulation_type(m.dtype));
  return r;
}

/** x · weight + bias, both broadcast to x, in the type of the result. */
static value scale_and_shift(builder *b, const norm *r, const node *x, const node *weight,
                             const node *bias) {
  sizes s = sizes_of(x);
  if (weight) x = ex_binary(b, OP_MUL, x, shape_broadcast(b, weight, &s));
  if (bias) x = ex_binary(b, OP_ADD, x, shape_broadcast(b, bias, &s));
  return value_of(ex_cast(b, x, r->result));
}

/** 1 / sqrt(x + eps) in x's shape. */
static const node *rsqrt_eps(builder *b, const node *x, double eps) {
  const node *root = ex_unary(b, OP_SQRT, ex_binary_num(b, OP_ADD, x, eps));
  return ex_binary(b, OP_DIV, ex_num(b, root, 1), root);
}

/** (x − mean) / sqrt(variance + eps) over some axes. */
static const node *normalise(builder *b, const node *x, const axis_list *over, double eps) {
  sizes s = sizes_of(x);
  const node *mean = node_mean(b, x, over, true), *variance = node_variance(b, x, mean, over);
  const node *deviation = ex_binary(b, OP_SUB, x, shape_expand(b, mean, &s));
  return ex_binary(b, OP_MUL, deviation, shape_expand(b, rsqrt_eps(b, variance, eps), &s));
}

/** Raises unless a weight or bias broadcasts to the normalised axes of x, from `first` on. */
static void check_affine_shape(builder *b, const char *name, const node *w, const node *x,
                               size_t first) {
  if (!w) return;
  sizes own = sizes_of(w), normalised = {.rank = x->rank - first};
  for (size_t i = 0; i < normalised.rank; i++) normalised.at[i] = x->dims[first + i];
  sizes all = sizes_broadcast(b, (sizes[]){own, normalised}, 2);
  if (!sizes_equal(&all, &normalised))
    diag_raise(b->diag, TN_ERR_SHAPE,
               "%s has shape %s; it must broadcast to the normalised axes, of shape %s", name,
               sizes_text(b, &own), sizes_text(b, &normalised));
}

value build_layer_norm(builder *b, value x, value weight, value bias, int64_t axis, double eps) {
  norm r = norm_operands(b, (value[]){x, weight, bias}, 3);
  size_t first = axis_of(b, axis, r.at[0]->rank);
  axis_list over = axes_from(first, r.at[0]->rank);
  check_affine_shape(b, "weight", r.at[1], r.at[0], first);
  check_affine_shape(b, "bias", r.at[2], r.at[0], first);
  return scale_and_shift(b, &r, normalise(b, r.at[0], &over, eps), r.at[1], r.at[2]);
}

value build_rms_norm(builder *b, value x, value weight, int64_t axis, double eps) {
  norm r = norm_operands(b, (value[]){x, weight}, 2);
  const node *n = r.at[0];
  size_t first = axis_of(b, axis, n->rank);
  axis_list over = axes_from(first, n->rank);
  sizes s = sizes_of(n);
  check_affine_shape(b, "weight", r.at[1], n, first);
  const node *mean_square = node_mean(b, ex_binary(b, OP_MUL, n, n), &over, true);
  const node *y = ex_binary(b, OP_MUL, n, shape_expand(b, rsqrt_eps(b, mean_square, eps), &s));
  return scale_and_shift(b, &r, y, r.at[1], NULL);
}

/* ---- Normalisation by channels, of x (N, C, …) ---- */

static void check_channels_first(builder *b, const node *x) {
  sizes s = sizes_of(x);
  if (x->rank < 2)
    diag_raise(b->diag, TN_ERR_SHAPE, "x has shape %s; it must be (N, C, …)",
               sizes_text_of_ranks(b, &s));
}

/** A vector (C) as (C, 1, …), which broadcasts to x; NULL stays. */
static const node *align_channels(builder *b, const char *name, const node *w, const node *x) {
  if (!w) return NULL;
  sizes own = sizes_of(w), to = {.rank = x->rank - 1};
  if (w->rank != 1 || w->dims[0] != x->dims[1])
    diag_raise(b->diag, TN_ERR_SHAPE, "%s has shape %s; it must be (%s), the channels of x", name,
               sizes_text(b, &own), size_text(b, x->dims[1]));
  for (size_t i = 0; i < to.rank; i++) to.at[i] = i ? ix_const(b->ir, 1) : own.at[0];
  return shape_reshape(b, w, &to);
}

value build_group_norm(builder *b, value x, value weight, value bias, int64_t groups, double eps) {
  norm r = norm_operands(b, (value[]){x, weight, bias}, 3);
  const node *n = r.at[0];
  check_channels_first(b, n);
  if (groups < 1)
    diag_raise(b->diag, TN_ERR_ARGUMENT, "groups is %lld; it must be 1 or more", (long long)groups);
  const node *count = ix_const(b->ir, groups), *channels = n->dims[1];
  const node *each = ix_floordiv(b->ir, channels, count);
  if (ix_scale(b->ir, each, groups) != channels)
    diag_raise(b->diag, TN_ERR_SHAPE, "x has %s channels, which are no multiple of %lld groups",
               size_text(b, channels), (long long)groups);
  sizes whole = sizes_of(n), split = sizes_insert(b, sizes_with(whole, 1, each), 1, count);
  axis_list over = axes_from(2, split.rank);
  const node *y = normalise(b, shape_reshape(b, n, &split), &over, eps);
  return scale_and_shift(b, &r, shape_reshape(b, y, &whole),
                         align_channels(b, "weight", r.at[1], n),
                         align_channels(b, "bias", r.at[2], n));
}

value build_instance_norm(builder *b, value x, value weight, value bias, double eps) {
  norm r = norm_operands(b, (value[]){x, weight, bias}, 3);
  const node *n = r.at[0];
  check_channels_first(b, n);
  axis_list over = axes_from(2, n->rank);
  return scale_and_shift(b, &r, normalise(b, n, &over, eps),
                         align_channels(b, "weight", r.at[1], n),
                         align_channels(b, "bias", r.at[2], n));
}

value build_batch_norm(builder *b, value x, value mean, value variance, value weight, value bias,
                       double eps) {
  norm r = norm_operands(b, (value[]){x, mean, variance, weight, bias}, 5);
  const node *n = r.at[0];
  check_channels_first(b, n);
  sizes s = sizes_of(n);
  const node *m = align_channels(b, "mean", r.at[1], n);
  const node *scale = rsqrt_eps(b, align_channels(b, "variance", r.at[2], n), eps);
  const node *w = align_channels(b, "weight", r.at[3], n);
  const node *deviation = ex_binary(b, OP_SUB, n, shape_broadcast(b, m, &s));
  return scale_and_shift(b, &r, deviation, w ? ex_binary(b, OP_MUL, scale, w) : scale,
                         align_channels(b, "bias", r.at[4], n));
}

/* ---- Public functions ---- */

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

/* Bits of operands that may be NULL. */
enum { OPTIONAL_WEIGHT = 2, OPTIONAL_BIAS = 4, BATCH_NORM_WEIGHT = 8, BATCH_NORM_BIAS = 16 };

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
  return op_call("batch_norm", (tn_tensor *[]){x, mean, variance, weight, bias}, 5,
                 BATCH_NORM_WEIGHT | BATCH_NORM_BIAS, call_batch_norm, &(norm_call){.eps = eps});
}
