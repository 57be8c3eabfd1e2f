/* Attributes of sliding windows (Conv and pooling): kernel_shape, strides, dilations, pads,
   auto_pad; checked, with SAME padding computed. */
#include "formats/onnx/ops/window_attributes.h"

#include "formats/onnx/ops/onnx_builders.h"
#include "tensor/ops/operators.h"

#include <string.h>

void window_attributes_list(const onnx_call *c, const char *name, size_t n, int64_t *list) {
  const onnx_ints *l = onnx_ints_attribute(c, name);
  if (l && l->n != n)
    onnx_fail(c, TN_ERR_FORMAT, "attribute '%s' has %zu elements, expected %zu", name, l->n, n);
  for (size_t i = 0; l && i < n; i++) list[i] = l->at[i];
}

/** Reads a list of sizes, each in 1 … INT32_MAX. */
static void read_positive_list(const onnx_call *c, const char *name, size_t n, int64_t *list) {
  window_attributes_list(c, name, n, list);
  for (size_t i = 0; i < n; i++)
    if (list[i] < 1 || list[i] > INT32_MAX)
      onnx_fail(c, TN_ERR_FORMAT, "%s[%zu] is %lld, not in 1 … %d", name, i, (long long)list[i],
                INT32_MAX);
}

/** Reads the kernel's sizes from the weights, which the attribute must equal. */
static void read_kernel_of_weights(onnx_call *c, const node *weights, windows *w) {
  for (size_t i = 0; i < w->n; i++) {
    const node *size = weights->dims[2 + i];
    if (!node_is_const(size))
      onnx_fail_varying_size(c, size,
                             "the weights must have a constant size along spatial axis %zu", i);
    w->kernel[i] = node_int(size);
    if (w->kernel[i] < 1 || w->kernel[i] > INT32_MAX)
      onnx_fail(c, TN_ERR_SHAPE, "the weights have size %lld along spatial axis %zu, not in 1 … %d",
                (long long)w->kernel[i], i, INT32_MAX);
  }
  int64_t declared[WINDOW_AXES];
  memcpy(declared, w->kernel, sizeof declared);
  window_attributes_list(c, "kernel_shape", w->n, declared);
  for (size_t i = 0; i < w->n; i++)
    if (declared[i] != w->kernel[i])
      onnx_fail(c, TN_ERR_SHAPE, "kernel_shape[%zu] is %lld, but the weights have size %lld", i,
                (long long)declared[i], (long long)w->kernel[i]);
}

windows window_attributes_read(onnx_call *c, const node *x, const node *weights) {
  windows w = {.n = x->rank < 3 ? 0 : x->rank - 2u};
  if (w.n < 1 || w.n > WINDOW_AXES)
    onnx_fail(c, x->rank < 3 ? TN_ERR_SHAPE : TN_ERR_UNSUPPORTED,
              "the input has %u dimensions; 3 to 5 are supported", x->rank);
  if (weights && weights->rank != x->rank)
    onnx_fail(c, TN_ERR_SHAPE, "the input has %u dimensions, but the weights have %u", x->rank,
              weights->rank);
  for (size_t i = 0; i < WINDOW_AXES; i++) w.kernel[i] = w.stride[i] = w.dilation[i] = 1;
  if (weights)
    read_kernel_of_weights(c, weights, &w);
  else if (onnx_ints_attribute(c, "kernel_shape"))
    read_positive_list(c, "kernel_shape", w.n, w.kernel);
  else
    onnx_fail(c, TN_ERR_FORMAT, "required attribute 'kernel_shape' is missing");
  read_positive_list(c, "strides", w.n, w.stride);
  read_positive_list(c, "dilations", w.n, w.dilation);
  return w;
}

auto_pad_mode window_auto_pad(const onnx_call *c) {
  static const char *const modes[] = {[AUTO_PAD_NOTSET] = "NOTSET",
                                      [AUTO_PAD_VALID] = "VALID",
                                      [AUTO_PAD_SAME_UPPER] = "SAME_UPPER",
                                      [AUTO_PAD_SAME_LOWER] = "SAME_LOWER"};
  const char *mode = onnx_string_attribute(c, "auto_pad", "NOTSET");
  for (size_t i = 0; i < sizeof modes / sizeof *modes; i++)
    if (!strcmp(mode, modes[i])) return (auto_pad_mode)i;
  onnx_fail(c, TN_ERR_FORMAT, "auto_pad is '%.50s', not NOTSET, VALID, SAME_UPPER or SAME_LOWER",
            mode);
}

void window_split_pads(windows *w, size_t i, int64_t total, bool more_before) {
  w->low[i] = more_before ? total - total / 2 : total / 2;
  w->high[i] = total - w->low[i];
}

/** The total padding for ⌈size / stride⌉ windows (SAME). Kernel, stride and dilation are at most
    INT32_MAX, so nothing overflows. */
static int64_t same_pads(onnx_call *c, const windows *w, const node *size, size_t i) {
  int64_t reach = (w->kernel[i] - 1) * w->dilation[i], stride = w->stride[i];
  if (stride == 1) return reach;
  if (!node_is_const(size))
    onnx_fail_varying_size(
        c, size, "auto_pad is not supported with strides along spatial axis %zu, whose size varies",
        i);
  int64_t n = node_int(size), windows = n ? (n - 1) / stride + 1 : 0;
  int64_t total = (windows - 1) * stride - n + reach + 1;
  return total > 0 ? total : 0;
}

void window_attributes_pad(onnx_call *c, windows *w, const node *x) {
  int64_t pad[2 * WINDOW_AXES] = {0};
  auto_pad_mode mode = window_auto_pad(c);
  if (mode == AUTO_PAD_VALID) return;
  if (mode == AUTO_PAD_NOTSET) window_attributes_list(c, "pads", 2 * w->n, pad);
  for (size_t i = 0; i < w->n; i++) {
    w->low[i] = pad[i];
    w->high[i] = pad[w->n + i];
    if (mode != AUTO_PAD_NOTSET)
      window_split_pads(w, i, same_pads(c, w, x->dims[2 + i], i), mode == AUTO_PAD_SAME_LOWER);
  }
}

tn_conv_desc window_conv_desc(const onnx_call *c, const windows *w) {
  tn_conv_desc d = TN_CONV_DESC_INIT;
  memcpy(d.stride, w->stride, sizeof d.stride);
  memcpy(d.dilation, w->dilation, sizeof d.dilation);
  memcpy(d.pad_low, w->low, sizeof d.pad_low);
  memcpy(d.pad_high, w->high, sizeof d.pad_high);
  d.groups = onnx_int_attribute(c, "group", 1);
  return d;
}

void window_check_channels(onnx_call *c, const node *x, const node *channels) {
  builder *b = onnx_builder(c);
  if (channels != x->dims[1])
    onnx_fail(c, TN_ERR_SHAPE, "the input has %s channels, but the weights expect %s",
              size_text(b, x->dims[1]), size_text(b, channels));
}
