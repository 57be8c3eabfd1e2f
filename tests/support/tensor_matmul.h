/* Matrix products as tensor graphs, in the ops that the front end builds them from. */
#ifndef TENON_TESTS_SUPPORT_TENSOR_MATMUL_H
#define TENON_TESTS_SUPPORT_TENSOR_MATMUL_H

#include "ir/index/build_tensor.h"
#include "ir/index/index_arithmetic.h"

/** Builds a [m,k] · b [k,n] by movements and a reduction. */
static inline const node *tensor_matmul(ir *g, const node *a, const node *b) {
  const node *m = a->dims[0], *k = a->dims[1], *n = b->dims[1], *dims[] = {m, k, n};
  const node *one = ix_const(g, 1), *left[] = {m, k, one}, *right[] = {one, k, n};
  const node *x = ir_expand(g, ir_reshape(g, a, 3, left), dims);
  const node *y = ir_expand(g, ir_reshape(g, b, 3, right), dims);
  return ir_reduce(g, ir_op2(g, OP_MUL, x, y), OP_ADD, 1, (int64_t[]){1});
}

#endif
