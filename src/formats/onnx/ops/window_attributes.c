/* Attributes of sliding windows (Conv and pooling): kernel_shape, strides, dilations, pads,
   auto_pad; checked, with SAME padding computed. */
#include "formats/onnx/ops/window_attributes.h"

#include <string.h>

void window_attributes_list(const onnx_call *c, const char *name, size_t n, int64_t *into) {
  const onnx_ints *l = onnx_ints_attribute(c, name);
  if (l && l->n != n)
    onnx_fail(c, TN_ERR_FORMAT, "attribute %s has %zu numbers, where %zu belong", name, l->n, n);
  for (size_t i = 0; l && i < n; i++) into[i] = l->at[i];
}

/** Reads a list of factors and divisors, each in 1 … INT32_MAX. */
static void read_positive_list(const onnx_call *c, const char *name, size_t n, int64_t *into) {
  window_attributes_list(c, name, n, into);
  for (size_t i = 0; i < n; i++)
    if (into[i] < 1 || into[i] > INT32_MAX)
      onnx_fail(c, TN_ERR_FORMAT, "%s[%zu] is %lld, not in 1 … %d", name, i, (long long)into[i],
                INT32_MAX);
}

/** Reads the kernel's sizes from the weights, which the attribute must equal. */
static void read_kernel(onnx_call *c, const node *w, windows *to) {
  for (size_t i = 0; i < to->n; i++) {
    if (!node_is_const(w->dims[2 + i]))
      onnx_fail_varying_size(
          c, w->dims[2 + i],
          "weights cannot have a size that varies, as they have along spatial axis %zu", i);
    to->kernel[i] = node_int(w->dims[2 + i]);
    if (to->kernel[i] < 1 || to->kernel[i] > INT32_MAX)
      onnx_fail(c, TN_ERR_SHAPE, "the weights have %lld places along spatial axis %zu, not 1 … %d",
                (long long)to->kernel[i], i, INT32_MAX);
  }
  int64_t declared[WINDOW_AXES];
  memcpy(declared, to->kernel, sizeof declared);
  window_attributes_list(c, "kernel_shape", to->n, declared);
  for (size_t i = 0; i < to->n; i++)
    if (declared[i] != to->kernel[i])
      onnx_fail(c, TN_ERR_SHAPE, "kernel_shape says %lld where the weights have %lld",
                (long long)declared[i], (long long)to->kernel[i]);
}

windows window_attributes_read(onnx_call *c, const node *x, const node *weights) {
  windows w = {.n = x->rank < 3 ? 0 : x->rank - 2u};
  if (w.n < 1 || w.n > WINDOW_AXES)
    onnx_fail(c, x->rank < 3 ? TN_ERR_SHAPE : TN_ERR_UNSUPPORTED,
              "the input has %u dimensions; 3 to 5 are supported", x->rank);
  if (weights && weights->rank != x->rank)
    onnx_fail(c, TN_ERR_SHAPE, "the input has %u dimensions, and the weights %u", x->rank,
              weights->rank);
  for (size_t i = 0; i < WINDOW_AXES; i++) w.kernel[i] = w.stride[i] = w.dilation[i] = 1;
  if (weights)
    read_kernel(c, weights, &w);
  else if (onnx_ints_attribute(c, "kernel_shape"))
    read_positive_list(c, "kernel_shape", w.n, w.kernel);
  else
    onnx_fail(c, TN_ERR_FORMAT, "kernel_shape is missing");
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
  onnx_fail(c, TN_ERR_FORMAT, "auto_pad is '%.50s', which is not known", mode);
}

void window_split_pads(windows *w, size_t i, int64_t all, bool more_before) {
  w->low[i] = more_before ? all - all / 2 : all / 2;
  w->high[i] = all - w->low[i];
}

/** Total padding for ⌈size / stride⌉ windows (SAME). Kernel, stride and dilation were checked, so
    nothing overflows. */
static int64_t same_pads(onnx_call *c, const windows *w, const node *size, size_t i) {
  int64_t reach = (w->kernel[i] - 1) * w->dilation[i], stride = w->stride[i];
  if (stride == 1) return reach;
  if (!node_is_const(size))
    onnx_fail_varying_size(
        c, size, "auto_pad is not supported with strides along spatial axis %zu, whose size varies",
        i);
  int64_t n = node_int(size), results = n ? (n - 1) / stride + 1 : 0;
  int64_t all = (results - 1) * stride - n + reach + 1;
  return all > 0 ? all : 0;
}

void window_attributes_pad(onnx_call *c, windows *w, const node *x) {
  int64_t pad[2 * WINDOW_AXES] = {0};
  auto_pad_mode by = window_auto_pad(c);
  if (by == AUTO_PAD_VALID) return;
  if (by == AUTO_PAD_NOTSET) window_attributes_list(c, "pads", 2 * w->n, pad);
  for (size_t i = 0; i < w->n; i++) {
    w->low[i] = pad[i];
    w->high[i] = pad[w->n + i];
    if (by != AUTO_PAD_NOTSET)
      window_split_pads(w, i, same_pads(c, w, x->dims[2 + i], i), by == AUTO_PAD_SAME_LOWER);
  }
}
