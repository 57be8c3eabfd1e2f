/* Reads of images at places that are computed: the spatial axes are made one, along which the
   pixels of all channels are gathered by one index. */
#include "formats/onnx/ops/sampling.h"

#include "ir/index/index_arithmetic.h"
#include "tensor/ops/axes_and_broadcasting.h"
#include "tensor/ops/expressions.h"
#include "tensor/ops/gather.h"

sampled_images sampled_images_of(onnx_call *c, value x) {
  builder *b = onnx_builder(c);
  sampled_images s = {.b = b, .n = x.node->rank < 3 ? 0 : x.node->rank - 2u};
  const node *area = ix_const(b->ir, 1);
  if (s.n < 1 || s.n > SAMPLED_AXES)
    onnx_fail(c, s.n ? TN_ERR_UNSUPPORTED : TN_ERR_SHAPE,
              "the input has %u dimensions; 3 to 5 are supported", x.node->rank);
  for (size_t i = 0; i < s.n; i++) {
    s.size[i] = x.node->dims[2 + i];
    area = ix_mul(b->ir, area, s.size[i]);
    b->needed = ix_add_const(b->ir, s.size[i], -1);
    if (s.size[i]->lo < 1)
      diag_raise(b->diag, TN_ERR_SHAPE, "spatial axis %zu, of size %s, may be empty", i,
                 size_text(b, s.size[i]));
  }
  s.flat = build_reshape(b, x, &(sizes){3, {x.node->dims[0], x.node->dims[1], area}});
  return s;
}

value sampled_size(const sampled_images *s, size_t axis, dtype t) {
  return value_of(ex_size(s->b, s->size[axis], t));
}

static value last_place(const sampled_images *s, size_t axis, dtype t) {
  return build_sub(s->b, sampled_size(s, axis, t), build_num(s->b, 1));
}

value sampled_is_inside(const sampled_images *s, size_t axis, value at) {
  builder *b = s->b;
  return build_logical_and(b, build_ge(b, at, build_num(b, 0)),
                           build_le(b, at, last_place(s, axis, (dtype)at.node->dtype)));
}

value sampled_pixels(const sampled_images *s, const value at[]) {
  builder *b = s->b;
  value index = {0};
  for (size_t i = 0; i < s->n; i++) {
    value place = build_clip(b, at[i], build_num(b, 0), last_place(s, i, (dtype)at[i].node->dtype));
    place = build_cast(b, place, DT_I64);
    index = i ? build_add(b, build_mul(b, index, sampled_size(s, i, DT_I64)), place) : place;
  }
  sizes to = sizes_of(s->flat.node);
  to.at[2] = index.node->dims[1];
  index = build_expand(b, sampled_weight(s, index), &to);
  return value_of(node_gather(b, s->flat.node, 2, index.node));
}

value sampled_weight(const sampled_images *s, value weight) {
  return build_unsqueeze(s->b, weight, (tn_axes){.count = 1, .axis = {1}});
}

/** The pixel at one corner around coordinates, times its weight; 0 if it is outside. */
static value weighted_corner(const sampled_images *s, const value at[], size_t corner) {
  builder *b = s->b;
  value place[SAMPLED_AXES], weight = {0}, inside = {0};
  for (size_t i = 0; i < s->n; i++) {
    value low = build_floor(b, at[i]), part = build_sub(b, at[i], low), one = build_num(b, 1);
    bool is_next = corner >> i & 1;
    place[i] = is_next ? build_add(b, low, one) : low;
    value w = is_next ? part : build_sub(b, one, part);
    value within = sampled_is_inside(s, i, place[i]);
    weight = i ? build_mul(b, weight, w) : w;
    inside = i ? build_logical_and(b, inside, within) : within;
  }
  value y = build_mul(b, sampled_pixels(s, place), sampled_weight(s, weight));
  return build_where(b, sampled_weight(s, inside), y, build_num(b, 0));
}

static value combine_corners(const sampled_images *s, const value at[],
                             value (*combine)(builder *b, value x, value y)) {
  value all = weighted_corner(s, at, 0);
  for (size_t corner = 1; corner >> s->n == 0; corner++)
    all = combine(s->b, all, weighted_corner(s, at, corner));
  return all;
}

value sampled_linear(const sampled_images *s, const value at[]) {
  return combine_corners(s, at, build_add);
}

value sampled_largest(const sampled_images *s, const value at[]) {
  return combine_corners(s, at, build_maximum);
}
