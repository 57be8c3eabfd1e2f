/* ONNX GridSample and AffineGrid: images read at the places of a grid. */
#include "formats/onnx/ops/axis_arguments.h"
#include "formats/onnx/ops/enum_attribute.h"
#include "formats/onnx/ops/onnx_builders.h"
#include "formats/onnx/ops/sampling.h"
#include "ir/index/index_arithmetic.h"
#include "tensor/ops/axes_and_broadcasting.h"
#include "tensor/ops/expressions.h"
#include "tensor/ops/type_promotion.h"

typedef enum grid_mode { GRID_LINEAR, GRID_NEAREST, GRID_CUBIC } grid_mode;
typedef enum grid_padding { PADDING_ZEROS, PADDING_BORDER, PADDING_REFLECTION } grid_padding;

static const char *const modes_16[] = {"bilinear", "nearest", "bicubic"};
static const char *const modes_20[] = {"linear", "nearest", "cubic"};
static const char *const paddings[] = {"zeros", "border", "reflection"};

enum { GRID_TAPS = 4 };

typedef struct grid_sample {
  sampled_images images;
  grid_mode mode;
  grid_padding padding;
  bool align_corners;
} grid_sample;

/** The pixels that are combined along an axis, and their weights. */
typedef struct grid_taps {
  size_t n;
  value place[GRID_TAPS], weight[GRID_TAPS], inside[GRID_TAPS];
} grid_taps;

/** The borders at which coordinates are reflected: the outermost pixels' centres or edges. */
static value low_border(const grid_sample *g) {
  return build_num(g->images.b, g->align_corners ? 0 : -0.5);
}

static value high_border(const grid_sample *g, size_t axis, dtype t) {
  return build_sub(g->images.b, sampled_size(&g->images, axis, t),
                   build_num(g->images.b, g->align_corners ? 1 : 0.5));
}

/** Maps −1 … 1 to the pixels of an axis. */
static value denormalise(const grid_sample *g, size_t axis, value x) {
  builder *b = g->images.b;
  value size = sampled_size(&g->images, axis, (dtype)x.node->dtype), one = build_num(b, 1),
        half = build_num(b, 0.5);
  x = build_add(b, x, one);
  if (g->align_corners) return build_mul(b, build_mul(b, x, half), build_sub(b, size, one));
  return build_mul(b, build_sub(b, build_mul(b, x, size), one), half);
}

static value is_between_borders(const grid_sample *g, size_t axis, value x) {
  builder *b = g->images.b;
  return build_logical_and(b, build_ge(b, x, low_border(g)),
                           build_le(b, x, high_border(g, axis, (dtype)x.node->dtype)));
}

/** Reflects at the nearer border until between both. */
static value reflect(const grid_sample *g, size_t axis, value x) {
  builder *b = g->images.b;
  value low = low_border(g), high = high_border(g, axis, (dtype)x.node->dtype);
  value range = build_sub(b, high, low), is_below = build_lt(b, x, low);
  value apart = build_where(b, is_below, build_sub(b, low, x), build_sub(b, x, high));
  value turns = build_floor(b, build_div(b, apart, range));
  value rest = build_sub(b, apart, build_mul(b, turns, range));
  value is_even = build_eq(b, build_mod(b, turns, build_num(b, 2)), build_num(b, 0));
  value from_low = build_eq(b, is_below, is_even);
  value y = build_where(b, from_low, build_add(b, low, rest), build_sub(b, high, rest));
  return build_where(b, is_between_borders(g, axis, x), x, y);
}

static value clamp_to_image(const grid_sample *g, size_t axis, value x) {
  builder *b = g->images.b;
  value size = sampled_size(&g->images, axis, (dtype)x.node->dtype);
  return build_clip(b, x, build_num(b, 0), build_sub(b, size, build_num(b, 1)));
}

/** Σ cₖ·tᵏ, highest power first. */
static value cubic(builder *b, value t, double c3, double c2, double c1, double c0) {
  value y = build_add(b, build_mul(b, t, build_num(b, c3)), build_num(b, c2));
  y = build_add(b, build_mul(b, y, t), build_num(b, c1));
  return build_add(b, build_mul(b, y, t), build_num(b, c0));
}

/** The cubic convolution kernel with a = −3/4 at distances t + 1, t, 1 − t and 2 − t. */
static void set_cubic_weights(builder *b, value t, value weight[GRID_TAPS]) {
  double a = -0.75;
  value rest = build_sub(b, build_num(b, 1), t);
  weight[0] = cubic(b, build_add(b, t, build_num(b, 1)), a, -5 * a, 8 * a, -4 * a);
  weight[1] = cubic(b, t, a + 2, -(a + 3), 0, 1);
  weight[2] = cubic(b, rest, a + 2, -(a + 3), 0, 1);
  weight[3] = cubic(b, build_add(b, rest, build_num(b, 1)), a, -5 * a, 8 * a, -4 * a);
}

static grid_taps taps_of_axis(const grid_sample *g, size_t axis, value x) {
  builder *b = g->images.b;
  x = denormalise(g, axis, x);
  if (g->mode == GRID_NEAREST) x = build_round(b, x);
  if (g->padding == PADDING_REFLECTION) x = reflect(g, axis, x);
  if (g->padding == PADDING_BORDER && g->mode == GRID_LINEAR) x = clamp_to_image(g, axis, x);
  value low = g->mode == GRID_NEAREST ? x : build_floor(b, x), part = build_sub(b, x, low);
  grid_taps t = {.n = g->mode == GRID_NEAREST ? 1 : g->mode == GRID_LINEAR ? 2 : GRID_TAPS};
  t.weight[0] = build_sub(b, build_num(b, 1), part);
  t.weight[1] = part;
  if (g->mode == GRID_CUBIC) set_cubic_weights(b, part, t.weight);
  double first = g->mode == GRID_CUBIC ? -1 : 0;
  for (size_t i = 0; i < t.n; i++) {
    t.place[i] = build_add(b, low, build_num(b, first + (double)i));
    if (g->padding == PADDING_REFLECTION) t.place[i] = reflect(g, axis, t.place[i]);
    t.inside[i] = sampled_is_inside(&g->images, axis, t.place[i]);
  }
  return t;
}

/** The pixels of one tap of each axis, weighted. */
static value weighted_pixels(const grid_sample *g, const grid_taps taps[], const size_t tap[]) {
  const sampled_images *s = &g->images;
  builder *b = s->b;
  value place[SAMPLED_AXES], weight = {0}, inside = {0};
  for (size_t i = 0; i < s->n; i++) {
    const grid_taps *t = &taps[i];
    place[i] = t->place[tap[i]];
    weight = i ? build_mul(b, weight, t->weight[tap[i]]) : t->weight[tap[i]];
    inside = i ? build_logical_and(b, inside, t->inside[tap[i]]) : t->inside[tap[i]];
  }
  value y = sampled_pixels(s, place);
  if (g->mode != GRID_NEAREST) {
    weight = build_cast(b, weight, (dtype)y.node->dtype);
    y = build_mul(b, y, sampled_weight(s, weight));
  }
  if (g->padding != PADDING_ZEROS) return y;
  value zero = build_cast(b, build_int(b, 0), (dtype)y.node->dtype);
  return build_where(b, sampled_weight(s, inside), y, zero);
}

/** Sums the pixels of all combinations of taps. */
static value sum_of_taps(const grid_sample *g, const grid_taps taps[]) {
  value sum = {0};
  size_t tap[SAMPLED_AXES] = {0}, axis = 0;
  for (bool is_first = true; axis < g->images.n; is_first = false) {
    value y = weighted_pixels(g, taps, tap);
    sum = is_first ? y : build_add(g->images.b, sum, y);
    for (axis = 0; axis < g->images.n && ++tap[axis] == taps[axis].n;) tap[axis++] = 0;
  }
  return sum;
}

/** Coordinates of a grid (N, D…, axes), as (N, D·…). */
static value grid_coordinate(builder *b, value grid, size_t k) {
  const node *places = ix_const(b->ir, 1);
  size_t last = grid.node->rank - 1u;
  for (size_t i = 1; i < last; i++) places = ix_mul(b->ir, places, grid.node->dims[i]);
  value one = build_slice(b, grid, (int64_t)last, ix_const(b->ir, (int64_t)k),
                          ix_const(b->ir, (int64_t)k + 1), 1);
  return build_reshape(b, one, &(sizes){2, {grid.node->dims[0], places}});
}

static void check_grid(onnx_call *c, const node *x, const node *grid) {
  bool fits = grid->rank == x->rank && grid->rank > 2 && grid->dims[0] == x->dims[0] &&
              node_is_bits(grid->dims[grid->rank - 1u], x->rank - 2u);
  if (!fits)
    onnx_fail(c, TN_ERR_SHAPE,
              "the grid does not have a place for each axis of the input's images");
  if (!dtype_is_float((dtype)grid->dtype))
    onnx_fail(c, TN_ERR_DTYPE, "the grid is %s, expected floats", dtype_name((dtype)grid->dtype));
}

void onnx_GridSample(onnx_call *c) {
  builder *b = onnx_builder(c);
  value x = onnx_input(c, 0), grid = onnx_input(c, 1);
  dtype t = (dtype)x.node->dtype;
  grid_sample g = {.padding = (grid_padding)ENUM_ATTRIBUTE(c, "padding_mode", paddings),
                   .align_corners = onnx_int_attribute(c, "align_corners", 0) != 0};
  g.mode = (grid_mode)(c->version < 20 ? ENUM_ATTRIBUTE(c, "mode", modes_16)
                                       : ENUM_ATTRIBUTE(c, "mode", modes_20));
  check_grid(c, x.node, grid.node);
  if (g.mode == GRID_CUBIC && x.node->rank > 4)
    onnx_fail(c, TN_ERR_UNSUPPORTED, "cubic interpolation along more than 2 axes is not supported");
  if (g.mode != GRID_NEAREST)
    x = build_cast(b, x, dtype_is_float(t) ? accumulation_type(t) : DT_F32);
  grid = build_cast(b, grid, accumulation_type((dtype)grid.node->dtype));
  g.images = sampled_images_of(c, x);
  grid_taps taps[SAMPLED_AXES];
  for (size_t i = 0; i < g.images.n; i++)
    taps[i] = taps_of_axis(&g, i, grid_coordinate(b, grid, g.images.n - 1 - i));
  sizes to = sizes_of(grid.node);
  for (size_t i = to.rank - 1; i > 1; i--) to.at[i] = to.at[i - 1];
  to.at[1] = x.node->dims[1];
  c->outputs[0] = build_cast(b, build_reshape(b, sum_of_taps(&g, taps), &to), t);
}

/* AffineGrid. */

/** The coordinates −1 … 1 of an axis, in a grid of a shape. */
static value grid_axis(builder *b, const sizes *shape, size_t axis, dtype t, bool align_corners) {
  value i = build_cast(b, value_of(ex_iota(b, DT_I64, shape, axis)), t),
        size = value_of(ex_size(b, shape->at[axis], t)), one = build_num(b, 1),
        two = build_num(b, 2);
  if (!align_corners) {
    value odd = build_add(b, build_mul(b, i, two), one);
    return build_sub(b, build_div(b, odd, size), one);
  }
  value steps = build_maximum(b, build_sub(b, size, one), one);
  return build_sub(b, build_div(b, build_mul(b, i, two), steps), one);
}

void onnx_AffineGrid(onnx_call *c) {
  builder *b = onnx_builder(c);
  value theta = onnx_input(c, 0);
  sizes size = shape_argument(c, 1), shape = {0}, to;
  dtype t = (dtype)theta.node->dtype, wide = accumulation_type(t);
  bool align_corners = onnx_int_attribute(c, "align_corners", 0) != 0;
  size_t n = size.rank < 2 ? 0 : size.rank - 2;
  if ((n != 2 && n != 3) || theta.node->rank != 3 || !node_is_bits(theta.node->dims[1], n) ||
      !node_is_bits(theta.node->dims[2], n + 1))
    onnx_fail(c, TN_ERR_SHAPE, "theta is not a matrix of 2 × 3 or 3 × 4 for the size's axes");
  const node *places = ix_const(b->ir, 1);
  for (size_t i = 0; i < n; i++) {
    shape_argument_check_size(c, &size, i + 2);
    shape.at[shape.rank++] = size.at[i + 2];
    places = ix_mul(b->ir, places, size.at[i + 2]);
  }
  value rows[SAMPLED_AXES + 1];
  sizes flat = {1, {places}};
  for (size_t i = 0; i < n; i++)
    rows[i] = build_reshape(b, grid_axis(b, &shape, n - 1 - i, wide, align_corners), &flat);
  rows[n] = build_full(b, &flat, wide, 1);
  value grid = build_matmul(b, build_cast(b, theta, wide), build_stack(b, rows, n + 1, 0));
  to = sizes_insert(b, shape, 0, theta.node->dims[0]);
  to.at[to.rank++] = ix_const(b->ir, (int64_t)n);
  c->outputs[0] = build_cast(b, build_reshape(b, build_swapaxes(b, grid, 1, 2), &to), t);
}
