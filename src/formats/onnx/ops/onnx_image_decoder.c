/* ONNX ImageDecoder, which the host computes: a first step finds the sizes of the picture. */
#include "formats/host/image_step.h"
#include "formats/onnx/ops/enum_attribute.h"
#include "formats/onnx/ops/onnx_builders.h"
#include "ir/index/build_tensor.h"
#include "ir/index/index_arithmetic.h"
#include "tensor/ops/operators.h"

void onnx_ImageDecoder(onnx_call *c) {
  static const char *const orders[] = {"RGB", "BGR", "Grayscale"};
  ir *g = onnx_builder(c)->ir;
  value x = onnx_input(c, 0);
  if (x.node->rank != 1 || x.node->dtype != DT_U8)
    onnx_fail(c, TN_ERR_SHAPE, "the encoded bytes are no vector of u8");
  image_options o = {(pixel_order)ENUM_ATTRIBUTE(c, "pixel_format", orders)};
  host_step step = {.run = image_sizes, .options = arena_copy(&c->m->host->arena, &o, sizeof o)};
  sizes two = {1, {ix_const(g, 2)}},
        s = {3, {NULL, NULL, ix_const(g, o.order == PIXELS_GRAY ? 1 : 3)}};
  value found = onnx_host_step(c, step, &x, 1, DT_I64, &two);
  for (size_t i = 0; i < 2; i++) {
    const node *at = ix_const(g, (int64_t)i);
    s.at[i] = ir_item(g, found.node, &at, 0, ix_const(g, ONNX_SIZE_MAX));
  }
  step.run = image_pixels;
  c->outputs[0] = onnx_host_step(c, step, &x, 1, DT_U8, &s);
}
