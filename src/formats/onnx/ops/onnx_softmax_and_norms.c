/* ONNX normalisations (Batch, Instance, Group, Layer, RMS, LRN) and Softmax, LogSoftmax, Hardmax,
   by the builders of tensor/ops. */
#include "formats/onnx/ops/onnx_builders.h"
#include "ir/index/index_arithmetic.h"
#include "tensor/ops/op_helpers.h"

static double epsilon(const onnx_call *c) {
  return (double)onnx_float_attribute(c, "epsilon", 1e-5f);
}

/** Sets the output, cast to the type of x: statistics may be of a wider type. */
static void set_output(onnx_call *c, value y) {
  c->outputs[0] = build_cast(onnx_builder(c), y, (dtype)onnx_input(c, 0).node->dtype);
}

/** Batch normalisation before version 9 with spatial = 0: a mean and a variance for each element of
    (C, …). */
static value normalise_elements(onnx_call *c) {
  builder *b = onnx_builder(c);
  value x = onnx_input(c, 0);
  value inverse = build_rsqrt(b, build_add(b, onnx_input(c, 4), build_num(b, epsilon(c))));
  value y =
      build_mul(b, build_sub(b, x, onnx_input(c, 3)), build_mul(b, inverse, onnx_input(c, 1)));
  return build_add(b, y, onnx_input(c, 2));
}

/** Fails for training mode, which before version 14 shows in further outputs. */
void onnx_BatchNormalization(onnx_call *c) {
  if (onnx_int_attribute(c, "training_mode", 0))
    onnx_fail(
        c, TN_ERR_UNSUPPORTED,
        "training_mode is set, and only inference is supported: export the model for inference");
  if (c->version < 9 && !onnx_int_attribute(c, "spatial", 1)) {
    set_output(c, normalise_elements(c));
    return;
  }
  set_output(c, build_batch_norm(onnx_builder(c), onnx_input(c, 0), onnx_input(c, 3),
                                 onnx_input(c, 4), onnx_input(c, 1), onnx_input(c, 2), epsilon(c)));
}

void onnx_InstanceNormalization(onnx_call *c) {
  set_output(c, build_instance_norm(onnx_builder(c), onnx_input(c, 0), onnx_input(c, 1),
                                    onnx_input(c, 2), epsilon(c)));
}

/** Version 18 has a scale and a bias for each group, later ones for each channel. */
static value by_group(onnx_call *c, size_t input, int64_t groups) {
  builder *b = onnx_builder(c);
  value w = onnx_input(c, input);
  const node *x = onnx_input(c, 0).node;
  if (c->version >= 21 || x->rank < 2 || groups < 1) return w;
  return build_repeat(b, w, 0, ix_floordiv(b->ir, x->dims[1], ix_const(b->ir, groups)));
}

void onnx_GroupNormalization(onnx_call *c) {
  int64_t groups = onnx_int_attribute(c, "num_groups", 0);
  set_output(c, build_group_norm(onnx_builder(c), onnx_input(c, 0), by_group(c, 1, groups),
                                 by_group(c, 2, groups), groups, epsilon(c)));
}

/** The type of sums, from attribute stash_type. */
static dtype stash_type(const onnx_call *c) {
  int64_t t = onnx_int_attribute(c, "stash_type", DT_F32);
  if (t != DT_F32 && t != DT_BF16)
    onnx_fail(c, TN_ERR_UNSUPPORTED, "stash_type is %lld, neither f32 nor bf16", (long long)t);
  return (dtype)t;
}

void onnx_LayerNormalization(onnx_call *c) {
  builder *b = onnx_builder(c);
  value x = onnx_input(c, 0), none = {0};
  dtype stash = stash_type(c);
  tn_axes axes = {0};
  size_t axis = onnx_normalise_axis(c, onnx_int_attribute(c, "axis", -1), x.node->rank);
  set_output(c, build_layer_norm(b, x, onnx_input(c, 1),
                                 onnx_has_input(c, 2) ? onnx_input(c, 2) : none, (int64_t)axis,
                                 epsilon(c)));
  if (x.node->rank > TN_MAX_RANK)
    onnx_fail(c, TN_ERR_UNSUPPORTED, "the input has %u dimensions; at most %d are supported",
              x.node->rank, TN_MAX_RANK);
  for (size_t i = axis; i < x.node->rank; i++) axes.axis[axes.count++] = (int32_t)i;
  value wide = build_cast(b, x, accumulation_type((dtype)x.node->dtype));
  if (onnx_wants_output(c, 1))
    c->outputs[1] = build_cast(b, build_mean(b, wide, axes, true), stash);
  if (!onnx_wants_output(c, 2)) return;
  value variance = build_var(b, wide, axes, 0, true);
  value inverse = build_rsqrt(b, build_add(b, variance, build_num(b, epsilon(c))));
  c->outputs[2] = build_cast(b, inverse, stash);
}

void onnx_RMSNormalization(onnx_call *c) {
  value x = onnx_input(c, 0);
  stash_type(c);
  size_t axis = onnx_normalise_axis(c, onnx_int_attribute(c, "axis", -1), x.node->rank);
  set_output(c, build_rms_norm(onnx_builder(c), x, onnx_input(c, 1), (int64_t)axis, epsilon(c)));
}

/** Σ x² over a window of `size` channels, padded with 0. */
static const node *sum_squares_window(builder *b, const node *x, int64_t size) {
  int64_t there[SIZES_MAX_RANK], back[SIZES_MAX_RANK] = {0}, one = 1, before = (size - 1) / 2;
  size_t last = x->rank - 1u;
  for (size_t i = 1; i <= last; i++) {
    there[i - 1] = i == 1 ? 0 : (int64_t)i;
    back[i] = i == 1 ? (int64_t)last : (int64_t)i - 1;
  }
  there[last] = 1;
  const node *y = shape_permute(b, ex_binary(b, OP_MUL, x, x), there);
  y = shape_pad(b, y, last, ix_const(b->ir, before), ix_const(b->ir, size - 1 - before),
                ir_const_int(b->ir, (dtype)x->dtype, 0));
  y = node_windows(b, y, 1, &size, &one, &one, &x->dims[1]);
  axis_list over = axes_from(last + 1, last + 2);
  return shape_permute(b, ex_reduce(b, OP_ADD, y, &over, false), back);
}

/** x / baseᵝ; for the usual β = 3/4 by square roots, because powers cost far more. */
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
    onnx_fail(c, TN_ERR_SHAPE, "the input has %u dimensions, where 2 or more belong", x.node->rank);
  if (size < 1 || size > INT32_MAX)
    onnx_fail(c, TN_ERR_FORMAT, "size is %lld, not in 1 … %d", (long long)size, INT32_MAX);
  b->needed = ix_add_const(b->ir, x.node->dims[1], -1);
  if (b->needed->lo < 0)
    onnx_fail_varying_size(c, x.node->dims[1], "the number of channels can be 0");
  value wide = build_cast(b, x, accumulation_type((dtype)x.node->dtype));
  value sum = value_of(sum_squares_window(b, wide.node, size));
  value base = build_add(b, build_mul(b, sum, build_num(b, alpha / (double)size)),
                         build_num(b, (double)onnx_float_attribute(c, "bias", 1)));
  set_output(c, divide_by_power(b, wide, base, beta));
}

/* Softmax and similar: along one axis; before version 13 along that and all later axes flattened.
 */

typedef value (*along)(builder *b, value x, int64_t axis);

static void build_softmax_like(onnx_call *c, along build) {
  builder *b = onnx_builder(c);
  value x = onnx_input(c, 0);
  sizes s = sizes_of(x.node);
  bool merges = c->version < 13;
  int64_t axis =
      (int64_t)onnx_normalise_axis(c, onnx_int_attribute(c, "axis", merges ? 1 : -1), s.rank);
  if (!merges) {
    c->outputs[0] = build(b, x, axis);
    return;
  }
  value merged = build_flatten(b, x, axis, -1);
  c->outputs[0] = build_reshape(b, build(b, merged, axis), &s);
}

/** 1 at the first maximum, else 0. */
static value hardmax(builder *b, value x, int64_t axis) {
  sizes s = sizes_of(x.node);
  value first = build_argmax(b, x, axis, true);
  value at = value_of(ex_iota(b, (dtype)first.node->dtype, &s, (size_t)axis));
  return build_cast(b, build_eq(b, at, first), (dtype)x.node->dtype);
}

void onnx_Softmax(onnx_call *c) { build_softmax_like(c, build_softmax); }
void onnx_LogSoftmax(onnx_call *c) { build_softmax_like(c, build_log_softmax); }
void onnx_Hardmax(onnx_call *c) { build_softmax_like(c, hardmax); }
