/* ONNX Resize and Upsample: separable interpolation (nearest, linear, cubic by Keys 1981;
   no antialiasing). Each axis maps result coordinates to source coordinates, gathers the
   neighbours and sums them by weights. */
#include "formats/onnx/ops/axis_arguments.h"
#include "formats/onnx/ops/onnx_builders.h"
#include "ir/index/index_arithmetic.h"
#include "tensor/ops/op_helpers.h"

#include <math.h>
#include <string.h>

typedef enum mixing { MIX_NEAREST, MIX_LINEAR, MIX_CUBIC } mixing;
typedef enum rounding { ROUND_PREFER_FLOOR, ROUND_PREFER_CEIL, ROUND_FLOOR, ROUND_CEIL } rounding;
typedef enum mapping {
  MAP_HALF_PIXEL,
  MAP_HALF_PIXEL_SYMMETRIC,
  MAP_PYTORCH,
  MAP_ALIGN_CORNERS,
  MAP_ASYMMETRIC,
  MAP_TF_HALF_PIXEL,
  MAP_CROP
} mapping;
typedef enum policy { POLICY_STRETCH, POLICY_NOT_LARGER, POLICY_NOT_SMALLER } policy;

static const char *const mixings[] = {"nearest", "linear", "cubic"};
static const char *const roundings[] = {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"};
static const char *const mappings[] = {
    "half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners",
    "asymmetric", "tf_half_pixel_for_nn", "tf_crop_and_resize"};
static const char *const policies[] = {"stretch", "not_larger", "not_smaller"};

typedef struct resize {
  builder *b;
  mixing mix;
  rounding round;
  mapping map;
  bool rounds_by_size; /* version 10: down where there is more, up where there is less */
  bool excludes;       /* neighbours outside have weight 0; else they are clamped to the edge */
  double cubic, beyond;
} resize;

typedef struct resized_axis {
  const node *in, *out;
  double scale; /* 0: it is out / in, which varies */
  bool follows; /* of nothing nothing is made */
  double start, end;
} resized_axis;

/* Vectors over the positions of the resulting axis. */

static value size_value(builder *b, const node *n) { return value_of(ex_size(b, n, DT_F32)); }

static value scale_value(builder *b, const resized_axis *a) {
  return a->scale ? build_num(b, a->scale)
                  : build_div(b, size_value(b, a->out), size_value(b, a->in));
}

static value below(builder *b, const node *n) { /* n − 1 */
  return build_sub(b, size_value(b, n), build_num(b, 1));
}

/** Chooses between a result of one element and a longer one. */
static value if_one(builder *b, const node *out, value then, value otherwise) {
  return build_where(b, build_eq(b, size_value(b, out), build_num(b, 1)), then, otherwise);
}

/** Source coordinates with the corners aligned. */
static value between_ends(builder *b, const resized_axis *a, value o) {
  value steps = build_maximum(b, below(b, a->out), build_num(b, 1));
  return build_div(b, build_mul(b, o, below(b, a->in)), steps);
}

static value cropped(builder *b, const resized_axis *a, value o) {
  value last = below(b, a->in);
  value start = build_mul(b, last, build_num(b, a->start));
  value middle = build_mul(b, last, build_num(b, (a->start + a->end) / 2));
  value at = build_mul(b, between_ends(b, a, o), build_num(b, a->end - a->start));
  return if_one(b, a->out, middle, build_add(b, start, at));
}

/** Of half pixels, where the result is no whole multiple: what is missing is missing at both ends.
 */
static value symmetric(builder *b, const resized_axis *a, value at) {
  value in = size_value(b, a->in);
  value ideal = build_mul(b, in, scale_value(b, a));
  value whole = build_div(b, size_value(b, a->out), ideal);
  value offset =
      build_mul(b, build_mul(b, in, build_num(b, 0.5)), build_sub(b, build_num(b, 1), whole));
  return build_add(b, offset, at);
}

/** Source coordinates of the result's positions, by attribute coordinate_transformation_mode. */
static value source_coordinates(const resize *r, const resized_axis *a) {
  builder *b = r->b;
  sizes s = {1, {a->out}};
  value o = build_cast(b, value_of(ex_iota(b, DT_I64, &s, 0)), DT_F32), half = build_num(b, 0.5);
  if (r->map == MAP_CROP) return cropped(b, a, o);
  if (r->map == MAP_ASYMMETRIC) return build_div(b, o, scale_value(b, a));
  if (r->map == MAP_ALIGN_CORNERS) return between_ends(b, a, o);
  value at = build_div(b, build_add(b, o, half), scale_value(b, a));
  if (r->map == MAP_TF_HALF_PIXEL) return at;
  at = build_sub(b, at, half);
  if (r->map == MAP_PYTORCH) return if_one(b, a->out, o, at);
  return r->map == MAP_HALF_PIXEL_SYMMETRIC ? symmetric(b, a, at) : at;
}

static value round_coordinates(const resize *r, const resized_axis *a, value at) {
  builder *b = r->b;
  value half = build_num(b, 0.5);
  if (r->rounds_by_size) return (a->scale < 1 ? build_ceil : build_floor)(b, at);
  switch (r->round) {
  case ROUND_PREFER_FLOOR: return build_ceil(b, build_sub(b, at, half));
  case ROUND_PREFER_CEIL: return build_floor(b, build_add(b, at, half));
  case ROUND_FLOOR: return build_floor(b, at);
  default: return build_ceil(b, at);
  }
}

/** Broadcasts a vector along one axis of a shape. */
static value broadcast_along(builder *b, value v, const sizes *shape, size_t axis) {
  sizes s = {.rank = shape->rank};
  for (size_t i = 0; i < s.rank; i++) s.at[i] = i == axis ? shape->at[i] : ix_const(b->ir, 1);
  return build_expand(b, build_reshape(b, v, &s), shape);
}

/** Gathers x at integer coordinates along an axis, clamped to the edge. */
static value gather_clamped(builder *b, value x, size_t axis, const resized_axis *a, value at) {
  sizes s = sizes_with(sizes_of(x.node), axis, a->out);
  at = build_clip(b, at, build_num(b, 0), below(b, a->in));
  value index = broadcast_along(b, build_cast(b, at, DT_I64), &s, axis);
  return value_of(node_gather(b, x.node, axis, index.node));
}

/** The weight of an element `t` away, by cubic convolution (Keys, 1981). */
static value near_weight(builder *b, value t, double a) {
  value w = build_sub(b, build_mul(b, t, build_num(b, a + 2)), build_num(b, a + 3));
  return build_add(b, build_mul(b, w, build_mul(b, t, t)), build_num(b, 1));
}

static value far_weight(builder *b, value t, double a) {
  value w = build_sub(b, build_mul(b, t, build_num(b, a)), build_num(b, 5 * a));
  w = build_add(b, build_mul(b, w, t), build_num(b, 8 * a));
  return build_sub(b, build_mul(b, w, t), build_num(b, 4 * a));
}

enum { MOST_TAPS = 4 };

/** The neighbours of a source coordinate, and their weights. */
typedef struct taps {
  size_t n;
  value at[MOST_TAPS], weight[MOST_TAPS];
} taps;

static taps taps_of(const resize *r, const resized_axis *a, value at) {
  builder *b = r->b;
  value one = build_num(b, 1);
  if (r->mix == MIX_LINEAR) at = build_clip(b, at, build_num(b, 0), below(b, a->in));
  value first = build_floor(b, at), t = build_sub(b, at, first), rest = build_sub(b, one, t);
  value next = build_add(b, first, one);
  if (r->mix == MIX_LINEAR) return (taps){2, {first, next}, {rest, t}};
  double k = r->cubic;
  return (taps){MOST_TAPS,
                {build_sub(b, first, one), first, next, build_add(b, next, one)},
                {far_weight(b, build_add(b, t, one), k), near_weight(b, t, k),
                 near_weight(b, rest, k), far_weight(b, build_add(b, rest, one), k)}};
}

static value is_outside(builder *b, value at, const node *in) {
  return build_logical_or(b, build_lt(b, at, build_num(b, 0)), build_gt(b, at, below(b, in)));
}

static void exclude_outside(builder *b, taps *t, const node *in) {
  value sum = {0};
  for (size_t i = 0; i < t->n; i++) {
    t->weight[i] = build_where(b, is_outside(b, t->at[i], in), build_num(b, 0), t->weight[i]);
    sum = i ? build_add(b, sum, t->weight[i]) : t->weight[i];
  }
  for (size_t i = 0; i < t->n; i++) t->weight[i] = build_div(b, t->weight[i], sum);
}

static value interpolate(const resize *r, value x, size_t axis, const resized_axis *a, value at) {
  builder *b = r->b;
  taps t = taps_of(r, a, at);
  sizes s = sizes_with(sizes_of(x.node), axis, a->out);
  value sum = {0};
  if (r->excludes) exclude_outside(b, &t, a->in);
  for (size_t i = 0; i < t.n; i++) {
    value w = build_cast(b, broadcast_along(b, t.weight[i], &s, axis), (dtype)x.node->dtype);
    value y = build_mul(b, gather_clamped(b, x, axis, a, t.at[i]), w);
    sum = i ? build_add(b, sum, y) : y;
  }
  return sum;
}

/** True if the result repeats each element `scale` times, so that no gather is needed. */
static bool is_repetition(const resize *r, const resized_axis *a) {
  bool by_floor = r->rounds_by_size || r->round == ROUND_FLOOR;
  bool by_nearest = !r->rounds_by_size && r->round <= ROUND_PREFER_CEIL;
  if (r->mix != MIX_NEAREST || a->scale < 1 || a->scale != floor(a->scale)) return false;
  switch (r->map) {
  case MAP_ASYMMETRIC:
  case MAP_TF_HALF_PIXEL: return by_floor;
  case MAP_HALF_PIXEL:
  case MAP_PYTORCH: return by_nearest;
  default: return false;
  }
}

static value resize_axis(const resize *r, value x, size_t axis, const resized_axis *a) {
  builder *b = r->b;
  if (is_repetition(r, a))
    return build_repeat(b, x, (int64_t)axis, ix_const(b->ir, (int64_t)a->scale));
  value at = source_coordinates(r, a);
  value y = r->mix == MIX_NEAREST ? gather_clamped(b, x, axis, a, round_coordinates(r, a, at))
                                  : interpolate(r, x, axis, a, at);
  if (r->map != MAP_CROP) return y;
  sizes s = sizes_of(y.node);
  return build_where(b, broadcast_along(b, is_outside(b, at, a->in), &s, axis),
                     build_num(b, r->beyond), y);
}

/** Resizes each axis whose size or mapping changes elements. */
static value resize_axes(const resize *r, value x, const resized_axis axes[]) {
  builder *b = r->b;
  dtype t = (dtype)x.node->dtype;
  bool mixes = r->mix != MIX_NEAREST || r->map == MAP_CROP;
  if (mixes) x = build_cast(b, x, dtype_is_float(t) ? accumulation_type(t) : DT_F32);
  for (size_t i = 0; i < x.node->rank; i++) {
    const resized_axis *a = &axes[i];
    bool crops = r->map == MAP_CROP && (a->start != 0 || a->end != 1);
    if (a->in == a->out && (!a->scale || a->scale == 1) && !crops) continue;
    b->needed = ix_add_const(b->ir, a->in, -1);
    if (a->in->lo < 1 && !a->follows)
      diag_raise(b->diag, TN_ERR_SHAPE,
                 "axis %zu, of size %s, may be empty, and then has nothing to make %s of", i,
                 size_text(b, a->in), size_text(b, a->out));
    x = resize_axis(r, x, i, a);
  }
  return mixes ? build_cast(b, x, t) : x;
}

/* Attributes and inputs of nodes. */

static size_t choice(const onnx_call *c, const char *name, const char *const options[], size_t n) {
  const char *said = onnx_string_attribute(c, name, options[0]);
  for (size_t i = 0; i < n; i++)
    if (!strcmp(said, options[i])) return i;
  onnx_fail(c, TN_ERR_FORMAT, "%s is '%.50s', which is not known", name, said);
}

#define CHOICE(c, name, options) choice(c, name, options, sizeof(options) / sizeof *(options))

/** Sets the resulting size to floor(in · scale), computed in f32 like the scales. */
static void scale_axis(onnx_call *c, resized_axis *a, size_t axis, double scale) {
  ir *g = onnx_builder(c)->ir;
  if (!(scale > 0) || scale > ONNX_SIZE_MAX)
    onnx_fail(c, TN_ERR_FORMAT, "the scale of axis %zu is %g, not above 0 and at most %d", axis,
              scale, ONNX_SIZE_MAX);
  double whole = floor(scale), part = floor(1 / scale);
  a->scale = scale;
  a->follows = true;
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

/** Sets the resulting size; an axis of varying size must not be 0 when the model runs. */
static void size_axis(onnx_call *c, resized_axis *a, const node *out) {
  a->out = out;
  a->follows = out == a->in || a->in->op == OP_VAR;
  if (out != a->in && a->in->op == OP_VAR) onnx_require_nonzero(c, a->in);
  if (node_is_const(out) && node_is_const(a->in) && node_int(a->in) > 0)
    a->scale = (double)((float)node_int(out) / (float)node_int(a->in));
  else
    a->scale = out == a->in;
}

/** out / in; raises unless it is a number. */
static double ratio(onnx_call *c, const resized_axis *a, size_t axis) {
  builder *b = onnx_builder(c);
  if (a->scale) return a->scale;
  const char *in = size_text(b, a->in), *out = size_text(b, a->out);
  if (node_is_const(a->in) && node_is_const(a->out))
    onnx_fail(c, TN_ERR_SHAPE,
              "axis %zu, of size %s, cannot be made %s: one scale for all axes is not known", axis,
              in, out);
  onnx_fail_varying_size(
      c, node_is_const(a->in) ? a->out : a->in,
      "axis %zu, of size %s, cannot be made %s: the ratio, which is to be kept, varies", axis, in,
      out);
}

/** round(size · scale), halves up. */
static const node *scaled_size(onnx_call *c, const node *size, size_t axis, double scale) {
  ir *g = onnx_builder(c)->ir;
  if (scale == floor(scale)) return ix_scale(g, size, (int64_t)scale);
  if (!node_is_const(size))
    onnx_fail_varying_size(
        c, size, "axis %zu, of size %s, which varies, cannot be scaled by %g to keep the ratio",
        axis, size_text(onnx_builder(c), size), scale);
  return ix_const(g, (int64_t)floor((double)node_int(size) * scale + 0.5));
}

/** One scale for all axes that are resized: the least or the largest that sizes ask for. */
static void keep_aspect(onnx_call *c, policy p, resized_axis axes[], const size_t at[], size_t n) {
  double scale = 0;
  for (size_t i = 0; i < n; i++) {
    double own = ratio(c, &axes[at[i]], at[i]);
    bool better = p == POLICY_NOT_LARGER ? own < scale : own > scale;
    if (!i || better) scale = own;
  }
  if (scale > ONNX_SIZE_MAX)
    onnx_fail(c, TN_ERR_UNSUPPORTED, "sizes ask for %g times as many elements, more than %d", scale,
              ONNX_SIZE_MAX);
  for (size_t i = 0; i < n; i++) {
    resized_axis *a = &axes[at[i]];
    a->out = scaled_size(c, a->in, at[i], scale);
    a->scale = scale;
  }
}

/** The axes that scales, sizes and roi are about: all, or those that the node lists. */
static size_t listed(onnx_call *c, size_t rank, size_t at[]) {
  const onnx_ints *l = onnx_ints_attribute(c, "axes");
  size_t n = l ? l->n : rank;
  if (n > rank) onnx_fail(c, TN_ERR_FORMAT, "it names %zu axes, where the input has %zu", n, rank);
  for (size_t i = 0; i < n; i++) at[i] = l ? onnx_normalise_axis(c, l->at[i], rank) : i;
  return n;
}

static void check_count(const onnx_call *c, const char *what, size_t found, size_t wanted) {
  if (found != wanted)
    onnx_fail(c, TN_ERR_SHAPE, "it has %zu %s, where %zu belong", found, what, wanted);
}

static void read_scales(onnx_call *c, resized_axis axes[], const size_t at[], size_t n,
                        size_t input) {
  size_t count;
  const double *scales = onnx_static_floats(c, input, &count);
  check_count(c, "scales", count, n);
  for (size_t i = 0; i < n; i++) scale_axis(c, &axes[at[i]], at[i], scales[i]);
}

static void read_sizes(onnx_call *c, resized_axis axes[], const size_t at[], size_t n) {
  sizes to = shape_argument(c, 3);
  policy p = (policy)CHOICE(c, "keep_aspect_ratio_policy", policies);
  check_count(c, "sizes", to.rank, n);
  for (size_t i = 0; i < n; i++) {
    shape_argument_check_size(c, &to, i);
    size_axis(c, &axes[at[i]], to.at[i]);
  }
  if (p != POLICY_STRETCH) keep_aspect(c, p, axes, at, n);
}

static void read_region(onnx_call *c, resized_axis axes[], const size_t at[], size_t n) {
  size_t count;
  const double *roi = onnx_static_floats(c, 1, &count);
  check_count(c, "numbers of roi", count, 2 * n);
  for (size_t i = 0; i < n; i++) {
    axes[at[i]].start = roi[i];
    axes[at[i]].end = roi[n + i];
  }
}

static void start_axes(const node *x, resized_axis axes[]) {
  for (size_t i = 0; i < x->rank; i++)
    axes[i] =
        (resized_axis){.in = x->dims[i], .out = x->dims[i], .scale = 1, .follows = true, .end = 1};
}

/** An input that is there and has elements: one without any is as good as left out. */
static bool is_given(const onnx_call *c, size_t input) {
  return onnx_has_input(c, input) &&
         !(c->inputs[input].node->rank == 1 && node_is_bits(c->inputs[input].node->dims[0], 0));
}

/** Upsample, and Resize of version 10. */
static void resize_plainly(onnx_call *c, bool rounds_by_size, size_t input) {
  size_t at[SIZES_MAX_RANK], n;
  resized_axis axes[SIZES_MAX_RANK];
  value x = onnx_input(c, 0);
  resize r = {.b = onnx_builder(c), .map = MAP_ASYMMETRIC, .rounds_by_size = rounds_by_size};
  const char *mode = onnx_string_attribute(c, "mode", "nearest");
  r.mix = !strcmp(mode, "bilinear") ? MIX_LINEAR : (mixing)CHOICE(c, "mode", mixings);
  r.round = ROUND_FLOOR;
  start_axes(x.node, axes);
  n = listed(c, x.node->rank, at);
  if (input)
    read_scales(c, axes, at, n, input);
  else {
    const onnx_attribute *scales = onnx_find_attribute(c, "scales", ONNX_ATTRIBUTE_FLOATS);
    check_count(c, "scales", scales->floats.n, n);
    for (size_t i = 0; i < n; i++) scale_axis(c, &axes[i], i, (double)scales->floats.at[i]);
  }
  c->outputs[0] = resize_axes(&r, x, axes);
}

void onnx_Upsample(onnx_call *c) { resize_plainly(c, false, c->version >= 9 ? 1 : 0); }

void onnx_Resize(onnx_call *c) {
  if (c->version < 11) {
    resize_plainly(c, true, 1);
    return;
  }
  size_t at[SIZES_MAX_RANK];
  resized_axis axes[SIZES_MAX_RANK];
  value x = onnx_input(c, 0);
  if (onnx_int_attribute(c, "antialias", 0))
    onnx_fail(c, TN_ERR_UNSUPPORTED, "antialias is not supported");
  resize r = {.b = onnx_builder(c),
              .mix = (mixing)CHOICE(c, "mode", mixings),
              .round = (rounding)CHOICE(c, "nearest_mode", roundings),
              .map = (mapping)CHOICE(c, "coordinate_transformation_mode", mappings),
              .excludes = onnx_int_attribute(c, "exclude_outside", 0) != 0,
              .cubic = (double)onnx_float_attribute(c, "cubic_coeff_a", -0.75f),
              .beyond = (double)onnx_float_attribute(c, "extrapolation_value", 0)};
  start_axes(x.node, axes);
  size_t n = listed(c, x.node->rank, at);
  if (is_given(c, 2))
    read_scales(c, axes, at, n, 2);
  else if (is_given(c, 3))
    read_sizes(c, axes, at, n);
  else
    onnx_fail(c, TN_ERR_FORMAT, "neither scales nor sizes are given");
  if (r.map == MAP_CROP) read_region(c, axes, at, n);
  c->outputs[0] = resize_axes(&r, x, axes);
}
