/* ONNX normalisations (Batch, Instance, Group, Layer, RMS, Lp, MeanVariance, LRN) and Softmax,
   LogSoftmax, Hardmax, by the builders of tensor/ops. */
#include "formats/onnx/ops/axis_arguments.h"
#include "formats/onnx/ops/onnx_builders.h"
#include "ir/index/index_arithmetic.h"
#include "tensor/ops/axes_and_broadcasting.h"
#include "tensor/ops/expressions.h"
#include "tensor/ops/reduction.h"
#include "tensor/ops/sliding_windows.h"
#include "tensor/ops/type_promotion.h"

static double read_epsilon(const onnx_call *c) {
  return (double)onnx_float_attribute(c, "epsilon", 1e-5f);
}

/** Sets the output, cast to the type of x: statistics may have a wider type. */
static void set_output(onnx_call *c, value y) {
  c->outputs[0] = build_cast(onnx_builder(c), y, (dtype)onnx_input(c, 0).node->dtype);
}

/** Batch normalisation before version 9 with spatial = 0: a mean and a variance for each element of
    (C, …). */
static value normalise_elements(onnx_call *c) {
  builder *b = onnx_builder(c);
  value x = onnx_input(c, 0);
  value inverse = build_rsqrt(b, build_add(b, onnx_input(c, 4), build_num(b, read_epsilon(c))));
  value y =
      build_mul(b, build_sub(b, x, onnx_input(c, 3)), build_mul(b, inverse, onnx_input(c, 1)));
  return build_add(b, y, onnx_input(c, 2));
}

/** Normalises x by channels; a vector has one channel. */
static value norm_by(onnx_call *c, value x, value mean, value variance) {
  builder *b = onnx_builder(c);
  tn_axes channel = {.count = 1, .axis = {1}};
  bool is_vector = x.node->rank == 1;
  if (is_vector) x = build_unsqueeze(b, x, channel);
  value y =
      build_batch_norm(b, x, mean, variance, onnx_input(c, 1), onnx_input(c, 2), read_epsilon(c));
  return is_vector ? build_squeeze(b, y, channel) : y;
}

/** The axes of a batch's statistics: all but the channels. */
static tn_axes statistics_axes(const onnx_call *c, const node *x) {
  tn_axes axes = {.count = 1, .axis = {0}};
  if (x->rank < 1 || x->rank > TN_MAX_RANK)
    onnx_fail(c, TN_ERR_SHAPE, "the input has %u dimensions, expected 1 to %d", x->rank,
              TN_MAX_RANK);
  for (size_t i = 2; i < x->rank; i++) axes.axis[axes.count++] = (int32_t)i;
  return axes;
}

/** A running statistic after a batch. */
static value follow(onnx_call *c, size_t input, value statistic) {
  builder *b = onnx_builder(c);
  double momentum = (double)onnx_float_attribute(c, "momentum", 0.9f);
  value old = onnx_input(c, input);
  value y = build_add(b, build_mul(b, value_widen(b, old), build_num(b, momentum)),
                      build_mul(b, statistic, build_num(b, 1 - momentum)));
  return build_cast(b, y, (dtype)old.node->dtype);
}

/** Normalises by the statistics of the batch, and follows them. */
static void normalise_batch(onnx_call *c) {
  builder *b = onnx_builder(c);
  value x = value_widen(b, onnx_input(c, 0));
  tn_axes axes = statistics_axes(c, x.node);
  bool is_vector = x.node->rank == 1;
  value mean = build_mean(b, x, axes, is_vector), variance = build_var(b, x, axes, 0, is_vector);
  set_output(c, norm_by(c, x, mean, variance));
  c->outputs[1] = follow(c, 3, mean);
  c->outputs[2] = follow(c, 4, variance);
}

/** BatchNormalization. Before version 14 outputs beyond the first mean training mode, and using one
    raises. */
void onnx_BatchNormalization(onnx_call *c) {
  if (onnx_int_attribute(c, "training_mode", 0)) {
    normalise_batch(c);
    return;
  }
  if (c->version < 9 && !onnx_int_attribute(c, "spatial", 1)) {
    set_output(c, normalise_elements(c));
    return;
  }
  set_output(c, norm_by(c, onnx_input(c, 0), onnx_input(c, 3), onnx_input(c, 4)));
}

/** Divides by the norm of order 1 or 2 along an axis; elements of norm 0 stay 0. */
void onnx_LpNormalization(onnx_call *c) {
  builder *b = onnx_builder(c);
  value x = value_widen(b, onnx_input(c, 0));
  int64_t p = onnx_int_attribute(c, "p", 2);
  size_t axis = onnx_normalise_axis(c, onnx_int_attribute(c, "axis", -1), x.node->rank);
  tn_axes along = {.count = 1, .axis = {(int32_t)axis}};
  if (p != 1 && p != 2) onnx_fail(c, TN_ERR_FORMAT, "p is %lld, not 1 or 2", (long long)p);
  value terms = p == 1 ? build_abs(b, x) : build_square(b, x);
  value norm = build_sum(b, terms, along, true);
  if (p == 2) norm = build_sqrt(b, norm);
  value is_zero = build_eq(b, norm, build_int(b, 0));
  set_output(c, build_where(b, is_zero, build_int(b, 0), build_div(b, x, norm)));
}

/** Subtracts the mean and divides by the standard deviation, plus 1e-9, over batch and pixels. */
void onnx_MeanVarianceNormalization(onnx_call *c) {
  builder *b = onnx_builder(c);
  value x = value_widen(b, onnx_input(c, 0));
  const onnx_ints *list = onnx_ints_attribute(c, "axes");
  tn_axes axes = {.count = 3, .axis = {0, 2, 3}};
  if (list) axes = axes_from_list(c, list->at, list->n);
  value apart = build_sub(b, x, build_mean(b, x, axes, true));
  value deviation = build_std(b, x, axes, 0, true);
  set_output(c, build_div(b, apart, build_add(b, deviation, build_num(b, 1e-9))));
}

void onnx_InstanceNormalization(onnx_call *c) {
  set_output(c, build_instance_norm(onnx_builder(c), onnx_input(c, 0), onnx_input(c, 1),
                                    onnx_input(c, 2), read_epsilon(c)));
}

/** Reads scale or bias for each channel; version 18 has one for each group. */
static value read_channel_parameter(onnx_call *c, size_t input, int64_t groups) {
  builder *b = onnx_builder(c);
  value w = onnx_input(c, input);
  const node *x = onnx_input(c, 0).node;
  if (c->version >= 21 || x->rank < 2 || groups < 1) return w;
  return build_repeat(b, w, 0, ix_floordiv(b->ir, x->dims[1], ix_const(b->ir, groups)));
}

void onnx_GroupNormalization(onnx_call *c) {
  int64_t groups = onnx_int_attribute(c, "num_groups", 0);
  set_output(c, build_group_norm(onnx_builder(c), onnx_input(c, 0),
                                 read_channel_parameter(c, 1, groups),
                                 read_channel_parameter(c, 2, groups), groups, read_epsilon(c)));
}

/** Reads the type of statistics, attribute stash_type. */
static dtype read_stash_type(const onnx_call *c) {
  int64_t t = onnx_int_attribute(c, "stash_type", DT_F32);
  if (t != DT_F32 && t != DT_BF16)
    onnx_fail(c, TN_ERR_UNSUPPORTED, "stash_type is %lld, not 1 (f32) or 16 (bf16)", (long long)t);
  return (dtype)t;
}

void onnx_LayerNormalization(onnx_call *c) {
  builder *b = onnx_builder(c);
  value x = onnx_input(c, 0), none = {0};
  dtype stash = read_stash_type(c);
  tn_axes axes = {0};
  size_t axis = onnx_normalise_axis(c, onnx_int_attribute(c, "axis", -1), x.node->rank);
  set_output(c, build_layer_norm(b, x, onnx_input(c, 1),
                                 onnx_has_input(c, 2) ? onnx_input(c, 2) : none, (int64_t)axis,
                                 read_epsilon(c)));
  if (x.node->rank > TN_MAX_RANK)
    onnx_fail(c, TN_ERR_UNSUPPORTED, "the input has %u dimensions; at most %d are supported",
              x.node->rank, TN_MAX_RANK);
  for (size_t i = axis; i < x.node->rank; i++) axes.axis[axes.count++] = (int32_t)i;
  value wide = build_cast(b, x, accumulation_type((dtype)x.node->dtype));
  if (onnx_wants_output(c, 1))
    c->outputs[1] = build_cast(b, build_mean(b, wide, axes, true), stash);
  if (!onnx_wants_output(c, 2)) return;
  value variance = build_var(b, wide, axes, 0, true);
  value inverse = build_rsqrt(b, build_add(b, variance, build_num(b, read_epsilon(c))));
  c->outputs[2] = build_cast(b, inverse, stash);
}

void onnx_RMSNormalization(onnx_call *c) {
  value x = onnx_input(c, 0);
  read_stash_type(c);
  size_t axis = onnx_normalise_axis(c, onnx_int_attribute(c, "axis", -1), x.node->rank);
  set_output(c,
             build_rms_norm(onnx_builder(c), x, onnx_input(c, 1), (int64_t)axis, read_epsilon(c)));
}

/** Σ x² over a window of `size` channels, padded with 0. The channels become the last axis for the
    window, and are moved back. */
static const node *sum_squares_window(builder *b, const node *x, int64_t size) {
  int64_t channels_last[SIZES_MAX_RANK], inverse[SIZES_MAX_RANK] = {0}, one = 1,
                                         before = (size - 1) / 2;
  size_t last = x->rank - 1u;
  for (size_t i = 1; i <= last; i++) {
    channels_last[i - 1] = i == 1 ? 0 : (int64_t)i;
    inverse[i] = i == 1 ? (int64_t)last : (int64_t)i - 1;
  }
  channels_last[last] = 1;
  const node *y = shape_permute(b, ex_binary(b, OP_MUL, x, x), channels_last);
  y = shape_pad(b, y, last, ix_const(b->ir, before), ix_const(b->ir, size - 1 - before),
                ir_const_int(b->ir, (dtype)x->dtype, 0));
  y = node_windows(b, y, 1, &size, &one, &one, &x->dims[1]);
  axis_list reduced = axes_from(last + 1, last + 2);
  return shape_permute(b, node_reduce(b, OP_ADD, y, &reduced, false), inverse);
}

/** x / baseᵝ; for β = 3/4, the default, by square roots, which are far faster than powers. */
static value divide_by_power(builder *b, value x, value base, double beta) {
  value root = build_sqrt(b, base);
  if (beta != 0.75) return build_mul(b, x, build_pow(b, base, build_num(b, -beta)));
  return build_div(b, x, build_mul(b, root, build_sqrt(b, root)));
}

/** LRN: each element divided by a power of the mean square of the channels around it. */
void onnx_LRN(onnx_call *c) {
  builder *b = onnx_builder(c);
  value x = onnx_input(c, 0);
  int64_t size = onnx_int_attribute(c, "size", 0);
  double alpha = (double)onnx_float_attribute(c, "alpha", 1e-4f),
         beta = (double)onnx_float_attribute(c, "beta", 0.75f);
  if (x.node->rank < 2)
    onnx_fail(c, TN_ERR_SHAPE, "the input has %u dimensions, expected at least 2", x.node->rank);
  if (size < 1 || size > INT32_MAX)
    onnx_fail(c, TN_ERR_FORMAT, "size is %lld, not in 1 … %d", (long long)size, INT32_MAX);
  b->needed = ix_add_const(b->ir, x.node->dims[1], -1);
  if (b->needed->lo < 0)
    onnx_fail_varying_size(c, x.node->dims[1], "the number of channels may be 0");
  value wide = build_cast(b, x, accumulation_type((dtype)x.node->dtype));
  value sum = value_of(sum_squares_window(b, wide.node, size));
  value base = build_add(b, build_mul(b, sum, build_num(b, alpha / (double)size)),
                         build_num(b, (double)onnx_float_attribute(c, "bias", 1)));
  set_output(c, divide_by_power(b, wide, base, beta));
}

/* Softmax, LogSoftmax, Hardmax. */

typedef value (*axis_builder)(builder *b, value x, int64_t axis);

/** Applies a function along an axis; before version 13 along it and all later axes, flattened. */
static void build_along_axis(onnx_call *c, axis_builder build) {
  builder *b = onnx_builder(c);
  value x = onnx_input(c, 0);
  sizes s = sizes_of(x.node);
  bool flattens = c->version < 13;
  int64_t axis =
      (int64_t)onnx_normalise_axis(c, onnx_int_attribute(c, "axis", flattens ? 1 : -1), s.rank);
  if (!flattens) {
    c->outputs[0] = build(b, x, axis);
    return;
  }
  value flat = build_flatten(b, x, axis, -1);
  c->outputs[0] = build_reshape(b, build(b, flat, axis), &s);
}

/** 1 at the first maximum along an axis, else 0. */
static value build_hardmax(builder *b, value x, int64_t axis) {
  sizes s = sizes_of(x.node);
  value first = build_argmax(b, x, axis, true);
  value position = value_of(ex_iota(b, (dtype)first.node->dtype, &s, (size_t)axis));
  return build_cast(b, build_eq(b, position, first), (dtype)x.node->dtype);
}

void onnx_Softmax(onnx_call *c) { build_along_axis(c, build_softmax); }
void onnx_LogSoftmax(onnx_call *c) { build_along_axis(c, build_log_softmax); }
void onnx_Hardmax(onnx_call *c) { build_along_axis(c, build_hardmax); }
