/* ONNX Resize and Upsample: separable interpolation (nearest, linear, cubic by Keys 1981), with
   antialiasing if asked for. Each axis maps output coordinates to source coordinates, gathers the
   neighbours and sums them by weights. Scales must be constant, sizes may vary. */
#include "formats/onnx/ops/axis_arguments.h"
#include "formats/onnx/ops/enum_attribute.h"
#include "formats/onnx/ops/onnx_builders.h"
#include "ir/index/index_arithmetic.h"
#include "tensor/ops/axes_and_broadcasting.h"
#include "tensor/ops/expressions.h"
#include "tensor/ops/gather.h"
#include "tensor/ops/type_promotion.h"

#include <math.h>
#include <string.h>

typedef enum interpolation { NEAREST, LINEAR, CUBIC } interpolation;
typedef enum rounding { ROUND_PREFER_FLOOR, ROUND_PREFER_CEIL, ROUND_FLOOR, ROUND_CEIL } rounding;
typedef enum coordinate_mode {
  HALF_PIXEL,
  HALF_PIXEL_SYMMETRIC,
  PYTORCH_HALF_PIXEL,
  ALIGN_CORNERS,
  ASYMMETRIC,
  TF_HALF_PIXEL,
  CROP_AND_RESIZE
} coordinate_mode;
typedef enum aspect_policy { POLICY_STRETCH, POLICY_NOT_LARGER, POLICY_NOT_SMALLER } aspect_policy;

static const char *const interpolations[] = {"nearest", "linear", "cubic"};
static const char *const roundings[] = {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"};
static const char *const coordinate_modes[] = {
    "half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners",
    "asymmetric", "tf_half_pixel_for_nn", "tf_crop_and_resize"};
static const char *const policies[] = {"stretch", "not_larger", "not_smaller"};

typedef struct resize {
  builder *b;
  interpolation mode;
  rounding round;
  coordinate_mode coordinates;
  bool rounds_by_scale;       /* version 10: down if scaled up, up if scaled down */
  bool antialias;             /* the kernel is as wide as a pixel of a smaller output */
  bool excludes_outside;      /* neighbours outside have weight 0; else clamped to the edge */
  double cubic_coefficient;   /* a of Keys */
  double extrapolation_value; /* of elements outside of the region */
} resize;

typedef struct resized_axis {
  const node *in, *out; /* sizes */
  double scale;         /* 0: out / in, which varies */
  bool allows_empty;    /* an input of size 0 has an output of size 0, or is refused in runs */
  double start, end;    /* the region of roi */
} resized_axis;

/* Vectors over the positions of the output axis. */

static value size_value(builder *b, const node *n) { return value_of(ex_size(b, n, DT_F32)); }

static value scale_value(builder *b, const resized_axis *a) {
  return a->scale ? build_num(b, a->scale)
                  : build_div(b, size_value(b, a->out), size_value(b, a->in));
}

static value last_index(builder *b, const node *n) {
  return build_sub(b, size_value(b, n), build_num(b, 1));
}

/** Selects a value if the output has one element, else another. */
static value if_single(builder *b, const node *out, value single, value several) {
  return build_where(b, build_eq(b, size_value(b, out), build_num(b, 1)), single, several);
}

/** The resized length before it is rounded down, as the standard's reference counts corners by it.
 */
static value exact_length(builder *b, const resized_axis *a) {
  value out = size_value(b, a->out);
  if (!a->scale) return out;
  value exact = build_mul(b, size_value(b, a->in), scale_value(b, a));
  value is_rounded = build_gt(b, build_sub(b, exact, out), build_num(b, 1e-3));
  return build_where(b, is_rounded, exact, out);
}

static value place_corners(builder *b, const resized_axis *a, value o, value last) {
  value steps = build_maximum(b, last, build_num(b, 1));
  return build_div(b, build_mul(b, o, last_index(b, a->in)), steps);
}

/** Source coordinates of align_corners. */
static value align_corners(builder *b, const resized_axis *a, value o) {
  return place_corners(b, a, o, build_sub(b, exact_length(b, a), build_num(b, 1)));
}

/** Source coordinates of tf_crop_and_resize. */
static value crop_and_resize(builder *b, const resized_axis *a, value o) {
  value last = last_index(b, a->in);
  value start = build_mul(b, last, build_num(b, a->start));
  value middle = build_mul(b, last, build_num(b, (a->start + a->end) / 2));
  value offset =
      build_mul(b, place_corners(b, a, o, last_index(b, a->out)), build_num(b, a->end - a->start));
  return if_single(b, a->out, middle, build_add(b, start, offset));
}

/** Centres half_pixel coordinates (half_pixel_symmetric): the part of the input that rounding the
    output size cuts off is divided between both ends. */
static value centre(builder *b, const resized_axis *a, value x) {
  value in = size_value(b, a->in);
  value exact_out = build_mul(b, in, scale_value(b, a));
  value adjustment = build_div(b, size_value(b, a->out), exact_out);
  value offset =
      build_mul(b, build_mul(b, in, build_num(b, 0.5)), build_sub(b, build_num(b, 1), adjustment));
  return build_add(b, offset, x);
}

/** Source coordinates of the output positions, by attribute coordinate_transformation_mode. */
static value source_coordinates(const resize *r, const resized_axis *a) {
  builder *b = r->b;
  sizes s = {1, {a->out}};
  value o = build_cast(b, value_of(ex_iota(b, DT_I64, &s, 0)), DT_F32), half = build_num(b, 0.5);
  if (r->coordinates == CROP_AND_RESIZE) return crop_and_resize(b, a, o);
  if (r->coordinates == ASYMMETRIC) return build_div(b, o, scale_value(b, a));
  if (r->coordinates == ALIGN_CORNERS) return align_corners(b, a, o);
  value x = build_div(b, build_add(b, o, half), scale_value(b, a));
  if (r->coordinates == TF_HALF_PIXEL) return x;
  x = build_sub(b, x, half);
  if (r->coordinates == PYTORCH_HALF_PIXEL) return if_single(b, a->out, o, x);
  return r->coordinates == HALF_PIXEL_SYMMETRIC ? centre(b, a, x) : x;
}

static value round_coordinates(const resize *r, const resized_axis *a, value x) {
  builder *b = r->b;
  value half = build_num(b, 0.5);
  if (r->rounds_by_scale) return (a->scale < 1 ? build_ceil : build_floor)(b, x);
  switch (r->round) {
  case ROUND_PREFER_FLOOR: return build_ceil(b, build_sub(b, x, half));
  case ROUND_PREFER_CEIL: return build_floor(b, build_add(b, x, half));
  case ROUND_FLOOR: return build_floor(b, x);
  default: return build_ceil(b, x);
  }
}

/** Broadcasts a vector along one axis of a shape. */
static value broadcast_along(builder *b, value v, const sizes *shape, size_t axis) {
  sizes s = {.rank = shape->rank};
  for (size_t i = 0; i < s.rank; i++) s.at[i] = i == axis ? shape->at[i] : ix_const(b->ir, 1);
  return build_expand(b, build_reshape(b, v, &s), shape);
}

/** Integer coordinates as indices of an axis, clamped to the edge. The last index as f32 may be
    rounded up where f32 has not all integers. */
static value clamp_index(builder *b, const node *in, value coordinates) {
  enum { F32_ALL_INTEGERS = 1 << 24 };
  value clamped = build_clip(b, coordinates, build_num(b, 0), last_index(b, in));
  value index = build_cast(b, clamped, DT_I64);
  if (in->hi <= F32_ALL_INTEGERS) return index;
  return build_minimum(b, index, value_of(ex_size(b, ix_add_const(b->ir, in, -1), DT_I64)));
}

/** Gathers x at integer coordinates along an axis, clamped to the edge. */
static value gather_clamped(builder *b, value x, size_t axis, const resized_axis *a,
                            value coordinates) {
  sizes s = sizes_with(sizes_of(x.node), axis, a->out);
  value index = broadcast_along(b, clamp_index(b, a->in, coordinates), &s, axis);
  return value_of(node_gather(b, x.node, axis, index.node));
}

/** The cubic convolution kernel (Keys, 1981) at distance t ≤ 1. */
static value cubic_weight_near(builder *b, value t, double a) {
  value w = build_sub(b, build_mul(b, t, build_num(b, a + 2)), build_num(b, a + 3));
  return build_add(b, build_mul(b, w, build_mul(b, t, t)), build_num(b, 1));
}

/** The cubic convolution kernel at distance 1 < t < 2. */
static value cubic_weight_far(builder *b, value t, double a) {
  value w = build_sub(b, build_mul(b, t, build_num(b, a)), build_num(b, 5 * a));
  w = build_add(b, build_mul(b, w, t), build_num(b, 8 * a));
  return build_sub(b, build_mul(b, w, t), build_num(b, 4 * a));
}

enum { MAX_TAPS = 64, CUBIC_TAPS = 4 };

/** The neighbours of source coordinates, and their weights. */
typedef struct taps {
  size_t n;
  value coordinate[MAX_TAPS], weight[MAX_TAPS];
} taps;

/** The weight at a distance of a kernel that reaches 1 (linear) or 2 (cubic). */
static value kernel_weight(const resize *r, value distance) {
  builder *b = r->b;
  value t = build_abs(b, distance), one = build_num(b, 1), zero = build_num(b, 0);
  if (r->mode == LINEAR) return build_maximum(b, build_sub(b, one, t), zero);
  value far = build_where(b, build_lt(b, t, build_num(b, 2)),
                          cubic_weight_far(b, t, r->cubic_coefficient), zero);
  return build_where(b, build_le(b, t, one), cubic_weight_near(b, t, r->cubic_coefficient), far);
}

/** The neighbours that a kernel stretched by 1 / scale covers; their weights have the sum 1. */
static taps find_wide_taps(const resize *r, const resized_axis *a, value x) {
  builder *b = r->b;
  double scale = a->scale < 1 ? a->scale : 1, reach = r->mode == LINEAR ? 1 : 2;
  if (!(a->scale > 0) || reach / scale > MAX_TAPS / 2 - 1)
    diag_raise(b->diag, TN_ERR_UNSUPPORTED,
               "antialias is supported for known scales of at least %g, not %g",
               reach / (MAX_TAPS / 2 - 1), a->scale);
  int first = (int)floor(-reach / scale) + 1;
  taps t = {.n = (size_t)(2 - 2 * first)};
  value low = build_floor(b, x), sum = {0};
  for (size_t i = 0; i < t.n; i++) {
    t.coordinate[i] = build_add(b, low, build_num(b, first + (double)i));
    value distance = build_mul(b, build_sub(b, t.coordinate[i], x), build_num(b, scale));
    t.weight[i] = kernel_weight(r, distance);
    sum = i ? build_add(b, sum, t.weight[i]) : t.weight[i];
  }
  for (size_t i = 0; i < t.n; i++) t.weight[i] = build_div(b, t.weight[i], sum);
  return t;
}

static taps find_taps(const resize *r, const resized_axis *a, value x) {
  builder *b = r->b;
  if (r->antialias) return find_wide_taps(r, a, x);
  value one = build_num(b, 1);
  if (r->mode == LINEAR) x = build_clip(b, x, build_num(b, 0), last_index(b, a->in));
  value first = build_floor(b, x), t = build_sub(b, x, first), rest = build_sub(b, one, t);
  value next = build_add(b, first, one);
  if (r->mode == LINEAR) return (taps){2, {first, next}, {rest, t}};
  double k = r->cubic_coefficient;
  return (taps){CUBIC_TAPS,
                {build_sub(b, first, one), first, next, build_add(b, next, one)},
                {cubic_weight_far(b, build_add(b, t, one), k), cubic_weight_near(b, t, k),
                 cubic_weight_near(b, rest, k), cubic_weight_far(b, build_add(b, rest, one), k)}};
}

static value is_outside(builder *b, value x, const node *in) {
  return build_logical_or(b, build_lt(b, x, build_num(b, 0)), build_gt(b, x, last_index(b, in)));
}

/** Sets the weights of neighbours outside to 0 and normalises the others (exclude_outside). */
static void exclude_outside(builder *b, taps *t, const node *in) {
  value sum = {0};
  for (size_t i = 0; i < t->n; i++) {
    t->weight[i] =
        build_where(b, is_outside(b, t->coordinate[i], in), build_num(b, 0), t->weight[i]);
    sum = i ? build_add(b, sum, t->weight[i]) : t->weight[i];
  }
  for (size_t i = 0; i < t->n; i++) t->weight[i] = build_div(b, t->weight[i], sum);
}

static value interpolate(const resize *r, value x, size_t axis, const resized_axis *a,
                         value coordinates) {
  builder *b = r->b;
  taps t = find_taps(r, a, coordinates);
  sizes s = sizes_with(sizes_of(x.node), axis, a->out);
  value sum = {0};
  if (r->excludes_outside) exclude_outside(b, &t, a->in);
  for (size_t i = 0; i < t.n; i++) {
    value w = build_cast(b, broadcast_along(b, t.weight[i], &s, axis), (dtype)x.node->dtype);
    value y = build_mul(b, gather_clamped(b, x, axis, a, t.coordinate[i]), w);
    sum = i ? build_add(b, sum, y) : y;
  }
  return sum;
}

/** True if the output repeats each element `scale` times, which needs no gather. The scale of sizes
    is rounded. */
static bool is_repetition(const resize *r, const resized_axis *a) {
  bool rounds_down = r->rounds_by_scale || r->round == ROUND_FLOOR;
  bool rounds_to_nearest = !r->rounds_by_scale && r->round <= ROUND_PREFER_CEIL;
  if (r->mode != NEAREST || a->scale < 1 || a->scale != floor(a->scale)) return false;
  if (ix_scale(r->b->ir, a->in, (int64_t)a->scale) != a->out) return false;
  switch (r->coordinates) {
  case ASYMMETRIC:
  case TF_HALF_PIXEL: return rounds_down;
  case HALF_PIXEL:
  case PYTORCH_HALF_PIXEL: return rounds_to_nearest;
  default: return false;
  }
}

static value resize_axis(const resize *r, value x, size_t axis, const resized_axis *a) {
  builder *b = r->b;
  if (is_repetition(r, a))
    return build_repeat(b, x, (int64_t)axis, ix_const(b->ir, (int64_t)a->scale));
  value coordinates = source_coordinates(r, a);
  value y = r->mode == NEAREST ? gather_clamped(b, x, axis, a, round_coordinates(r, a, coordinates))
                               : interpolate(r, x, axis, a, coordinates);
  if (r->coordinates != CROP_AND_RESIZE) return y;
  sizes s = sizes_of(y.node);
  return build_where(b, broadcast_along(b, is_outside(b, coordinates, a->in), &s, axis),
                     build_num(b, r->extrapolation_value), y);
}

/** Resizes the axes one after another; skips those that stay unchanged. */
static value resize_axes(const resize *r, value x, const resized_axis axes[]) {
  builder *b = r->b;
  dtype t = (dtype)x.node->dtype;
  bool computes = r->mode != NEAREST || r->coordinates == CROP_AND_RESIZE;
  if (computes) x = build_cast(b, x, dtype_is_float(t) ? accumulation_type(t) : DT_F32);
  for (size_t i = 0; i < x.node->rank; i++) {
    const resized_axis *a = &axes[i];
    bool crops = r->coordinates == CROP_AND_RESIZE && (a->start != 0 || a->end != 1);
    if (a->in == a->out && (!a->scale || a->scale == 1) && !crops) continue;
    b->needed = ix_add_const(b->ir, a->in, -1);
    if (a->in->lo < 1 && !a->allows_empty)
      diag_raise(b->diag, TN_ERR_SHAPE,
                 "axis %zu, of size %s, may be empty and cannot be resized to %s", i,
                 size_text(b, a->in), size_text(b, a->out));
    x = resize_axis(r, x, i, a);
  }
  return computes ? build_cast(b, x, t) : x;
}

/* Attributes and inputs of nodes. */

/** Sets the output size to floor(in · scale), computed in f32 like the scales. */
static void set_scale(onnx_call *c, resized_axis *a, size_t axis, double scale) {
  ir *g = onnx_builder(c)->ir;
  if (!(scale > 0) || scale > ONNX_SIZE_MAX)
    onnx_fail(c, TN_ERR_FORMAT,
              "the scale of axis %zu is %g, expected a positive number of at most %d", axis, scale,
              ONNX_SIZE_MAX);
  double whole = floor(scale), part = floor(1 / scale);
  a->scale = scale;
  a->allows_empty = true;
  if (scale == whole) {
    a->out = ix_scale(g, a->in, (int64_t)whole);
  } else if (node_is_const(a->in)) {
    double out = (double)((float)node_int(a->in) * (float)scale);
    if (out > (double)ONNX_SIZE_MAX)
      onnx_fail(c, TN_ERR_UNSUPPORTED, "axis %zu becomes larger than %d", axis, ONNX_SIZE_MAX);
    a->out = ix_const(g, (int64_t)out);
  } else if (1 / scale == part) {
    a->out = ix_floordiv(g, a->in, ix_const(g, (int64_t)part));
  } else {
    onnx_fail_varying_size(c, a->in, "axis %zu, whose size varies, cannot be scaled by %g", axis,
                           scale);
  }
}

/** Sets the output size; a varying input size is then not 0 when the model runs. */
static void set_size(onnx_call *c, resized_axis *a, const node *out) {
  a->out = out;
  a->allows_empty = out == a->in || a->in->op == OP_VAR;
  if (out != a->in && a->in->op == OP_VAR) onnx_require_nonzero(c, a->in);
  if (node_is_const(out) && node_is_const(a->in) && node_int(a->in) > 0)
    a->scale = (double)((float)node_int(out) / (float)node_int(a->in));
  else
    a->scale = out == a->in;
}

/** The constant out / in; raises if it varies. */
static double constant_scale(onnx_call *c, const resized_axis *a, size_t axis) {
  builder *b = onnx_builder(c);
  if (a->scale) return a->scale;
  const char *in = size_text(b, a->in), *out = size_text(b, a->out);
  if (node_is_const(a->in) && node_is_const(a->out))
    onnx_fail(c, TN_ERR_SHAPE, "axis %zu, of size %s, cannot be made %s with a known aspect ratio",
              axis, in, out);
  onnx_fail_varying_size(
      c, node_is_const(a->in) ? a->out : a->in,
      "axis %zu, of size %s, cannot be made %s, because the aspect ratio to keep varies", axis, in,
      out);
}

/** round(size · out / in), halves up, with the scale of axis `by`; exact, as that of f32 is not. */
static const node *scale_size(onnx_call *c, const node *size, size_t axis, const resized_axis *by) {
  ir *g = onnx_builder(c)->ir;
  double scale = by->scale;
  if (scale == floor(scale)) return ix_scale(g, size, (int64_t)scale);
  if (!node_is_const(size))
    onnx_fail_varying_size(
        c, size, "axis %zu, of varying size %s, cannot be scaled by %g to keep the aspect ratio",
        axis, size_text(onnx_builder(c), size), scale);
  int64_t in = node_int(by->in), out = node_int(by->out);
  return ix_const(g, (2 * node_int(size) * out + in) / (2 * in));
}

/** Scales all listed axes by the smallest or largest of their scales (keep_aspect_ratio_policy). */
static void keep_aspect_ratio(onnx_call *c, aspect_policy p, resized_axis axes[],
                              const size_t listed[], size_t n) {
  resized_axis by = {.scale = 0};
  for (size_t i = 0; i < n; i++) {
    double s = constant_scale(c, &axes[listed[i]], listed[i]);
    bool replaces = p == POLICY_NOT_LARGER ? s < by.scale : s > by.scale;
    if (!i || replaces) by = axes[listed[i]];
  }
  if (by.scale > ONNX_SIZE_MAX)
    onnx_fail(c, TN_ERR_UNSUPPORTED, "the sizes require a scale of %g, more than %d", by.scale,
              ONNX_SIZE_MAX);
  for (size_t i = 0; i < n; i++) {
    resized_axis *a = &axes[listed[i]];
    a->out = scale_size(c, a->in, listed[i], &by);
    a->scale = by.scale;
  }
}

/** Lists the axes to which scales, sizes and roi apply: those of attribute axes, or all. */
static size_t list_axes(onnx_call *c, size_t rank, size_t listed[]) {
  const onnx_ints *l = onnx_ints_attribute(c, "axes");
  size_t n = l ? l->n : rank;
  if (n > rank)
    onnx_fail(c, TN_ERR_FORMAT,
              "attribute 'axes' has %zu elements, but the input has %zu dimensions", n, rank);
  for (size_t i = 0; i < n; i++) listed[i] = l ? onnx_normalise_axis(c, l->at[i], rank) : i;
  return n;
}

static void check_count(const onnx_call *c, const char *input, size_t count, size_t expected) {
  if (count != expected)
    onnx_fail(c, TN_ERR_SHAPE, "%s has %zu elements, expected %zu", input, count, expected);
}

static void read_scales(onnx_call *c, resized_axis axes[], const size_t listed[], size_t n,
                        size_t input) {
  size_t count;
  const double *scales = onnx_static_floats(c, input, &count);
  check_count(c, "scales", count, n);
  for (size_t i = 0; i < n; i++) set_scale(c, &axes[listed[i]], listed[i], scales[i]);
}

static void read_sizes(onnx_call *c, resized_axis axes[], const size_t listed[], size_t n) {
  sizes to = shape_argument(c, 3);
  aspect_policy p = (aspect_policy)ENUM_ATTRIBUTE(c, "keep_aspect_ratio_policy", policies);
  check_count(c, "sizes", to.rank, n);
  for (size_t i = 0; i < n; i++) {
    shape_argument_check_size(c, &to, i);
    set_size(c, &axes[listed[i]], to.at[i]);
  }
  if (p != POLICY_STRETCH) keep_aspect_ratio(c, p, axes, listed, n);
}

static void read_region(onnx_call *c, resized_axis axes[], const size_t listed[], size_t n) {
  size_t count;
  const double *roi = onnx_static_floats(c, 1, &count);
  check_count(c, "roi", count, 2 * n);
  for (size_t i = 0; i < n; i++) {
    axes[listed[i]].start = roi[i];
    axes[listed[i]].end = roi[n + i];
  }
}

/** Initialises axes that keep their size. */
static void init_axes(const node *x, resized_axis axes[]) {
  for (size_t i = 0; i < x->rank; i++)
    axes[i] = (resized_axis){
        .in = x->dims[i], .out = x->dims[i], .scale = 1, .allows_empty = true, .end = 1};
}

/** True if an optional input is present and has elements: empty ones count as absent. */
static bool has_elements(const onnx_call *c, size_t input) {
  return onnx_has_input(c, input) &&
         !(c->inputs[input].node->rank == 1 && node_is_bits(c->inputs[input].node->dims[0], 0));
}

/** Reads the scales of an Upsample before version 9, attributes. */
static void read_scale_attributes(onnx_call *c, resized_axis axes[], size_t n) {
  if (c->version < 7) {
    check_count(c, "the shape", n, 4);
    set_scale(c, &axes[2], 2, (double)onnx_float_attribute(c, "height_scale", 1));
    set_scale(c, &axes[3], 3, (double)onnx_float_attribute(c, "width_scale", 1));
    return;
  }
  const onnx_attribute *scales = onnx_find_attribute(c, "scales", ONNX_ATTRIBUTE_FLOATS);
  check_count(c, "scales", scales->floats.n, n);
  for (size_t i = 0; i < n; i++) set_scale(c, &axes[i], i, (double)scales->floats.at[i]);
}

/** Builds Upsample, and Resize of version 10. `input`: index of the scales; 0: an attribute. */
static void build_upsample(onnx_call *c, bool rounds_by_scale, size_t input) {
  size_t listed[SIZES_MAX_RANK], n;
  resized_axis axes[SIZES_MAX_RANK];
  value x = onnx_input(c, 0);
  resize r = {.b = onnx_builder(c), .coordinates = ASYMMETRIC, .rounds_by_scale = rounds_by_scale};
  const char *mode = onnx_string_attribute(c, "mode", "nearest");
  r.mode =
      !strcmp(mode, "bilinear") ? LINEAR : (interpolation)ENUM_ATTRIBUTE(c, "mode", interpolations);
  r.round = ROUND_FLOOR;
  init_axes(x.node, axes);
  n = list_axes(c, x.node->rank, listed);
  if (input)
    read_scales(c, axes, listed, n, input);
  else
    read_scale_attributes(c, axes, n);
  c->outputs[0] = resize_axes(&r, x, axes);
}

void onnx_Upsample(onnx_call *c) { build_upsample(c, false, c->version >= 9 ? 1 : 0); }

void onnx_Resize(onnx_call *c) {
  if (c->version < 11) {
    build_upsample(c, true, 1);
    return;
  }
  size_t listed[SIZES_MAX_RANK];
  resized_axis axes[SIZES_MAX_RANK];
  value x = onnx_input(c, 0);
  resize r = {.b = onnx_builder(c),
              .mode = (interpolation)ENUM_ATTRIBUTE(c, "mode", interpolations),
              .round = (rounding)ENUM_ATTRIBUTE(c, "nearest_mode", roundings),
              .coordinates = (coordinate_mode)ENUM_ATTRIBUTE(c, "coordinate_transformation_mode",
                                                             coordinate_modes),
              .antialias = onnx_int_attribute(c, "antialias", 0) != 0,
              .excludes_outside = onnx_int_attribute(c, "exclude_outside", 0) != 0,
              .cubic_coefficient = (double)onnx_float_attribute(c, "cubic_coeff_a", -0.75f),
              .extrapolation_value = (double)onnx_float_attribute(c, "extrapolation_value", 0)};
  if (r.antialias && r.mode == NEAREST)
    onnx_fail(c, TN_ERR_FORMAT, "antialias is set, which nearest does not have");
  init_axes(x.node, axes);
  size_t n = list_axes(c, x.node->rank, listed);
  if (has_elements(c, 2))
    read_scales(c, axes, listed, n, 2);
  else if (has_elements(c, 3))
    read_sizes(c, axes, listed, n);
  else
    onnx_fail(c, TN_ERR_FORMAT, "expected input scales or sizes, got neither");
  if (r.coordinates == CROP_AND_RESIZE) read_region(c, axes, listed, n);
  c->outputs[0] = resize_axes(&r, x, axes);
}
