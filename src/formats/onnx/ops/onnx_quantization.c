/* ONNX quantisation: QuantizeLinear, DequantizeLinear and DynamicQuantizeLinear.
   Scales and zero points are one for all elements, one for each entry of an axis, or one for each
   block of an axis. Integers of up to 16 bits, and floats of 8 and 4. */
#include "formats/onnx/ops/onnx_builders.h"
#include "formats/onnx/ops/quantise.h"
#include "ir/index/index_arithmetic.h"
#include "tensor/ops/axes_and_broadcasting.h"
#include "tensor/ops/operators.h"
#include "tensor/ops/type_promotion.h"

#include <string.h>

storage_rounding onnx_storage_rounding(const onnx_call *c) {
  static const char *const modes[] = {
      [STORAGE_UP] = "up", [STORAGE_DOWN] = "down", [STORAGE_NEAREST] = "nearest"};
  storage_rounding how = {onnx_int_attribute(c, "saturate", 1) != 0, STORAGE_UP};
  const char *mode = onnx_string_attribute(c, "round_mode", "up");
  for (size_t i = 0; i < sizeof modes / sizeof *modes; i++)
    if (!strcmp(modes[i], mode)) {
      how.direction = (storage_direction)i;
      return how;
    }
  onnx_fail(c, TN_ERR_FORMAT, "round_mode is '%.50s', not up, down or nearest", mode);
}

/** The numbers of an integer type. */
typedef struct bounds {
  int64_t low, high;
} bounds;

static bounds bounds_of(onnx_call *c, dtype t) {
  int bits = dtype_value_bits(t);
  if (!dtype_has_ints(t) || bits > 16)
    onnx_fail(c, TN_ERR_UNSUPPORTED,
              "numbers are quantised to %s, not to integers of up to 16 bits or floats of 8 or 4",
              dtype_name(t));
  int64_t count = (int64_t)1 << bits;
  return dtype_has_signs(t) ? (bounds){-count / 2, count / 2 - 1} : (bounds){0, count - 1};
}

static bool is_small_float(dtype t) { return dtype_is_storage(t) && dtype_has_floats(t); }

/** x + zero in a float of 8 or 4 bits, rounded once. */
static value quantise_to_float(onnx_call *c, value x, value zero, dtype t) {
  builder *b = onnx_builder(c);
  x = value_widen(b, x);
  if (zero.node) x = build_add(b, x, build_cast(b, zero, (dtype)x.node->dtype));
  return build_cast_by(b, x, t, onnx_storage_rounding(c));
}

value onnx_quantise(onnx_call *c, value x, value zero, dtype t) {
  builder *b = onnx_builder(c);
  if (is_small_float(t)) return quantise_to_float(c, x, zero, t);
  bounds k = bounds_of(c, t);
  value y = build_round(b, value_widen(b, x));
  if (zero.node) y = build_add(b, y, build_cast(b, zero, (dtype)y.node->dtype));
  y = build_clip(b, y, build_num(b, (double)k.low), build_num(b, (double)k.high));
  return build_cast(b, y, t);
}

/** A scale or a zero point in a shape that broadcasts to x. */
static value align_parameter(onnx_call *c, size_t input) {
  builder *b = onnx_builder(c);
  value v = onnx_input(c, input);
  sizes s = sizes_of(onnx_input(c, 0).node);
  int64_t block = onnx_int_attribute(c, "block_size", 0);
  if (!v.node->rank) return v;
  if (v.node->rank == 1 && size_equals(v.node->dims[0], 1) && !block)
    return build_reshape(b, v, &(sizes){0});
  size_t axis = onnx_normalise_axis(c, onnx_int_attribute(c, "axis", 1), s.rank);
  if (block > 0) {
    if (v.node->rank != s.rank)
      onnx_fail(c, TN_ERR_SHAPE, "input %zu has %u dimensions, expected %zu", input, v.node->rank,
                s.rank);
    v = build_repeat(b, v, (int64_t)axis, ix_const(b->ir, block));
    return build_slice(b, v, (int64_t)axis, ix_const(b->ir, 0), s.at[axis], 1);
  }
  if (v.node->rank != 1)
    onnx_fail(c, TN_ERR_SHAPE, "input %zu has %u dimensions, expected 0 or 1", input, v.node->rank);
  sizes along = {.rank = s.rank - axis};
  for (size_t i = 0; i < along.rank; i++) along.at[i] = ix_const(b->ir, 1);
  along.at[0] = v.node->dims[0];
  return build_reshape(b, v, &along);
}

void onnx_QuantizeLinear(onnx_call *c) {
  builder *b = onnx_builder(c);
  value scale = align_parameter(c, 1);
  value zero = onnx_has_input(c, 2) ? align_parameter(c, 2) : (value){0};
  dtype t = zero.node ? (dtype)zero.node->dtype : DT_U8;
  dtype asked =
      onnx_int_attribute(c, "output_dtype", 0) ? onnx_dtype_attribute(c, "output_dtype", t) : t;
  if (zero.node && asked != t)
    onnx_fail(c, TN_ERR_DTYPE, "output_dtype is %s, but the zero point is %s", dtype_name(asked),
              dtype_name(t));
  dtype in = (dtype)scale.node->dtype;
  if (onnx_int_attribute(c, "precision", 0)) in = onnx_dtype_attribute(c, "precision", in);
  value x = build_div(b, build_cast(b, onnx_input(c, 0), in), build_cast(b, scale, in));
  c->outputs[0] = onnx_quantise(c, x, zero, asked);
}

void onnx_DequantizeLinear(onnx_call *c) {
  builder *b = onnx_builder(c);
  value scale = align_parameter(c, 1), x = onnx_input(c, 0);
  dtype t = (dtype)scale.node->dtype, from = (dtype)x.node->dtype;
  if (onnx_int_attribute(c, "output_dtype", 0)) t = onnx_dtype_attribute(c, "output_dtype", t);
  dtype exact = is_small_float(from) ? DT_F32 : DT_I32;
  if (from != DT_I32 && exact == DT_I32) bounds_of(c, from);
  x = build_cast(b, x, exact);
  if (onnx_has_input(c, 2)) x = build_sub(b, x, build_cast(b, align_parameter(c, 2), exact));
  scale = value_widen(b, scale);
  x = build_mul(b, build_cast(b, x, (dtype)scale.node->dtype), scale);
  c->outputs[0] = build_cast(b, x, t);
}

/** Quantises to u8 by the range of all elements, which includes 0. */
void onnx_DynamicQuantizeLinear(onnx_call *c) {
  builder *b = onnx_builder(c);
  value x = onnx_input(c, 0), none = build_num(b, 0);
  value low = build_minimum(b, build_min(b, x, TN_ALL, false), none),
        high = build_maximum(b, build_max(b, x, TN_ALL, false), none);
  value scale = build_div(b, build_sub(b, high, low), build_num(b, 255));
  value divisor = build_where(b, build_eq(b, high, low), build_num(b, 1), scale);
  value zero = onnx_quantise(c, build_neg(b, build_div(b, low, divisor)), (value){0}, DT_U8);
  c->outputs[0] = onnx_quantise(c, build_div(b, x, divisor), zero, DT_U8);
  c->outputs[1] = divisor;
  c->outputs[2] = zero;
}
