/* ONNX's products of 8-bit integers: MatMulInteger, ConvInteger, QLinearMatMul and QLinearConv.
   They are exact in i32, up to the rounding of QLinear operators. An element stands for scale · (x
   − zero point). The zero points are multiplied out,

     Σ (x − p) · (w − q) = Σ x·w − q · Σ x − p · Σ w + n · p · q,

   so that Σ x·w is a product of the small types, which processors have instructions for. */
#include "formats/onnx/importer/shape_tensors.h"
#include "formats/onnx/ops/onnx_builders.h"
#include "formats/onnx/ops/quantise.h"
#include "formats/onnx/ops/window_attributes.h"
#include "ir/core/build.h"
#include "ir/index/index_arithmetic.h"
#include "tensor/ops/axes_and_broadcasting.h"
#include "tensor/ops/operators.h"
#include "tensor/ops/reduction.h"
#include "tensor/ops/type_promotion.h"

#include <string.h>

/** The numbers of a quantised operand's inputs. */
typedef struct operand {
  size_t x, zero;
} operand;

/** A zero point as i32; no node where it is absent or known to be 0. */
static value read_zero_point(onnx_call *c, size_t input) {
  size_t n = 0;
  bool is_zero = true;
  if (!onnx_has_input(c, input)) return (value){0};
  value zero = onnx_input(c, input);
  const node *const *e = constant_tensor_elements(c->m, zero, &n);
  for (size_t i = 0; e && i < n; i++) is_zero &= node_is_bits(e[i], 0);
  return e && is_zero ? (value){0} : build_cast(onnx_builder(c), zero, DT_I32);
}

/** Gives a list of numbers `after` more axes of size 1 behind its own; one number stays one. */
static value along_axis(onnx_call *c, value v, size_t after) {
  builder *b = onnx_builder(c);
  if (!v.node || v.node->rank != 1) return v;
  sizes s = {.rank = node_is_bits(v.node->dims[0], 1) ? 0 : 1 + after};
  for (size_t i = 0; i < s.rank; i++) s.at[i] = i ? ix_const(b->ir, 1) : v.node->dims[0];
  return build_reshape(b, v, &s);
}

static value sum_over(builder *b, value x, size_t first, size_t last) {
  axis_list over = axes_from(first, last);
  return value_of(node_reduce(b, OP_ADD, ir_cast(b->ir, x.node, DT_I32), &over, true));
}

/** The number of terms of a sum, as i32. */
static value terms_of(builder *b, const node *n) {
  return build_cast(b, value_of(ir_cast(b->ir, n, DT_I64)), DT_I32);
}

static value subtract(builder *b, value x, value y) {
  return y.node ? build_sub(b, build_cast(b, x, DT_I32), y) : x;
}

/* Matrix products. */

/** Raises unless an operand has 8-bit integers. */
static value read_integers(onnx_call *c, size_t input) {
  value x = onnx_input(c, input);
  dtype t = (dtype)x.node->dtype;
  if (t != DT_U8 && t != DT_I8)
    onnx_fail(c, TN_ERR_DTYPE, "input %zu has type %s, expected u8 or i8", input, dtype_name(t));
  return x;
}

/** Multiplies matrices less their zero points: of x a number, or one a row; of w one a column. */
static value multiply(onnx_call *c, operand x, operand w) {
  builder *b = onnx_builder(c);
  value l = read_integers(c, x.x), r = read_integers(c, w.x);
  value p = along_axis(c, read_zero_point(c, x.zero), 1), q = read_zero_point(c, w.zero);
  if (l.node->rank < 2 || r.node->rank < 2)
    return build_matmul_as(b, subtract(b, l, p), subtract(b, r, q), DT_I32);
  value y = build_matmul_as(b, l, r, DT_I32);
  size_t k = l.node->rank - 1u, rows = r.node->rank - 2u;
  if (q.node) y = build_sub(b, y, build_mul(b, q, sum_over(b, l, k, k + 1)));
  if (p.node) y = build_sub(b, y, build_mul(b, p, sum_over(b, r, rows, rows + 1)));
  if (p.node && q.node)
    y = build_add(b, y, build_mul(b, build_mul(b, p, q), terms_of(b, l.node->dims[k])));
  return y;
}

void onnx_MatMulInteger(onnx_call *c) {
  c->outputs[0] = multiply(c, (operand){0, 2}, (operand){1, 3});
}

/* Convolutions. */

/** Pads an input with its zero point. */
static value pad_with_zero_point(onnx_call *c, value x, const windows *win, size_t zero) {
  builder *b = onnx_builder(c);
  const node *with = ir_const_int(b->ir, (dtype)x.node->dtype, 0), *padded = x.node;
  if (onnx_has_input(c, zero)) with = onnx_scalar_input(c, zero).node;
  for (size_t i = 0; i < win->n; i++)
    padded = shape_pad(b, padded, 2 + i, ix_const(b->ir, win->low[i]),
                       ix_const(b->ir, win->high[i]), with);
  return value_of(padded);
}

/** Convolves x less its zero point, a number, with w less its own, a number or one an output. */
static value convolve(onnx_call *c, operand x, operand w) {
  builder *b = onnx_builder(c);
  value l = read_integers(c, x.x), r = read_integers(c, w.x);
  windows win = window_attributes_read(c, l.node, r.node);
  window_attributes_pad(c, &win, l.node);
  tn_conv_desc d = window_conv_desc(c, &win);
  value p = read_zero_point(c, x.zero), q = along_axis(c, read_zero_point(c, w.zero), 1 + win.n);
  if (p.node && p.node->rank) p = build_cast(b, onnx_scalar_input(c, x.zero), DT_I32);
  if (d.groups >= 1) window_check_channels(c, l.node, ix_scale(b->ir, r.node->dims[1], d.groups));
  r = build_cast(b, subtract(b, r, q), DT_I32);
  l = build_cast(b, pad_with_zero_point(c, l, &win, x.zero), DT_I32);
  memset(d.pad_low, 0, sizeof d.pad_low);
  memset(d.pad_high, 0, sizeof d.pad_high);
  value y = build_conv(b, l, r, (value){0}, &d);
  if (!p.node) return y;
  value sums = sum_over(b, r, 1, r.node->rank); /* (M, 1, …) */
  sizes s = {.rank = 1 + win.n};
  for (size_t i = 0; i < s.rank; i++) s.at[i] = sums.node->dims[i];
  return build_sub(b, y, build_mul(b, p, build_reshape(b, sums, &s)));
}

void onnx_ConvInteger(onnx_call *c) {
  c->outputs[0] = convolve(c, (operand){0, 2}, (operand){1, 3});
}

/* Rounding to a quantised type. */

/** The scale of an operand, at least in f32; `after` as for `along_axis`. */
static value read_scale(onnx_call *c, size_t input, size_t after) {
  return along_axis(c, value_widen(onnx_builder(c), onnx_input(c, input)), after);
}

/** Rounds sums · scale / y scale to the type of y's zero point. `after` as for `along_axis`. */
static value requantise(onnx_call *c, value sums, value scale, size_t after) {
  builder *b = onnx_builder(c);
  value zero = along_axis(c, onnx_input(c, 7), after);
  scale = build_div(b, scale, read_scale(c, 6, after));
  value y = build_mul(b, build_cast(b, sums, (dtype)scale.node->dtype), scale);
  return onnx_quantise(c, y, zero, (dtype)zero.node->dtype);
}

void onnx_QLinearMatMul(onnx_call *c) {
  builder *b = onnx_builder(c);
  value sums = multiply(c, (operand){0, 2}, (operand){3, 5});
  value scale = build_mul(b, read_scale(c, 1, 1), read_scale(c, 4, 0));
  c->outputs[0] = requantise(c, sums, scale, 1);
}

void onnx_QLinearConv(onnx_call *c) {
  builder *b = onnx_builder(c);
  value sums = convolve(c, (operand){0, 2}, (operand){3, 5});
  size_t spatial = sums.node->rank - 2u;
  value scale = build_mul(b, onnx_scalar_input(c, 1), read_scale(c, 4, spatial));
  if (onnx_has_input(c, 8)) sums = build_add(b, sums, along_axis(c, onnx_input(c, 8), spatial));
  c->outputs[0] = requantise(c, sums, scale, spatial);
}
