/* Declares the operations on tensors. Each builds a tensor, a lazy expression, and computes
   nothing.

   Names and meanings are NumPy's, else PyTorch's, else ONNX's, unless a comment names another
   source.

   Axes. A negative axis counts from the end. TN_ERR_SHAPE for an axis that does not exist or is
   named twice.

   Broadcasting. Operands of an elementwise operation are aligned at their last axes; sizes of 1 and
   missing axes stretch. TN_ERR_SHAPE for sizes that do not fit. A variable fits itself and 1.

   Types. Operands of several types are promoted to tn_promote's. Weak scalars (tn_num, tn_int, and
   elementwise results of these alone) take part by kind only:

                        with bool   with an integer t   with a float t   alone
            tn_int      i64         t                   t                i64
            tn_num      f32         f32                 t                f32

   TN_ERR_DTYPE for a tn_int whose value the promoted type cannot hold; other conversions are
   tn_cast's. Operations that are not elementwise give weak scalars their own type first. "A
   floating function" converts bools and integers to f32 first; for f16 and bf16 it computes in f32
   and rounds once, as do sums and products of many elements. TN_ERR_DTYPE for types that an
   operation does not take.

   Sums and means of many elements start from +0 and products from 1, so that a sum of -0 alone is
   +0. The maximum and minimum of 0 and -0 are either of them.

   Integers wrap around. Undefined results are NaN, and for integers as the operation states. NaN
   operands give NaN unless stated otherwise.

   TN_ERR_ARGUMENT for operands of different contexts or devices (tn_to moves a tensor). An
   operand is NULL only where a comment allows it. The result is a new handle of the innermost
   scope, and an invalid tensor on failure. */
#ifndef TENON_OPS_H
#define TENON_OPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tenon/export.h>
#include <tenon/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Elementwise ---- */

/** X(name, rule, meaning): tn_tensor *tn_<name>(tn_tensor *x), of x's shape. Rules:
    NUMBER  takes integers and floats, gives x's type
    FLOAT   a floating function
    TEST    takes any type, gives bool
    BITS    takes bools and integers, gives x's type */
#define TN_UNARY_LIST(X)                                                            \
  X(neg, NUMBER, "-x")                                                              \
  X(abs, NUMBER, "magnitude; of the least signed integer, itself")                  \
  X(sign, NUMBER, "-1, 0 or 1; of -0 it is 0, of NaN NaN")                          \
  X(square, NUMBER, "x * x")                                                        \
  X(floor, NUMBER, "largest integer <= x; an integer is itself")                    \
  X(ceil, NUMBER, "smallest integer >= x; an integer is itself")                    \
  X(round, NUMBER, "nearest integer, halves to even; an integer is itself")         \
  X(trunc, NUMBER, "towards zero; an integer is itself")                            \
  X(sqrt, FLOAT, "square root")                                                     \
  X(rsqrt, FLOAT, "1 / sqrt(x)")                                                    \
  X(reciprocal, FLOAT, "1 / x, of integers too, as torch.reciprocal")               \
  X(exp, FLOAT, "e^x")                                                              \
  X(exp2, FLOAT, "2^x")                                                             \
  X(expm1, FLOAT, "e^x - 1, exact near 0")                                          \
  X(log, FLOAT, "natural logarithm")                                                \
  X(log2, FLOAT, "logarithm to base 2")                                             \
  X(log1p, FLOAT, "log(1 + x), exact near 0")                                       \
  X(sin, FLOAT, "sine, radians")                                                    \
  X(cos, FLOAT, "cosine, radians")                                                  \
  X(tan, FLOAT, "tangent, radians")                                                 \
  X(asin, FLOAT, "inverse sine, in [-pi/2, pi/2]")                                  \
  X(acos, FLOAT, "inverse cosine, in [0, pi]")                                      \
  X(atan, FLOAT, "inverse tangent, in [-pi/2, pi/2]")                               \
  X(sinh, FLOAT, "hyperbolic sine")                                                 \
  X(cosh, FLOAT, "hyperbolic cosine")                                               \
  X(tanh, FLOAT, "hyperbolic tangent")                                              \
  X(asinh, FLOAT, "inverse hyperbolic sine")                                        \
  X(acosh, FLOAT, "inverse hyperbolic cosine, >= 0")                                \
  X(atanh, FLOAT, "inverse hyperbolic tangent")                                     \
  X(erf, FLOAT, "error function")                                                   \
  X(relu, NUMBER, "max(x, 0)")                                                      \
  X(relu6, NUMBER, "min(max(x, 0), 6)")                                             \
  X(sigmoid, FLOAT, "1 / (1 + e^-x)")                                               \
  X(silu, FLOAT, "x * sigmoid(x)")                                                  \
  X(gelu, FLOAT, "x * (1 + erf(x / sqrt(2))) / 2")                                  \
  X(gelu_tanh, FLOAT, "x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3))) / 2")    \
  X(softplus, FLOAT, "log(1 + e^x)")                                                \
  X(softsign, FLOAT, "x / (1 + |x|)")                                               \
  X(mish, FLOAT, "x * tanh(softplus(x))")                                           \
  X(hardsigmoid, FLOAT, "relu6(x + 3) / 6, as torch.nn.functional.hardsigmoid")     \
  X(hardswish, FLOAT, "x * relu6(x + 3) / 6")                                       \
  X(selu, FLOAT, "s * (x > 0 ? x : a * (e^x - 1)), s = 1.05070099, a = 1.67326324") \
  X(isnan, TEST, "NaN; false for what is no float")                                 \
  X(isinf, TEST, "infinite, of either sign; false for what is no float")            \
  X(isfinite, TEST, "neither infinite nor NaN; true for what is no float")          \
  X(logical_not, TEST, "x is 0")                                                    \
  X(bitwise_not, BITS, "all bits inverted; of a bool, logical_not")

/** X(name, rule, meaning): tn_tensor *tn_<name>(tn_tensor *a, tn_tensor *b), broadcast. Rules, of
    the type in which a and b meet:
    ANY     takes any type, gives it
    NUMBER  takes integers and floats, gives it
    FLOAT   a floating function
    TEST    takes any type, gives bool
    BITS    takes bools and integers, gives it
    SHIFT   takes integers, gives it; b counts bits, as an unsigned number */
#define TN_BINARY_LIST(X)                                                                        \
  X(add, ANY, "a + b; of bools, a or b")                                                         \
  X(sub, NUMBER, "a - b")                                                                        \
  X(mul, ANY, "a * b; of bools, a and b")                                                        \
  X(div, FLOAT, "a / b, of integers too: 7 / 2 is 3.5")                                          \
  X(floordiv, NUMBER, "floor(a / b); of integers by 0, 0; numpy.floor_divide")                   \
  X(mod, NUMBER, "remainder of floordiv, with b's sign; of integers by 0, 0")                    \
  X(fmod, NUMBER, "remainder of the quotient towards zero, with a's sign; of integers by 0, 0")  \
  X(pow, NUMBER, "a^b; of floats as C's pow; of integers with b < 0, towards zero, 0^b being 0") \
  X(maximum, ANY, "the larger; of bools, a or b")                                                \
  X(minimum, ANY, "the smaller; of bools, a and b")                                              \
  X(atan2, FLOAT, "angle of the point (x = b, y = a), in [-pi, pi]")                             \
  X(eq, TEST, "a == b; false for NaN")                                                           \
  X(ne, TEST, "a != b; true for NaN")                                                            \
  X(lt, TEST, "a < b; false for NaN")                                                            \
  X(le, TEST, "a <= b; false for NaN")                                                           \
  X(gt, TEST, "a > b; false for NaN")                                                            \
  X(ge, TEST, "a >= b; false for NaN")                                                           \
  X(logical_and, TEST, "neither is 0; NaN is not 0")                                             \
  X(logical_or, TEST, "not both are 0")                                                          \
  X(logical_xor, TEST, "just one is 0")                                                          \
  X(bitwise_and, BITS, "bit by bit")                                                             \
  X(bitwise_or, BITS, "bit by bit")                                                              \
  X(bitwise_xor, BITS, "bit by bit")                                                             \
  X(left_shift, SHIFT, "a * 2^b; 0 where b is at least the type's bits")                         \
  X(right_shift, SHIFT, "floor(a / 2^b), for every b")

#define TN_UNARY_DECLARE(name, rule, meaning) TN_API tn_tensor *tn_##name(tn_tensor *x);
#define TN_BINARY_DECLARE(name, rule, meaning) \
  TN_API tn_tensor *tn_##name(tn_tensor *a, tn_tensor *b);
TN_UNARY_LIST(TN_UNARY_DECLARE)
TN_BINARY_LIST(TN_BINARY_DECLARE)
#undef TN_UNARY_DECLARE
#undef TN_BINARY_DECLARE

/** Computes x > 0 ? x : alpha * (e^x - 1). A floating function. PyTorch's default alpha is 1. */
TN_API tn_tensor *tn_elu(tn_tensor *x, double alpha);

/** Computes x > 0 ? x : alpha * (e^(x / alpha) - 1); TN_ERR_ARGUMENT for an alpha of 0. A floating
    function. PyTorch's default alpha is 1. */
TN_API tn_tensor *tn_celu(tn_tensor *x, double alpha);

/** Computes x > 0 ? x : slope * x. A floating function. PyTorch's default slope is 0.01. */
TN_API tn_tensor *tn_leaky_relu(tn_tensor *x, double slope);

/** Selects condition ? a : b, broadcast; non-zero values of any type are true. a and b are
    promoted. As numpy.where. */
TN_API tn_tensor *tn_where(tn_tensor *condition, tn_tensor *a, tn_tensor *b);

/** Computes minimum(maximum(x, low), high), broadcast; either bound may be NULL for none. Integers
    and floats. As numpy.clip. */
TN_API tn_tensor *tn_clip(tn_tensor *x, tn_tensor *low, tn_tensor *high);

/** Computes a + weight * (b - a), broadcast. A floating function. As torch.lerp. */
TN_API tn_tensor *tn_lerp(tn_tensor *a, tn_tensor *b, tn_tensor *weight);

/** Converts values to another type. To a float: the nearest, ties to even, overflow to infinity.
    From a float to an integer: truncated, then clamped to the type's range; NaN gives 0. From
    integer to integer: modulo 2^bits. To bool: not equal to 0, so NaN is true. From bool: 0 or 1.
    Floats of 8 and 4 bits have no overflow: what is beyond the greatest number, infinities
   included, is that number; f4e2m1, without NaN, is -0 for it; and f8e8m0 is the next power of two
   that is not smaller, from 2^-127 on, and NaN for numbers below 0. */
TN_API tn_tensor *tn_cast(tn_tensor *x, tn_dtype dtype);

/** Reinterprets the bits as another type of the same size, else TN_ERR_DTYPE. To bool: not equal to
    0. */
TN_API tn_tensor *tn_bitcast(tn_tensor *x, tn_dtype dtype);

/* ---- Reductions ----

   Reduce over `axes`, in any order; with `keepdims` each becomes 1, else it is removed. TN_ALL is
   every axis; an empty list reduces nothing. Operations that need an element refuse an axis that
   can be empty: of size 0, or of a variable size without a minimum of at least 1. Of a size that a
   run computes (tn_dim_item) the run checks it, and fails with TN_ERR_SHAPE. */

/** X(name, rule, meaning): tn_tensor *tn_<name>(tn_tensor *x, tn_axes axes, bool keepdims). Rules:
    SUM     takes any type; bools and signed integers give i64, unsigned ones u64, floats their own,
            as numpy.sum
    NUMBER  takes integers and floats, gives x's type
    FLOAT   a floating function
    TEST    takes any type, gives bool */
#define TN_REDUCE_LIST(X)                                                               \
  X(sum, SUM, "sum; of nothing, 0")                                                     \
  X(prod, SUM, "product; of nothing, 1")                                                \
  X(max, NUMBER, "largest; TN_ERR_SHAPE where one of the axes can be empty")            \
  X(min, NUMBER, "smallest; TN_ERR_SHAPE where one of the axes can be empty")           \
  X(mean, FLOAT, "sum over count; of nothing, NaN")                                     \
  X(logsumexp, FLOAT, "log of the sum of e^x, without overflow; of nothing, -infinity") \
  X(any, TEST, "one is not 0; of nothing, false")                                       \
  X(all, TEST, "none is 0; of nothing, true")

#define TN_REDUCE_DECLARE(name, rule, meaning) \
  TN_API tn_tensor *tn_##name(tn_tensor *x, tn_axes axes, bool keepdims);
TN_REDUCE_LIST(TN_REDUCE_DECLARE)
#undef TN_REDUCE_DECLARE

/** Compute the variance and its square root: the sum of squared distances from the mean over (count
    - ddof), with `ddof` >= 0; NaN where that is not positive. Floating functions. NumPy's default
    ddof is 0, PyTorch's is 1. */
TN_API tn_tensor *tn_var(tn_tensor *x, tn_axes axes, int ddof, bool keepdims);
TN_API tn_tensor *tn_std(tn_tensor *x, tn_axes axes, int ddof, bool keepdims);

/** Return the index (i64) of the largest or smallest element along one axis: the first of equal
    ones, and the first NaN if there is one. Integers and floats. TN_ERR_SHAPE where the axis can be
    empty, as for tn_max. */
TN_API tn_tensor *tn_argmax(tn_tensor *x, int axis, bool keepdims);
TN_API tn_tensor *tn_argmin(tn_tensor *x, int axis, bool keepdims);

/* ---- Running reductions and normalisation ---- */

/** Compute running sums and products: element i covers elements 0..i along `axis`. Types as SUM in
    TN_REDUCE_LIST. As numpy.cumsum and cumprod. */
TN_API tn_tensor *tn_cumsum(tn_tensor *x, int axis);
TN_API tn_tensor *tn_cumprod(tn_tensor *x, int axis);

/** Compute running maxima and minima along `axis`. Integers and floats; give x's type. From a NaN
   on they are NaN. As the values of torch.cummax and cummin. */
TN_API tn_tensor *tn_cummax(tn_tensor *x, int axis);
TN_API tn_tensor *tn_cummin(tn_tensor *x, int axis);

/** Compute e^x over its sum along `axis`, and the logarithm of that, without overflow. Floating
    functions. As torch.softmax and log_softmax. */
TN_API tn_tensor *tn_softmax(tn_tensor *x, int axis);
TN_API tn_tensor *tn_log_softmax(tn_tensor *x, int axis);

/* Normalisations are floating functions of x's shape: (x - mean) / sqrt(variance + eps) * weight +
   bias, with the population variance (ddof 0). `weight` and `bias` may be NULL, for 1 and 0. The
   usual eps is 1e-5. */

/** Normalises over the axes from `axis` to the last; weight and bias broadcast to their shape. As
    ONNX LayerNormalization-17. */
TN_API tn_tensor *tn_layer_norm(tn_tensor *x, tn_tensor *weight, tn_tensor *bias, int axis,
                                double eps);

/** Computes x / sqrt(mean(x^2) + eps) * weight over the axes from `axis` to the last. As ONNX
    RMSNormalization-23. */
TN_API tn_tensor *tn_rms_norm(tn_tensor *x, tn_tensor *weight, int axis, double eps);

/** Normalises x (N, C, …) over each of `groups` equal runs of channels and all axes after C; weight
    and bias are (C). TN_ERR_SHAPE where groups does not divide C. As
    torch.nn.functional.group_norm. */
TN_API tn_tensor *tn_group_norm(tn_tensor *x, tn_tensor *weight, tn_tensor *bias, int groups,
                                double eps);

/** Normalises x (N, C, …) over the axes after C; weight and bias are (C). As ONNX
    InstanceNormalization-6. */
TN_API tn_tensor *tn_instance_norm(tn_tensor *x, tn_tensor *weight, tn_tensor *bias, double eps);

/** Normalises x (N, C, …) by a given mean and variance, each (C); weight and bias are (C). As
    torch.nn.functional.batch_norm in evaluation mode. */
TN_API tn_tensor *tn_batch_norm(tn_tensor *x, tn_tensor *mean, tn_tensor *variance,
                                tn_tensor *weight, tn_tensor *bias, double eps);

/* ---- Movement: any type, no arithmetic ----

   Results for a state alias it, also where NumPy copies (pad, tile, repeat, roll); concat and
   stack, which take several tensors, do not. */

/** Reshapes to as many elements, in row-major order; one size may be -1, for the rest. TN_ERR_SHAPE
    unless the numbers of elements are known to be equal, or a run computes a size, and compares
    them. As numpy.reshape. */
TN_API tn_tensor *tn_reshape(tn_tensor *x, tn_shape shape);

/** Merges axes `first` to `last`, both included, into one. As torch.flatten. */
TN_API tn_tensor *tn_flatten(tn_tensor *x, int first, int last);

/** Broadcasts to `shape`, of x's rank or more; -1 keeps an axis's size. TN_ERR_SHAPE for a size
   that is neither 1 nor the result's. As torch.Tensor.expand. */
TN_API tn_tensor *tn_expand(tn_tensor *x, tn_shape shape);

/** Permutes axes: axis i of the result is axis axes[i] of x. TN_ERR_SHAPE unless each axis is named
    once. As torch.permute. */
TN_API tn_tensor *tn_permute(tn_tensor *x, tn_axes axes);

/** Reverses the order of the axes. As numpy.transpose. */
TN_API tn_tensor *tn_transpose(tn_tensor *x);

/** Exchanges two axes. As numpy.swapaxes and torch.transpose. */
TN_API tn_tensor *tn_swapaxes(tn_tensor *x, int a, int b);

/** Reverses the order of elements along each of `axes`. As numpy.flip. */
TN_API tn_tensor *tn_flip(tn_tensor *x, tn_axes axes);

/** Removes `axes`, whose sizes must be 1, TN_ERR_SHAPE otherwise; TN_ALL removes every axis whose
    size is the number 1. */
TN_API tn_tensor *tn_squeeze(tn_tensor *x, tn_axes axes);

/** Inserts axes of size 1 at these positions of the result; TN_ERR_SHAPE for TN_ALL. As
    numpy.expand_dims. */
TN_API tn_tensor *tn_unsqueeze(tn_tensor *x, tn_axes axes);

/** Takes the elements start, start + step, … before `stop` along an axis, by Python's rules:
    negative bounds count from the end, bounds outside are clamped, a negative step goes down. As
    `stop`, TN_END is the end in the direction of the step. `start` and `stop` may be variables and
    computed sizes, of any sign: the rules hold for the values that they and the axis have in each
    run. `step` is a number other than 0. Numbers from 2^44 on (see tn_dim) are bounds if they are
    2^k or 2^k - 1, of either sign, as INT64_MAX and INT64_MIN are. */
TN_API tn_tensor *tn_slice(tn_tensor *x, int axis, tn_dim start, tn_dim stop, tn_dim step);
#define TN_END INT64_MAX

/** Contents of padding. */
typedef enum tn_pad_mode {
  TN_PAD_CONSTANT = 0, /**< a value */
  TN_PAD_REFLECT =
      1,           /**< the elements inside, mirrored at the edge element, which is not repeated */
  TN_PAD_EDGE = 2, /**< the edge element */
  TN_PAD_MODE_MAX_ENUM = 0x7fffffff
} tn_pad_mode;

/** Adds low[i] elements before axis i and high[i] after it, for each axis of x, none negative.
    `value` is converted as by tn_cast and used in TN_PAD_CONSTANT only. TN_ERR_SHAPE where REFLECT
    needs more elements than the axis has inside its edge, or EDGE an element of an empty axis. As
    numpy.pad. */
TN_API tn_tensor *tn_pad(tn_tensor *x, tn_shape low, tn_shape high, tn_pad_mode mode, double value);

/** Joins `n` tensors along an existing axis, whose sizes add up; TN_ERR_SHAPE unless ranks and all
    other sizes are equal. Types are promoted. `n` is at least 1: without a tensor there is no
    context, so the result is NULL without a message. As numpy.concatenate. */
TN_API tn_tensor *tn_concat(tn_tensor *const x[], size_t n, int axis);

/** Joins `n` tensors of one shape, TN_ERR_SHAPE otherwise, along a new axis of size n at this
    position of the result; types are promoted. `n` is at least 1 as for tn_concat. As numpy.stack.
 */
TN_API tn_tensor *tn_stack(tn_tensor *const x[], size_t n, int axis);

/** Splits an axis into `n` parts of the given sizes, which add up to it; `sizes` NULL: equal parts.
    Every out[i] is set, to an invalid tensor on failure: TN_ERR_SHAPE unless the sizes are provably
    at least 0 and add up to the axis, or a run computes one of them or the axis, and checks both.
    As torch.split and numpy.split. */
TN_API void tn_split(tn_tensor *x, int axis, const tn_dim sizes[], tn_tensor *out[], size_t n);

/** Repeats the whole of x repeats[i] times along axis i, whose size is multiplied by that; the
    shorter of x's shape and `repeats` is extended by 1 in front. TN_ERR_SHAPE for a number that may
    be negative. As numpy.tile. */
TN_API tn_tensor *tn_tile(tn_tensor *x, tn_shape repeats);

/** Repeats each element `repeats` times in a row along an axis, whose size is multiplied by that.
    TN_ERR_SHAPE for a number that may be negative. As numpy.repeat. */
TN_API tn_tensor *tn_repeat(tn_tensor *x, int axis, tn_dim repeats);

/** Rotates elements along an axis: element i moves to i + shift, modulo its size. As numpy.roll. */
TN_API tn_tensor *tn_roll(tn_tensor *x, int axis, tn_dim shift);

/* ---- Indexing ----

   Indices are of any integer type; negative ones count from the end. An index out of range reads 0,
   as kernels cannot fail; in NumPy it is an error. */

/** Gathers slices of x along `axis`: the result has x's shape with that axis replaced by index's
    shape. As numpy.take; an embedding is tn_take(table, index, 0). */
TN_API tn_tensor *tn_take(tn_tensor *x, tn_tensor *index, int axis);

/** Gathers elements: element j of the result, of index's shape, is x at j with the coordinate along
    `axis` replaced by index[j]. Ranks are equal, and index is no larger than x along other axes. As
    ONNX GatherElements-13 and torch.gather. */
TN_API tn_tensor *tn_gather_elements(tn_tensor *x, tn_tensor *index, int axis);

/** How an update is combined with the element that it meets. */
typedef enum tn_reduction {
  TN_REDUCTION_NONE = 0, /**< the update replaces it; of several, the last in row-major order */
  TN_REDUCTION_ADD = 1,  /**< tn_add: of bools, or */
  TN_REDUCTION_MUL = 2,  /**< tn_mul: of bools, and */
  TN_REDUCTION_MIN = 3,  /**< tn_minimum */
  TN_REDUCTION_MAX = 4,  /**< tn_maximum */
  TN_REDUCTION_MAX_ENUM = 0x7fffffff
} tn_reduction;

/* Scatters give x with updates written into it; x itself keeps its elements. Updates are applied
   one after another in row-major order, sums and products of f16 and bf16 in f32, rounded once.
   Updates broadcast to the shape stated, and x and updates are promoted. Negative indices
   count from the end. An index out of range has no effect; in NumPy it is an error. */

/** Scatters elements: update j, of index's shape, goes to x at j with the coordinate along `axis`
    replaced by index[j]. Ranks are equal, and index is no larger than x along other axes. As ONNX
    ScatterElements-18, torch.scatter and torch.scatter_reduce with include_self. */
TN_API tn_tensor *tn_scatter(tn_tensor *x, tn_tensor *index, tn_tensor *updates, int axis,
                             tn_reduction reduction);

/** Scatters slices: the last axis of index (…, K) has the coordinates in the first K axes of x of a
    slice of x, for which updates (…, the rest of x's axes) have the new elements. As ONNX
    ScatterND-18; torch.index_put of K index tensors stacked, and torch.index_add along axis 0. */
TN_API tn_tensor *tn_scatter_nd(tn_tensor *x, tn_tensor *index, tn_tensor *updates,
                                tn_reduction reduction);

/** Counts how often 0 … length - 1 occur in x, of integers and any shape, or sums the weights,
   which broadcast to x's shape, of each: (length), i64, or tn_sum's type of the weights. Other
   numbers count nowhere. weights NULL: 1. As jax.numpy.bincount with a length. */
TN_API tn_tensor *tn_bincount(tn_tensor *x, tn_tensor *weights, tn_dim length);

/** The coordinates of the elements of x that are not 0 (NaN is not), in row-major order: i64 of
   shape (n, rank of x), where n is a size that is computed (see tn_dim_item). As torch.nonzero;
   columns are the arrays of numpy.nonzero. */
TN_API tn_tensor *tn_nonzero(tn_tensor *x);

/** Keeps the slices of x along `axis` where the condition, a bool of rank 1 that is no longer than
    the axis, is true; the size of the axis is then computed (see tn_dim_item). TN_ERR_DTYPE and
    TN_ERR_SHAPE for another condition. As numpy.compress. */
TN_API tn_tensor *tn_compress(tn_tensor *x, tn_tensor *condition, int axis);

/** The elements of x where the mask, a bool, is true, in row-major order: a tensor of rank 1 whose
    size is computed (see tn_dim_item). x and the mask are broadcast. As torch.masked_select. */
TN_API tn_tensor *tn_masked_select(tn_tensor *x, tn_tensor *mask);

/** Adds a last axis of size `depth` with 1 at the index and 0 elsewhere; all 0 for an index out of
    range. As ONNX OneHot-11. */
TN_API tn_tensor *tn_one_hot(tn_tensor *index, tn_dim depth, tn_dtype dtype);

/** Keep the last two axes' elements on and below (tril) or above (triu) diagonal `k`, with 0
    elsewhere; k = 0 is the main diagonal, k > 0 lies above it. Any type; rank 2 or more. As
    numpy.tril and numpy.triu. */
TN_API tn_tensor *tn_tril(tn_tensor *x, tn_dim k);
TN_API tn_tensor *tn_triu(tn_tensor *x, tn_dim k);

/* ---- Order ----

   The order of bools, integers and floats is total: NaN is the greatest, all NaNs are equal, and so
   are 0 and -0, except that tn_sort puts them in order. Of equal elements the first stays the
   first, also where the greatest come first. */

/** Sort along `axis`, the least first, or the greatest if `descending`: tn_sort gives the elements,
    -0 before 0 where the least come first, tn_argsort the indices (i64) in a stable order. As
    numpy.sort and numpy.argsort with kind='stable'. */
TN_API tn_tensor *tn_sort(tn_tensor *x, int axis, bool descending);
TN_API tn_tensor *tn_argsort(tn_tensor *x, int axis, bool descending);

/** Finds the k largest or smallest elements along `axis`, in order, and their indices (i64):
    out[0] and out[1], of x's shape with k along the axis; invalid tensors on failure. TN_ERR_SHAPE
   unless k is provably from 0 to the axis's size, or a run computes one of the two, and checks it.
   As torch.topk with sorted=True. */
TN_API void tn_topk(tn_tensor *x, tn_dim k, int axis, bool largest, tn_tensor *out[2]);

/** Finds the distinct slices of x, n of N, along `axis`, in order if `sorted`, the first elements
    deciding first, or else in the order in which they first occur: out[0], slices, of x's shape
    with n along the axis; out[1] (n), the index (i64) in x of the first that is equal to each;
    out[2] (N), for each slice of x the place (i64) of its equal in out[0]; out[3] (n), how often
    each occurs (i64). A run computes n (see tn_dim_item). out has invalid tensors on failure. As
   numpy.unique with all its results; for elements of several axes take tn_flatten(x, 0, -1). */
TN_API void tn_unique(tn_tensor *x, int axis, bool sorted, tn_tensor *out[4]);

/** Finds where values would be inserted into sorted elements: the number (i64) of elements along
    the last axis of `sorted` that are smaller, or with `right` not greater; of the shape of
    `values`. `sorted` is (N), or has the axes of `values` but the last before its own, TN_ERR_SHAPE
    otherwise. Types are promoted. The result is undefined
    where elements are not in order. As torch.searchsorted. */
TN_API tn_tensor *tn_searchsorted(tn_tensor *sorted, tn_tensor *values, bool right);

/** Keeps the best boxes that do not overlap a better one that is kept: the indices (i64) of those,
    the greatest score first, of shape (n), where a run computes n (see tn_dim_item). boxes (N, 4),
    floats, have two opposite corners, scores are (N), of any type that has an order; a box goes if
    intersection over union with a kept one, from 0 to 1, is greater than `overlap_most`. Takes N
    steps of N each. TN_ERR_DTYPE for boxes of integers, TN_ERR_SHAPE for other shapes. As
    torchvision.ops.nms. */
TN_API tn_tensor *tn_nms(tn_tensor *boxes, tn_tensor *scores, double overlap_most);

/* ---- Contractions and windows ---- */

/** Computes matrix products over a's last axis and b's last but one: (…, M, K) by (…, K, N) gives
    (…, M, N), other axes broadcast. An operand of rank 1 is a row or a column whose axis of 1 is
    removed from the result; rank 0, and different K, are TN_ERR_SHAPE. Integers and floats; types
   are promoted. As numpy.matmul. */
TN_API tn_tensor *tn_matmul(tn_tensor *a, tn_tensor *b);

/** Computes tn_matmul with a result of `dtype`, an integer or float type: operands of any types are
    converted to it as by tn_cast (to f32 for f16 and bf16), and products and sums are of that type.
    So i8 by i8 gives exact i32, and bf16 by bf16 gives f32. Where the processor multiplies small
    types in groups (u8 or i8 to i32, i16 to i32, bf16 to f32), it does, with the same integers. */
TN_API tn_tensor *tn_matmul_as(tn_tensor *a, tn_tensor *b, tn_dtype dtype);

/** Options of a convolution: one entry per spatial axis, outermost first; entries beyond x's axes
    are ignored. No number exceeds INT32_MAX. */
typedef struct tn_conv_desc {
  size_t size;           /**< sizeof(tn_conv_desc) */
  int64_t stride[3];     /**< >= 1 */
  int64_t dilation[3];   /**< >= 1 */
  int64_t pad_low[3];    /**< zeros before the axis, >= 0 */
  int64_t pad_high[3];   /**< zeros after it, >= 0 */
  int64_t output_pad[3]; /**< tn_conv_transpose: added at the result's end, >= 0 and smaller than
                            the stride or the dilation; tn_conv: 0 */
  int64_t groups;        /**< >= 1, dividing C and M */
} tn_conv_desc;

#define TN_CONV_DESC_INIT \
  { sizeof(tn_conv_desc), {1, 1, 1}, {1, 1, 1}, {0, 0, 0}, {0, 0, 0}, {0, 0, 0}, 1 }

/** Convolves (cross-correlates) over 1 to 3 spatial axes: x (N, C, D…), w (M, C / groups, K…), bias
    (M) or NULL gives (N, M, (D + pad_low + pad_high - dilation * (K - 1) - 1) / stride + 1 …).
    Integers and floats; types are promoted. TN_ERR_SHAPE where a window is larger than its padded
    axis; TN_ERR_ARGUMENT for a field out of its range. desc NULL: INIT. As ONNX Conv-11. */
TN_API tn_tensor *tn_conv(tn_tensor *x, tn_tensor *w, tn_tensor *bias, const tn_conv_desc *desc);

/** Computes the transpose of tn_conv in x: x (N, C, D…), w (C, M / groups, K…), bias (M) or NULL
    gives (N, M, (D - 1) * stride - pad_low - pad_high + dilation * (K - 1) + output_pad + 1 …).
    Padding crops the result. Types and errors as tn_conv. As ONNX ConvTranspose-11 with explicit
    pads. */
TN_API tn_tensor *tn_conv_transpose(tn_tensor *x, tn_tensor *w, tn_tensor *bias,
                                    const tn_conv_desc *desc);

/** Options of pooling: one entry per spatial axis, outermost first; entries beyond x's axes are
    ignored. No number exceeds INT32_MAX. */
typedef struct tn_pool_desc {
  size_t size;         /**< sizeof(tn_pool_desc) */
  int64_t kernel[3];   /**< the window, >= 1 */
  int64_t stride[3];   /**< >= 1; 0: equal to the kernel */
  int64_t dilation[3]; /**< >= 1 */
  int64_t pad_low[3];  /**< before the axis, >= 0 and smaller than the dilated window */
  int64_t pad_high[3]; /**< after the axis, likewise */
  bool ceil_mode; /**< round the output size up, keeping a last window that is cut short, unless it
                     starts in pad_high */
  bool count_include_pad; /**< tn_avg_pool: padding counts as elements of value 0; the part of a
                             window beyond it, which ceil_mode allows, does not */
} tn_pool_desc;

#define TN_POOL_DESC_INIT \
  { sizeof(tn_pool_desc), {1, 1, 1}, {0, 0, 0}, {1, 1, 1}, {0, 0, 0}, {0, 0, 0}, false, true }

/** Take the maximum or mean of each window over 1 to 3 spatial axes: x (N, C, D…) gives (N, C, (D +
    pad_low + pad_high - dilation * (kernel - 1) - 1) / stride + 1 …), rounded down or, with
    ceil_mode, up. tn_max_pool takes integers and floats, gives x's type and ignores padding;
    tn_avg_pool is a floating function. A window of padding alone gives -infinity or the least
    integer, and a mean of 0. Errors as tn_conv. desc NULL: INIT. As torch.nn.functional.max_pool1d
    … 3d, and as ONNX MaxPool-12 and AveragePool-22. */
TN_API tn_tensor *tn_max_pool(tn_tensor *x, const tn_pool_desc *desc);
TN_API tn_tensor *tn_avg_pool(tn_tensor *x, const tn_pool_desc *desc);

/** Take tn_max or tn_mean over all axes after the second, which become 1: x (N, C, D…). As ONNX
    GlobalMaxPool and GlobalAveragePool. */
TN_API tn_tensor *tn_global_max_pool(tn_tensor *x);
TN_API tn_tensor *tn_global_avg_pool(tn_tensor *x);

/* ---- Branches ---- */

/** Body of a branch of a tn_cond, called once to build it: sets out[i] to the branch's results. */
typedef void (*tn_cond_body)(void *user, tn_tensor *out[]);

/** Branches of tn_cond. */
typedef struct tn_cond_desc {
  size_t size;            /**< sizeof(tn_cond_desc) */
  tn_cond_body then_body; /**< not NULL */
  tn_cond_body else_body; /**< not NULL */
  void *user;             /**< passed to both */
} tn_cond_desc;

#define TN_COND_DESC_INIT \
  { sizeof(tn_cond_desc), NULL, NULL, NULL }

/** Chooses between two branches by a bool of one element: out[0 … n - 1] are the results of
    then_body where it is true, else of else_body. Both bodies are called, in this order, to build
    their branches; a run computes the branch that it takes, and no errors of the other. Results of
    one number have one type and rank, TN_ERR_DTYPE and TN_ERR_SHAPE otherwise; their sizes may
    differ. Where the steps of a tn_scan compute the condition, each step computes both branches,
   and shapes must be equal. A body may not assign to a state; docs/library.md, "Branches", says
   more. Every out[i] is set, to an invalid tensor on failure: TN_ERR_DTYPE or TN_ERR_SHAPE unless
   `condition` is a bool of one element, TN_ERR_ARGUMENT for a body that is NULL or leaves an output
   unset, and for n outside of 1 … 65536. As jax.lax.cond. */
TN_API void tn_cond(tn_context *context, tn_tensor *condition, const tn_cond_desc *desc,
                    tn_tensor *out[], size_t n);

/* ---- Loops ---- */

/** Body of a tn_scan, called once to build one step. `index` is the step's number (i64, rank 0),
    state[i] the carried value before the step, x[i] the step's entry of xs[i]. The body sets
    next[i] to the carried value after the step, of the same type and shape, and y[i] to the step's
    output. These tensors are TN_ERR_ARGUMENT outside of the loop. */
typedef void (*tn_scan_body)(void *user, tn_tensor *index, tn_tensor *const state[],
                             tn_tensor *const x[], tn_tensor *next[], tn_tensor *y[]);

/** Options of tn_scan. */
typedef struct tn_scan_desc {
  size_t size;       /**< sizeof(tn_scan_desc) */
  tn_scan_body body; /**< not NULL */
  void *user;        /**< passed to body */
  tn_dim steps; /**< number of steps; may be a variable; -1: the size of the first axis of xs */
  bool
      reverse; /**< run from the last entry to the first; `index` and the places of ys count down */
  int64_t until; /**< number of a carried value, a bool of rank 0: where it is true, the loop ends
                    before the next step; -1: it runs all steps */
} tn_scan_desc;

#define TN_SCAN_DESC_INIT \
  { sizeof(tn_scan_desc), NULL, NULL, -1, false, -1 }

/** Loops over steps: carried values start as init[i], and each step computes the next ones from the
    old. out[0 … n_states - 1] are the final values, followed by `n_ys` tensors of the steps'
    outputs along a new first axis. With `until` these are of the steps that ran, a computed size;
    with `reverse` too, their order is still that of the entries: the last step's output is first.
    With `until`, without xs and ys, `steps` may stay -1: any number. The number of kernels does not
   depend on that of steps; docs/library.md, "Loops", states what a body may do. init and xs are
   read before the body is called, and may be `out`. Every out[i] is set, to an invalid tensor on
   failure: TN_ERR_ARGUMENT without a body, a result or a known number of steps, for outputs that
   the body leaves unset, and for `until` that is no state; TN_ERR_SHAPE for xs of different numbers
   of entries, a state whose shape changes, and a negative number of steps; TN_ERR_DTYPE for a state
   whose type changes, and `until` that is no bool; TN_ERR_UNSUPPORTED for loops in more than 8
   others. As jax.lax.scan. */
TN_API void tn_scan(tn_context *context, const tn_scan_desc *desc, tn_tensor *const init[],
                    size_t n_states, tn_tensor *const xs[], size_t n_xs, tn_tensor *out[],
                    size_t n_ys);

/* ---- Collectives ----

   The `n` tensors of x are each on a device of their own (tn_to), and out[i] is on the device of
   x[i]; what is anybody's counts as on the context's own device. Devices send to the next one of
   the list, the last one to the first, all at once, so each sends about as many bytes for any n.
   Operands are promoted to one type. `out` may be `x`. Every out[i] is set, to an invalid tensor on
   failure: TN_ERR_ARGUMENT for n = 0, TN_ERR_SHAPE where shapes differ, TN_ERR_DTYPE where storage
   types are to be combined. For devices of several processes see tenon/group.h. */

/** Combine the tensors, of one shape, elementwise: all of out are the same. Elements are divided
   into n parts, and part i is combined from x[i + 1] on around the list, each result rounded to the
   type. TN_ERR_ARGUMENT for TN_REDUCTION_NONE. */
TN_API void tn_all_reduce(tn_context *context, tn_tensor *const x[], size_t n,
                          tn_reduction reduction, tn_tensor *out[]);

/** Concatenate the tensors along an axis, as tn_concat: all of out are the same. */
TN_API void tn_all_gather(tn_context *context, tn_tensor *const x[], size_t n, int axis,
                          tn_tensor *out[]);

/** Combine the tensors as tn_all_reduce does, and give out[i] part i of n along an axis: from
    size * i / n on, up to size * (i + 1) / n. */
TN_API void tn_reduce_scatter(tn_context *context, tn_tensor *const x[], size_t n,
                              tn_reduction reduction, int axis, tn_tensor *out[]);

#ifdef __cplusplus
}
#endif
#endif
