/* Cumulative sums, products, maxima and minima (cumsum, cumprod as in NumPy, cummax, cummin), by
   SCANs, which the scheduler divides where they are long. f16 and bf16 are accumulated in f32. */
#include "ir/index/build_tensor.h"
#include "tensor/ops/axes_and_broadcasting.h"
#include "tensor/ops/expressions.h"
#include "tensor/ops/reduction.h"
#include "tensor/ops/type_promotion.h"

static value scan_sum(builder *b, op o, value x, int64_t axis) {
  const node *n = value_typed(b, x).node;
  dtype t = sum_type((dtype)n->dtype);
  size_t at = axis_of(b, axis, n->rank);
  n = ex_cast(b, n, accumulation_type(t));
  return value_of(ex_cast(b, ir_scan(b->ir, o, n, at), t));
}

static value scan_max(builder *b, op o, value x, int64_t axis) {
  const node *n = value_typed(b, x).node;
  dtype t = (dtype)n->dtype;
  check_operand_type(b, RULE_NUMBER, t);
  n = dtype_is_storage(t) ? ex_cast(b, n, accumulation_type(t)) : n;
  return value_of(ex_cast(b, ir_scan(b->ir, o, n, axis_of(b, axis, n->rank)), t));
}

value build_cumsum(builder *b, value x, int64_t axis) { return scan_sum(b, OP_ADD, x, axis); }
value build_cumprod(builder *b, value x, int64_t axis) { return scan_sum(b, OP_MUL, x, axis); }
value build_cummax(builder *b, value x, int64_t axis) { return scan_max(b, OP_MAX, x, axis); }
value build_cummin(builder *b, value x, int64_t axis) { return scan_max(b, OP_MIN, x, axis); }

/* ---- Public functions ---- */

typedef struct axis_call {
  value (*build)(builder *b, value x, int64_t axis);
  int axis;
} axis_call;

static value call_axis(builder *b, const value in[], size_t n, const void *options) {
  const axis_call *c = options;
  (void)n;
  return c->build(b, in[0], c->axis);
}

tn_tensor *tn_cumsum(tn_tensor *x, int axis) {
  return op_call("cumsum", &x, 1, 0, call_axis, &(axis_call){build_cumsum, axis});
}

tn_tensor *tn_cumprod(tn_tensor *x, int axis) {
  return op_call("cumprod", &x, 1, 0, call_axis, &(axis_call){build_cumprod, axis});
}

tn_tensor *tn_cummax(tn_tensor *x, int axis) {
  return op_call("cummax", &x, 1, 0, call_axis, &(axis_call){build_cummax, axis});
}

tn_tensor *tn_cummin(tn_tensor *x, int axis) {
  return op_call("cummin", &x, 1, 0, call_axis, &(axis_call){build_cummin, axis});
}
