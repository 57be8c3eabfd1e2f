/* Rewrites sums over 3×3 windows by Winograd's algorithm. In one dimension two results y0, y1 of
   four elements d0 … d3 and three weights w0 … w2 take four products m = v · u:

     v0 = d0 − d2          u0 = w0
     v1 = d1 + d2          u1 = (w0 + w1 + w2) / 2       y0 = m1 + (m2 + m0)
     v2 = d2 − d1          u2 = (w0 − w1 + w2) / 2       y1 = m1 − (m2 + m3)
     v3 = d3 − d1          u3 = −w2

   Done along both axes, a tile of 2×2 results takes 16 products, each of which is summed over the
   channels before the last step: one batched contraction. The tensors are spelt such that each step
   is one elementwise expression without selects: v is d[a] ± d[2 − a / 2] for a < 4, where the sign
   is + for a = 1, and y_r is m1 ± (m2 + m[3·r]). The last tile of an axis may overhang; its
   elements outside are 0, and its results outside are dropped.

   The results differ from those of the sum by rounding: v and u are sums of up to 4 elements and 9
   weights, and y is one of 9 products, so that the error relates to sums of absolute values of
   these, which are larger than that of the terms (Barabasz et al., "Error analysis and improving
   the accuracy of Winograd convolution", 2020). Infinite or NaN elements reach all results of a
   tile. Hence it is done under the math mode "fast" alone. */
#include "schedule/values/winograd.h"

#include "ir/core/affine.h"
#include "ir/core/binder.h"
#include "ir/core/build.h"
#include "ir/core/likely_value.h"
#include "ir/index/build_tensor.h"
#include "ir/index/index_arithmetic.h"
#include "ir/transform/copy_graph.h"
#include "schedule/core/axis_views.h"
#include "schedule/values/window_sum.h"
#include "target/machine.h"

enum { RESULTS = 2, PRODUCTS = 4, WINDOW = 3 /* of a tile along an axis */ };

typedef struct rewriting {
  ir *g;
  const winograd_request *request;
  node_list weights;
} rewriting;

/** The sizes of ranges. */
static node_list sizes_of(ir *g, const node_list *ranges) {
  node_list sizes = {0};
  for (size_t i = 0; i < ranges->n; i++)
    vec_push(ir_scratch(g), &sizes, range_extent(ranges->at[i]));
  return sizes;
}

static double count_of(const node_list *ranges) {
  double n = 1;
  for (size_t i = 0; i < ranges->n; i++) n *= ix_likely(range_extent(ranges->at[i]));
  return n;
}

/** The tiles along a window's axis. */
static const node *tiles_along(ir *g, const window_sum *s, size_t i) {
  const node *results = range_extent(s->place[i]);
  return ix_floordiv(g, ix_add_const(g, results, RESULTS - 1), ix_const(g, RESULTS));
}

/* Profit. */

/** Products that take as long as the transforms of an element of x or of a sum, of which there are
    `elements` in all. */
static double cost_of_element(const rewriting *f, double elements) {
  bool is_cached = elements * (double)dtype_bytes(DT_F32) <= f->request->cache;
  return is_cached ? MACHINE_WINOGRAD_CACHED_TERMS : MACHINE_WINOGRAD_FAR_TERMS;
}

/** True if the products that are saved take longer than the transforms of x and of the sums, and
    than reading the weights that are added. */
static bool saves_time(const rewriting *f, const window_sum *s) {
  double results = count_of(&s->batch), tiles = results;
  double channels = count_of(&s->channels), outputs = count_of(&s->outputs);
  for (size_t i = 0; i < 2; i++) {
    results *= ix_likely(range_extent(s->place[i]));
    tiles *= ix_likely(tiles_along(f->g, s, i));
  }
  double sums = PRODUCTS * PRODUCTS * tiles;
  double each = cost_of_element(f, results * channels + sums * outputs);
  double saved = (WINDOW * WINDOW * results - sums) * channels * outputs;
  double weights = (PRODUCTS * PRODUCTS - WINDOW * WINDOW) * channels * outputs;
  return saved > sums * each * (channels + outputs) + weights * MACHINE_WINOGRAD_WEIGHT_TERMS;
}

/* Elementwise expressions over views that may have size 1 where the others have more. */

static const node *broadcast(ir *g, const node *x, const node *like) {
  for (size_t i = 0; i < like->rank; i++)
    if (x->dims[i] != like->dims[i]) x = axis_expand(g, x, i, like->dims[i]);
  return x;
}

/** x + sign · y. */
static const node *add_signed(ir *g, const node *x, const node *sign, const node *y) {
  return ir_op2(g, OP_ADD, x, ir_op2(g, OP_MUL, broadcast(g, sign, y), y));
}

/** True at index `at` of an axis: a tensor of rank 1. */
static const node *is_index(ir *g, int64_t size, int64_t at) {
  const node *dims[] = {ix_const(g, size)};
  return ir_op2(g, OP_EQ, ir_iota(g, DT_I64, 1, dims, 0),
                ir_fill(g, ir_const_int(g, DT_I64, at), 1, dims));
}

/** 1 at index `at` of an axis and −1 at others: a tensor of rank 1. */
static const node *sign_of(ir *g, int64_t size, int64_t at) {
  const node *is = is_index(g, size, at);
  return ir_op3(g, OP_WHERE, is, ir_fill(g, ir_const(g, DT_F32, 1), 1, is->dims),
                ir_fill(g, ir_const(g, DT_F32, -1), 1, is->dims));
}

/** Gives a tensor of rank 1 the rank of another one, as the axes from `axis` on. */
static const node *place_axis(ir *g, const node *x, size_t axis, size_t n_axes, const node *like) {
  const node **dims = arena_alloc(ir_scratch(g), like->rank * sizeof *dims);
  for (size_t i = 0; i < like->rank; i++)
    dims[i] = i >= axis && i < axis + n_axes ? like->dims[i] : ix_const(g, 1);
  return ir_reshape(g, x, like->rank, dims);
}

/* Tiles of x: v. */

/** d[a] of windows of four, (…, 4, …), as an axis of two times two indices; `second`: d[2 − a / 2].
 */
static const node *elements_of_tile(ir *g, const node *x, size_t axis, bool second) {
  const node *two = ix_const(g, 2);
  if (!second) return axis_reshape(g, x, axis, 2, (const node *[]){two, two});
  x = axis_slice(g, x, axis, 2, two, -1);
  x = axis_reshape(g, x, axis, 2, (const node *[]){two, ix_const(g, 1)});
  return axis_expand(g, x, axis + 1, two);
}

/** d along both axes, with the axes (2, 2, 2, 2, batch…, tiles, tiles, channels…). */
static const node *elements_of_tiles(ir *g, const window_sum *s, const node *windows, bool down,
                                     bool right) {
  size_t batch = s->batch.n, n = 0;
  const node *x = elements_of_tile(g, windows, batch + 2, right);
  x = elements_of_tile(g, x, batch, down); /* batch…, 2, 2, tiles, 2, 2, tiles, channels… */
  int64_t *to = arena_alloc(ir_scratch(g), x->rank * sizeof *to);
  for (size_t i = 0; i < 2; i++) to[n++] = (int64_t)(batch + i);
  for (size_t i = 0; i < 2; i++) to[n++] = (int64_t)(batch + 3 + i);
  for (size_t i = 0; i < batch; i++) to[n++] = (int64_t)i;
  to[n++] = (int64_t)(batch + 2);
  for (size_t i = batch + 5; i < x->rank; i++) to[n++] = (int64_t)i;
  return ir_permute(g, x, to);
}

static const node *transform_tiles(ir *g, const window_sum *s) {
  const node *x = s->x;
  for (size_t i = 2; i-- > 0;) {
    const node *tiles = tiles_along(g, s, i);
    x = axis_extend(g, x, s->batch.n + i, ix_add_const(g, ix_scale(g, tiles, RESULTS), 2));
    x = axis_windows(g, x, s->batch.n + i, PRODUCTS, RESULTS, tiles);
  }
  const node *d[2][2];
  for (int down = 0; down < 2; down++)
    for (int right = 0; right < 2; right++)
      d[down][right] = elements_of_tiles(g, s, x, down, right);
  const node *sign = sign_of(g, PRODUCTS, 1);
  const node *across = place_axis(g, sign, 2, 2, d[0][0]),
             *along = place_axis(g, sign, 0, 2, d[0][0]);
  return add_signed(g, add_signed(g, d[0][0], across, d[0][1]), along,
                    add_signed(g, d[1][0], across, d[1][1]));
}

/* Weights: u. */

/** A tensor that has x at index `at` of an axis of size 4 and `rest` at the others. */
static const node *select_index(ir *g, const node *rest, size_t axis, int64_t at, const node *x) {
  x = axis_expand(g, x, axis, ix_const(g, PRODUCTS));
  const node *is = place_axis(g, is_index(g, PRODUCTS, at), axis, 1, x);
  return ir_op3(g, OP_WHERE, broadcast(g, is, x), x, rest);
}

/** The weights along an axis of size 3 as an axis of size 4. */
static const node *transform_weights_along(ir *g, const node *w, size_t axis) {
  const node *at[WINDOW], *one = ix_const(g, 1);
  for (int64_t k = 0; k < WINDOW; k++) at[k] = axis_slice(g, w, axis, k, one, 1);
  const node *half = ir_fill(g, ir_const(g, DT_F32, 0.5), at[0]->rank, at[0]->dims);
  const node *ends = ir_op2(g, OP_ADD, at[0], at[2]);
  const node *sum = ir_op2(g, OP_MUL, half, ir_op2(g, OP_ADD, ends, at[1]));
  const node *difference = ir_op2(g, OP_MUL, half, ir_op2(g, OP_SUB, ends, at[1]));
  const node *u = axis_expand(g, ir_op1(g, OP_NEG, at[2]), axis, ix_const(g, PRODUCTS));
  u = select_index(g, u, axis, 2, difference);
  u = select_index(g, u, axis, 1, sum);
  return select_index(g, u, axis, 0, at[0]);
}

/* Products, and y. */

/** Sums over the channels v[16, tiles…, channels…] · u[16, outputs…, channels…]. */
static const node *sum_products(ir *g, const window_sum *s, const node *v, const node *u) {
  size_t outputs = s->outputs.n, channels = s->channels.n;
  const node *one = ix_const(g, 1);
  int64_t *axes = arena_alloc(ir_scratch(g), (channels + 1) * sizeof *axes);
  u = axis_reshape(g, u, 1, 2, (const node *[]){one, u->dims[1]});
  for (size_t i = 0; i < outputs; i++)
    v = axis_reshape(g, v, 1 + i, 2, (const node *[]){v->dims[1 + i], one});
  u = axis_expand(g, u, 1, v->dims[1]);
  for (size_t i = 0; i < outputs; i++) v = axis_expand(g, v, 2 + i, u->dims[2 + i]);
  for (size_t i = 0; i < channels; i++) axes[i] = (int64_t)(2 + outputs + i);
  return ir_reduce(g, ir_op2(g, OP_MUL, v, u), OP_ADD, channels, axes);
}

/** m[which] for each of the two results along an axis of four products; 0: m[3 · result]. */
static const node *pick_products(ir *g, const node *m, size_t axis, int64_t which) {
  const node *both = ix_const(g, RESULTS);
  if (!which) return axis_slice(g, m, axis, 0, both, PRODUCTS - 1);
  return axis_expand(g, axis_slice(g, m, axis, which, ix_const(g, 1), 1), axis, both);
}

/** The results along the axes from `axis` on of the products (4, 4, …). */
static const node *transform_products(ir *g, const node *m, size_t axis) {
  if (axis == 2) return m;
  const node *m0 = transform_products(g, pick_products(g, m, axis, 0), axis + 1);
  const node *m1 = transform_products(g, pick_products(g, m, axis, 1), axis + 1);
  const node *m2 = transform_products(g, pick_products(g, m, axis, 2), axis + 1);
  const node *sign = place_axis(g, sign_of(g, RESULTS, 0), axis, 1, m0);
  return add_signed(g, m1, sign, ir_op2(g, OP_ADD, m2, m0));
}

/** y without what overhangs, with the axes (batch…, places, outputs…), of tiles with the axes (2,
   2, batch…, tiles, tiles, outputs…). */
static const node *join_tiles(ir *g, const window_sum *s, const node *y) {
  size_t batch = s->batch.n, n = 0;
  int64_t *to = arena_alloc(ir_scratch(g), y->rank * sizeof *to);
  for (size_t i = 0; i < batch; i++) to[n++] = (int64_t)(2 + i);
  for (size_t i = 0; i < 2; i++) {
    to[n++] = (int64_t)(2 + batch + i);
    to[n++] = (int64_t)i;
  }
  for (size_t i = batch + 4; i < y->rank; i++) to[n++] = (int64_t)i;
  y = ir_permute(g, y, to);
  node_list dims = sizes_of(g, &s->batch);
  for (size_t i = 0; i < 2; i++)
    vec_push(ir_arena(g), &dims, ix_scale(g, tiles_along(g, s, i), RESULTS));
  for (size_t i = batch + 4; i < y->rank; i++) vec_push(ir_arena(g), &dims, y->dims[i]);
  y = ir_reshape(g, y, dims.n, dims.at);
  for (size_t i = 0; i < 2; i++) y = axis_slice(g, y, batch + i, 0, range_extent(s->place[i]), 1);
  return y;
}

/** y with its axes in the order and number of the sum's. */
static const node *restore_axes(ir *g, const window_sum *s, const node *sum, const node *y) {
  int64_t *to = arena_alloc(ir_scratch(g), (s->result.n + 1) * sizeof *to);
  for (size_t i = 0; i < s->result.n; i++) {
    const node *r = s->result.at[i];
    size_t at = 0;
    while (at < s->batch.n && s->batch.at[at] != r) at++;
    for (size_t k = 0; at == s->batch.n + k && k < 2 && s->place[k] != r; k++) at++;
    for (size_t k = 0; at == s->batch.n + 2 + k && k < s->outputs.n && s->outputs.at[k] != r; k++)
      at++;
    to[i] = (int64_t)at;
  }
  return ir_reshape(g, ir_permute(g, y, to), sum->rank, sum->dims);
}

/** A tensor with its first `n` axes as the axes of the given sizes. */
static const node *reshape_first(ir *g, const node *x, size_t n, size_t n_sizes,
                                 const node *const sizes[]) {
  const node **dims = arena_alloc(ir_scratch(g), (x->rank + n_sizes) * sizeof *dims);
  size_t rank = 0;
  for (size_t i = 0; i < n_sizes; i++) dims[rank++] = sizes[i];
  for (size_t i = n; i < x->rank; i++) dims[rank++] = x->dims[i];
  return ir_reshape(g, x, rank, dims);
}

static const node *rewrite_sum(rewriting *f, const window_sum *s, const node *sum) {
  ir *g = f->g;
  size_t places = s->batch.n + 2;
  const node *v = transform_tiles(g, s), *four = ix_const(g, PRODUCTS);
  const node *u = transform_weights_along(g, transform_weights_along(g, s->w, 0), 1);
  const node *flat[] = {ix_const(g, PRODUCTS * PRODUCTS), ix_const(g, 1)};
  const node **apart = arena_alloc(ir_scratch(g), (2 + places) * sizeof *apart);
  vec_push(ir_arena(g), &f->weights, u);
  apart[0] = apart[1] = four;
  for (size_t i = 0; i < places; i++) {
    apart[2 + i] = v->dims[4 + i];
    flat[1] = ix_mul(g, flat[1], v->dims[4 + i]);
  }
  const node *m =
      sum_products(g, s, reshape_first(g, v, 4 + places, 2, flat), reshape_first(g, u, 2, 1, flat));
  const node *y = transform_products(g, reshape_first(g, m, 2, 2 + places, apart), 0);
  return restore_axes(g, s, sum, join_tiles(g, s, y));
}

static const node *rewrite_node(void *user, const node *n, const node *const src[]) {
  rewriting *f = user;
  window_sum s;
  if (n->op != OP_REDUCE || n->dtype != DT_F32) return NULL;
  const node *sum = ir_with_sources(f->g, n, src);
  bool pays = window_sum_match(f->g, sum, &s) && s.outputs.n && s.channels.n && saves_time(f, &s) &&
              f->request->is_constant(f->request->user, s.leaf);
  return pays ? rewrite_sum(f, &s, sum) : sum;
}

node_list winograd_rewrite(ir *g, const winograd_request *r) {
  rewriting f = {.g = g, .request = r};
  arena_mark here = arena_save(ir_scratch(g));
  ir_copy(g, ir_scratch(g), r->roots, r->n_roots, rewrite_node, &f, r->roots);
  arena_rewind(ir_scratch(g), here);
  return f.weights;
}
