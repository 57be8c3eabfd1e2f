/* ONNX operators that search or sort an axis: ArgMax, ArgMin and TopK. NonZero and Unique would
   belong here; sizes cannot depend on data. */
#include "formats/onnx/ops/onnx_builders.h"
#include "ir/index/index_arithmetic.h"
#include "ir/index/index_proof.h"
#include "tensor/ops/axes_and_broadcasting.h"
#include "tensor/ops/operators.h"

typedef value (*arg_builder)(builder *b, value x, int64_t axis, bool keepdims);

/** Builds the index of the extreme along an axis; select_last_index flips the axis. */
static void build_arg_extreme(onnx_call *c, arg_builder build) {
  builder *b = onnx_builder(c);
  value x = onnx_input(c, 0);
  size_t axis = onnx_normalise_axis(c, onnx_int_attribute(c, "axis", 0), x.node->rank);
  bool keepdims = onnx_int_attribute(c, "keepdims", 1) != 0,
       last = onnx_int_attribute(c, "select_last_index", 0) != 0;
  const node *size = x.node->dims[axis];
  if (size->hi < 1) onnx_fail(c, TN_ERR_SHAPE, "axis %zu must not be empty", axis);
  if (last) x = build_flip(b, x, (tn_axes){.count = 1, .axis = {(int32_t)axis}});
  value index = build(b, x, (int64_t)axis, keepdims);
  value end = value_of(ir_cast(b->ir, ix_add_const(b->ir, size, -1), DT_I64));
  c->outputs[0] = last ? build_sub(b, end, index) : index;
}

void onnx_ArgMax(onnx_call *c) { build_arg_extreme(c, build_argmax); }
void onnx_ArgMin(onnx_call *c) { build_arg_extreme(c, build_argmin); }

/* TopK, without a sort: the rank of an element is the number of those before it, each compared with
   each, and entry k of the result is the element of rank k. The order is total: NaN is the
   greatest, and of equal elements the first comes first. */

/** True where x is greater than y, NaN being greater than all other numbers. */
static value is_greater(builder *b, value x, value y) {
  value greater = build_gt(b, x, y);
  if (!dtype_is_float((dtype)x.node->dtype)) return greater;
  value nan_above =
      build_logical_and(b, build_isnan(b, x), build_logical_not(b, build_isnan(b, y)));
  return build_logical_or(b, greater, nan_above);
}

/** The rank of each element along the last axis. */
static value rank_elements(builder *b, value x, bool largest) {
  int32_t rank = (int32_t)x.node->rank;
  const node *n = x.node->dims[rank - 1];
  value i = build_unsqueeze(b, x, (tn_axes){.count = 1, .axis = {rank}});
  value other = build_unsqueeze(b, x, (tn_axes){.count = 1, .axis = {rank - 1}});
  value before = largest ? is_greater(b, other, i) : is_greater(b, i, other);
  value after = largest ? is_greater(b, i, other) : is_greater(b, other, i);
  value at = build_arange(b, ix_const(b->ir, 0), n, 1, DT_I64);
  value is_earlier = build_lt(b, at, build_unsqueeze(b, at, (tn_axes){.count = 1, .axis = {1}}));
  before =
      build_logical_or(b, before, build_logical_and(b, build_logical_not(b, after), is_earlier));
  return build_sum(b, build_cast(b, before, DT_I64), (tn_axes){.count = 1, .axis = {-1}}, false);
}

/** The indices of the first k elements by rank, along the last axis. */
static value first_by_rank(builder *b, value ranks, const node *k) {
  int32_t rank = (int32_t)ranks.node->rank;
  const node *zero = ix_const(b->ir, 0), *n = ranks.node->dims[rank - 1];
  value at = build_arange(b, zero, n, 1, DT_I64), entry = build_arange(b, zero, k, 1, DT_I64);
  ranks = build_unsqueeze(b, ranks, (tn_axes){.count = 1, .axis = {rank - 1}});
  entry = build_unsqueeze(b, entry, (tn_axes){.count = 1, .axis = {1}});
  value hit = build_where(b, build_eq(b, ranks, entry), at, build_int(b, 0));
  return build_sum(b, hit, (tn_axes){.count = 1, .axis = {-1}}, false);
}

/** The number of elements, from an attribute or an input by version. */
static const node *read_k(onnx_call *c) {
  size_t n;
  if (c->version < 10) return ix_const(onnx_builder(c)->ir, onnx_int_attribute(c, "k", 0));
  const node *const *k = onnx_shape_elements(c, 1, &n);
  if (n != 1) onnx_fail(c, TN_ERR_SHAPE, "input 'K' has %zu elements, expected 1", n);
  return k[0];
}

static value swap_with_last(builder *b, value x, size_t axis) {
  return axis + 1 == x.node->rank ? x : build_swapaxes(b, x, (int64_t)axis, -1);
}

void onnx_TopK(onnx_call *c) {
  builder *b = onnx_builder(c);
  value x = onnx_input(c, 0);
  size_t axis = onnx_normalise_axis(c, onnx_int_attribute(c, "axis", -1), x.node->rank);
  const node *k = read_k(c), *rest = ix_sub(b->ir, x.node->dims[axis], k);
  if (k->lo < 0 || !ix_prove_nonnegative(b->ir, rest)) {
    b->needed = rest;
    onnx_fail(c, TN_ERR_SHAPE, "K is %s, not from 0 to %s, the size of axis %zu", size_text(b, k),
              size_text(b, x.node->dims[axis]), axis);
  }
  x = swap_with_last(b, x, axis);
  value ranks = rank_elements(b, x, onnx_int_attribute(c, "largest", 1) != 0);
  value index = first_by_rank(b, ranks, k);
  c->outputs[0] = swap_with_last(b, build_gather_elements(b, x, index, -1), axis);
  c->outputs[1] = swap_with_last(b, index, axis);
}
