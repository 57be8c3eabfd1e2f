/* ONNX Conv and ConvTranspose by the convolution builders of tensor/ops. */
#include "formats/onnx/ops/onnx_builders.h"
#include "formats/onnx/ops/window_attributes.h"
#include "ir/index/index_arithmetic.h"
#include "tensor/ops/op_helpers.h"

#include <string.h>

static void check_channels(onnx_call *c, const node *x, const node *taken) {
  builder *b = onnx_builder(c);
  if (taken != x->dims[1])
    onnx_fail(c, TN_ERR_SHAPE, "the input has %s channels, where the weights take %s",
              size_text(b, x->dims[1]), size_text(b, taken));
}

static tn_conv_desc desc_of(const windows *w, int64_t groups) {
  tn_conv_desc d = TN_CONV_DESC_INIT;
  memcpy(d.stride, w->stride, sizeof d.stride);
  memcpy(d.dilation, w->dilation, sizeof d.dilation);
  memcpy(d.pad_low, w->low, sizeof d.pad_low);
  memcpy(d.pad_high, w->high, sizeof d.pad_high);
  d.groups = groups;
  return d;
}

static value read_bias(const onnx_call *c) {
  return onnx_has_input(c, 2) ? onnx_input(c, 2) : (value){0};
}

void onnx_Conv(onnx_call *c) {
  builder *b = onnx_builder(c);
  onnx_require_same_types(c);
  value x = onnx_input(c, 0), w = onnx_input(c, 1);
  windows at = window_attributes_read(c, x.node, w.node);
  window_attributes_pad(c, &at, x.node);
  tn_conv_desc d = desc_of(&at, onnx_int_attribute(c, "group", 1));
  if (d.groups >= 1) check_channels(c, x.node, ix_scale(b->ir, w.node->dims[1], d.groups));
  c->outputs[0] = build_conv(b, x, w, read_bias(c), &d);
}

/** Sets the cropping (pads) with which axis i has the requested size: output_shape's or, for
   auto_pad, strides as many as x has elements. A result that is larger than all windows make it is
   padded.
 */
static void compute_cropping(onnx_call *c, windows *w, const node *x, const int64_t wanted[],
                             int64_t output_pad[]) {
  auto_pad_mode by = window_auto_pad(c);
  for (size_t i = 0; i < w->n; i++) {
    int64_t all = (w->kernel[i] - 1) * w->dilation[i] + 1 + output_pad[i] - w->stride[i];
    if (wanted) {
      const node *size = x->dims[2 + i];
      if (!node_is_const(size))
        onnx_fail_varying_size(
            c, size, "output_shape is not supported for spatial axis %zu, whose size varies", i);
      if (wanted[i] < 1 || wanted[i] > INT32_MAX)
        onnx_fail(c, TN_ERR_FORMAT, "output_shape[%zu] is %lld, not in 1 … %d", i,
                  (long long)wanted[i], INT32_MAX);
      all += node_int(ix_scale(onnx_builder(c)->ir, size, w->stride[i])) - wanted[i];
    }
    if (all < 0) output_pad[i] -= all;
    window_split_pads(w, i, all < 0 ? 0 : all, by != AUTO_PAD_SAME_UPPER);
  }
}

void onnx_ConvTranspose(onnx_call *c) {
  builder *b = onnx_builder(c);
  onnx_require_same_types(c);
  value x = onnx_input(c, 0), w = onnx_input(c, 1);
  windows at = window_attributes_read(c, x.node, w.node);
  int64_t output_pad[WINDOW_AXES] = {0}, wanted[WINDOW_AXES];
  window_attributes_list(c, "output_padding", at.n, output_pad);
  for (size_t i = 0; i < at.n; i++)
    if (output_pad[i] < 0 || output_pad[i] > INT32_MAX)
      onnx_fail(c, TN_ERR_FORMAT, "output_padding[%zu] is %lld, not in 0 … %d", i,
                (long long)output_pad[i], INT32_MAX);
  const onnx_ints *shape = onnx_ints_attribute(c, "output_shape");
  auto_pad_mode by = window_auto_pad(c);
  if (shape && shape->n == at.n) window_attributes_list(c, "output_shape", at.n, wanted);
  if (shape && shape->n == at.n + 2) memcpy(wanted, shape->at + 2, at.n * sizeof *wanted);
  if (shape && shape->n != at.n && shape->n != at.n + 2)
    onnx_fail(c, TN_ERR_FORMAT, "output_shape has %zu numbers, where %zu belong", shape->n, at.n);
  if (shape || by == AUTO_PAD_SAME_UPPER || by == AUTO_PAD_SAME_LOWER)
    compute_cropping(c, &at, x.node, shape ? wanted : NULL, output_pad);
  else
    window_attributes_pad(c, &at, x.node);
  tn_conv_desc d = desc_of(&at, onnx_int_attribute(c, "group", 1));
  memcpy(d.output_pad, output_pad, sizeof output_pad);
  check_channels(c, x.node, w.node->dims[0]);
  c->outputs[0] = build_conv_transpose(b, x, w, read_bias(c), &d);
}
