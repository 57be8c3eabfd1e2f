/* Concatenations as tensor graphs, in the ops that the front end builds them from. */
#ifndef TENON_TESTS_SUPPORT_TENSOR_CONCAT_H
#define TENON_TESTS_SUPPORT_TENSOR_CONCAT_H

#include "ir/core/build.h"
#include "ir/index/build_tensor.h"
#include "ir/index/index_arithmetic.h"

/** Builds n tensors side by side along an axis: selects, from the last one to the first, between
    tensors that are padded to the size of all. */
static inline const node *tensor_concat(ir *g, const node *const x[], size_t n, size_t axis) {
  const node *sizes[IR_MAX_RANK], *lows[IR_MAX_RANK], *all = NULL;
  size_t rank = x[0]->rank;
  for (size_t k = 0; k < rank; k++) sizes[k] = k == axis ? ix_const(g, 0) : x[0]->dims[k];
  for (size_t k = 0; k < rank; k++) lows[k] = ix_const(g, 0);
  for (size_t i = 0; i < n; i++) sizes[axis] = ix_add(g, sizes[axis], x[i]->dims[axis]);
  const node *at = ir_iota(g, DT_I64, rank, sizes, (int64_t)axis), *end = sizes[axis];
  const node *fill = ir_const_int(g, (dtype)x[0]->dtype, 0);
  for (size_t i = n; i-- > 0; end = lows[axis]) {
    lows[axis] = ix_sub(g, end, x[i]->dims[axis]);
    const node *limit = ir_fill(g, ir_cast(g, end, DT_I64), rank, sizes);
    const node *piece = ir_pad(g, x[i], fill, lows, sizes);
    all = all ? ir_op3(g, OP_WHERE, ir_op2(g, OP_LT, at, limit), piece, all) : piece;
  }
  return all;
}

#endif
