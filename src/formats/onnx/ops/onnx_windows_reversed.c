/* ONNX Col2Im and MaxUnpool, which put the elements of windows back into images. */
#include "formats/onnx/ops/axis_arguments.h"
#include "formats/onnx/ops/onnx_builders.h"
#include "formats/onnx/ops/window_attributes.h"
#include "ir/index/index_arithmetic.h"
#include "tensor/ops/axes_and_broadcasting.h"
#include "tensor/ops/operators.h"

/** The windows along an axis of an image. */
typedef struct folded_axis {
  int64_t kernel, stride, dilation, low, high;
  const node *image, *windows; /* sizes */
} folded_axis;

/** Puts `step` − 1 zeros between the elements of an axis. */
static const node *spread(builder *b, const node *x, size_t axis, int64_t step, const node *zero) {
  if (step == 1) return x;
  sizes s = sizes_of(x);
  const node *count = s.at[axis], *none = ix_const(b->ir, 0);
  sizes with_gap = sizes_insert(b, s, axis + 1, ix_const(b->ir, 1));
  const node *y = shape_reshape(b, x, &with_gap);
  y = shape_pad(b, y, axis + 1, none, ix_const(b->ir, step - 1), zero);
  sizes merged = sizes_with(s, axis, ix_scale(b->ir, count, step));
  return shape_pad(b, shape_reshape(b, y, &merged), axis, none, ix_const(b->ir, 1 - step), zero);
}

/** Adds the windows along an axis: x (…, K, …, O, …) of axes `k` and `at` gives (…, …, D, …). */
static value fold_axis(builder *b, value x, size_t k, size_t at, const folded_axis *f) {
  const node *zero = ir_const_int(b->ir, (dtype)x.node->dtype, 0);
  value sum = {0};
  for (int64_t i = 0; i < f->kernel; i++) {
    value part = build_slice(b, x, (int64_t)k, ix_const(b->ir, i), ix_const(b->ir, i + 1), 1);
    sizes s = sizes_remove(sizes_of(part.node), k);
    const node *y = spread(b, shape_reshape(b, part.node, &s), at - 1, f->stride, zero);
    const node *low = ix_const(b->ir, i * f->dilation - f->low);
    const node *high = ix_sub(b->ir, f->image, ix_add(b->ir, low, y->dims[at - 1]));
    value padded = value_of(shape_pad(b, y, at - 1, low, high, zero));
    sum = i ? build_add(b, sum, padded) : padded;
  }
  return sum;
}

static void read_folded_axes(onnx_call *c, folded_axis f[], size_t n, const sizes *image) {
  builder *b = onnx_builder(c);
  int64_t stride[SIZES_MAX_RANK], dilation[SIZES_MAX_RANK], pads[2 * SIZES_MAX_RANK] = {0};
  size_t count;
  const int64_t *kernel = onnx_static_ints(c, 2, &count);
  for (size_t i = 0; i < n; i++) stride[i] = dilation[i] = 1;
  if (count != n)
    onnx_fail(c, TN_ERR_SHAPE, "block_shape has %zu elements, expected %zu", count, n);
  window_attributes_list(c, "strides", n, stride);
  window_attributes_list(c, "dilations", n, dilation);
  window_attributes_list(c, "pads", 2 * n, pads);
  for (size_t i = 0; i < n; i++) {
    f[i] =
        (folded_axis){kernel[i], stride[i], dilation[i], pads[i], pads[n + i], image->at[i], NULL};
    if (kernel[i] < 1 || stride[i] < 1 || dilation[i] < 1 || kernel[i] > INT32_MAX ||
        stride[i] > INT32_MAX || dilation[i] > INT32_MAX || pads[i] < 0 || pads[n + i] < 0 ||
        pads[i] > INT32_MAX || pads[n + i] > INT32_MAX)
      onnx_fail(c, TN_ERR_FORMAT, "the block, stride, dilation or pad of axis %zu is out of range",
                i);
    shape_argument_check_size(c, image, i);
    int64_t reach = (kernel[i] - 1) * dilation[i] + 1;
    const node *rest = ix_add_const(b->ir, image->at[i], pads[i] + pads[n + i] - reach);
    if (rest->lo < 0)
      onnx_fail(c, TN_ERR_SHAPE, "a block does not fit in axis %zu, of size %s", i,
                size_text(b, image->at[i]));
    f[i].windows = ix_add_const(b->ir, ix_floordiv(b->ir, rest, ix_const(b->ir, stride[i])), 1);
  }
}

void onnx_Col2Im(onnx_call *c) {
  builder *b = onnx_builder(c);
  value x = onnx_input(c, 0);
  sizes image = shape_argument(c, 1);
  folded_axis f[SIZES_MAX_RANK];
  int64_t block = 1;
  const node *places = ix_const(b->ir, 1);
  if (x.node->rank != 3 || !image.rank || image.rank > 8)
    onnx_fail(c, TN_ERR_SHAPE,
              "the input has %u dimensions and the image %zu, expected 3 and 1 to 8", x.node->rank,
              image.rank);
  read_folded_axes(c, f, image.rank, &image);
  for (size_t i = 0; i < image.rank; i++) {
    if (f[i].kernel > (1 << 16) / block)
      onnx_fail(c, TN_ERR_UNSUPPORTED, "a block has more than %d elements", 1 << 16);
    block *= f[i].kernel;
    places = ix_mul(b->ir, places, f[i].windows);
  }
  const node *size = ix_const(b->ir, block);
  const node *channels = ix_floordiv(b->ir, x.node->dims[1], size);
  if (places != x.node->dims[2] || ix_mul(b->ir, channels, size) != x.node->dims[1])
    onnx_fail(c, TN_ERR_SHAPE,
              "the input has %s rows of %s blocks, expected a multiple of %lld and %s",
              size_text(b, x.node->dims[1]), size_text(b, x.node->dims[2]), (long long)block,
              size_text(b, places));
  sizes s = {2, {x.node->dims[0], channels}};
  for (size_t i = 0; i < image.rank; i++) s.at[s.rank++] = ix_const(b->ir, f[i].kernel);
  for (size_t i = 0; i < image.rank; i++) s.at[s.rank++] = f[i].windows;
  value y = build_reshape(b, x, &s);
  for (size_t i = 0; i < image.rank; i++) y = fold_axis(b, y, 2, 2 + image.rank, &f[i]);
  c->outputs[0] = y;
}

/* MaxUnpool. */

/** The size of each spatial axis before pooling. */
static sizes unpooled_sizes(onnx_call *c, const node *x, const windows *w) {
  builder *b = onnx_builder(c);
  sizes s = sizes_of(x);
  for (size_t i = 0; i < w->n; i++) {
    const node *last = ix_scale(b->ir, ix_add_const(b->ir, x->dims[2 + i], -1), w->stride[i]);
    s.at[2 + i] = ix_add_const(b->ir, last, w->kernel[i] - w->low[i] - w->high[i]);
    if (s.at[2 + i]->lo < 0)
      onnx_fail(c, TN_ERR_SHAPE, "the size of spatial axis %zu, %s, may be negative", i,
                size_text(b, s.at[2 + i]));
  }
  return s;
}

/** Writes elements at the places that a MaxPool gave. An element's place lies in the image of its
    own batch entry and channel, as there. */
void onnx_MaxUnpool(onnx_call *c) {
  builder *b = onnx_builder(c);
  value x = onnx_input(c, 0), index = onnx_input(c, 1);
  windows w = window_attributes_read(c, x.node, NULL);
  int64_t pads[2 * WINDOW_AXES] = {0};
  const node *area = ix_const(b->ir, 1);
  window_attributes_list(c, "pads", 2 * w.n, pads);
  for (size_t i = 0; i < w.n; i++) {
    w.low[i] = pads[i];
    w.high[i] = pads[w.n + i];
  }
  sizes s = unpooled_sizes(c, x.node, &w), of_x = sizes_of(x.node), of_index = sizes_of(index.node);
  if (!sizes_equal(&of_x, &of_index))
    onnx_fail(c, TN_ERR_SHAPE, "the input and the indices have different shapes");
  for (size_t i = 0; i < w.n; i++) area = ix_mul(b->ir, area, s.at[2 + i]);
  sizes flat = {3, {s.at[0], s.at[1], area}};
  value target = build_full(b, &flat, (dtype)x.node->dtype, 0);
  if (area->lo < 1) onnx_fail(c, TN_ERR_SHAPE, "the images may be empty");
  value places =
      build_flatten(b, build_mod(b, index, value_of(ir_cast(b->ir, area, DT_I64))), 2, -1);
  value y = build_scatter_elements(b, target, places, build_flatten(b, x, 2, -1), 2, OP_SET);
  y = build_reshape(b, y, &s);
  if (onnx_has_input(c, 2)) {
    sizes to = shape_argument(c, 2), low = s, high = s;
    if (to.rank != s.rank) onnx_fail(c, TN_ERR_SHAPE, "output_shape has %zu sizes", to.rank);
    for (size_t i = 0; i < s.rank; i++) {
      low.at[i] = ix_const(b->ir, 0);
      high.at[i] = ix_sub(b->ir, to.at[i], s.at[i]);
      if (high.at[i]->lo < 0)
        onnx_fail(c, TN_ERR_SHAPE, "output_shape is smaller than the images before pooling");
    }
    y = build_pad(b, y, &low, &high, TN_PAD_CONSTANT, build_int(b, 0));
  }
  c->outputs[0] = y;
}
