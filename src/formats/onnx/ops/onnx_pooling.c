/* ONNX pooling: MaxPool, AveragePool, LpPool and their global forms, by tensor/ops/pooling.c. */
#include "formats/onnx/ops/onnx_builders.h"
#include "formats/onnx/ops/window_attributes.h"
#include "tensor/ops/type_promotion.h"

#include <string.h>

static tn_pool_desc read_pool_desc(onnx_call *c, const node *x) {
  tn_pool_desc d = TN_POOL_DESC_INIT;
  windows w = window_attributes_read(c, x, NULL);
  window_attributes_pad(c, &w, x);
  memcpy(d.kernel, w.kernel, sizeof d.kernel);
  memcpy(d.stride, w.stride, sizeof d.stride);
  memcpy(d.dilation, w.dilation, sizeof d.dilation);
  memcpy(d.pad_low, w.low, sizeof d.pad_low);
  memcpy(d.pad_high, w.high, sizeof d.pad_high);
  d.ceil_mode = onnx_int_attribute(c, "ceil_mode", 0) != 0;
  d.count_include_pad = onnx_int_attribute(c, "count_include_pad", 0) != 0;
  return d;
}

void onnx_MaxPool(onnx_call *c) {
  builder *b = onnx_builder(c);
  value x = onnx_input(c, 0);
  tn_pool_desc d = read_pool_desc(c, x.node);
  c->outputs[0] = build_max_pool(b, x, &d);
  if (onnx_wants_output(c, 1))
    c->outputs[1] =
        build_max_pool_indices(b, x, &d, onnx_int_attribute(c, "storage_order", 0) != 0);
}

void onnx_AveragePool(onnx_call *c) {
  value x = onnx_input(c, 0);
  tn_pool_desc d = read_pool_desc(c, x.node);
  c->outputs[0] = build_avg_pool(onnx_builder(c), x, &d);
}

void onnx_GlobalMaxPool(onnx_call *c) {
  c->outputs[0] = build_global_max_pool(onnx_builder(c), onnx_input(c, 0));
}

void onnx_GlobalAveragePool(onnx_call *c) {
  c->outputs[0] = build_global_avg_pool(onnx_builder(c), onnx_input(c, 0));
}

/* LpPool: (Σ |x|ᵖ)^(1/p), in the accumulation type. */

static double read_p(const onnx_call *c) {
  double p = c->version < 2 ? (double)onnx_float_attribute(c, "p", 2)
                            : (double)onnx_int_attribute(c, "p", 2);
  if (!(p > 0)) onnx_fail(c, TN_ERR_FORMAT, "p is %g, expected a positive number", p);
  return p;
}

static value raise_to_p(builder *b, value x, double p) {
  x = build_cast(b, x, accumulation_type((dtype)x.node->dtype));
  if (p == 2) return build_square(b, x);
  x = build_abs(b, x);
  return p == 1 ? x : build_pow(b, x, build_num(b, p));
}

static value root_of_sum(builder *b, value sum, double p, const node *x) {
  if (p == 2) sum = build_sqrt(b, sum);
  if (p != 1 && p != 2) sum = build_pow(b, sum, build_num(b, 1 / p));
  return build_cast(b, sum, (dtype)x->dtype);
}

void onnx_LpPool(onnx_call *c) {
  builder *b = onnx_builder(c);
  value x = onnx_input(c, 0);
  double p = read_p(c);
  tn_pool_desc d = read_pool_desc(c, x.node);
  c->outputs[0] = root_of_sum(b, build_sum_pool(b, raise_to_p(b, x, p), &d), p, x.node);
}

void onnx_GlobalLpPool(onnx_call *c) {
  builder *b = onnx_builder(c);
  value x = onnx_input(c, 0);
  double p = read_p(c);
  tn_axes axes = {0};
  if (x.node->rank < 2 || x.node->rank > TN_MAX_RANK)
    onnx_fail(c, TN_ERR_SHAPE, "the input has %u dimensions, expected 2 to %d", x.node->rank,
              TN_MAX_RANK);
  for (size_t i = 2; i < x.node->rank; i++) axes.axis[axes.count++] = (int32_t)i;
  c->outputs[0] = root_of_sum(b, build_sum(b, raise_to_p(b, x, p), axes, true), p, x.node);
}
