/* Contractions and pooling. */
#include "formats/onnx/ops.h"
#include "tensor/ops_common.h"

#include <string.h>

void onnx_MatMul(onnx_call *c) {
  onnx_same_types(c);
  c->outputs[0] = build_matmul(onnx_builder(c), onnx_input(c, 0), onnx_input(c, 1));
}

/** A list attribute of `n` numbers into an array; what is there stays if there is none. */
static void numbers(const onnx_call *c, const char *name, size_t n, int64_t *into) {
  const onnx_ints *l = onnx_list(c, name);
  if (l && l->n != n)
    onnx_fail(c, TN_ERR_FORMAT, "attribute %s has %zu numbers, where %zu belong", name, l->n, n);
  for (size_t i = 0; l && i < n; i++) into[i] = l->at[i];
}

/** The same for what is multiplied and divided by: 1 … INT32_MAX. */
static void positive_numbers(const onnx_call *c, const char *name, size_t n, int64_t *into) {
  numbers(c, name, n, into);
  for (size_t i = 0; i < n; i++)
    if (into[i] < 1 || into[i] > INT32_MAX)
      onnx_fail(c, TN_ERR_FORMAT, "%s[%zu] is %lld, not in 1 … %d", name, i, (long long)into[i],
                INT32_MAX);
}

/** auto_pad SAME: ⌈size / stride⌉ results, what is missing put half before and half after. The
    kernel's size, stride and dilation are checked, so that nothing overflows. */
static void pad_same(onnx_call *c, tn_conv_desc *d, const node *size, size_t i, int64_t k,
                     bool more_before) {
  if (!node_is_const(size))
    onnx_fail_size(c, size, "auto_pad of spatial axis %zu, whose size varies", i);
  int64_t n = node_int(size), results = n ? (n - 1) / d->stride[i] + 1 : 0;
  int64_t all = (results - 1) * d->stride[i] - n + (k - 1) * d->dilation[i] + 1;
  if (all < 0) all = 0;
  d->pad_low[i] = more_before ? all - all / 2 : all / 2;
  d->pad_high[i] = all - d->pad_low[i];
}

static void pads(onnx_call *c, tn_conv_desc *d, const node *x, const int64_t *kernel,
                 size_t spatial) {
  const char *mode = onnx_string(c, "auto_pad", "NOTSET");
  int64_t pad[6] = {0};
  if (!strcmp(mode, "VALID")) return;
  bool upper = !strcmp(mode, "SAME_UPPER"), lower = !strcmp(mode, "SAME_LOWER");
  for (size_t i = 0; i < spatial && (upper || lower); i++)
    pad_same(c, d, x->dims[2 + i], i, kernel[i], lower);
  if (upper || lower) return;
  if (strcmp(mode, "NOTSET")) onnx_fail(c, TN_ERR_FORMAT, "auto_pad is '%.50s'", mode);
  numbers(c, "pads", 2 * spatial, pad);
  for (size_t i = 0; i < spatial; i++) {
    d->pad_low[i] = pad[i];
    d->pad_high[i] = pad[spatial + i];
  }
}

/** The kernel's sizes, which the weights give and an attribute may repeat. */
static void kernel_of(onnx_call *c, const node *w, size_t spatial, int64_t kernel[]) {
  for (size_t i = 0; i < spatial; i++) {
    if (!node_is_const(w->dims[2 + i]))
      onnx_fail_size(c, w->dims[2 + i], "weights whose size varies along spatial axis %zu", i);
    kernel[i] = node_int(w->dims[2 + i]);
    if (kernel[i] < 1 || kernel[i] > INT32_MAX)
      onnx_fail(c, TN_ERR_SHAPE, "the weights have %lld places along spatial axis %zu",
                (long long)kernel[i], i);
  }
  int64_t said[3] = {kernel[0], kernel[1], kernel[2]};
  numbers(c, "kernel_shape", spatial, said);
  for (size_t i = 0; i < spatial; i++)
    if (said[i] != kernel[i])
      onnx_fail(c, TN_ERR_SHAPE, "kernel_shape says %lld where the weights have %lld",
                (long long)said[i], (long long)kernel[i]);
}

static void check_channels(onnx_call *c, const node *x, const node *w, int64_t groups) {
  builder *b = onnx_builder(c);
  const node *taken = groups < 1 ? x->dims[1] : ix_scale(b->ir, w->dims[1], groups);
  if (taken != x->dims[1])
    onnx_fail(c, TN_ERR_SHAPE, "the input has %s channels, where the weights take %s",
              size_text(b, x->dims[1]), size_text(b, taken));
}

void onnx_Conv(onnx_call *c) {
  onnx_same_types(c);
  value x = onnx_input(c, 0), w = onnx_input(c, 1), none = {0};
  size_t spatial = x.node->rank < 3 ? 0 : x.node->rank - 2u;
  if (spatial < 1 || spatial > 3 || w.node->rank != x.node->rank)
    onnx_fail(c, TN_ERR_SHAPE, "an input of %u and weights of %u dimensions", x.node->rank,
              w.node->rank);
  int64_t kernel[3] = {1, 1, 1};
  tn_conv_desc d = TN_CONV_DESC_INIT;
  kernel_of(c, w.node, spatial, kernel);
  positive_numbers(c, "strides", spatial, d.stride);
  positive_numbers(c, "dilations", spatial, d.dilation);
  pads(c, &d, x.node, kernel, spatial);
  d.groups = onnx_int(c, "group", 1);
  check_channels(c, x.node, w.node, d.groups);
  value bias = onnx_has(c, 2) ? onnx_input(c, 2) : none;
  c->outputs[0] = build_conv(onnx_builder(c), x, w, bias, &d);
}

void onnx_GlobalMaxPool(onnx_call *c) {
  c->outputs[0] = build_global_max_pool(onnx_builder(c), onnx_input(c, 0));
}
