/* ONNX DFT and STFT: discrete Fourier transforms by products with tables of roots of unity. A
   length that has factors is taken apart (Cooley and Tukey 1965); a prime one is one product.
   Lengths are constants. */
#include "formats/onnx/ops/onnx_builders.h"
#include "ir/index/index_arithmetic.h"
#include "tensor/ops/axes_and_broadcasting.h"
#include "tensor/ops/sliding_windows.h"
#include "tensor/ops/type_promotion.h"

enum { TABLE_LENGTH = 64, FOURIER_LENGTH_MAX = 1 << 20, FOURIER_FACTOR_MAX = 4096 };

/** Complex numbers; the imaginary part of real ones has no node. */
typedef struct complex_value {
  value re, im;
} complex_value;

static complex_value multiply(builder *b, complex_value x, complex_value y,
                              value (*product)(builder *b, value x, value y)) {
  value re = product(b, x.re, y.re), im = product(b, x.re, y.im);
  if (!x.im.node) return (complex_value){re, im};
  return (complex_value){build_sub(b, re, product(b, x.im, y.im)),
                         build_add(b, im, product(b, x.im, y.re))};
}

/** exp(∓2πi·j·k/n) for j < rows and k < columns. The product is taken modulo n and the rest is in
    f64, so that the zeros of sine and cosine are nearly that in f32. */
static complex_value roots(builder *b, int64_t rows, int64_t columns, int64_t n, bool inverse,
                           dtype t) {
  value j = build_arange(b, ix_const(b->ir, 0), ix_const(b->ir, rows), 1, DT_I64),
        k = build_arange(b, ix_const(b->ir, 0), ix_const(b->ir, columns), 1, DT_I64);
  j = build_unsqueeze(b, j, (tn_axes){.count = 1, .axis = {1}});
  value turn = build_mod(b, build_mul(b, j, k), build_int(b, n));
  turn = build_mul(b, build_cast(b, turn, DT_F64),
                   build_num(b, (inverse ? 1 : -1) * 6.283185307179586 / (double)n));
  return (complex_value){build_cast(b, build_cos(b, turn), t),
                         build_cast(b, build_sin(b, turn), t)};
}

/** The largest factor of n that is at most TABLE_LENGTH; else the least one, n for a prime. */
static int64_t factor_of(int64_t n) {
  for (int64_t k = TABLE_LENGTH; k > 1; k--)
    if (n % k == 0) return k;
  for (int64_t k = TABLE_LENGTH + 1; k * k <= n; k++)
    if (n % k == 0) return k;
  return n;
}

static complex_value reshape_complex(builder *b, complex_value x, const sizes *to) {
  return (complex_value){build_reshape(b, x.re, to), x.im.node ? build_reshape(b, x.im, to) : x.im};
}

static complex_value swap_last_axes(builder *b, complex_value x) {
  return (complex_value){build_swapaxes(b, x.re, -2, -1),
                         x.im.node ? build_swapaxes(b, x.im, -2, -1) : x.im};
}

static complex_value multiply_table(builder *b, complex_value x, int64_t n, bool inverse) {
  return multiply(b, x, roots(b, n, n, n, inverse, (dtype)x.re.node->dtype), build_matmul);
}

/** The transform of the rows of (rows, n), not normalised. For n = p·q an element j is q·j₁ + j₂,
    one of the result k₁ + p·k₂: transforms of length p over j₁, factors of j₂·k₁, and transforms
    of length q over j₂. */
static complex_value transform_rows(builder *b, complex_value x, int64_t n, bool inverse) {
  int64_t p = factor_of(n), q = n / p;
  dtype t = (dtype)x.re.node->dtype;
  if (n <= TABLE_LENGTH || p == n) return multiply_table(b, x, n, inverse);
  const node *rows = x.re.node->dims[0], *of_p = ix_const(b->ir, p), *of_q = ix_const(b->ir, q);
  complex_value y =
      swap_last_axes(b, reshape_complex(b, x, &(sizes){3, {rows, of_p, of_q}})); /* j₂, j₁ */
  y = multiply_table(b, y, p, inverse);                                          /* j₂, k₁ */
  y = multiply(b, y, roots(b, q, p, n, inverse, t), build_mul);
  y = swap_last_axes(b, y); /* k₁, j₂ */
  y = transform_rows(b, reshape_complex(b, y, &(sizes){2, {ix_mul(b->ir, rows, of_p), of_q}}), q,
                     inverse);
  y = swap_last_axes(b, reshape_complex(b, y, &(sizes){3, {rows, of_p, of_q}})); /* k₂, k₁ */
  return reshape_complex(b, y, &(sizes){2, {rows, x.re.node->dims[1]}});
}

/** Cuts the last axis of a value to n elements, or adds zeros. */
static value fit_last_axis(builder *b, value x, int64_t n) {
  size_t last = x.node->rank - 1u;
  const node *more = ix_sub(b->ir, ix_const(b->ir, n), x.node->dims[last]);
  return value_of(shape_pad(b, x.node, last, ix_const(b->ir, 0), more,
                            ir_const_int(b->ir, (dtype)x.node->dtype, 0)));
}

static complex_value fit(builder *b, complex_value x, int64_t n) {
  return (complex_value){fit_last_axis(b, x.re, n), x.im.node ? fit_last_axis(b, x.im, n) : x.im};
}

/** The n elements of which the first n/2 + 1 are given, and the others are their conjugates. */
static complex_value mirror(builder *b, complex_value x, int64_t n) {
  int64_t last = (int64_t)x.re.node->rank - 1;
  tn_axes along = {.count = 1, .axis = {(int32_t)last}};
  x = fit(b, x, n / 2 + 1);
  const node *first = ix_const(b->ir, 1), *end = ix_const(b->ir, n - n / 2);
  value re = build_flip(b, build_slice(b, x.re, last, first, end, 1), along);
  x.re = build_concat(b, (value[]){x.re, re}, 2, last);
  if (!x.im.node) return x;
  value im = build_neg(b, build_flip(b, build_slice(b, x.im, last, first, end, 1), along));
  x.im = build_concat(b, (value[]){x.im, im}, 2, last);
  return x;
}

static void check_length(const onnx_call *c, int64_t n) {
  int64_t rest = n;
  if (n < 1) onnx_fail(c, TN_ERR_SHAPE, "the length is %lld, expected at least 1", (long long)n);
  for (int64_t p = 2; n <= FOURIER_LENGTH_MAX && p * p <= rest; p++)
    while (rest % p == 0) rest /= p;
  if (n > FOURIER_LENGTH_MAX || rest > FOURIER_FACTOR_MAX)
    onnx_fail(c, TN_ERR_UNSUPPORTED,
              "the length is %lld; at most %d is supported, of prime factors up to %d",
              (long long)n, FOURIER_LENGTH_MAX, FOURIER_FACTOR_MAX);
}

/** The transform along the last axis, of length n. */
static complex_value transform(builder *b, complex_value x, int64_t n, bool inverse) {
  sizes s = sizes_of(x.re.node);
  const node *rows = ix_const(b->ir, 1);
  for (size_t i = 0; i + 1 < s.rank; i++) rows = ix_mul(b->ir, rows, s.at[i]);
  complex_value y = reshape_complex(b, x, &(sizes){2, {rows, s.at[s.rank - 1]}});
  y = reshape_complex(b, transform_rows(b, y, n, inverse), &s);
  if (!inverse) return y;
  value count = build_num(b, (double)n);
  return (complex_value){build_div(b, y.re, count), build_div(b, y.im, count)};
}

/** Real and imaginary parts of the last axis; moves `axis` to the end. */
static complex_value take_apart(onnx_call *c, value x, size_t axis) {
  builder *b = onnx_builder(c);
  int64_t last = (int64_t)x.node->rank - 1;
  tn_axes axes = {.count = 1, .axis = {-1}};
  complex_value y = {{0}, {0}};
  const node *parts = x.node->dims[last];
  if (!node_is_bits(parts, 1) && !node_is_bits(parts, 2))
    onnx_fail(c, TN_ERR_SHAPE, "the last axis has size %s, not 1 or 2", size_text(b, parts));
  for (int64_t i = 0; i < node_int(parts); i++) {
    value part = build_slice(b, x, last, ix_const(b->ir, i), ix_const(b->ir, i + 1), 1);
    part = build_swapaxes(b, build_squeeze(b, part, axes), (int64_t)axis, -1);
    *(i ? &y.im : &y.re) = part;
  }
  return y;
}

/** The reverse of take_apart; real numbers have a last axis of 1. */
static value put_together(builder *b, complex_value x, size_t axis, dtype t) {
  value parts[] = {x.re, x.im};
  size_t n = x.im.node ? 2 : 1;
  for (size_t i = 0; i < n; i++)
    parts[i] = build_cast(b, build_swapaxes(b, parts[i], (int64_t)axis, -1), t);
  return build_stack(b, parts, n, -1);
}

/** The axis of a DFT, an attribute or input 2. */
static size_t read_axis(onnx_call *c, size_t rank) {
  int64_t axis = c->version < 20 ? onnx_int_attribute(c, "axis", 1) : -2;
  size_t n;
  if (c->version >= 20 && onnx_has_input(c, 2)) {
    const int64_t *given = onnx_static_ints(c, 2, &n);
    if (n != 1) onnx_fail(c, TN_ERR_SHAPE, "the axis has %zu elements, expected 1", n);
    axis = *given;
  }
  size_t at = onnx_normalise_axis(c, axis, rank);
  if (at + 1 == rank) onnx_fail(c, TN_ERR_SHAPE, "the axis is that of the parts of the numbers");
  return at;
}

/** A number that input i gives, or `absent`. */
static int64_t read_number(onnx_call *c, size_t input, int64_t absent) {
  size_t n;
  if (!onnx_has_input(c, input)) return absent;
  const int64_t *given = onnx_static_ints(c, input, &n);
  if (n != 1)
    onnx_fail(c, TN_ERR_SHAPE, "input '%.200s' has %zu elements, expected 1",
              c->node->inputs.at[input], n);
  return *given;
}

/** The length that input i gives; -1: it is absent. */
static int64_t read_length(onnx_call *c, size_t input, const char *name) {
  int64_t n = read_number(c, input, -1);
  if (onnx_has_input(c, input) && n < 1)
    onnx_fail(c, TN_ERR_SHAPE, "%s is %lld, expected at least 1", name, (long long)n);
  return n;
}

static int64_t constant_size(onnx_call *c, const node *size) {
  if (!node_is_const(size))
    onnx_fail_varying_size(c, size, "the length of the transform, %s, varies",
                           size_text(onnx_builder(c), size));
  return node_int(size);
}

void onnx_DFT(onnx_call *c) {
  builder *b = onnx_builder(c);
  value x = onnx_input(c, 0);
  dtype t = (dtype)x.node->dtype;
  bool inverse = onnx_int_attribute(c, "inverse", 0) != 0,
       onesided = onnx_int_attribute(c, "onesided", 0) != 0;
  if (x.node->rank < 2)
    onnx_fail(c, TN_ERR_SHAPE, "the input has %u dimensions, expected 2 or more", x.node->rank);
  size_t axis = read_axis(c, x.node->rank);
  int64_t n = read_length(c, 1, "dft_length");
  if (n < 0) {
    n = constant_size(c, x.node->dims[axis]);
    if (inverse && onesided) n = 2 * (n - 1);
  }
  check_length(c, n);
  complex_value y = take_apart(c, value_widen(b, x), axis);
  y = inverse && onesided ? mirror(b, y, n) : fit(b, y, n);
  y = transform(b, y, n, inverse);
  if (inverse && onesided) y.im = (value){0};
  if (!inverse && onesided) y = fit(b, y, n / 2 + 1);
  c->outputs[0] = put_together(b, y, axis, t);
}

/** The frames of the rows of a signal, times a window: (rows, frames, n). */
static value frames_of(builder *b, value x, int64_t n, int64_t step, const node *count,
                       value window) {
  int64_t one = 1;
  value y = value_of(node_windows(b, x.node, 1, &n, &step, &one, &count));
  return window.node ? build_mul(b, y, window) : y;
}

void onnx_STFT(onnx_call *c) {
  builder *b = onnx_builder(c);
  value x = onnx_input(c, 0), window = onnx_has_input(c, 2) ? onnx_input(c, 2) : (value){0};
  dtype t = (dtype)x.node->dtype;
  int64_t step = read_number(c, 1, 0), n = read_length(c, 3, "frame_length");
  if (x.node->rank == 2) x = build_unsqueeze(b, x, (tn_axes){.count = 1, .axis = {2}});
  if (x.node->rank != 3)
    onnx_fail(c, TN_ERR_SHAPE, "the signal has %u dimensions, expected 3", x.node->rank);
  if (n < 0) n = constant_size(c, window.node ? window.node->dims[0] : x.node->dims[1]);
  check_length(c, n);
  if (window.node && (window.node->rank != 1 || !node_is_bits(window.node->dims[0], (uint64_t)n)))
    onnx_fail(c, TN_ERR_SHAPE, "the window does not have the frames' %lld elements", (long long)n);
  if (step < 1 || step > INT32_MAX)
    onnx_fail(c, TN_ERR_FORMAT, "frame_step is %lld, not in 1 … %d", (long long)step, INT32_MAX);
  const node *rest = ix_add_const(b->ir, x.node->dims[1], -n);
  b->needed = rest;
  if (rest->lo < 0)
    onnx_fail(c, TN_ERR_SHAPE, "a frame of %lld does not fit in the signal of %s", (long long)n,
              size_text(b, x.node->dims[1]));
  const node *count = ix_add_const(b->ir, ix_floordiv(b->ir, rest, ix_const(b->ir, step)), 1);
  complex_value y = take_apart(c, value_widen(b, x), 1);
  if (window.node) window = value_widen(b, window);
  y.re = frames_of(b, y.re, n, step, count, window);
  if (y.im.node) y.im = frames_of(b, y.im, n, step, count, window);
  y = transform(b, y, n, false);
  if (onnx_int_attribute(c, "onesided", 1)) y = fit(b, y, n / 2 + 1);
  c->outputs[0] = put_together(b, y, 2, t);
}
