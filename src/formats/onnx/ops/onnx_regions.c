/* ONNX RoiAlign and MaxRoiPool: images read in regions of theirs. */
#include "formats/onnx/ops/enum_attribute.h"
#include "formats/onnx/ops/onnx_builders.h"
#include "formats/onnx/ops/sampling.h"
#include "formats/onnx/ops/window_attributes.h"
#include "ir/index/index_arithmetic.h"
#include "tensor/ops/axes_and_broadcasting.h"
#include "tensor/ops/type_promotion.h"

enum { REGION_AXES = 2, REGION_SIZE_MAX = 4096 };

/** Column k of a matrix, as (rows, 1). */
static value column(builder *b, value matrix, int64_t k) {
  return build_slice(b, matrix, 1, ix_const(b->ir, k), ix_const(b->ir, k + 1), 1);
}

/** The integers 0 … n − 1 as (1, n). */
static value count_up(builder *b, int64_t n, dtype t) {
  value i = build_arange(b, ix_const(b->ir, 0), ix_const(b->ir, n), 1, DT_I64);
  return build_unsqueeze(b, build_cast(b, i, t), (tn_axes){.count = 1, .axis = {0}});
}

static int64_t read_region_size(const onnx_call *c, const char *name, int64_t v) {
  if (v < 1 || v > REGION_SIZE_MAX)
    onnx_fail(c, TN_ERR_FORMAT, "%s is %lld, not in 1 … %d", name, (long long)v, REGION_SIZE_MAX);
  return v;
}

static void check_regions(const onnx_call *c, const node *x, const node *rois, uint64_t columns) {
  if (x->rank != 4) onnx_fail(c, TN_ERR_SHAPE, "the input has %u dimensions, expected 4", x->rank);
  if (rois->rank != 2 || !node_is_bits(rois->dims[1], columns))
    onnx_fail(c, TN_ERR_SHAPE, "the regions are not rows of %d numbers", (int)columns);
}

/* RoiAlign. */

typedef struct roi_align {
  int64_t size[REGION_AXES]; /* of the output */
  int64_t samples;           /* along each axis of an element of the output */
  double scale, offset;
  bool forces_size; /* regions are at least 1 large */
  bool takes_max;
} roi_align;

static roi_align read_roi_align(const onnx_call *c) {
  static const char *const modes[] = {"avg", "max"};
  static const char *const mappings[] = {"half_pixel", "output_half_pixel"};
  bool is_shifted =
      c->version >= 16 && ENUM_ATTRIBUTE(c, "coordinate_transformation_mode", mappings) == 0;
  roi_align r = {.scale = (double)onnx_float_attribute(c, "spatial_scale", 1),
                 .offset = is_shifted ? 0.5 : 0,
                 .forces_size = !is_shifted,
                 .takes_max = ENUM_ATTRIBUTE(c, "mode", modes) == 1};
  r.size[0] = read_region_size(c, "output_height", onnx_int_attribute(c, "output_height", 1));
  r.size[1] = read_region_size(c, "output_width", onnx_int_attribute(c, "output_width", 1));
  r.samples = onnx_int_attribute(c, "sampling_ratio", 0);
  if (!r.samples)
    onnx_fail(c, TN_ERR_UNSUPPORTED,
              "sampling_ratio is 0, so the number of samples depends on the regions");
  read_region_size(c, "sampling_ratio", r.samples);
  return r;
}

/** The coordinates of the samples along an axis: (regions, size · samples). */
static value sample_places(builder *b, const roi_align *r, value rois, size_t axis) {
  dtype t = (dtype)rois.node->dtype;
  value scale = build_num(b, r->scale), offset = build_num(b, r->offset);
  value start = build_sub(b, build_mul(b, column(b, rois, 1 - (int64_t)axis), scale), offset);
  value end = build_sub(b, build_mul(b, column(b, rois, 3 - (int64_t)axis), scale), offset);
  value size = build_sub(b, end, start);
  if (r->forces_size) size = build_maximum(b, size, build_num(b, 1));
  value bin = build_div(b, size, build_num(b, (double)r->size[axis]));
  value i = count_up(b, r->size[axis] * r->samples, t), samples = build_num(b, (double)r->samples);
  value whole = build_floor(b, build_div(b, build_add(b, i, build_num(b, 0.5)), samples));
  value part = build_add(b, build_sub(b, i, build_mul(b, whole, samples)), build_num(b, 0.5));
  value in_bin = build_div(b, build_mul(b, bin, part), samples);
  return build_add(b, build_add(b, start, build_mul(b, whole, bin)), in_bin);
}

/** A place for each pair of coordinates, those of one axis: (regions, height · width). */
static value pair_places(builder *b, const value place[REGION_AXES], size_t axis) {
  tn_axes other = {.count = 1, .axis = {axis ? 1 : 2}};
  sizes s = {3, {place[0].node->dims[0], place[0].node->dims[1], place[1].node->dims[1]}};
  value all = build_expand(b, build_unsqueeze(b, place[axis], other), &s);
  return build_flatten(b, all, 1, 2);
}

/** Reads the samples; those more than 1 outside of the image are 0. */
static value read_samples(const sampled_images *s, const roi_align *r, const value at[]) {
  builder *b = s->b;
  value is_far = {0}, inside[REGION_AXES];
  for (size_t i = 0; i < REGION_AXES; i++) {
    value size = sampled_size(s, i, (dtype)at[i].node->dtype);
    value far = build_logical_or(b, build_lt(b, at[i], build_num(b, -1)), build_gt(b, at[i], size));
    is_far = i ? build_logical_or(b, is_far, far) : far;
    inside[i] = build_clip(b, at[i], build_num(b, 0), build_sub(b, size, build_num(b, 1)));
  }
  value y = r->takes_max ? sampled_largest(s, inside) : sampled_linear(s, inside);
  return build_where(b, sampled_weight(s, is_far), build_num(b, 0), y);
}

void onnx_RoiAlign(onnx_call *c) {
  builder *b = onnx_builder(c);
  value x = onnx_input(c, 0), rois = onnx_input(c, 1), batch = onnx_input(c, 2);
  dtype t = (dtype)x.node->dtype;
  roi_align r = read_roi_align(c);
  check_regions(c, x.node, rois.node, 4);
  if (batch.node->rank != 1 || batch.node->dims[0] != rois.node->dims[0])
    onnx_fail(c, TN_ERR_SHAPE, "there is not one batch index for each region");
  x = value_widen(b, x);
  rois = value_widen(b, rois);
  sampled_images s = sampled_images_of(c, build_take(b, x, batch, 0));
  value place[REGION_AXES], at[REGION_AXES];
  for (size_t i = 0; i < REGION_AXES; i++) place[i] = sample_places(b, &r, rois, i);
  for (size_t i = 0; i < REGION_AXES; i++) at[i] = pair_places(b, place, i);
  const node *n = ix_const(b->ir, r.samples);
  sizes to = {6,
              {rois.node->dims[0], x.node->dims[1], ix_const(b->ir, r.size[0]), n,
               ix_const(b->ir, r.size[1]), n}};
  value y = build_reshape(b, read_samples(&s, &r, at), &to);
  tn_axes samples = {.count = 2, .axis = {3, 5}};
  y = r.takes_max ? build_max(b, y, samples, false) : build_mean(b, y, samples, false);
  c->outputs[0] = build_cast(b, y, t);
}

/* MaxRoiPool: the maximum of each bin, along one axis after the other. */

/** Where element i of an axis is in a bin: (regions, bins, size). */
static value is_in_bin(builder *b, value rois, size_t axis, int64_t bins, double scale,
                       const node *size) {
  dtype t = (dtype)rois.node->dtype;
  tn_axes last = {.count = 1, .axis = {2}};
  value start = build_mul(b, column(b, rois, 2 - (int64_t)axis), build_num(b, scale)),
        end = build_mul(b, column(b, rois, 4 - (int64_t)axis), build_num(b, scale)),
        one = build_num(b, 1), half = build_num(b, 0.5);
  start = build_floor(b, build_add(b, start, half));
  end = build_floor(b, build_add(b, end, half));
  value length = build_maximum(b, build_add(b, build_sub(b, end, start), one), one);
  value bin = build_div(b, length, build_num(b, (double)bins)), i = count_up(b, bins, t);
  value low = build_add(b, build_floor(b, build_mul(b, i, bin)), start);
  value high = build_add(b, build_ceil(b, build_mul(b, build_add(b, i, one), bin)), start);
  value at = build_cast(b, build_arange(b, ix_const(b->ir, 0), size, 1, DT_I64), t);
  return build_logical_and(b, build_ge(b, at, build_unsqueeze(b, low, last)),
                           build_lt(b, at, build_unsqueeze(b, high, last)));
}

/** Reduces the last axis of x (regions, …, size) to bins: (regions, …, bins). */
static value pool_bins(builder *b, value x, value in_bin) {
  int64_t before = (int64_t)x.node->rank - 2;
  value mask = in_bin;
  for (int64_t i = 0; i < before; i++)
    mask = build_unsqueeze(b, mask, (tn_axes){.count = 1, .axis = {1}});
  value all = build_unsqueeze(b, x, (tn_axes){.count = 1, .axis = {(int32_t)before + 1}});
  value least = build_num(b, (dtype)x.node->dtype == DT_F64 ? -1.7976931348623157e308
                                                            : -3.4028234663852886e38);
  return build_max(b, build_where(b, mask, all, least), (tn_axes){.count = 1, .axis = {-1}}, false);
}

void onnx_MaxRoiPool(onnx_call *c) {
  builder *b = onnx_builder(c);
  value x = onnx_input(c, 0), rois = onnx_input(c, 1);
  dtype t = (dtype)x.node->dtype;
  double scale = (double)onnx_float_attribute(c, "spatial_scale", 1);
  int64_t size[REGION_AXES] = {0};
  window_attributes_list(c, "pooled_shape", REGION_AXES, size);
  check_regions(c, x.node, rois.node, 5);
  for (size_t i = 0; i < REGION_AXES; i++) read_region_size(c, "pooled_shape", size[i]);
  sampled_images_of(c, x); /* raises for empty images */
  value batch = build_cast(
      b, build_squeeze(b, column(b, rois, 0), (tn_axes){.count = 1, .axis = {1}}), DT_I64);
  rois = value_widen(b, rois);
  value y = build_take(b, value_widen(b, x), batch, 0);
  value rows = is_in_bin(b, rois, 0, size[0], scale, x.node->dims[2]),
        columns = is_in_bin(b, rois, 1, size[1], scale, x.node->dims[3]);
  y = build_swapaxes(b, pool_bins(b, y, columns), 2, 3);
  y = build_swapaxes(b, pool_bins(b, y, rows), 2, 3);
  tn_axes last = {.count = 1, .axis = {-1}};
  value has_rows = build_any(b, rows, last, false),
        has_columns = build_any(b, columns, last, false);
  value has_some = build_logical_and(
      b,
      build_unsqueeze(b, build_unsqueeze(b, has_rows, (tn_axes){.count = 1, .axis = {2}}),
                      (tn_axes){.count = 1, .axis = {1}}),
      build_unsqueeze(b, build_unsqueeze(b, has_columns, (tn_axes){.count = 1, .axis = {1}}),
                      (tn_axes){.count = 1, .axis = {1}}));
  c->outputs[0] = build_cast(b, build_where(b, has_some, y, build_num(b, 0)), t);
}
