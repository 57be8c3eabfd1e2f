/* ONNX DeformConv: a matrix product of weights with pixels at places moved by offsets. */
#include "formats/onnx/ops/onnx_builders.h"
#include "formats/onnx/ops/sampling.h"
#include "formats/onnx/ops/window_attributes.h"
#include "ir/index/index_arithmetic.h"
#include "tensor/ops/axes_and_broadcasting.h"
#include "tensor/ops/expressions.h"
#include "tensor/ops/type_promotion.h"

typedef struct deform_conv {
  windows w;
  int64_t groups, offset_groups, elements; /* of the kernel */
  const node *places;                      /* of the output */
  sizes output;                            /* its spatial axes */
} deform_conv;

static deform_conv read_deform_conv(onnx_call *c, const node *x, const node *weights) {
  builder *b = onnx_builder(c);
  deform_conv d = {.w = window_attributes_read(c, x, weights),
                   .groups = onnx_int_attribute(c, "group", 1),
                   .offset_groups = onnx_int_attribute(c, "offset_group", 1),
                   .elements = 1,
                   .places = ix_const(b->ir, 1)};
  int64_t pads[2 * WINDOW_AXES] = {0};
  window_attributes_list(c, "pads", 2 * d.w.n, pads);
  if (d.groups < 1 || d.offset_groups < 1 || d.groups > INT32_MAX || d.offset_groups > INT32_MAX)
    onnx_fail(c, TN_ERR_FORMAT, "the numbers of groups are not positive");
  for (size_t i = 0; i < d.w.n; i++) {
    d.w.low[i] = pads[i];
    int64_t reach = (d.w.kernel[i] - 1) * d.w.dilation[i] + 1;
    const node *rest = ix_add_const(b->ir, x->dims[2 + i], pads[i] + pads[d.w.n + i] - reach);
    if (rest->lo < 0)
      onnx_fail(c, TN_ERR_SHAPE, "the kernel does not fit in spatial axis %zu, of size %s", i,
                size_text(b, x->dims[2 + i]));
    const node *size =
        ix_add_const(b->ir, ix_floordiv(b->ir, rest, ix_const(b->ir, d.w.stride[i])), 1);
    d.output.at[d.output.rank++] = size;
    d.places = ix_mul(b->ir, d.places, size);
    if (d.w.kernel[i] > (1 << 16) / d.elements)
      onnx_fail(c, TN_ERR_UNSUPPORTED, "the kernel has more than %d elements", 1 << 16);
    d.elements *= d.w.kernel[i];
  }
  return d;
}

/** Raises unless an input has `channels` of the output's places. */
static void check_moves(onnx_call *c, const deform_conv *d, size_t input, int64_t channels) {
  const node *x = onnx_input(c, input).node;
  bool fits = x->rank == d->w.n + 2 && node_is_bits(x->dims[1], (uint64_t)channels) &&
              x->dims[0] == onnx_input(c, 0).node->dims[0];
  for (size_t i = 0; fits && i < d->w.n; i++) fits = x->dims[2 + i] == d->output.at[i];
  if (!fits)
    onnx_fail(c, TN_ERR_SHAPE, "input '%.200s' does not have %lld channels of the output's size",
              c->node->inputs.at[input], (long long)channels);
}

/** The place that an element of the kernel has without an offset, along an axis: (K…, O…). */
static value place_in_grid(builder *b, const deform_conv *d, size_t axis, dtype t) {
  sizes s = {0};
  for (size_t i = 0; i < d->w.n; i++) s.at[s.rank++] = ix_const(b->ir, d->w.kernel[i]);
  for (size_t i = 0; i < d->w.n; i++) s.at[s.rank++] = d->output.at[i];
  value k = value_of(ex_iota(b, DT_I64, &s, axis)),
        o = value_of(ex_iota(b, DT_I64, &s, d->w.n + axis));
  value at = build_add(b, build_mul(b, k, build_int(b, d->w.dilation[axis])),
                       build_mul(b, o, build_int(b, d->w.stride[axis])));
  return build_cast(b, build_sub(b, at, build_int(b, d->w.low[axis])), t);
}

/** The pixels under the moved kernel: (N · offset groups, channels of one, elements · places). */
static value moved_pixels(onnx_call *c, const deform_conv *d, value x, value offset) {
  builder *b = onnx_builder(c);
  dtype t = (dtype)x.node->dtype;
  const node *n = ix_scale(b->ir, x.node->dims[0], d->offset_groups);
  sizes grouped = sizes_of(x.node), moves = {.rank = 4};
  grouped.at[0] = n;
  grouped.at[1] = ix_floordiv(b->ir, x.node->dims[1], ix_const(b->ir, d->offset_groups));
  moves.at[0] = n;
  moves.at[1] = ix_const(b->ir, d->elements);
  moves.at[2] = ix_const(b->ir, (int64_t)d->w.n);
  moves.at[3] = d->places;
  sizes flat = {3, {ix_const(b->ir, 1), moves.at[1], d->places}};
  offset = build_reshape(b, build_cast(b, offset, t), &moves);
  sampled_images s = sampled_images_of(c, build_reshape(b, x, &grouped));
  value at[SAMPLED_AXES];
  for (size_t i = 0; i < s.n; i++) {
    value move =
        build_slice(b, offset, 2, ix_const(b->ir, (int64_t)i), ix_const(b->ir, (int64_t)i + 1), 1);
    move = build_squeeze(b, move, (tn_axes){.count = 1, .axis = {2}});
    value place = build_reshape(b, place_in_grid(b, d, i, t), &flat);
    at[i] = build_flatten(b, build_add(b, move, place), 1, 2);
  }
  value y = sampled_linear(&s, at);
  if (!onnx_has_input(c, 4)) return y;
  sizes weights = {2, {n, ix_mul(b->ir, moves.at[1], d->places)}};
  value mask = build_reshape(b, build_cast(b, onnx_input(c, 4), t), &weights);
  return build_mul(b, y, sampled_weight(&s, mask));
}

void onnx_DeformConv(onnx_call *c) {
  builder *b = onnx_builder(c);
  value x = onnx_input(c, 0), w = onnx_input(c, 1), offset = onnx_input(c, 2);
  dtype t = (dtype)x.node->dtype;
  onnx_require_same_types(c);
  deform_conv d = read_deform_conv(c, x.node, w.node);
  const node *of_group = ix_const(b->ir, d.groups), *channels = w.node->dims[1];
  const node *outputs = ix_floordiv(b->ir, w.node->dims[0], of_group);
  const node *of_offsets = ix_const(b->ir, d.offset_groups);
  if (ix_scale(b->ir, channels, d.groups) != x.node->dims[1] ||
      ix_scale(b->ir, outputs, d.groups) != w.node->dims[0] ||
      ix_mul(b->ir, ix_floordiv(b->ir, x.node->dims[1], of_offsets), of_offsets) != x.node->dims[1])
    onnx_fail(c, TN_ERR_SHAPE, "the channels are not those of the groups");
  check_moves(c, &d, 2, d.offset_groups * d.elements * (int64_t)d.w.n);
  if (onnx_has_input(c, 4)) check_moves(c, &d, 4, d.offset_groups * d.elements);
  x = value_widen(b, x);
  const node *terms = ix_scale(b->ir, channels, d.elements);
  sizes columns = {4, {x.node->dims[0], of_group, terms, d.places}};
  sizes rows = {3, {of_group, outputs, terms}}, to = {2, {x.node->dims[0], w.node->dims[0]}};
  for (size_t i = 0; i < d.w.n; i++) to.at[to.rank++] = d.output.at[i];
  value pixels = build_reshape(b, moved_pixels(c, &d, x, offset), &columns);
  value weights = build_reshape(b, build_cast(b, w, (dtype)x.node->dtype), &rows);
  value y = build_reshape(b, build_matmul(b, weights, pixels), &to);
  if (onnx_has_input(c, 3)) {
    sizes bias = {2, {ix_const(b->ir, 1), w.node->dims[0]}};
    while (bias.rank < to.rank) bias.at[bias.rank++] = ix_const(b->ir, 1);
    y = build_add(b, y, build_reshape(b, onnx_input(c, 3), &bias));
  }
  c->outputs[0] = build_cast(b, y, t);
}
