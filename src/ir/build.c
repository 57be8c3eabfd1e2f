#include "ir/build.h"

const node *ir_node(ir *g, op o, dtype t, const node *const src[], size_t n_src,
                    const int64_t ints[], size_t n_int) {
  uint16_t lanes = op_is_elementwise(o) && n_src && o != OP_AFFINE ? src[0]->lanes : 1;
  return ir_make(g, &(node_spec){.op = o,
                                 .dtype = t,
                                 .lanes = lanes,
                                 .src = src,
                                 .n_src = n_src,
                                 .ints = ints,
                                 .n_int = n_int});
}

static dtype result_type(op o, const node *const src[]) {
  switch (op_get(o)->type) {
  case TYPE_COMPARE: return DT_BOOL;
  case TYPE_SELECT: return (dtype)src[1]->dtype;
  case TYPE_VOID: return DT_VOID;
  case TYPE_INDEX: return DT_INDEX;
  default: return (dtype)src[0]->dtype;
  }
}

const node *ir_op1(ir *g, op o, const node *a) {
  return ir_node(g, o, (dtype)a->dtype, &a, 1, NULL, 0);
}

const node *ir_op2(ir *g, op o, const node *a, const node *b) {
  const node *src[] = {a, b};
  return ir_node(g, o, result_type(o, src), src, 2, NULL, 0);
}

const node *ir_op3(ir *g, op o, const node *a, const node *b, const node *c) {
  const node *src[] = {a, b, c};
  return ir_node(g, o, result_type(o, src), src, 3, NULL, 0);
}

const node *ir_cast(ir *g, const node *a, dtype to) {
  return a->dtype == to ? a : ir_node(g, OP_CAST, to, &a, 1, NULL, 0);
}

const node *ir_bitcast(ir *g, const node *a, dtype to) {
  return a->dtype == to ? a : ir_node(g, OP_BITCAST, to, &a, 1, NULL, 0);
}

const node *ir_const_bits(ir *g, dtype t, uint64_t bits) {
  int64_t value = (int64_t)bits;
  return ir_node(g, OP_CONST, t, NULL, 0, &value, 1);
}

const node *ir_const(ir *g, dtype t, double value) {
  return ir_const_bits(g, t, scalar_from_double(t, value));
}

const node *ir_const_int(ir *g, dtype t, int64_t value) {
  return ir_const_bits(g, t, scalar_cast(t, DT_I64, (uint64_t)value));
}

/** Sources made of at most two nodes and two lists, which are as long as ranks. */
static size_t join(const node *src[], const node *const first[], size_t n_first,
                   const node *const a[], size_t n_a, const node *const b[], size_t n_b) {
  size_t n = 0;
  for (size_t i = 0; i < n_first; i++) src[n++] = first[i];
  for (size_t i = 0; i < n_a; i++) src[n++] = a[i];
  for (size_t i = 0; i < n_b; i++) src[n++] = b[i];
  return n;
}

const node *ir_reshape(ir *g, const node *x, size_t rank, const node *const dims[]) {
  const node *src[IR_MOST_MOVED];
  ir_check_rank(g, rank);
  size_t n = join(src, &x, 1, dims, rank, NULL, 0);
  return ir_node(g, OP_RESHAPE, (dtype)x->dtype, src, n, NULL, 0);
}

const node *ir_expand(ir *g, const node *x, const node *const dims[]) {
  const node *src[IR_MOST_MOVED];
  ir_check_rank(g, x->rank);
  size_t n = join(src, &x, 1, dims, x->rank, NULL, 0);
  return ir_node(g, OP_EXPAND, (dtype)x->dtype, src, n, NULL, 0);
}

const node *ir_permute(ir *g, const node *x, const int64_t axes[]) {
  return ir_node(g, OP_PERMUTE, (dtype)x->dtype, &x, 1, axes, x->rank);
}

const node *ir_slice(ir *g, const node *x, const node *const starts[], const node *const sizes[],
                     const int64_t steps[]) {
  const node *src[IR_MOST_MOVED];
  ir_check_rank(g, x->rank);
  size_t n = join(src, &x, 1, starts, x->rank, sizes, x->rank);
  return ir_node(g, OP_SLICE, (dtype)x->dtype, src, n, steps, x->rank);
}

const node *ir_pad(ir *g, const node *x, const node *value, const node *const lows[],
                   const node *const sizes[]) {
  const node *src[IR_MOST_MOVED], *first[] = {x, value};
  ir_check_rank(g, x->rank);
  size_t n = join(src, first, 2, lows, x->rank, sizes, x->rank);
  return ir_node(g, OP_PAD, (dtype)x->dtype, src, n, NULL, 0);
}

const node *ir_reduce(ir *g, const node *x, op o, size_t n_axes, const int64_t axes[]) {
  int64_t ints[1 + IR_MOST_RANK];
  ir_check_rank(g, n_axes);
  ints[0] = o;
  for (size_t i = 0; i < n_axes; i++) ints[i + 1] = axes[i];
  return ir_node(g, OP_REDUCE, (dtype)x->dtype, &x, 1, ints, n_axes + 1);
}

bool reduce_has_axis(const node *reduce, size_t axis) {
  for (uint32_t k = 1; k < reduce->n_int; k++)
    if (reduce->ints[k] == (int64_t)axis) return true;
  return false;
}

const node *ir_gather(ir *g, const node *x, const node *const indices[]) {
  const node *src[IR_MOST_MOVED];
  ir_check_rank(g, x->rank);
  size_t n = join(src, &x, 1, indices, x->rank, NULL, 0);
  return ir_node(g, OP_GATHER, (dtype)x->dtype, src, n, NULL, 0);
}

const node *ir_iota(ir *g, dtype t, size_t rank, const node *const dims[], int64_t axis) {
  return ir_node(g, OP_IOTA, t, dims, rank, &axis, 1);
}

const node *ir_fill(ir *g, const node *scalar, size_t rank, const node *const dims[]) {
  const node *ones[IR_MOST_RANK];
  ir_check_rank(g, rank);
  if (!rank) return scalar;
  for (size_t i = 0; i < rank; i++) ones[i] = ix_const(g, 1);
  return ir_expand(g, ir_reshape(g, scalar, rank, ones), dims);
}

bool ir_same_shape(const node *a, const node *b) {
  if (a->rank != b->rank) return false;
  if (a->dims == b->dims) return true;
  for (size_t i = 0; i < a->rank; i++)
    if (a->dims[i] != b->dims[i]) return false;
  return true;
}

const node *ir_size(ir *g, const node *x) {
  const node *size = ix_const(g, 1);
  for (size_t i = 0; i < x->rank; i++) size = ix_mul(g, size, x->dims[i]);
  return size;
}
