/* Builders of operators over graph nodes, for the functions of <tenon/ops.h> and importers of model
   files. Meanings, types and errors are those of ops.h and tensor.h; sizes are index nodes here, so
   that they may be any expression. Builders raise through the builder's diag; their callers put the
   name of the operation before the message. builder.named lists the sizes that a message names, for
   hints about sizes that vary. */
#ifndef TENON_TENSOR_OPS_OPERATORS_H
#define TENON_TENSOR_OPS_OPERATORS_H

#include "tensor/context/shape.h"
#include "tensor/ops/op_call.h"

#include <tenon/ops.h>

/** Converts a public shape. With `wild`, −1 is NULL; any other negative size is TN_ERR_SHAPE. */
sizes sizes_from(builder *b, tn_shape shape, bool wild);

/** The variable that a size depends on, and its least value for which the size is at least 0; NULL
    for other sizes than quotients and sums of one variable. */
const node *size_lower_bound_var(const node *size, int64_t *least);

/** The variable of which a size is a number less the variable, and the variable's greatest value
   for which the size is at least 0; NULL for other sizes. */
const node *size_upper_bound_var(const node *size, int64_t *most);

/** A typed value over a node; and a value with weak scalars made typed: f32 or i64. */
value value_of(const node *n);
value value_typed(builder *b, value v);

/** The promoted type of all values, as for concat. */
dtype values_promoted_dtype(builder *b, const value v[], size_t n);

/* ---- Elementwise ----

   A weak scalar is a constant of rank 0: i64, or f64 for a number with a fraction.
   fmod, mod and floordiv of f64 are NaN where the quotient overflows. */

#define BUILD_UNARY(name, rule, meaning)  value build_##name(builder *b, value x);
#define BUILD_BINARY(name, rule, meaning) value build_##name(builder *b, value x, value y);
TN_UNARY_LIST(BUILD_UNARY)
TN_BINARY_LIST(BUILD_BINARY)
#undef BUILD_UNARY
#undef BUILD_BINARY

value build_elu(builder *b, value x, double alpha);
value build_celu(builder *b, value x, double alpha);
value build_leaky_relu(builder *b, value x, double slope);
value build_where(builder *b, value condition, value x, value y);
value build_clip(builder *b, value x, value low, value high); /* a bound's node may be NULL */
value build_lerp(builder *b, value x, value y, value weight);
value build_cast(builder *b, value x, dtype to);
value build_cast_by(builder *b, value x, dtype to, storage_rounding how);
value build_bitcast(builder *b, value x, dtype to);

/* ---- Reductions, scans, normalisation ----

   Of an empty axis, max and min are the least and the greatest value of the type, as in ONNX
   ReduceMax-20; argmax and argmin are undefined. */

#define BUILD_REDUCE(name, rule, meaning) \
  value build_##name(builder *b, value x, tn_axes axes, bool keepdims);
TN_REDUCE_LIST(BUILD_REDUCE)
#undef BUILD_REDUCE

value build_var(builder *b, value x, tn_axes axes, int ddof, bool keepdims);
value build_std(builder *b, value x, tn_axes axes, int ddof, bool keepdims);
value build_argmax(builder *b, value x, int64_t axis, bool keepdims);
value build_argmin(builder *b, value x, int64_t axis, bool keepdims);
value build_cumsum(builder *b, value x, int64_t axis);
value build_cumprod(builder *b, value x, int64_t axis);
value build_cummax(builder *b, value x, int64_t axis);
value build_cummin(builder *b, value x, int64_t axis);
value build_softmax(builder *b, value x, int64_t axis);
value build_log_softmax(builder *b, value x, int64_t axis);

/* The nodes of weight and bias may be NULL. */
value build_layer_norm(builder *b, value x, value weight, value bias, int64_t axis, double eps);
value build_rms_norm(builder *b, value x, value weight, int64_t axis, double eps);
value build_group_norm(builder *b, value x, value weight, value bias, int64_t groups, double eps);
value build_instance_norm(builder *b, value x, value weight, value bias, double eps);
value build_batch_norm(builder *b, value x, value mean, value variance, value weight, value bias,
                       double eps);

/* ---- Movement ---- */

value build_reshape(builder *b, value x, const sizes *to); /* one may be NULL: inferred */
value build_flatten(builder *b, value x, int64_t first, int64_t last);
value build_expand(builder *b, value x, const sizes *to); /* NULL keeps a size */
value build_permute(builder *b, value x, tn_axes axes);
value build_transpose(builder *b, value x);
value build_swapaxes(builder *b, value x, int64_t one, int64_t other);
value build_flip(builder *b, value x, tn_axes axes);
value build_squeeze(builder *b, value x, tn_axes axes);
value build_unsqueeze(builder *b, value x, tn_axes axes);
/** Slices one axis by Python's rules: negative bounds count from the end, those outside are
   clamped, where sizes vary too. `stop` NULL: to the end, or to the start for a negative step. */
value build_slice(builder *b, value x, int64_t axis, const node *start, const node *stop,
                  int64_t step);
/** As build_slice, but a start before the axis is its first element with negative steps too. */
value build_slice_inside(builder *b, value x, int64_t axis, const node *start, const node *stop,
                         int64_t step);
/** Pads by `low` and `high` elements. `fill` is a scalar of any type, for TN_PAD_CONSTANT only. */
value build_pad(builder *b, value x, const sizes *low, const sizes *high, tn_pad_mode mode,
                value fill);
value build_concat(builder *b, const value x[], size_t n, int64_t axis);
value build_stack(builder *b, const value x[], size_t n, int64_t axis);
/** Splits into parts of these sizes. `parts` NULL: into equal ones. */
void build_split(builder *b, value x, int64_t axis, const node *const parts[], value out[],
                 size_t n);
value build_tile(builder *b, value x, const sizes *repeats);
value build_repeat(builder *b, value x, int64_t axis, const node *repeats);
value build_roll(builder *b, value x, int64_t axis, const node *shift); /* may be negative */

/* ---- By index ---- */

value build_take(builder *b, value x, value index, int64_t axis);
value build_nonzero(builder *b, value x);
value build_compress(builder *b, value x, value condition, int64_t axis);
value build_masked_select(builder *b, value x, value mask);
value build_gather_elements(builder *b, value x, value index, int64_t axis);
/** The last axis of `index` has the coordinates of a slice of x, after `batch` axes that both have.
    As ONNX GatherND-13. */
value build_gather_nd(builder *b, value x, value index, size_t batch);
/** x with `updates` written at indices. The ops ADD, MUL, MAX and MIN combine an update with the
    element of x; SET replaces that, by the last update of several. Updates out of range have no
    effect. As ONNX ScatterElements-18 and ScatterND-18. */
value build_scatter_elements(builder *b, value x, value index, value updates, int64_t axis, op o);
value build_scatter_nd(builder *b, value x, value index, value updates, op o);
/** The node of weights may be NULL. */
value build_bincount(builder *b, value x, value weights, const node *length);
value build_one_hot(builder *b, value index, const node *depth, dtype t);
value build_tril(builder *b, value x, const node *k); /* diagonal; may be negative */
value build_triu(builder *b, value x, const node *k);

/* ---- Order ---- */

value build_sort(builder *b, value x, int64_t axis, bool descending);
value build_argsort(builder *b, value x, int64_t axis, bool descending);
/** out[0], elements, and out[1], indices. */
void build_topk(builder *b, value x, const node *k, int64_t axis, bool largest, value out[2]);
/** out[0], slices; out[1], indices of their first occurrences; out[2], the number of each slice's
    equal; out[3], counts. */
void build_unique(builder *b, value x, int64_t axis, bool sorted, value out[4]);
value build_searchsorted(builder *b, value sorted, value values, bool right);

/* ---- Contractions and windows ----

   Descriptors have all fields of this version, whatever their `size`. */

value build_matmul(builder *b, value x, value y);
value build_matmul_as(builder *b, value x, value y, dtype t);
value build_conv(builder *b, value x, value w, value bias, const tn_conv_desc *desc);
value build_conv_transpose(builder *b, value x, value w, value bias, const tn_conv_desc *desc);
value build_max_pool(builder *b, value x, const tn_pool_desc *desc);
value build_avg_pool(builder *b, value x, const tn_pool_desc *desc);
/** The sum of each window, as build_avg_pool's, in x's type. */
value build_sum_pool(builder *b, value x, const tn_pool_desc *desc);
/** Flat index in x (i64) of the first occurrence of each maximum of build_max_pool, in row-major
    order or, with `columns`, with the spatial axes in column-major order. As ONNX MaxPool-8. */
value build_max_pool_indices(builder *b, value x, const tn_pool_desc *desc, bool columns);
value build_global_max_pool(builder *b, value x);
value build_global_avg_pool(builder *b, value x);

/* ---- Creation ---- */

value build_full(builder *b, const sizes *shape, dtype t, double v);
value build_num(builder *b, double v);
value build_int(builder *b, int64_t v);
value build_arange(builder *b, const node *start, const node *stop, int64_t step, dtype t);
value build_linspace(builder *b, double start, double stop, const node *count, dtype t);
value build_eye(builder *b, const node *rows, const node *columns, dtype t);

/* ---- Loops (ir/core/tensor_loop.h) ----

   The caller builds the body over the nodes of build_loop_index, build_loop_state and
   build_loop_entry, then build_loop makes the loop. */

/** Steps of a loop that a state alone ends. */
#define LOOP_MAX_STEPS (INT64_C(1) << 40)

/** True if a size or a tensor depends on the step of a loop that it is in the body of. */
bool build_depends_on_loop(builder *b, const node *x);

/** The range that counts the steps. */
const node *build_loop_range(builder *b, const node *steps);
/** The number of the step: from 0 up, or from the last down. */
const node *build_loop_index(builder *b, const node *range, bool reverse);
/** State i of the loop before its step, which starts as `init`. */
value build_loop_state(builder *b, const node *range, size_t i, value init);
/** x[index], without the first axis. */
value build_loop_entry(builder *b, value x, const node *index);
/** The last states, then the emitted values of all steps along a new first axis: emit i of a step
    is at index places[i] (a build_loop_index). A state whose next value has another type or shape
    is TN_ERR_DTYPE or TN_ERR_SHAPE. */
void build_loop(builder *b, const node *range, const value inits[], const value steps[],
                size_t n_states, const value emits[], const node *const places[], size_t n_emits,
                value out[]);
/** The same, but the loop ends before a step in which state `until`, a bool of rank 0, is true; the
    emitted values are those of the steps that ran. SIZE_MAX: none does. */
void build_loop_until(builder *b, const node *range, const value inits[], const value steps[],
                      size_t n_states, size_t until, const value emits[],
                      const node *const places[], size_t n_emits, value out[]);

/* ---- Random numbers ----

   Formulas in the words x₀, x₁ of element i: Threefry-2x32-20 of the counter i under `key`, low
   word first.
     rand     the p highest bits of x₀ (of x₁·2³² + x₀ where p > 32) times 2⁻ᵖ
     randn    sqrt(−2 log u) · cos(2π v), u = (x₀ + ½)·2⁻³², v = x₁·2⁻³²
     randint  low + ⌊(x₁·2³² + x₀)·(high − low) / 2⁶⁴⌋ */

/** The key of the call with this number since the seed was set. */
uint64_t random_key(uint64_t seed, uint64_t counter);
value build_rand(builder *b, uint64_t key, const sizes *shape, dtype t);
value build_randn(builder *b, uint64_t key, const sizes *shape, dtype t);
value build_randint(builder *b, uint64_t key, const sizes *shape, dtype t, int64_t low,
                    int64_t high);

#endif
