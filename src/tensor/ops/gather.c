/* Reading by index tensors: take (ONNX Gather), gather_elements (torch.gather), gather_nd and
   one_hot. Negative indices count from the end; indices that are out of range read 0. */
#include "tensor/ops/gather.h"

#include "ir/index/build_tensor.h"
#include "ir/index/index_arithmetic.h"
#include "ir/index/index_proof.h"
#include "tensor/context/symbolic_dims.h"
#include "tensor/ops/axes_and_broadcasting.h"
#include "tensor/ops/expressions.h"

const node *node_gather(builder *b, const node *x, size_t axis, const node *index) {
  const node *at[SIZES_MAX_RANK];
  sizes s = sizes_of(index);
  for (size_t i = 0; i < x->rank; i++) at[i] = i == axis ? index : ex_iota(b, DT_I64, &s, i);
  return ir_gather(b->ir, x, at);
}

/** Indices that are out of range stay so; u64 from 2^63 on become negative. */
const node *node_wrap_index(builder *b, value index, const node *size) {
  const node *n = value_typed(b, index).node;
  dtype t = (dtype)n->dtype;
  if (!dtype_is_int(t))
    diag_raise(b->diag, TN_ERR_DTYPE, "the index has type %s; it must be an integer",
               dtype_name(t));
  n = ex_cast(b, n, DT_I64);
  if (!dtype_is_signed(t)) return n;
  sizes s = sizes_of(n);
  const node *from_end = ex_binary(b, OP_ADD, n, ex_fill(b, ex_size(b, size, DT_I64), &s));
  return ex_where(b, ex_binary(b, OP_LT, n, ex_int(b, n, 0)), from_end, n);
}

/** Replaces the axis by the axes of the index. */
value build_take(builder *b, value x, value index, int64_t axis) {
  const node *n = value_typed(b, x).node, *at[SIZES_MAX_RANK];
  size_t a = axis_of(b, axis, n->rank);
  const node *i = node_wrap_index(b, index, n->dims[a]);
  rank_check(b, n->rank - 1u + i->rank);
  sizes s = sizes_remove(sizes_of(n), a), aligned = sizes_of(i);
  for (size_t k = 0; k < i->rank; k++) s = sizes_insert(b, s, a + k, i->dims[k]);
  for (size_t k = a + i->rank; k < s.rank; k++)
    aligned = sizes_insert(b, aligned, aligned.rank, ix_const(b->ir, 1));
  for (size_t k = 0; k < n->rank; k++)
    if (k != a) at[k] = ex_iota(b, DT_I64, &s, k < a ? k : k - 1 + i->rank);
  at[a] = shape_broadcast(b, shape_reshape(b, i, &aligned), &s);
  return value_of(ir_gather(b->ir, n, at));
}

value build_gather_elements(builder *b, value x, value index, int64_t axis) {
  const node *n = value_typed(b, x).node;
  size_t a = axis_of(b, axis, n->rank);
  const node *i = node_wrap_index(b, index, n->dims[a]);
  sizes index_shape = sizes_of(i), shape = sizes_of(n);
  bool is_inside = i->rank == n->rank;
  for (size_t k = 0; is_inside && k < n->rank; k++)
    is_inside = k == a || ix_prove_le(b->ir, i->dims[k], n->dims[k]);
  if (!is_inside)
    diag_raise(
        b->diag, TN_ERR_SHAPE,
        "the index has shape %s and x has shape %s; their ranks must be equal, and no size of "
        "the index larger, except along axis %zu",
        sizes_text(b, &index_shape), sizes_text(b, &shape), a);
  return value_of(node_gather(b, n, a, i));
}

/** Raises unless an index has the shape that ONNX GatherND-13 demands. */
static void check_gather_nd(builder *b, const node *x, const node *index, size_t batch) {
  sizes index_shape = sizes_of(index), shape = sizes_of(x);
  const node *depth = index->rank ? index->dims[index->rank - 1] : NULL;
  bool matches = depth && node_is_const(depth) && batch < index->rank && batch <= x->rank &&
                 node_int(depth) <= (int64_t)(x->rank - batch);
  for (size_t i = 0; matches && i < batch; i++) matches = index->dims[i] == x->dims[i];
  size_t axes = batch <= x->rank ? x->rank - batch : 0;
  bool is_deep = !depth || depth->lo > (int64_t)axes || batch >= index->rank;
  if (!matches)
    diag_raise(
        b->diag, TN_ERR_SHAPE,
        "the index has shape %s and x has shape %s; after %zu equal batch axes, the last axis "
        "of the index must have a coordinate for each of at most %zu axes",
        is_deep ? sizes_text_of_ranks(b, &index_shape) : sizes_text(b, &index_shape),
        is_deep ? sizes_text_of_ranks(b, &shape) : sizes_text(b, &shape), batch, axes);
}

const node *node_index_coordinate(builder *b, const node *index, size_t k, const node *size,
                                  const sizes *s) {
  const node *n = index;
  n = shape_slice(b, n, n->rank - 1u, ix_const(b->ir, (int64_t)k), ix_const(b->ir, 1), 1);
  n = node_wrap_index(b, value_of(n), size);
  sizes aligned = sizes_remove(sizes_of(n), n->rank - 1u);
  while (aligned.rank < s->rank)
    aligned = sizes_insert(b, aligned, aligned.rank, ix_const(b->ir, 1));
  return shape_broadcast(b, shape_reshape(b, n, &aligned), s);
}

value build_gather_nd(builder *b, value x, value index, size_t batch) {
  const node *n = value_typed(b, x).node, *at[SIZES_MAX_RANK];
  index = value_typed(b, index);
  check_gather_nd(b, n, index.node, batch);
  size_t depth = (size_t)node_int(index.node->dims[index.node->rank - 1]);
  sizes s = sizes_remove(sizes_of(index.node), index.node->rank - 1u);
  size_t lead = s.rank;
  for (size_t k = batch + depth; k < n->rank; k++) s = sizes_insert(b, s, s.rank, n->dims[k]);
  rank_check(b, s.rank);
  for (size_t k = 0; k < n->rank; k++) {
    if (k < batch)
      at[k] = ex_iota(b, DT_I64, &s, k);
    else if (k < batch + depth)
      at[k] = node_index_coordinate(b, index.node, k - batch, n->dims[k], &s);
    else
      at[k] = ex_iota(b, DT_I64, &s, lead + k - batch - depth);
  }
  return value_of(ir_gather(b->ir, n, at));
}

value build_one_hot(builder *b, value index, const node *depth, dtype t) {
  const node *i = node_wrap_index(b, index, depth);
  sizes s = sizes_insert(b, sizes_of(i), i->rank, depth);
  rank_check(b, s.rank);
  i = shape_expand(b, shape_unsqueeze(b, i, i->rank), &s);
  return value_of(ex_cast(b, ex_binary(b, OP_EQ, ex_iota(b, DT_I64, &s, s.rank - 1), i), t));
}

/* ---- Public functions ---- */

typedef struct index_call {
  value (*build)(builder *b, value x, value index, int64_t axis);
  int axis;
} index_call;

static value call_index(builder *b, const value in[], size_t n, const void *options) {
  const index_call *c = options;
  (void)n;
  return c->build(b, in[0], in[1], c->axis);
}

tn_tensor *tn_take(tn_tensor *x, tn_tensor *index, int axis) {
  return op_call("take", (tn_tensor *[]){x, index}, 2, 0, call_index,
                 &(index_call){build_take, axis});
}

tn_tensor *tn_gather_elements(tn_tensor *x, tn_tensor *index, int axis) {
  return op_call("gather_elements", (tn_tensor *[]){x, index}, 2, 0, call_index,
                 &(index_call){build_gather_elements, axis});
}

typedef struct one_hot_call {
  tn_dim depth;
  tn_dtype dtype;
} one_hot_call;

static value call_one_hot(builder *b, const value in[], size_t n, const void *options) {
  const one_hot_call *c = options;
  (void)n;
  sizes depth = sizes_from(b, tn_shape(c->depth), false);
  return build_one_hot(b, in[0], depth.at[0], dims_check_dtype(b, c->dtype));
}

tn_tensor *tn_one_hot(tn_tensor *index, tn_dim depth, tn_dtype dtype) {
  return op_call("one_hot", &index, 1, 0, call_one_hot, &(one_hot_call){depth, dtype});
}
