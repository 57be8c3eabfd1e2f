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
   greatest, and of equal elements the first comes first. Elements are compared as integer keys, the
   greatest first. Of a long axis, the first k elements lie in the k blocks whose greatest keys come
   first, as each block before another one has an element before all of it: those blocks are found
   alike, and their elements alone are ranked. */

/* Elements of a block; blocks for each of k from which an axis is divided. No rows of the machine
   table, which `formats` does not see. */
enum { TOPK_BLOCK = 16, TOPK_BLOCKS_LEAST = 4 };

/** Signed integers in the order of x, reversed unless `largest`. */
static value order_keys(builder *b, value x, bool largest) {
  dtype t = (dtype)x.node->dtype;
  if (dtype_is_float(t)) {
    dtype bits = t == DT_F64 ? DT_I64 : DT_I32;
    value most = build_int(b, t == DT_F64 ? INT64_MAX : INT32_MAX);
    if (t != DT_F64) x = build_cast(b, x, DT_F32);
    x = build_where(b, build_eq(b, x, build_int(b, 0)),
                    build_cast(b, build_int(b, 0), (dtype)x.node->dtype), x);
    value key = build_bitcast(b, x, bits);
    key = build_where(b, build_lt(b, key, build_int(b, 0)), build_bitwise_xor(b, key, most), key);
    x = build_where(b, build_isnan(b, x), most, key);
  } else if (t == DT_U64) {
    x = build_bitwise_xor(b, build_bitcast(b, x, DT_I64), build_int(b, INT64_MIN));
  } else {
    x = build_cast(b, x, t == DT_U32 || t == DT_I64 ? DT_I64 : DT_I32);
  }
  return largest ? x : build_bitwise_xor(b, x, build_int(b, -1));
}

static value add_axis(builder *b, value x, int32_t axis) {
  return build_unsqueeze(b, x, (tn_axes){.count = 1, .axis = {axis}});
}

/** The rank of each key along the last axis; of equal ones, that of a smaller index comes first. */
static value rank_keys(builder *b, value key, value index) {
  int32_t rank = (int32_t)key.node->rank, last = (int32_t)index.node->rank;
  value own = add_axis(b, key, rank), other = add_axis(b, key, rank - 1);
  value own_index = add_axis(b, index, last), other_index = add_axis(b, index, last - 1);
  value earlier =
      build_logical_and(b, build_eq(b, other, own), build_lt(b, other_index, own_index));
  value before = build_logical_or(b, build_gt(b, other, own), earlier);
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

static value all_indices(builder *b, const node *n) {
  return build_arange(b, ix_const(b->ir, 0), n, 1, DT_I64);
}

/** Keys in blocks along a new last axis; the last block is filled up with least ones. */
static value block_keys(builder *b, value key) {
  const node *zero = ix_const(b->ir, 0), *n = key.node->dims[key.node->rank - 1];
  const node *blocks =
      ix_floordiv(b->ir, ix_add_const(b->ir, n, TOPK_BLOCK - 1), ix_const(b->ir, TOPK_BLOCK));
  sizes low = {.rank = key.node->rank}, high, to = sizes_of(key.node);
  for (size_t i = 0; i < low.rank; i++) low.at[i] = zero;
  high = low;
  high.at[low.rank - 1] = ix_sub(b->ir, ix_scale(b->ir, blocks, TOPK_BLOCK), n);
  int64_t least = key.node->dtype == DT_I64 ? INT64_MIN : INT32_MIN;
  key = build_pad(b, key, &low, &high, TN_PAD_CONSTANT, build_int(b, least));
  to.at[to.rank - 1] = blocks;
  to = sizes_insert(b, to, to.rank, ix_const(b->ir, TOPK_BLOCK));
  return build_reshape(b, key, &to);
}

/** The last two axes as one. */
static value join_last_axes(builder *b, value x) { return build_flatten(b, x, -2, -1); }

/** The indices of the first k keys along the last axis, in order. Recurses once for each division
    of the axis by TOPK_BLOCK. */
static value first_keys(builder *b, value key, const node *k) {
  const node *n = key.node->dims[key.node->rank - 1];
  if (key.node->rank >= SIZES_MAX_RANK - 1 || k->hi < 1 ||
      n->lo / TOPK_BLOCK / TOPK_BLOCKS_LEAST < k->hi)
    return first_by_rank(b, rank_keys(b, key, all_indices(b, n)), k);
  value blocks = block_keys(b, key);
  value most = build_max(b, blocks, (tn_axes){.count = 1, .axis = {-1}}, false);
  value best = add_axis(b, first_keys(b, most, k), (int32_t)key.node->rank);
  value index = build_add(b, build_mul(b, best, build_int(b, TOPK_BLOCK)),
                          all_indices(b, ix_const(b->ir, TOPK_BLOCK)));
  index = join_last_axes(b, index);
  value of = build_gather_elements(b, join_last_axes(b, blocks), index, -1);
  return build_gather_elements(b, index, first_by_rank(b, rank_keys(b, of, index), k), -1);
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
  value index = first_keys(b, order_keys(b, x, onnx_int_attribute(c, "largest", 1) != 0), k);
  c->outputs[0] = swap_with_last(b, build_gather_elements(b, x, index, -1), axis);
  c->outputs[1] = swap_with_last(b, index, axis);
}
