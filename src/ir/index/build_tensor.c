/* Implements the builders of tensor ops: lays out their sources as ops.def names them and interns
   the node by ir_node. */
#include "ir/index/build_tensor.h"

#include "ir/core/build.h"
#include "ir/index/index_arithmetic.h"

/** Concatenates at most two nodes and two lists of `rank` nodes each. */
static size_t join_sources(const node *src[], const node *const first[], size_t n_first,
                           const node *const a[], size_t n_a, const node *const b[], size_t n_b) {
  size_t n = 0;
  for (size_t i = 0; i < n_first; i++) src[n++] = first[i];
  for (size_t i = 0; i < n_a; i++) src[n++] = a[i];
  for (size_t i = 0; i < n_b; i++) src[n++] = b[i];
  return n;
}

const node *ir_reshape(ir *g, const node *x, size_t rank, const node *const dims[]) {
  const node *src[IR_MAX_MOVEMENT_SOURCES];
  ir_check_rank(g, rank);
  size_t n = join_sources(src, &x, 1, dims, rank, NULL, 0);
  return ir_node(g, OP_RESHAPE, (dtype)x->dtype, src, n, NULL, 0);
}

const node *ir_expand(ir *g, const node *x, const node *const dims[]) {
  const node *src[IR_MAX_MOVEMENT_SOURCES];
  ir_check_rank(g, x->rank);
  size_t n = join_sources(src, &x, 1, dims, x->rank, NULL, 0);
  return ir_node(g, OP_EXPAND, (dtype)x->dtype, src, n, NULL, 0);
}

const node *ir_permute(ir *g, const node *x, const int64_t axes[]) {
  return ir_node(g, OP_PERMUTE, (dtype)x->dtype, &x, 1, axes, x->rank);
}

const node *ir_slice(ir *g, const node *x, const node *const starts[], const node *const sizes[],
                     const int64_t steps[]) {
  const node *src[IR_MAX_MOVEMENT_SOURCES];
  ir_check_rank(g, x->rank);
  size_t n = join_sources(src, &x, 1, starts, x->rank, sizes, x->rank);
  return ir_node(g, OP_SLICE, (dtype)x->dtype, src, n, steps, x->rank);
}

const node *ir_pad(ir *g, const node *x, const node *value, const node *const lows[],
                   const node *const sizes[]) {
  const node *src[IR_MAX_MOVEMENT_SOURCES], *first[] = {x, value};
  ir_check_rank(g, x->rank);
  size_t n = join_sources(src, first, 2, lows, x->rank, sizes, x->rank);
  return ir_node(g, OP_PAD, (dtype)x->dtype, src, n, NULL, 0);
}

const node *ir_reduce(ir *g, const node *x, op o, size_t n_axes, const int64_t axes[]) {
  int64_t ints[1 + IR_MAX_RANK];
  ir_check_rank(g, n_axes);
  ints[0] = o;
  for (size_t i = 0; i < n_axes; i++) ints[i + 1] = axes[i];
  return ir_node(g, OP_REDUCE, (dtype)x->dtype, &x, 1, ints, n_axes + 1);
}

const node *ir_gather(ir *g, const node *x, const node *const indices[]) {
  const node *src[IR_MAX_MOVEMENT_SOURCES];
  ir_check_rank(g, x->rank);
  size_t n = join_sources(src, &x, 1, indices, x->rank, NULL, 0);
  return ir_node(g, OP_GATHER, (dtype)x->dtype, src, n, NULL, 0);
}

const node *ir_iota(ir *g, dtype t, size_t rank, const node *const dims[], int64_t axis) {
  return ir_node(g, OP_IOTA, t, dims, rank, &axis, 1);
}

const node *ir_fill(ir *g, const node *scalar, size_t rank, const node *const dims[]) {
  const node *ones[IR_MAX_RANK];
  ir_check_rank(g, rank);
  if (!rank) return scalar;
  for (size_t i = 0; i < rank; i++) ones[i] = ix_const(g, 1);
  return ir_expand(g, ir_reshape(g, scalar, rank, ones), dims);
}

const node *ir_element_count(ir *g, const node *x) {
  const node *size = ix_const(g, 1);
  for (size_t i = 0; i < x->rank; i++) size = ix_mul(g, size, x->dims[i]);
  return size;
}

static const node *scatter(ir *g, const node *x, const node *values, const node *const index[],
                           const int64_t ints[], size_t n_int) {
  const node *src[IR_MAX_RANK + 2] = {x, values};
  for (size_t i = 0; i < x->rank; i++) src[2 + i] = index[i];
  return ir_node(g, OP_SCATTER, (dtype)x->dtype, src, x->rank + 2u, ints, n_int);
}

const node *ir_scatter(ir *g, const node *x, const node *values, const node *const index[],
                       int64_t o) {
  return scatter(g, x, values, index, &o, 1);
}

const node *ir_scatter_distinct(ir *g, const node *x, const node *values, const node *const index[],
                                int64_t o) {
  return scatter(g, x, values, index, (int64_t[]){o, 1}, 2);
}

const node *ir_scan(ir *g, op o, const node *x, size_t axis) {
  int64_t ints[] = {o, (int64_t)axis};
  return ir_node(g, OP_SCAN, (dtype)x->dtype, &x, 1, ints, 2);
}

const node *ir_scan_classes(ir *g, op o, const node *x, size_t axis, const node *classes,
                            int64_t n) {
  int64_t ints[] = {o, (int64_t)axis, n};
  return ir_node(g, OP_SCAN, (dtype)x->dtype, (const node *[]){x, classes}, 2, ints, 3);
}

const node *ir_item(ir *g, const node *x, const node *const at[], int64_t min, const node *most) {
  const node *src[IR_MAX_RANK + 2] = {x};
  ir_check_rank(g, x->rank);
  for (size_t i = 0; i < x->rank; i++) src[1 + i] = at[i];
  src[1 + x->rank] = most;
  return ir_node(g, OP_ITEM, DT_INDEX, src, x->rank + 2u, &min, 1);
}

const node *ir_pick(ir *g, const node *c, const node *a, const node *b) {
  const node *src[IR_MAX_RANK + 3] = {c, a, b};
  if (a == b || node_is_const(c)) return a == b || node_int(c) ? a : b;
  const node *is_first = ix_lt(g, ix_const(g, 0), c);
  ir_check_rank(g, a->rank);
  for (size_t i = 0; i < a->rank; i++)
    src[3 + i] = a->dims[i] == b->dims[i] ? a->dims[i]
                                          : ir_op3(g, OP_WHERE, is_first, a->dims[i], b->dims[i]);
  return ir_node(g, OP_PICK, (dtype)a->dtype, src, a->rank + 3u, NULL, 0);
}

const node *ir_item_element(ir *g, const node *item) {
  const node *x = item->src[0], *at[IR_MAX_RANK];
  for (size_t i = 0; i < x->rank; i++) at[i] = ir_cast(g, item->src[1 + i], DT_I64);
  return ir_cast(g, ir_gather(g, x, at), DT_I64);
}
