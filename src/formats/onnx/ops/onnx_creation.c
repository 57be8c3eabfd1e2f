/* ONNX operators that create tensors from the shape of their input alone, EyeLike and Size, or from
   numbers: windows of signals, and the weights of mel frequencies. */
#include "formats/onnx/ops/onnx_builders.h"
#include "ir/index/build_tensor.h"
#include "ir/index/index_arithmetic.h"
#include "ir/index/index_proof.h"
#include "tensor/ops/expressions.h"
#include "tensor/ops/operators.h"

#include <math.h>

void onnx_EyeLike(onnx_call *c) {
  builder *b = onnx_builder(c);
  const node *x = onnx_input(c, 0).node;
  dtype t = onnx_dtype_attribute(c, "dtype", (dtype)x->dtype);
  int64_t k = onnx_int_attribute(c, "k", 0);
  if (x->rank != 2) onnx_fail(c, TN_ERR_SHAPE, "the input has %u dimensions, expected 2", x->rank);
  sizes s = sizes_of(x);
  const node *row = ex_iota(b, DT_I64, &s, 0), *column = ex_iota(b, DT_I64, &s, 1);
  const node *is_diagonal =
      ex_binary(b, OP_EQ, ex_binary(b, OP_ADD, row, ex_int(b, row, k)), column);
  c->outputs[0] = value_of(ir_cast(b->ir, is_diagonal, t));
}

void onnx_Size(onnx_call *c) {
  builder *b = onnx_builder(c);
  c->outputs[0] = value_of(ex_size(b, ir_element_count(b->ir, onnx_input(c, 0).node), DT_I64));
}

/* Windows of n elements: a₀ − a₁·cos(2πi/N) + a₂·cos(4πi/N), where N is n, or n − 1 for a window
   that is not periodic. */

static void build_window(onnx_call *c, double a0, double a1, double a2) {
  builder *b = onnx_builder(c);
  dtype t = onnx_dtype_attribute(c, "output_datatype", DT_F32);
  size_t n;
  const node *const *size = onnx_size_elements(c, 0, &n);
  if (n != 1) onnx_fail(c, TN_ERR_SHAPE, "input 'size' has %zu elements, expected 1", n);
  if (!ix_prove_nonnegative(b->ir, size[0])) onnx_fail(c, TN_ERR_SHAPE, "the size may be negative");
  dtype in = t == DT_F64 ? DT_F64 : DT_F32;
  bool is_periodic = onnx_int_attribute(c, "periodic", 1) != 0;
  const node *period = is_periodic ? size[0] : ix_add_const(b->ir, size[0], -1);
  value count = build_cast(b, value_of(ir_cast(b->ir, period, DT_I64)), in);
  value i = build_cast(b, build_arange(b, ix_const(b->ir, 0), size[0], 1, DT_I64), in);
  value angle = build_mul(b, i, build_div(b, build_num(b, 6.283185307179586), count));
  value y = build_sub(b, build_num(b, a0), build_mul(b, build_cos(b, angle), build_num(b, a1)));
  value twice = build_cos(b, build_mul(b, angle, build_num(b, 2)));
  if (a2 != 0) y = build_add(b, y, build_mul(b, twice, build_num(b, a2)));
  c->outputs[0] = build_cast(b, y, t);
}

void onnx_HannWindow(onnx_call *c) { build_window(c, 0.5, 0.5, 0); }
void onnx_HammingWindow(onnx_call *c) { build_window(c, 25.0 / 46, 21.0 / 46, 0); }
void onnx_BlackmanWindow(onnx_call *c) { build_window(c, 0.42, 0.5, 0.08); }

/* MelWeightMatrix: triangles over the bins of a spectrum, of equal widths on the scale of mels. */

enum { MEL_BINS_MAX = 4096 };

static int64_t read_int(onnx_call *c, size_t input) {
  size_t n;
  const int64_t *given = onnx_static_ints(c, input, &n);
  if (n != 1 || *given < 1)
    onnx_fail(c, TN_ERR_SHAPE, "input '%.200s' is not one positive number",
              c->node->inputs.at[input]);
  return *given;
}

static double read_mels(onnx_call *c, size_t input) {
  size_t n;
  const double *given = onnx_static_floats(c, input, &n);
  if (n != 1 || !(*given >= 0))
    onnx_fail(c, TN_ERR_SHAPE, "input '%.200s' is not one number of at least 0",
              c->node->inputs.at[input]);
  return 2595 * log1p(*given / 700) / log(10);
}

/** The weights of the spectrum's bins in one mel bin from `low` over `centre` to `high`. */
static value build_triangle(builder *b, value bin, double low, double centre, double high,
                            dtype t) {
  value rising = build_div(b, build_sub(b, bin, build_num(b, low)), build_num(b, centre - low)),
        falling = build_div(b, build_sub(b, build_num(b, high), bin), build_num(b, high - centre)),
        zero = build_num(b, 0), at = build_num(b, centre);
  value left = build_logical_and(b, build_ge(b, bin, build_num(b, low)), build_le(b, bin, at)),
        right = build_logical_and(b, build_ge(b, bin, at), build_lt(b, bin, build_num(b, high)));
  if (centre == low) rising = build_num(b, 1);
  value y = build_where(b, left, rising, zero);
  if (high > centre) y = build_where(b, right, falling, y);
  return build_cast(b, y, t);
}

void onnx_MelWeightMatrix(onnx_call *c) {
  builder *b = onnx_builder(c);
  dtype t = onnx_dtype_attribute(c, "output_datatype", DT_F32), in = t == DT_F64 ? t : DT_F32;
  int64_t n = read_int(c, 0), length = read_int(c, 1), rate = read_int(c, 2);
  double low = read_mels(c, 3), high = read_mels(c, 4), step = (high - low) / (double)(n + 2);
  if (n > MEL_BINS_MAX)
    onnx_fail(c, TN_ERR_UNSUPPORTED, "num_mel_bins is %lld; at most %d is supported", (long long)n,
              MEL_BINS_MAX);
  value bin = build_arange(b, ix_const(b->ir, 0), ix_const(b->ir, length / 2 + 1), 1, DT_I64);
  value *columns = arena_alloc(b->arena, (size_t)n * sizeof *columns);
  double *edge = arena_alloc(b->arena, (size_t)(n + 2) * sizeof *edge);
  for (int64_t i = 0; i < n + 2; i++) {
    double hertz = 700 * expm1((low + step * (double)i) / 2595 * log(10));
    edge[i] = floor((double)(length + 1) * hertz / (double)rate);
  }
  for (int64_t i = 0; i < n; i++)
    columns[i] = build_triangle(b, build_cast(b, bin, in), edge[i], edge[i + 1], edge[i + 2], t);
  c->outputs[0] = build_stack(b, columns, (size_t)n, 1);
}
