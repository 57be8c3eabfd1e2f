/* Writing by index tensors (scatter, scatter_nd, bincount): a SCATTER along one axis, of x for
   scatter, of all axes that an index names, as one, for scatter_nd. */
#include "ir/index/build_tensor.h"
#include "ir/index/index_arithmetic.h"
#include "ir/index/index_proof.h"
#include "tensor/context/symbolic_dims.h"
#include "tensor/ops/axes_and_broadcasting.h"
#include "tensor/ops/expressions.h"
#include "tensor/ops/gather.h"
#include "tensor/ops/type_promotion.h"

/** Scatters along one axis: x (…, I, …), index and updates (…, J, …), whose other sizes are at most
    those of x. Sums and products are computed in the type that they are elsewhere. */
static value scatter_axis(builder *b, op o, const node *x, const node *index, const node *updates,
                          size_t axis) {
  const node *at[SIZES_MAX_RANK];
  dtype t = (dtype)x->dtype, in = o == OP_SET ? t : accumulation_type(t);
  sizes s = sizes_of(updates);
  for (size_t i = 0; i < x->rank; i++) at[i] = i == axis ? index : ex_iota(b, DT_I64, &s, i);
  const node *y = ir_scatter(b->ir, ex_cast(b, x, in), ex_cast(b, updates, in), at,
                             o == OP_SET ? -1 : (int64_t)o);
  return value_of(ex_cast(b, y, t));
}

/** Raises unless updates have the shape to which they are written. */
static void check_updates(builder *b, const node *updates, const sizes *wanted) {
  sizes s = sizes_of(updates);
  if (!sizes_equal(&s, wanted))
    diag_raise(b->diag, TN_ERR_SHAPE, "updates have shape %s; it must be %s", sizes_text(b, &s),
               sizes_text(b, wanted));
}

value build_scatter_elements(builder *b, value x, value index, value updates, int64_t axis, op o) {
  const node *n = value_typed(b, x).node, *u = value_typed(b, updates).node;
  size_t at = axis_of(b, axis, n->rank);
  const node *i = node_wrap_index(b, index, n->dims[at]);
  sizes s = sizes_of(n), index_shape = sizes_of(i);
  bool is_inside = i->rank == n->rank;
  for (size_t k = 0; is_inside && k < n->rank; k++)
    is_inside = k == at || ix_prove_le(b->ir, i->dims[k], n->dims[k]);
  if (!is_inside)
    diag_raise(
        b->diag, TN_ERR_SHAPE,
        "the index has shape %s and x has shape %s; their ranks must be equal, and no size of "
        "the index larger, except along axis %zu",
        sizes_text(b, &index_shape), sizes_text(b, &s), at);
  check_updates(b, u, &index_shape);
  return scatter_axis(b, o, n, i, u, at);
}

/** Row-major positions in the first axes of x that the last axis of the index names; −1 outside. */
static const node *linear_positions(builder *b, const node *x, const node *index, size_t depth) {
  sizes s = sizes_remove(sizes_of(index), index->rank - 1u);
  const node *position = ex_fill(b, ir_const_int(b->ir, DT_I64, 0), &s);
  const node *is_inside = ex_fill(b, ir_const_bits(b->ir, DT_BOOL, 1), &s);
  const node *none = ex_int(b, position, -1);
  for (size_t k = 0; k < depth; k++) {
    const node *i = node_index_coordinate(b, index, k, x->dims[k], &s);
    const node *size = ex_fill(b, ex_size(b, x->dims[k], DT_I64), &s);
    const node *in_range =
        ex_binary(b, OP_AND, ex_binary(b, OP_LT, none, i), ex_binary(b, OP_LT, i, size));
    is_inside = ex_binary(b, OP_AND, is_inside, in_range);
    position = ex_binary(b, OP_ADD, ex_binary(b, OP_MUL, position, size), i);
  }
  return ex_where(b, is_inside, position, none);
}

/** The number of elements in axes first … last − 1. */
static const node *count_elements(builder *b, const sizes *s, size_t first, size_t last) {
  const node *n = ix_const(b->ir, 1);
  for (size_t i = first; i < last; i++) n = ix_mul(b->ir, n, s->at[i]);
  return n;
}

/** Scatters along the first axis of x (positions, rest) and of the updates (indices, rest). */
value build_scatter_nd(builder *b, value x, value index, value updates, op o) {
  const node *n = value_typed(b, x).node, *u = value_typed(b, updates).node;
  const node *i = value_typed(b, index).node;
  const node *k = i->rank ? i->dims[i->rank - 1] : NULL, *one = ix_const(b->ir, 1);
  if (!k || !node_is_const(k) || node_int(k) > n->rank) {
    sizes index_shape = sizes_of(i), shape = sizes_of(n);
    bool is_open = k && !node_is_const(k);
    diag_raise(b->diag, TN_ERR_SHAPE,
               "the index has shape %s and x has shape %s; the last axis of the index must have a "
               "coordinate for each of at most %u axes of x",
               is_open ? sizes_text(b, &index_shape) : sizes_text_of_ranks(b, &index_shape),
               sizes_text_of_ranks(b, &shape), (unsigned)n->rank);
  }
  size_t depth = (size_t)node_int(k), lead = i->rank - 1u;
  sizes s = sizes_of(n), wanted = sizes_remove(sizes_of(i), lead);
  const node *count = count_elements(b, &wanted, 0, lead);
  for (size_t at = depth; at < s.rank; at++)
    wanted = sizes_insert(b, wanted, wanted.rank, s.at[at]);
  check_updates(b, u, &wanted);
  const node *rest = count_elements(b, &s, depth, s.rank);
  sizes of_x = {.rank = 2, .at = {count_elements(b, &s, 0, depth), rest}};
  sizes of_updates = {.rank = 2, .at = {count, rest}}, of_index = {.rank = 2, .at = {count, one}};
  const node *positions = shape_reshape(b, linear_positions(b, n, i, depth), &of_index);
  positions = shape_broadcast(b, positions, &of_updates);
  value y = scatter_axis(b, o, shape_reshape(b, n, &of_x), positions,
                         shape_reshape(b, u, &of_updates), 0);
  return build_reshape(b, y, &s);
}

/** Sums of bools are i64, and of 16-bit floats are f32 until the end. */
value build_bincount(builder *b, value x, value weights, const node *length) {
  const node *n = value_typed(b, x).node;
  dtype from = (dtype)n->dtype;
  if (!dtype_is_int(from))
    diag_raise(b->diag, TN_ERR_DTYPE, "x has type %s; it must be an integer", dtype_name(from));
  sizes s = sizes_of(n), flat = {1, {count_elements(b, &s, 0, s.rank)}}, result = {1, {length}};
  const node *w = weights.node ? value_typed(b, weights).node : ir_const_int(b->ir, DT_I64, 1);
  sizes both[2] = {s, sizes_of(w)}, wide = sizes_broadcast(b, both, 2);
  if (!sizes_equal(&wide, &s))
    diag_raise(b->diag, TN_ERR_SHAPE, "weights have shape %s, which does not stretch to x's, %s",
               sizes_text(b, &both[1]), sizes_text(b, &s));
  dtype t = sum_type((dtype)w->dtype), in = accumulation_type(t);
  w = shape_reshape(b, shape_broadcast(b, ex_cast(b, w, in), &s), &flat);
  const node *at = shape_reshape(b, ex_cast(b, n, DT_I64), &flat);
  const node *none = ex_fill(b, ir_const_int(b->ir, in, 0), &result);
  return value_of(ex_cast(b, ir_scatter(b->ir, none, w, &at, OP_ADD), t));
}

/* ---- Public functions ---- */

typedef struct scatter_call {
  tn_reduction reduction;
  int axis;
  bool is_nd;
} scatter_call;

/** The op that combines values of a type. */
static op reduction_op(builder *b, tn_reduction r, dtype t) {
  bool is_bool = t == DT_BOOL;
  switch (r) {
  case TN_REDUCTION_NONE: return OP_SET;
  case TN_REDUCTION_ADD: return is_bool ? OP_OR : OP_ADD;
  case TN_REDUCTION_MUL: return is_bool ? OP_AND : OP_MUL;
  case TN_REDUCTION_MIN: return is_bool ? OP_AND : OP_MIN;
  case TN_REDUCTION_MAX: return is_bool ? OP_OR : OP_MAX;
  default:
    diag_raise(b->diag, TN_ERR_ARGUMENT, "the reduction is %d, which is not one of tn_reduction",
               (int)r);
  }
}

/** The shape that the updates of scatter_nd have, where its operands can have one. */
static sizes slices_shape(builder *b, const node *x, const node *index) {
  sizes s = sizes_of(index);
  if (!s.rank) return s;
  s.rank--;
  const node *k = index->dims[s.rank];
  size_t depth = node_is_const(k) && node_int(k) <= x->rank ? (size_t)node_int(k) : x->rank;
  for (size_t at = depth; at < x->rank; at++) s = sizes_insert(b, s, s.rank, x->dims[at]);
  return s;
}

/** Updates stretched to a shape, if they can be. */
static value stretch_updates(builder *b, const node *u, const sizes *to) {
  if (u->rank > to->rank) return value_of(u);
  for (size_t i = 0; i < u->rank; i++) {
    const node *size = u->dims[u->rank - 1 - i];
    if (!size_equals(size, 1) && size != to->at[to->rank - 1 - i]) return value_of(u);
  }
  return value_of(shape_broadcast(b, u, to));
}

static value call_scatter(builder *b, const value in[], size_t n, const void *options) {
  const scatter_call *c = options;
  value pair[2] = {in[0], in[2]}, index = value_typed(b, in[1]);
  (void)n;
  dtype t = values_promoted_dtype(b, pair, 2);
  op o = reduction_op(b, c->reduction, t);
  value x = value_of(type_convert(b, in[0], t));
  sizes to = c->is_nd ? slices_shape(b, x.node, index.node) : sizes_of(index.node);
  value updates = stretch_updates(b, type_convert(b, in[2], t), &to);
  return c->is_nd ? build_scatter_nd(b, x, index, updates, o)
                  : build_scatter_elements(b, x, index, updates, c->axis, o);
}

tn_tensor *tn_scatter(tn_tensor *x, tn_tensor *index, tn_tensor *updates, int axis,
                      tn_reduction reduction) {
  return op_call("scatter", (tn_tensor *[]){x, index, updates}, 3, 0, call_scatter,
                 &(scatter_call){reduction, axis, false});
}

tn_tensor *tn_scatter_nd(tn_tensor *x, tn_tensor *index, tn_tensor *updates,
                         tn_reduction reduction) {
  return op_call("scatter_nd", (tn_tensor *[]){x, index, updates}, 3, 0, call_scatter,
                 &(scatter_call){reduction, 0, true});
}

static value call_bincount(builder *b, const value in[], size_t n, const void *options) {
  const node *length = dim_to_node(b, *(const tn_dim *)options);
  (void)n;
  if (!ix_prove_nonnegative(b->ir, length))
    diag_raise(b->diag, TN_ERR_SHAPE, "the length, %s, %s negative", size_text(b, length),
               length->hi < 0 ? "is" : "can be");
  return build_bincount(b, in[0], in[1], length);
}

tn_tensor *tn_bincount(tn_tensor *x, tn_tensor *weights, tn_dim length) {
  return op_call("bincount", (tn_tensor *[]){x, weights}, 2, 2, call_bincount, &length);
}
