/* Tensors from sizes and numbers: full, zeros, ones, num, int, arange, linspace and eye, as in
   NumPy. All are expressions of indices, so that they take no memory where they are fused. */
#include "ir/index/index_arithmetic.h"
#include "tensor/context/symbolic_dims.h"
#include "tensor/ops/axes_and_broadcasting.h"
#include "tensor/ops/expressions.h"

value build_full(builder *b, const sizes *shape, dtype t, double v) {
  return value_of(ex_fill(b, build_cast(b, build_num(b, v), t).node, shape));
}

value build_num(builder *b, double v) {
  return (value){.node = ir_const(b->ir, DT_F64, v), .weak = WEAK_NUM};
}

value build_int(builder *b, int64_t v) {
  return (value){.node = ir_const_int(b->ir, DT_I64, v), .weak = WEAK_INT};
}

value build_arange(builder *b, const node *start, const node *stop, int64_t step, dtype t) {
  ir *g = b->ir;
  if (!step) diag_raise(b->diag, TN_ERR_ARGUMENT, "step is 0; it must be positive or negative");
  if (t == DT_BOOL)
    diag_raise(b->diag, TN_ERR_DTYPE, "type bool is not supported, only numbers are");
  if (step == INT64_MIN) diag_raise(b->diag, TN_ERR_ARGUMENT, "step is below −2^63 + 1");
  const node *distance = step > 0 ? ix_sub(g, stop, start) : ix_sub(g, start, stop);
  const node *by = ix_const(g, step > 0 ? step : -step);
  const node *count = ix_add_const(g, ix_floordiv(g, ix_add_const(g, distance, -1), by), 1);
  sizes s = {.rank = 1, .at = {ix_max(g, count, ix_const(g, 0))}};
  const node *i = ex_iota(b, DT_I64, &s, 0);
  if (step != 1) i = ex_binary(b, OP_MUL, i, ex_int(b, i, step));
  if (!size_equals(start, 0))
    i = ex_binary(b, OP_ADD, i, ex_fill(b, ex_size(b, start, DT_I64), &s));
  return value_of(ex_cast(b, i, t));
}

/** Computes in f64. The first and the last element are selected, as products are rounded. */
value build_linspace(builder *b, double start, double stop, const node *count, dtype t) {
  ir *g = b->ir;
  if (!dtype_has_floats(t))
    diag_raise(b->diag, TN_ERR_DTYPE, "type %s is not supported, only floats are", dtype_name(t));
  sizes s = {.rank = 1, .at = {count}};
  const node *last = ix_add_const(g, count, -1);
  const node *steps = ex_size(b, ix_max(g, last, ix_const(g, 1)), DT_F64);
  const node *step = ex_binary(b, OP_DIV, ir_const(g, DT_F64, stop - start), steps);
  const node *i = ex_iota(b, DT_I64, &s, 0), *at = ex_cast(b, i, DT_F64);
  const node *y = ex_binary(b, OP_MUL, at, ex_fill(b, step, &s));
  y = ex_binary_num(b, OP_ADD, y, start);
  const node *is_last = ex_binary(b, OP_EQ, i, ex_fill(b, ex_size(b, last, DT_I64), &s));
  const node *is_first = ex_binary(b, OP_EQ, i, ex_int(b, i, 0));
  y = ex_where(b, is_last, ex_num(b, y, stop), y);
  return value_of(ex_cast(b, ex_where(b, is_first, ex_num(b, y, start), y), t));
}

value build_eye(builder *b, const node *rows, const node *columns, dtype t) {
  sizes s = {.rank = 2, .at = {rows, columns}};
  const node *row = ex_iota(b, DT_I64, &s, 0), *column = ex_iota(b, DT_I64, &s, 1);
  return value_of(ex_cast(b, ex_binary(b, OP_EQ, row, column), t));
}

/* ---- Public functions ---- */

typedef struct full_call {
  tn_shape shape;
  tn_dtype dtype;
  double value;
} full_call;

static value call_full(builder *b, const value in[], size_t n, const void *options) {
  const full_call *c = options;
  sizes s = sizes_from(b, c->shape, false);
  (void)in;
  (void)n;
  return build_full(b, &s, dims_check_dtype(b, c->dtype), c->value);
}

tn_tensor *tn_full(tn_context *context, tn_shape shape, tn_dtype dtype, double value) {
  return op_call_in(context, "full", call_full, &(full_call){shape, dtype, value});
}

tn_tensor *tn_zeros(tn_context *context, tn_shape shape, tn_dtype dtype) {
  return op_call_in(context, "zeros", call_full, &(full_call){shape, dtype, 0});
}

tn_tensor *tn_ones(tn_context *context, tn_shape shape, tn_dtype dtype) {
  return op_call_in(context, "ones", call_full, &(full_call){shape, dtype, 1});
}

static value call_num(builder *b, const value in[], size_t n, const void *options) {
  (void)in;
  (void)n;
  return build_num(b, *(const double *)options);
}

static value call_int(builder *b, const value in[], size_t n, const void *options) {
  (void)in;
  (void)n;
  return build_int(b, *(const int64_t *)options);
}

tn_tensor *tn_num(tn_context *context, double value) {
  return op_call_in(context, "num", call_num, &value);
}

tn_tensor *tn_int(tn_context *context, int64_t value) {
  return op_call_in(context, "int", call_int, &value);
}

typedef struct arange_call {
  tn_dim start, stop, step;
  tn_dtype dtype;
} arange_call;

static value call_arange(builder *b, const value in[], size_t n, const void *options) {
  const arange_call *c = options;
  const node *step = dim_to_node(b, c->step);
  (void)in;
  (void)n;
  if (step->op != OP_CONST)
    diag_raise(b->diag, TN_ERR_ARGUMENT, "step varies; it must be a number");
  return build_arange(b, dim_to_node(b, c->start), dim_to_node(b, c->stop), node_int(step),
                      dims_check_dtype(b, c->dtype));
}

tn_tensor *tn_arange(tn_context *context, tn_dim start, tn_dim stop, tn_dim step, tn_dtype dtype) {
  arange_call c = {start, stop, step, dtype};
  return op_call_in(context, "arange", call_arange, &c);
}

typedef struct linspace_call {
  double start, stop;
  tn_dim count;
  tn_dtype dtype;
} linspace_call;

static value call_linspace(builder *b, const value in[], size_t n, const void *options) {
  const linspace_call *c = options;
  sizes s = sizes_from(b, tn_shape(c->count), false);
  (void)in;
  (void)n;
  return build_linspace(b, c->start, c->stop, s.at[0], dims_check_dtype(b, c->dtype));
}

tn_tensor *tn_linspace(tn_context *context, double start, double stop, tn_dim count,
                       tn_dtype dtype) {
  linspace_call c = {start, stop, count, dtype};
  return op_call_in(context, "linspace", call_linspace, &c);
}

static value call_eye(builder *b, const value in[], size_t n, const void *options) {
  const full_call *c = options;
  sizes s = sizes_from(b, c->shape, false);
  (void)in;
  (void)n;
  return build_eye(b, s.at[0], s.at[1], dims_check_dtype(b, c->dtype));
}

tn_tensor *tn_eye(tn_context *context, tn_dim rows, tn_dim columns, tn_dtype dtype) {
  full_call c = {tn_shape(rows, columns), dtype, 0};
  return op_call_in(context, "eye", call_eye, &c);
}
