/* ONNX Range. The number of elements must be known before the model runs, as a number or an
   expression over sizes, and is exact even if limit − start overflows the element type. */
#include "formats/onnx/importer/shape_tensors.h"
#include "formats/onnx/ops/onnx_builders.h"
#include "ir/index/index_arithmetic.h"
#include "tensor/ops/op_helpers.h"

#include <math.h>

enum { START, LIMIT, STEP, PARTS };

static _Noreturn void fail_unknown_count(onnx_call *c) {
  onnx_fail(c, TN_ERR_UNSUPPORTED,
            "how many numbers these are is known only when the model runs: " ONNX_STATIC_HINT);
}

static void check_step(onnx_call *c, bool is_nonzero) {
  if (!is_nonzero) onnx_fail(c, TN_ERR_FORMAT, "the step is 0");
}

static const node *fixed_count(onnx_call *c, bool fits, uint64_t count) {
  if (!fits) onnx_fail(c, TN_ERR_UNSUPPORTED, "these are 2^63 numbers or more");
  return ix_const(onnx_builder(c)->ir, (int64_t)count);
}

/** ⌈(limit − start) / step⌉ of floats, at least 0, in f64. */
static const node *count_of_floats(onnx_call *c, dtype t, const node *const part[]) {
  double at[PARTS];
  for (size_t i = 0; i < PARTS; i++) at[i] = scalar_to_double(t, (uint64_t)node_int(part[i]));
  check_step(c, at[STEP] != 0);
  double count = ceil((at[LIMIT] - at[START]) / at[STEP]);
  if (isnan(count))
    onnx_fail(c, TN_ERR_FORMAT, "numbers from %g to %g by %g cannot be counted", at[START],
              at[LIMIT], at[STEP]);
  return fixed_count(c, count<0x1p63, count> 0 ? (uint64_t)count : 0);
}

/** ⌈(limit − start) / step⌉ of integers: the distance fits in an unsigned 64-bit number. */
static const node *count_of_integers(onnx_call *c, dtype t, const node *const part[]) {
  int64_t step = node_int(part[STEP]);
  bool has_sign = dtype_is_signed(t), falls = has_sign && step < 0;
  int64_t low = node_int(part[falls ? LIMIT : START]), high = node_int(part[falls ? START : LIMIT]);
  uint64_t by = falls ? 0 - (uint64_t)step : (uint64_t)step, way = (uint64_t)high - (uint64_t)low;
  check_step(c, step != 0);
  if (has_sign ? low >= high : (uint64_t)low >= (uint64_t)high) return fixed_count(c, true, 0);
  uint64_t last = (way - 1) / by;
  return fixed_count(c, last < INT64_MAX, last + 1);
}

/** ⌈distance / step⌉ of expressions; the sign of the step must be known. */
static const node *count_of_distance(onnx_call *c, const node *way, const node *step) {
  builder *b = onnx_builder(c);
  ir *g = b->ir;
  check_step(c, !node_is_bits(step, 0));
  if (step->lo == 0) b->needed = ix_add_const(g, step, -1);
  if (step->lo <= 0 && step->hi >= 0)
    onnx_fail_varying_size(c, step, "the step, %s, may be 0 or of any sign", size_text(b, step));
  int64_t sign = step->lo > 0 ? 1 : -1;
  const node *back = ix_floordiv(g, ix_scale(g, way, -sign), ix_scale(g, step, sign));
  return ix_max(g, ix_scale(g, back, -1), ix_const(g, 0));
}

/** Count for a start that depends on data and a limit computed as start + expression, assuming that
    this sum does not overflow. A distance opposite to the step may have wrapped. */
static const node *count_from_data(onnx_call *c, const value in[]) {
  builder *b = onnx_builder(c);
  dtype t = (dtype)in[START].node->dtype;
  size_t n;
  if (!dtype_is_signed(t)) fail_unknown_count(c);
  const node *const *way = elements_of(c->m, build_sub(b, in[LIMIT], in[START]), &n);
  const node *const *step = elements_of(c->m, in[STEP], &n);
  if (!way || !step) fail_unknown_count(c);
  bool rises = step[0]->lo > 0 && way[0]->lo >= 0, falls = step[0]->hi < 0 && way[0]->hi <= 0;
  if (!rises && !falls) fail_unknown_count(c);
  return count_of_distance(c, way[0], step[0]);
}

typedef const node *const *(*asking)(import *m, value v, size_t *n);

static bool are_known(onnx_call *c, asking ask, const value in[], const node *part[]) {
  for (size_t i = 0; i < PARTS; i++) {
    size_t n;
    const node *const *e = ask(c->m, in[i], &n);
    if (!e) return false;
    part[i] = e[0];
  }
  return true;
}

static const node *count_of(onnx_call *c, const value in[]) {
  dtype t = (dtype)in[START].node->dtype;
  const node *part[PARTS];
  if (are_known(c, constant_tensor_elements, in, part))
    return (dtype_is_float(t) ? count_of_floats : count_of_integers)(c, t, part);
  if (dtype_is_float(t)) fail_unknown_count(c);
  if (!are_known(c, elements_of, in, part)) return count_from_data(c, in);
  return count_of_distance(c, ix_sub(onnx_builder(c)->ir, part[LIMIT], part[START]), part[STEP]);
}

void onnx_Range(onnx_call *c) {
  builder *b = onnx_builder(c);
  dtype t = (dtype)onnx_input(c, 0).node->dtype;
  bool is_short = t == DT_F16 || t == DT_BF16;
  bool in_f32 = is_short && onnx_int_attribute(c, "stash_type", ONNX_F32) == ONNX_F32;
  value in[PARTS];
  onnx_require_same_types(c);
  check_operand_type(b, RULE_NUMBER, t);
  for (size_t i = 0; i < PARTS; i++) {
    in[i] = onnx_scalar_input(c, i);
    if (in_f32) in[i] = build_cast(b, in[i], DT_F32);
  }
  value i = build_arange(b, ix_const(b->ir, 0), count_of(c, in), 1, DT_I64);
  i = build_cast(b, i, (dtype)in[START].node->dtype);
  c->outputs[0] = build_cast(b, build_add(b, in[START], build_mul(b, i, in[STEP])), t);
}
