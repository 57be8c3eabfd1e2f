/* ONNX Range. The number of elements is known before the model runs, as a constant or an expression
   over sizes, while start and step may depend on data; or a run computes it. A number that is known
   is exact even if limit − start overflows the element type. */
#include "formats/onnx/importer/shape_tensors.h"
#include "formats/onnx/ops/onnx_builders.h"
#include "ir/index/index_arithmetic.h"
#include "tensor/ops/type_promotion.h"

#include <math.h>

enum { START, LIMIT, STEP, OPERANDS };

static _Noreturn void fail_unknown_count(onnx_call *c) {
  onnx_fail(c, TN_ERR_UNSUPPORTED,
            "the number of elements is known only when the model runs; " ONNX_STATIC_HINT);
}

static void check_step(onnx_call *c, bool is_nonzero) {
  if (!is_nonzero) onnx_fail(c, TN_ERR_FORMAT, "the step is 0");
}

static const node *constant_count(onnx_call *c, bool fits, uint64_t count) {
  if (!fits) onnx_fail(c, TN_ERR_UNSUPPORTED, "the range has 2^63 elements or more");
  return ix_const(onnx_builder(c)->ir, (int64_t)count);
}

/** ⌈(limit − start) / step⌉ of floats, at least 0, in f64. */
static const node *count_floats(onnx_call *c, dtype t, const node *const operand[]) {
  double x[OPERANDS];
  for (size_t i = 0; i < OPERANDS; i++) x[i] = scalar_to_double(t, (uint64_t)node_int(operand[i]));
  check_step(c, x[STEP] != 0);
  double count = ceil((x[LIMIT] - x[START]) / x[STEP]);
  if (isnan(count))
    onnx_fail(c, TN_ERR_FORMAT, "the range from %g to %g by %g has no number of elements", x[START],
              x[LIMIT], x[STEP]);
  return constant_count(c, count<0x1p63, count> 0 ? (uint64_t)count : 0);
}

/** ⌈(limit − start) / step⌉ of integers: the distance fits in an unsigned 64-bit number. */
static const node *count_integers(onnx_call *c, dtype t, const node *const operand[]) {
  int64_t step = node_int(operand[STEP]);
  bool is_signed = dtype_is_signed(t), is_falling = is_signed && step < 0;
  int64_t low = node_int(operand[is_falling ? LIMIT : START]),
          high = node_int(operand[is_falling ? START : LIMIT]);
  uint64_t stride = is_falling ? 0 - (uint64_t)step : (uint64_t)step;
  uint64_t distance = (uint64_t)high - (uint64_t)low;
  check_step(c, step != 0);
  if (is_signed ? low >= high : (uint64_t)low >= (uint64_t)high) return constant_count(c, true, 0);
  uint64_t last = (distance - 1) / stride;
  return constant_count(c, last < INT64_MAX, last + 1);
}

/** ⌈distance / step⌉ of expressions; the sign of the step must be known. */
static const node *count_steps(onnx_call *c, const node *distance, const node *step) {
  builder *b = onnx_builder(c);
  ir *g = b->ir;
  check_step(c, !node_is_bits(step, 0));
  if (step->lo == 0) b->needed = ix_add_const(g, step, -1);
  if (step->lo <= 0 && step->hi >= 0)
    onnx_fail_varying_size(c, step, "the step, %s, may be 0 or have either sign",
                           size_text(b, step));
  int64_t sign = step->lo > 0 ? 1 : -1;
  const node *negative = ix_floordiv(g, ix_scale(g, distance, -sign), ix_scale(g, step, sign));
  return ix_max(g, ix_scale(g, negative, -1), ix_const(g, 0));
}

/** ⌈(limit − start) / step⌉ of integers; more than a size can be if the distance overflows, or the
    step is 0. */
static value count_integers_by_run(builder *b, const value x[]) {
  value back = build_sub(b, x[START], x[LIMIT]), zero = build_int(b, 0);
  value is_falling = build_gt(b, x[START], x[LIMIT]);
  value overflows = build_ne(b, is_falling, build_gt(b, back, zero));
  value is_endless = build_bitwise_or(b, overflows, build_eq(b, x[STEP], zero));
  value count = build_neg(b, build_floordiv(b, back, x[STEP]));
  return build_where(b, is_endless, build_int(b, INT64_MAX), count);
}

/** The number of elements as a run computes it, at least 0. */
static const node *count_by_run(onnx_call *c, const value in[]) {
  builder *b = onnx_builder(c);
  dtype t = (dtype)in[START].node->dtype;
  value x[OPERANDS], count;
  size_t n;
  if (!dtype_is_float(t) && !dtype_is_signed(t)) fail_unknown_count(c);
  for (size_t i = 0; i < OPERANDS; i++)
    x[i] = build_cast(b, in[i], dtype_is_float(t) ? DT_F64 : DT_I64);
  count = dtype_is_float(t) ? build_ceil(b, build_div(b, build_sub(b, x[LIMIT], x[START]), x[STEP]))
                            : count_integers_by_run(b, x);
  value is_no_number = build_ne(b, count, count); /* refused as −1 */
  count = build_maximum(b, count, build_int(b, 0));
  count = build_cast(b, build_where(b, is_no_number, build_int(b, -1), count), DT_I64);
  const node *const *size =
      computed_tensor_elements(c->m, count, 0, ix_const(b->ir, ONNX_SIZE_MAX), true, &n);
  if (!size) fail_unknown_count(c);
  return size[0];
}

/** Counts where start depends on data and limit is computed as start + expression, assuming that
   this sum does not overflow. Refuses a distance opposite to the step, which may have wrapped. */
static const node *count_from_dynamic_start(onnx_call *c, const value in[]) {
  builder *b = onnx_builder(c);
  dtype t = (dtype)in[START].node->dtype;
  size_t n;
  if (!dtype_is_signed(t)) return count_by_run(c, in);
  const node *const *distance = shape_tensor_elements(c->m, build_sub(b, in[LIMIT], in[START]), &n);
  const node *const *step = shape_tensor_elements(c->m, in[STEP], &n);
  if (!distance || !step) return count_by_run(c, in);
  bool is_rising = step[0]->lo > 0 && distance[0]->lo >= 0,
       is_falling = step[0]->hi < 0 && distance[0]->hi <= 0;
  if (!is_rising && !is_falling) return count_by_run(c, in);
  return count_steps(c, distance[0], step[0]);
}

typedef const node *const *(*element_query)(import *m, value v, size_t *n);

/** Queries the three operands; false if one is unknown. */
static bool query_operands(onnx_call *c, element_query query, const value in[],
                           const node *operand[]) {
  for (size_t i = 0; i < OPERANDS; i++) {
    size_t n;
    const node *const *e = query(c->m, in[i], &n);
    if (!e) return false;
    operand[i] = e[0];
  }
  return true;
}

static const node *count_elements(onnx_call *c, const value in[]) {
  dtype t = (dtype)in[START].node->dtype;
  const node *operand[OPERANDS];
  if (query_operands(c, constant_tensor_elements, in, operand))
    return (dtype_is_float(t) ? count_floats : count_integers)(c, t, operand);
  if (dtype_is_float(t)) return count_by_run(c, in);
  if (!query_operands(c, shape_tensor_elements, in, operand))
    return count_from_dynamic_start(c, in);
  return count_steps(c, ix_sub(onnx_builder(c)->ir, operand[LIMIT], operand[START]), operand[STEP]);
}

void onnx_Range(onnx_call *c) {
  builder *b = onnx_builder(c);
  dtype t = (dtype)onnx_input(c, 0).node->dtype;
  bool is_half = t == DT_F16 || t == DT_BF16;
  bool in_f32 = is_half && onnx_int_attribute(c, "stash_type", ONNX_F32) == ONNX_F32;
  value in[OPERANDS];
  onnx_require_same_types(c);
  check_operand_type(b, RULE_NUMBER, t);
  for (size_t i = 0; i < OPERANDS; i++) {
    in[i] = onnx_scalar_input(c, i);
    if (in_f32) in[i] = build_cast(b, in[i], DT_F32);
  }
  value i = build_arange(b, ix_const(b->ir, 0), count_elements(c, in), 1, DT_I64);
  i = build_cast(b, i, (dtype)in[START].node->dtype);
  c->outputs[0] = build_cast(b, build_add(b, in[START], build_mul(b, i, in[STEP])), t);
}
