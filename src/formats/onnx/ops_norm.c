/* Normalisation. */
#include "formats/onnx/ops.h"
#include "tensor/ops_common.h"

static double epsilon(const onnx_call *c) { return (double)onnx_float(c, "epsilon", 1e-5f); }

/** Statistics may be of a wider type than x; what is made of x is of x's. */
static void give(onnx_call *c, value y) {
  c->outputs[0] = build_cast(onnx_builder(c), y, (dtype)onnx_input(c, 0).node->dtype);
}

/** Before version 9, a mean and a variance for each element of (C, …), where spatial is 0. */
static value by_element(onnx_call *c) {
  builder *b = onnx_builder(c);
  value x = onnx_input(c, 0);
  value inverse = build_rsqrt(b, build_add(b, onnx_input(c, 4), build_num(b, epsilon(c))));
  value y =
      build_mul(b, build_sub(b, x, onnx_input(c, 3)), build_mul(b, inverse, onnx_input(c, 1)));
  return build_add(b, y, onnx_input(c, 2));
}

/** Of training, which more outputs tell before version 14, there is nothing. */
void onnx_BatchNormalization(onnx_call *c) {
  if (onnx_int(c, "training_mode", 0))
    onnx_fail(
        c, TN_ERR_UNSUPPORTED,
        "training_mode is set, and only inference is supported: export the model for inference");
  if (c->version < 9 && !onnx_int(c, "spatial", 1)) {
    give(c, by_element(c));
    return;
  }
  give(c, build_batch_norm(onnx_builder(c), onnx_input(c, 0), onnx_input(c, 3), onnx_input(c, 4),
                           onnx_input(c, 1), onnx_input(c, 2), epsilon(c)));
}

void onnx_InstanceNormalization(onnx_call *c) {
  give(c, build_instance_norm(onnx_builder(c), onnx_input(c, 0), onnx_input(c, 1), onnx_input(c, 2),
                              epsilon(c)));
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
  int64_t groups = onnx_int(c, "num_groups", 0);
  give(c, build_group_norm(onnx_builder(c), onnx_input(c, 0), by_group(c, 1, groups),
                           by_group(c, 2, groups), groups, epsilon(c)));
}

/** The type of what is summed up. */
static dtype stash_type(const onnx_call *c) {
  int64_t t = onnx_int(c, "stash_type", DT_F32);
  if (t != DT_F32 && t != DT_BF16)
    onnx_fail(c, TN_ERR_UNSUPPORTED, "stash_type is %lld, neither f32 nor bf16", (long long)t);
  return (dtype)t;
}

void onnx_LayerNormalization(onnx_call *c) {
  builder *b = onnx_builder(c);
  value x = onnx_input(c, 0), none = {0};
  dtype stash = stash_type(c);
  tn_axes axes = {0};
  size_t axis = onnx_axis(c, onnx_int(c, "axis", -1), x.node->rank);
  give(c, build_layer_norm(b, x, onnx_input(c, 1), onnx_has(c, 2) ? onnx_input(c, 2) : none,
                           (int64_t)axis, epsilon(c)));
  if (x.node->rank > TN_MAX_RANK)
    onnx_fail(c, TN_ERR_UNSUPPORTED, "the input has %u dimensions; at most %d are supported",
              x.node->rank, TN_MAX_RANK);
  for (size_t i = axis; i < x.node->rank; i++) axes.axis[axes.count++] = (int32_t)i;
  value wide = build_cast(b, x, type_wide((dtype)x.node->dtype));
  if (onnx_wants(c, 1)) c->outputs[1] = build_cast(b, build_mean(b, wide, axes, true), stash);
  if (!onnx_wants(c, 2)) return;
  value variance = build_var(b, wide, axes, 0, true);
  value inverse = build_rsqrt(b, build_add(b, variance, build_num(b, epsilon(c))));
  c->outputs[2] = build_cast(b, inverse, stash);
}

void onnx_RMSNormalization(onnx_call *c) {
  value x = onnx_input(c, 0);
  stash_type(c);
  size_t axis = onnx_axis(c, onnx_int(c, "axis", -1), x.node->rank);
  give(c, build_rms_norm(onnx_builder(c), x, onnx_input(c, 1), (int64_t)axis, epsilon(c)));
}

/** Σ x² of `size` channels around each; those that are not there are 0. */
static const node *squares_around(builder *b, const node *x, int64_t size) {
  int64_t there[SIZES_RANK], back[SIZES_RANK] = {0}, one = 1, before = (size - 1) / 2;
  size_t last = x->rank - 1u;
  for (size_t i = 1; i <= last; i++) {
    there[i - 1] = i == 1 ? 0 : (int64_t)i;
    back[i] = i == 1 ? (int64_t)last : (int64_t)i - 1;
  }
  there[last] = 1;
  const node *y = shape_permute(b, ex2(b, OP_MUL, x, x), there);
  y = shape_pad(b, y, last, ix_const(b->ir, before), ix_const(b->ir, size - 1 - before),
                ir_const_int(b->ir, (dtype)x->dtype, 0));
  y = node_windows(b, y, 1, &size, &one, &one, &x->dims[1]);
  axis_list over = axes_from(last + 1, last + 2);
  return shape_permute(b, ex_reduce(b, OP_ADD, y, &over, false), back);
}

/** x / baseᵝ; of the usual β, 3/4, by roots: powers are far dearer. */
static value over_power(builder *b, value x, value base, double beta) {
  value root = build_sqrt(b, base);
  if (beta != 0.75) return build_mul(b, x, build_pow(b, base, build_num(b, -beta)));
  return build_div(b, x, build_mul(b, root, build_sqrt(b, root)));
}

/** Each element over a power of the mean square of the channels around it. */
void onnx_LRN(onnx_call *c) {
  builder *b = onnx_builder(c);
  value x = onnx_input(c, 0);
  int64_t size = onnx_int(c, "size", 0);
  double alpha = (double)onnx_float(c, "alpha", 1e-4f), beta = (double)onnx_float(c, "beta", 0.75f);
  if (x.node->rank < 2)
    onnx_fail(c, TN_ERR_SHAPE, "the input has %u dimensions, where 2 or more belong", x.node->rank);
  if (size < 1 || size > INT32_MAX)
    onnx_fail(c, TN_ERR_FORMAT, "size is %lld, not in 1 … %d", (long long)size, INT32_MAX);
  b->needed = ix_add_const(b->ir, x.node->dims[1], -1);
  if (b->needed->lo < 0) onnx_fail_size(c, x.node->dims[1], "the number of channels can be 0");
  value wide = build_cast(b, x, type_wide((dtype)x.node->dtype));
  value sum = value_of(squares_around(b, wide.node, size));
  value base = build_add(b, build_mul(b, sum, build_num(b, alpha / (double)size)),
                         build_num(b, (double)onnx_float(c, "bias", 1)));
  give(c, over_power(b, wide, base, beta));
}

/* Softmax and its like: along one axis, and before version 13 along it and all after it as one. */

typedef value (*along)(builder *b, value x, int64_t axis);

static void soft(onnx_call *c, along build) {
  builder *b = onnx_builder(c);
  value x = onnx_input(c, 0);
  sizes s = sizes_of(x.node);
  bool merges = c->version < 13;
  int64_t axis = (int64_t)onnx_axis(c, onnx_int(c, "axis", merges ? 1 : -1), s.rank);
  if (!merges) {
    c->outputs[0] = build(b, x, axis);
    return;
  }
  value merged = build_flatten(b, x, axis, -1);
  c->outputs[0] = build_reshape(b, build(b, merged, axis), &s);
}

/** 1 at the first of the largest, else 0. */
static value hardmax(builder *b, value x, int64_t axis) {
  sizes s = sizes_of(x.node);
  value first = build_argmax(b, x, axis, true);
  value at = value_of(ex_iota(b, (dtype)first.node->dtype, &s, (size_t)axis));
  return build_cast(b, build_eq(b, at, first), (dtype)x.node->dtype);
}

void onnx_Softmax(onnx_call *c) { soft(c, build_softmax); }
void onnx_LogSoftmax(onnx_call *c) { soft(c, build_log_softmax); }
void onnx_Hardmax(onnx_call *c) { soft(c, hardmax); }
