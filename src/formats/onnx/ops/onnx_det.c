/* ONNX Det: the determinant by elimination with pivots, a column at a time. */
#include "formats/onnx/ops/onnx_builders.h"
#include "ir/index/index_arithmetic.h"
#include "tensor/ops/axes_and_broadcasting.h"
#include "tensor/ops/gather.h"
#include "tensor/ops/type_promotion.h"

enum { DET_SIZE_MAX = 32 };

/** A slice of an axis of (matrices, n, n). */
static value part(builder *b, value x, int64_t axis, int64_t first, int64_t end) {
  return build_slice(b, x, axis, ix_const(b->ir, first), ix_const(b->ir, end), 1);
}

/** Row `index` (matrices, 1, 1) of each matrix: (matrices, 1, n). */
static value row_at(builder *b, value x, value index) {
  sizes s = sizes_with(sizes_of(x.node), 1, ix_const(b->ir, 1));
  return value_of(node_gather(b, x.node, 1, build_expand(b, index, &s).node));
}

/** Eliminates the first column, and multiplies `det` by the pivot: (matrices, n − 1, n − 1). */
static value eliminate(builder *b, value x, int64_t n, value *det) {
  value column = part(b, x, 2, 0, 1), first = part(b, x, 1, 0, 1);
  value index = build_cast(b, build_argmax(b, build_abs(b, column), 1, true), DT_I64);
  value row = row_at(b, x, index), pivot = part(b, row, 2, 0, 1), zero = build_num(b, 0);
  value is_first = build_eq(b, index, build_int(b, 0)), is_zero = build_eq(b, pivot, zero);
  value at = build_arange(b, ix_const(b->ir, 1), ix_const(b->ir, n), 1, DT_I64);
  at = build_unsqueeze(b, at, (tn_axes){.count = 1, .axis = {1}});
  *det = build_mul(b, *det, build_where(b, is_first, pivot, build_neg(b, pivot)));
  value rest = build_where(b, build_eq(b, at, index), first, part(b, x, 1, 1, n));
  value safe = build_where(b, is_zero, build_num(b, 1), pivot);
  value factor = build_div(b, part(b, rest, 2, 0, 1), safe);
  return build_sub(b, part(b, rest, 2, 1, n), build_mul(b, factor, part(b, row, 2, 1, n)));
}

void onnx_Det(onnx_call *c) {
  builder *b = onnx_builder(c);
  value x = onnx_input(c, 0);
  dtype t = (dtype)x.node->dtype;
  sizes s = sizes_of(x.node);
  const node *matrices = ix_const(b->ir, 1);
  if (s.rank < 2 || s.at[s.rank - 1] != s.at[s.rank - 2])
    onnx_fail(c, TN_ERR_SHAPE, "the input, of shape %s, is not of square matrices",
              sizes_text(b, &s));
  const node *size = s.at[s.rank - 1];
  if (!node_is_const(size)) onnx_fail_varying_size(c, size, "the size of the matrices varies");
  if (node_int(size) > DET_SIZE_MAX)
    onnx_fail(c, TN_ERR_UNSUPPORTED, "the matrices have size %lld; at most %d is supported",
              (long long)node_int(size), DET_SIZE_MAX);
  s.rank -= 2;
  for (size_t i = 0; i < s.rank; i++) matrices = ix_mul(b->ir, matrices, s.at[i]);
  sizes one = {3, {matrices, ix_const(b->ir, 1), ix_const(b->ir, 1)}};
  x = build_reshape(b, value_widen(b, x), &(sizes){3, {matrices, size, size}});
  value det = build_full(b, &one, (dtype)x.node->dtype, 1);
  for (int64_t n = node_int(size); n > 0; n--) {
    if (n > 1)
      x = eliminate(b, x, n, &det);
    else
      det = build_mul(b, det, x);
  }
  c->outputs[0] = build_cast(b, build_reshape(b, det, &s), t);
}
