/* ONNX Conv, CausalConvWithState and ConvTranspose by the convolution builders of tensor/ops. */
#include "formats/onnx/ops/onnx_builders.h"
#include "formats/onnx/ops/window_attributes.h"
#include "ir/index/index_arithmetic.h"
#include "tensor/ops/operators.h"

#include <string.h>

/** The bias; no node: absent. */
static value read_bias(const onnx_call *c) {
  return onnx_has_input(c, 2) ? onnx_input(c, 2) : (value){0};
}

static value convolve(onnx_call *c, value x, value w, value bias) {
  builder *b = onnx_builder(c);
  windows win = window_attributes_read(c, x.node, w.node);
  window_attributes_pad(c, &win, x.node);
  tn_conv_desc d = window_conv_desc(c, &win);
  if (d.groups >= 1) window_check_channels(c, x.node, ix_scale(b->ir, w.node->dims[1], d.groups));
  return build_conv(b, x, w, bias, &d);
}

void onnx_Conv(onnx_call *c) {
  onnx_require_same_types(c);
  c->outputs[0] = convolve(c, onnx_input(c, 0), onnx_input(c, 1), read_bias(c));
}

/** The entries before the input: the state, or zeros. */
static value read_past(onnx_call *c, const node *size) {
  builder *b = onnx_builder(c);
  if (onnx_has_input(c, 3)) return onnx_input(c, 3);
  sizes s = sizes_of(onnx_input(c, 0).node);
  s.at[2] = size;
  return build_full(b, &s, (dtype)onnx_input(c, 0).node->dtype, 0);
}

/** Convolves each channel with its own kernel over the entries up to each. */
void onnx_CausalConvWithState(onnx_call *c) {
  builder *b = onnx_builder(c);
  onnx_require_same_types(c);
  value x = onnx_input(c, 0), w = onnx_input(c, 1);
  const char *activation = onnx_string_attribute(c, "activation", "none");
  bool is_swish = !strcmp(activation, "silu") || !strcmp(activation, "swish");
  if (!is_swish && strcmp(activation, "none"))
    onnx_fail(c, TN_ERR_FORMAT, "activation is '%.50s', not none, silu or swish", activation);
  if (x.node->rank != 3 || w.node->rank != 3 || !node_is_bits(w.node->dims[1], 1) ||
      w.node->dims[0] != x.node->dims[1] || !node_is_const(x.node->dims[1]))
    onnx_fail(c, TN_ERR_SHAPE,
              "the input is not (batch, channels, length), or there is not one "
              "kernel for each of a known number of channels");
  const node *before = ix_add_const(b->ir, w.node->dims[2], -1);
  if (before->lo < 0) onnx_fail(c, TN_ERR_SHAPE, "the kernel is empty");
  value past = read_past(c, before);
  if (past.node->rank != 3 || past.node->dims[2] != before)
    onnx_fail(c, TN_ERR_SHAPE, "the state does not have the kernel's size less 1 entries");
  value padded = build_concat(b, (value[]){past, x}, 2, 2);
  tn_conv_desc d = TN_CONV_DESC_INIT;
  d.groups = node_int(x.node->dims[1]);
  value y = build_conv(b, padded, w, read_bias(c), &d);
  if (is_swish) y = build_mul(b, y, build_sigmoid(b, y));
  c->outputs[0] = y;
  c->outputs[1] = build_slice(b, padded, 2, x.node->dims[2], NULL, 1);
}

/** Sets the cropping (pads) that gives each axis its output size: that of output_shape or (NULL,
   for auto_pad) the input size times the stride. An output size beyond the full convolution pads
   the output, by `more` elements beyond the greatest output_pad of a convolution. */
static void compute_cropping(onnx_call *c, windows *w, const node *x, const int64_t output_size[],
                             int64_t output_pad[], int64_t more[]) {
  auto_pad_mode mode = window_auto_pad(c);
  for (size_t i = 0; i < w->n; i++) {
    int64_t total = (w->kernel[i] - 1) * w->dilation[i] + 1 + output_pad[i] - w->stride[i];
    if (output_size) {
      const node *size = x->dims[2 + i];
      if (!node_is_const(size))
        onnx_fail_varying_size(
            c, size, "output_shape is not supported for spatial axis %zu, whose size varies", i);
      if (output_size[i] < 1 || output_size[i] > INT32_MAX)
        onnx_fail(c, TN_ERR_FORMAT, "output_shape[%zu] is %lld, not in 1 … %d", i,
                  (long long)output_size[i], INT32_MAX);
      total += node_int(ix_scale(onnx_builder(c)->ir, size, w->stride[i])) - output_size[i];
    }
    int64_t most = (w->stride[i] > w->dilation[i] ? w->stride[i] : w->dilation[i]) - 1;
    if (total < 0) output_pad[i] -= total;
    if (total < 0 && output_pad[i] > most) {
      more[i] = output_pad[i] - most;
      output_pad[i] = most;
    }
    window_split_pads(w, i, total < 0 ? 0 : total, mode != AUTO_PAD_SAME_UPPER);
  }
}

/** The result of a transposed convolution with `more` elements behind each spatial axis, which no
    input reaches: they are the bias. */
static value extend_result(builder *b, value y, value bias, const int64_t more[], size_t n) {
  for (size_t i = 0; i < n; i++) {
    if (!more[i]) continue;
    sizes s = sizes_of(y.node), channels = {.rank = n + 1};
    value rest = bias.node ? bias : build_num(b, 0);
    for (size_t k = 0; k <= n; k++) channels.at[k] = k ? ix_const(b->ir, 1) : s.at[1];
    if (bias.node) rest = build_reshape(b, rest, &channels);
    s.at[2 + i] = ix_const(b->ir, more[i]);
    rest = build_expand(b, build_cast(b, rest, (dtype)y.node->dtype), &s);
    y = build_concat(b, (value[]){y, rest}, 2, 2 + (int64_t)i);
  }
  return y;
}

void onnx_ConvTranspose(onnx_call *c) {
  builder *b = onnx_builder(c);
  onnx_require_same_types(c);
  value x = onnx_input(c, 0), w = onnx_input(c, 1);
  windows win = window_attributes_read(c, x.node, w.node);
  int64_t output_pad[WINDOW_AXES] = {0}, output_size[WINDOW_AXES], more[WINDOW_AXES] = {0};
  window_attributes_list(c, "output_padding", win.n, output_pad);
  for (size_t i = 0; i < win.n; i++)
    if (output_pad[i] < 0 || output_pad[i] > INT32_MAX)
      onnx_fail(c, TN_ERR_FORMAT, "output_padding[%zu] is %lld, not in 0 … %d", i,
                (long long)output_pad[i], INT32_MAX);
  const onnx_ints *shape = onnx_ints_attribute(c, "output_shape");
  auto_pad_mode mode = window_auto_pad(c);
  if (shape && shape->n == win.n) window_attributes_list(c, "output_shape", win.n, output_size);
  if (shape && shape->n == win.n + 2)
    memcpy(output_size, shape->at + 2, win.n * sizeof *output_size);
  if (shape && shape->n != win.n && shape->n != win.n + 2)
    onnx_fail(c, TN_ERR_FORMAT, "attribute 'output_shape' has %zu elements, expected %zu", shape->n,
              win.n);
  if (shape || mode == AUTO_PAD_SAME_UPPER || mode == AUTO_PAD_SAME_LOWER)
    compute_cropping(c, &win, x.node, shape ? output_size : NULL, output_pad, more);
  else
    window_attributes_pad(c, &win, x.node);
  tn_conv_desc d = window_conv_desc(c, &win);
  memcpy(d.output_pad, output_pad, sizeof output_pad);
  window_check_channels(c, x.node, w.node->dims[0]);
  value bias = read_bias(c), y = build_conv_transpose(b, x, w, bias, &d);
  c->outputs[0] = extend_result(b, y, bias, more, win.n);
}
