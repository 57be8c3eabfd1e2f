#include "formats/onnx/windows.h"

#include <string.h>

void windows_list(const onnx_call *c, const char *name, size_t n, int64_t *into) {
  const onnx_ints *l = onnx_list(c, name);
  if (l && l->n != n)
    onnx_fail(c, TN_ERR_FORMAT, "attribute %s has %zu numbers, where %zu belong", name, l->n, n);
  for (size_t i = 0; l && i < n; i++) into[i] = l->at[i];
}

/** The same for what is multiplied and divided by: 1 … INT32_MAX. */
static void positive_list(const onnx_call *c, const char *name, size_t n, int64_t *into) {
  windows_list(c, name, n, into);
  for (size_t i = 0; i < n; i++)
    if (into[i] < 1 || into[i] > INT32_MAX)
      onnx_fail(c, TN_ERR_FORMAT, "%s[%zu] is %lld, not in 1 … %d", name, i, (long long)into[i],
                INT32_MAX);
}

/** The kernel's sizes, which the weights give and an attribute may repeat. */
static void kernel_of(onnx_call *c, const node *w, windows *to) {
  for (size_t i = 0; i < to->n; i++) {
    if (!node_is_const(w->dims[2 + i]))
      onnx_fail_size(c, w->dims[2 + i],
                     "weights cannot have a size that varies, as they have along spatial axis %zu",
                     i);
    to->kernel[i] = node_int(w->dims[2 + i]);
    if (to->kernel[i] < 1 || to->kernel[i] > INT32_MAX)
      onnx_fail(c, TN_ERR_SHAPE, "the weights have %lld places along spatial axis %zu, not 1 … %d",
                (long long)to->kernel[i], i, INT32_MAX);
  }
  int64_t said[WINDOWS_AXES];
  memcpy(said, to->kernel, sizeof said);
  windows_list(c, "kernel_shape", to->n, said);
  for (size_t i = 0; i < to->n; i++)
    if (said[i] != to->kernel[i])
      onnx_fail(c, TN_ERR_SHAPE, "kernel_shape says %lld where the weights have %lld",
                (long long)said[i], (long long)to->kernel[i]);
}

windows windows_read(onnx_call *c, const node *x, const node *weights) {
  windows w = {.n = x->rank < 3 ? 0 : x->rank - 2u};
  if (w.n < 1 || w.n > WINDOWS_AXES)
    onnx_fail(c, x->rank < 3 ? TN_ERR_SHAPE : TN_ERR_UNSUPPORTED,
              "the input has %u dimensions; 3 to 5 are supported", x->rank);
  if (weights && weights->rank != x->rank)
    onnx_fail(c, TN_ERR_SHAPE, "the input has %u dimensions, and the weights %u", x->rank,
              weights->rank);
  for (size_t i = 0; i < WINDOWS_AXES; i++) w.kernel[i] = w.stride[i] = w.dilation[i] = 1;
  if (weights)
    kernel_of(c, weights, &w);
  else if (onnx_list(c, "kernel_shape"))
    positive_list(c, "kernel_shape", w.n, w.kernel);
  else
    onnx_fail(c, TN_ERR_FORMAT, "kernel_shape is missing");
  positive_list(c, "strides", w.n, w.stride);
  positive_list(c, "dilations", w.n, w.dilation);
  return w;
}

windows_sharing windows_auto_pad(const onnx_call *c) {
  static const char *const modes[] = {[WINDOWS_GIVEN] = "NOTSET",
                                      [WINDOWS_NONE] = "VALID",
                                      [WINDOWS_UPPER] = "SAME_UPPER",
                                      [WINDOWS_LOWER] = "SAME_LOWER"};
  const char *mode = onnx_string(c, "auto_pad", "NOTSET");
  for (size_t i = 0; i < sizeof modes / sizeof *modes; i++)
    if (!strcmp(mode, modes[i])) return (windows_sharing)i;
  onnx_fail(c, TN_ERR_FORMAT, "auto_pad is '%.50s', which is not known", mode);
}

void windows_share(windows *w, size_t i, int64_t all, bool more_before) {
  w->low[i] = more_before ? all - all / 2 : all / 2;
  w->high[i] = all - w->low[i];
}

/** What windows lack so that there are ⌈size / stride⌉ of them. Kernel, stride and dilation are
    checked, so that nothing overflows. */
static int64_t same_pads(onnx_call *c, const windows *w, const node *size, size_t i) {
  int64_t reach = (w->kernel[i] - 1) * w->dilation[i], stride = w->stride[i];
  if (stride == 1) return reach;
  if (!node_is_const(size))
    onnx_fail_size(
        c, size, "auto_pad is not supported with strides along spatial axis %zu, whose size varies",
        i);
  int64_t n = node_int(size), results = n ? (n - 1) / stride + 1 : 0;
  int64_t all = (results - 1) * stride - n + reach + 1;
  return all > 0 ? all : 0;
}

void windows_pad(onnx_call *c, windows *w, const node *x) {
  int64_t pad[2 * WINDOWS_AXES] = {0};
  windows_sharing by = windows_auto_pad(c);
  if (by == WINDOWS_NONE) return;
  if (by == WINDOWS_GIVEN) windows_list(c, "pads", 2 * w->n, pad);
  for (size_t i = 0; i < w->n; i++) {
    w->low[i] = pad[i];
    w->high[i] = pad[w->n + i];
    if (by != WINDOWS_GIVEN)
      windows_share(w, i, same_pads(c, w, x->dims[2 + i], i), by == WINDOWS_LOWER);
  }
}
