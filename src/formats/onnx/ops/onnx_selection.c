/* ONNX operators whose results have as many elements as a run selects: NonZero, Compress, Unique
   and NonMaxSuppression. */
#include "formats/onnx/ops/onnx_builders.h"
#include "ir/index/index_arithmetic.h"
#include "tensor/ops/axes_and_broadcasting.h"
#include "tensor/ops/computed_sizes.h"
#include "tensor/ops/nms.h"

/** A vector of all elements. */
static value as_vector(builder *b, value x) {
  sizes flat = {.rank = 1};
  return build_reshape(b, x, &flat);
}

/** NonZero: a column of coordinates for each element. An element of a scalar has none, but before
    version 13, in which a scalar is a vector. */
void onnx_NonZero(onnx_call *c) {
  builder *b = onnx_builder(c);
  value x = onnx_input(c, 0);
  bool is_scalar = !x.node->rank;
  value y = build_transpose(b, build_nonzero(b, is_scalar ? as_vector(b, x) : x));
  if (is_scalar && c->version >= 13)
    y = build_slice(b, y, 0, ix_const(b->ir, 0), ix_const(b->ir, 0), 1);
  c->outputs[0] = y;
}

void onnx_Compress(onnx_call *c) {
  builder *b = onnx_builder(c);
  value x = onnx_input(c, 0);
  bool has_axis = onnx_has_attribute(c, "axis");
  int64_t axis = onnx_int_attribute(c, "axis", 0);
  if (!has_axis) x = as_vector(b, x);
  c->outputs[0] =
      build_compress(b, x, onnx_input(c, 1), (int64_t)onnx_normalise_axis(c, axis, x.node->rank));
}

/** Of all elements without an axis. Places are in the tensor's slices, or in all its elements. */
void onnx_Unique(onnx_call *c) {
  builder *b = onnx_builder(c);
  value x = onnx_input(c, 0), out[4];
  bool has_axis = onnx_has_attribute(c, "axis"), sorted = onnx_int_attribute(c, "sorted", 1) != 0;
  if (!has_axis) x = as_vector(b, x);
  int64_t axis = onnx_int_attribute(c, "axis", 0);
  build_unique(b, x, (int64_t)onnx_normalise_axis(c, axis, x.node->rank), sorted, out);
  for (size_t i = 0; i < 4; i++) c->outputs[i] = out[i];
}

/** Gives boxes (batch, n, 4) and scores (batch, class, n) the same n; raises unless they fit. */
static void match_boxes(onnx_call *c, value *boxes, value *scores) {
  builder *b = onnx_builder(c);
  const node *x = boxes->node, *y = scores->node;
  sizes s[] = {sizes_of(x), sizes_of(y)};
  if (x->dtype != DT_F32 || y->dtype != DT_F32)
    onnx_fail(c, TN_ERR_DTYPE, "boxes are %s and scores %s, expected f32",
              dtype_name((dtype)x->dtype), dtype_name((dtype)y->dtype));
  bool fits = x->rank == 3 && y->rank == 3 && node_is_bits(x->dims[2], 4);
  const node *batch = fits ? size_agreed(b, x->dims[0], y->dims[0]) : NULL,
             *n = fits ? size_agreed(b, x->dims[1], y->dims[2]) : NULL;
  if (!batch || !n)
    onnx_fail(c, TN_ERR_SHAPE, "boxes have shape %s and scores %s, expected bxnx4 and bxcxn",
              sizes_text(b, &s[0]), sizes_text(b, &s[1]));
  *boxes = value_of(shape_agreed(b, shape_agreed(b, x, 0, batch), 1, n));
  *scores = value_of(shape_agreed(b, shape_agreed(b, y, 0, batch), 2, n));
}

/** The most boxes of a class; 0 if it is left out. */
static const node *read_most_boxes(onnx_call *c) {
  ir *g = onnx_builder(c)->ir;
  size_t n;
  if (!onnx_has_input(c, 2)) return ix_const(g, 0);
  const node *const *most = onnx_shape_elements(c, 2, &n);
  if (n != 1) onnx_fail(c, TN_ERR_SHAPE, "max_output_boxes_per_class has %zu elements", n);
  return ix_max(g, *most, ix_const(g, 0));
}

/** Scores that are equal to the threshold go, as in ONNX Runtime. */
void onnx_NonMaxSuppression(onnx_call *c) {
  builder *b = onnx_builder(c);
  value boxes = onnx_input(c, 0), scores = onnx_input(c, 1);
  match_boxes(c, &boxes, &scores);
  value overlap = onnx_has_input(c, 3) ? onnx_scalar_input(c, 3) : build_num(b, 0),
        least = onnx_has_input(c, 4) ? onnx_scalar_input(c, 4) : (value){0};
  bool centres = onnx_int_attribute(c, "center_point_box", 0) != 0;
  c->outputs[0] = build_nms(b, boxes, scores, centres ? NMS_CENTRES : NMS_CORNERS,
                            read_most_boxes(c), overlap, least);
}
