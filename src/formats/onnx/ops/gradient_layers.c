/* The derivatives of layers. */
#include "formats/onnx/ops/gradient_layers.h"

#include "formats/onnx/ops/window_attributes.h"
#include "ir/index/index_arithmetic.h"
#include "tensor/ops/axes_and_broadcasting.h"
#include "tensor/ops/operators.h"
#include "tensor/ops/sliding_windows.h"

static builder *of(const gradient_call *g) { return onnx_builder(g->c); }
static value x_of(const gradient_call *g, size_t i) { return onnx_input(g->c, i); }

/** The axes from `first` on, of `rank`. */
static tn_axes axes_behind(size_t first, size_t rank) {
  tn_axes axes = TN_NO_AXES;
  for (size_t i = first; i < rank; i++) axes.axis[axes.count++] = (int32_t)i;
  return axes;
}

/* Products of matrices. */

static value swapped(builder *b, value x) { return build_swapaxes(b, x, -1, -2); }

/** A vector as the row or the column that it is in a product. */
static value as_matrix(builder *b, value x, bool is_row) {
  sizes s = sizes_of(x.node);
  if (s.rank > 1) return x;
  sizes m = {2, {s.at[0], s.at[0]}};
  m.at[is_row ? 0 : 1] = ix_const(b->ir, 1);
  return build_reshape(b, x, &m);
}

/** The gradient of the result, with the axes that vectors left out. */
static value with_matrix_axes(builder *b, value dy, value x, value w) {
  sizes s = sizes_of(dy.node);
  if (x.node->rank == 1)
    s = sizes_insert(b, s, w.node->rank == 1 ? s.rank : s.rank - 1, ix_const(b->ir, 1));
  if (w.node->rank == 1) s = sizes_insert(b, s, s.rank, ix_const(b->ir, 1));
  return build_reshape(b, dy, &s);
}

static value summed_to(builder *b, value d, value matrix, value x) {
  sizes m = sizes_of(matrix.node), s = sizes_of(x.node);
  return build_reshape(b, gradient_sum_to(b, d, &m), &s);
}

void gradient_of_matmul(gradient_call *g) {
  builder *b = of(g);
  value x = x_of(g, 0), w = x_of(g, 1), dy = with_matrix_axes(b, g->dy, x, w);
  value row = as_matrix(b, x, true), column = as_matrix(b, w, false);
  g->dx[0] = summed_to(b, build_matmul(b, dy, swapped(b, column)), row, x);
  g->dx[1] = summed_to(b, build_matmul(b, swapped(b, row), dy), column, w);
}

/** alpha · A · B + beta · C, where A and B may be transposed. */
void gradient_of_gemm(gradient_call *g) {
  builder *b = of(g);
  value x = x_of(g, 0), w = x_of(g, 1);
  bool swaps_x = onnx_int_attribute(g->c, "transA", 0),
       swaps_w = onnx_int_attribute(g->c, "transB", 0);
  value alpha = build_num(b, (double)onnx_float_attribute(g->c, "alpha", 1)),
        beta = build_num(b, (double)onnx_float_attribute(g->c, "beta", 1));
  value dy = build_mul(b, g->dy, alpha);
  value dx = build_matmul(b, dy, swaps_w ? w : swapped(b, w));
  value dw = build_matmul(b, swaps_x ? x : swapped(b, x), dy);
  g->dx[0] = swaps_x ? swapped(b, dx) : dx;
  g->dx[1] = swaps_w ? swapped(b, dw) : dw;
  if (onnx_has_input(g->c, 2)) g->dx[2] = build_mul(b, g->dy, beta);
}

/* Softmax: along one axis, or before version 13 along it and all later ones. */

static tn_axes softmax_axes(const gradient_call *g) {
  size_t rank = g->y.node->rank;
  bool flattens = g->c->version < 13;
  size_t axis =
      onnx_normalise_axis(g->c, onnx_int_attribute(g->c, "axis", flattens ? 1 : -1), rank);
  return axes_behind(axis, flattens ? rank : axis + 1);
}

/** y · (dy − Σ dy · y). */
void gradient_of_softmax(gradient_call *g) {
  builder *b = of(g);
  value sum = build_sum(b, build_mul(b, g->dy, g->y), softmax_axes(g), true);
  g->dx[0] = build_mul(b, g->y, build_sub(b, g->dy, sum));
}

/** dy − exp y · Σ dy. */
void gradient_of_log_softmax(gradient_call *g) {
  builder *b = of(g);
  value sum = build_sum(b, g->dy, softmax_axes(g), true);
  g->dx[0] = build_sub(b, g->dy, build_mul(b, build_exp(b, g->y), sum));
}

/* Gather: what was read is added where it was. */

/** The axes of a tensor of `rank` whose n axes from `first` on come first; or the way back. */
static tn_axes moved_first(size_t first, size_t n, size_t rank, bool back) {
  tn_axes to = {.count = (int32_t)rank}, inverse = to;
  for (size_t i = 0; i < rank; i++)
    to.axis[i] = (int32_t)(i < n ? first + i : i < n + first ? i - n : i);
  for (size_t i = 0; i < rank; i++) inverse.axis[to.axis[i]] = (int32_t)i;
  return back ? inverse : to;
}

void gradient_of_gather(gradient_call *g) {
  builder *b = of(g);
  value x = x_of(g, 0), index = x_of(g, 1);
  size_t rank = x.node->rank, n = index.node->rank;
  size_t axis = onnx_normalise_axis(g->c, onnx_int_attribute(g->c, "axis", 0), rank);
  sizes s = sizes_of(x.node);
  value zeros = build_permute(b, build_full(b, &s, (dtype)x.node->dtype, 0),
                              moved_first(axis, 1, rank, false));
  value dy = build_permute(b, g->dy, moved_first(axis, n, g->dy.node->rank, false));
  index = build_unsqueeze(b, index, (tn_axes){.count = 1, .axis = {-1}});
  value dx = build_scatter_nd(b, zeros, index, dy, OP_ADD);
  g->dx[0] = build_permute(b, dx, moved_first(axis, 1, rank, true));
}

/* Convolutions. */

static const node *padded(builder *b, const node *x, size_t axis, const node *low,
                          const node *high) {
  return shape_pad(b, x, axis, low, high, ir_const_int(b->ir, (dtype)x->dtype, 0));
}

/** A transposed convolution of dy, cut or padded behind to x's sizes. */
static value conv_operand(const gradient_call *g, const windows *w, const tn_conv_desc *desc) {
  builder *b = of(g);
  tn_conv_desc d = *desc;
  value x = x_of(g, 0);
  for (size_t i = 0; i < w->n; i++) d.pad_high[i] = 0;
  const node *dx = build_conv_transpose(b, g->dy, x_of(g, 1), (value){0}, &d).node;
  for (size_t i = 2; i < x.node->rank; i++)
    dx = padded(b, dx, i, ix_const(b->ir, 0), ix_sub(b->ir, x.node->dims[i], dx->dims[i]));
  return value_of(dx);
}

/** The windows of x that a convolution multiplies: (N, G, 1, C / G, O…, K…). */
static value conv_windows(const gradient_call *g, const windows *w, int64_t groups) {
  builder *b = of(g);
  const node *x = x_of(g, 0).node, *output[WINDOW_AXES];
  for (size_t i = 0; i < w->n; i++) {
    x = padded(b, x, 2 + i, ix_const(b->ir, w->low[i]), ix_const(b->ir, w->high[i]));
    output[i] = g->dy.node->dims[2 + i];
  }
  x = node_windows(b, x, w->n, w->kernel, w->stride, w->dilation, output);
  sizes s = sizes_with(sizes_of(x), 1, x_of(g, 1).node->dims[1]);
  s = sizes_insert(b, sizes_insert(b, s, 1, ix_const(b->ir, 1)), 1, ix_const(b->ir, groups));
  return build_reshape(b, value_of(x), &s);
}

/** dy as (N, G, M / G, 1, O…, 1…). */
static value conv_result(const gradient_call *g, const windows *w, int64_t groups) {
  builder *b = of(g);
  const node *one = ix_const(b->ir, 1), *count = ix_const(b->ir, groups);
  sizes s = sizes_of(g->dy.node);
  s = sizes_with(s, 1, ix_floordiv(b->ir, s.at[1], count));
  s = sizes_insert(b, sizes_insert(b, s, 2, one), 1, count);
  for (size_t i = 0; i < w->n; i++) s = sizes_insert(b, s, s.rank, one);
  return build_reshape(b, g->dy, &s);
}

/** The sum of windows times dy over the batch and the places of windows. */
static value conv_weights(const gradient_call *g, const windows *w, int64_t groups) {
  builder *b = of(g);
  value all = build_mul(b, conv_windows(g, w, groups), conv_result(g, w, groups));
  tn_axes over = axes_behind(4, 4 + w->n);
  over.axis[over.count++] = 0;
  sizes s = sizes_of(x_of(g, 1).node);
  return build_reshape(b, build_sum(b, all, over, false), &s);
}

void gradient_of_conv(gradient_call *g) {
  windows w = window_attributes_read(g->c, x_of(g, 0).node, x_of(g, 1).node);
  window_attributes_pad(g->c, &w, x_of(g, 0).node);
  tn_conv_desc d = window_conv_desc(g->c, &w);
  tn_axes over = axes_behind(2, g->dy.node->rank);
  over.axis[over.count++] = 0;
  g->dx[0] = conv_operand(g, &w, &d);
  g->dx[1] = conv_weights(g, &w, d.groups);
  if (onnx_has_input(g->c, 2)) g->dx[2] = build_sum(of(g), g->dy, over, false);
}
