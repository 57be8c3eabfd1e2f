/* Constructors of expressions: elementwise ops, constants and indices in the shape of another node,
   and reductions that sum f16 and bf16 in f32, as PyTorch does. */
#include "tensor/ops/expressions.h"

#include "ir/index/build_tensor.h"
#include "ir/index/index_arithmetic.h"
#include "tensor/ops/axes_and_broadcasting.h"
#include "tensor/ops/type_promotion.h"

void ex_check_computes(builder *b, const node *x) {
  dtype t = (dtype)x->dtype;
  if (dtype_is_storage(t))
    diag_raise(b->diag, TN_ERR_DTYPE, "type %s is not computed with here: cast to %s first",
               dtype_name(t), dtype_name(storage_compute_type(t)));
}

const node *ex_unary(builder *b, op o, const node *x) {
  ex_check_computes(b, x);
  return ir_op1(b->ir, o, x);
}

const node *ex_binary(builder *b, op o, const node *x, const node *y) {
  ex_check_computes(b, x);
  return ir_op2(b->ir, o, x, y);
}

const node *ex_where(builder *b, const node *c, const node *x, const node *y) {
  return ir_op3(b->ir, OP_WHERE, c, x, y);
}

const node *ex_num(builder *b, const node *like, double v) {
  dtype t = (dtype)like->dtype;
  const node *n = dtype_has_floats(t) ? ir_const(b->ir, t, v) : ir_const_int(b->ir, t, (int64_t)v);
  return ir_fill(b->ir, n, like->rank, like->dims);
}

const node *ex_int(builder *b, const node *like, int64_t v) {
  return ir_fill(b->ir, ir_const_int(b->ir, (dtype)like->dtype, v), like->rank, like->dims);
}

const node *ex_binary_num(builder *b, op o, const node *x, double v) {
  return ex_binary(b, o, x, ex_num(b, x, v));
}

const node *ex_iota(builder *b, dtype t, const sizes *shape, size_t axis) {
  return ir_iota(b->ir, t, shape->rank, shape->at, (int64_t)axis);
}

const node *ex_size(builder *b, const node *size, dtype t) {
  return size->op == OP_CONST ? constant_convert(b, size, t) : ex_cast(b, size, t);
}

const node *ex_fill(builder *b, const node *scalar, const sizes *shape) {
  return ir_fill(b->ir, scalar, shape->rank, shape->at);
}
