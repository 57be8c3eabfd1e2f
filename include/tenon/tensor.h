/* Tensors: lazy expressions for multidimensional arrays, with functions for their shapes, handles,
   creation, host data, states and host functions.

   A tensor is a lazy expression with an element type and a shape. It is computed when it is read
   (tn_read, tn_map), realised (tn_realize), or at the end of its scope if it outlives that; results
   are as if every call had computed its result at once. Tensors are immutable, except states
   (tn_state), which tn_assign changes; movements of a state (ops.h) alias it, as NumPy's views do.

   A tn_tensor * is a handle that belongs to the innermost scope open when it was made and is freed
   with it; tn_keep and tn_own change that. Expressions hold nodes, not handles, so freeing a handle
   breaks nothing that was built from it. Elements in host memory are in row-major order. */
#ifndef TENON_TENSOR_H
#define TENON_TENSOR_H

#include <stddef.h>
#include <stdint.h>

#include <tenon/context.h>
#include <tenon/dtype.h>
#include <tenon/export.h>
#include <tenon/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Handle of a tensor. */
typedef struct tn_tensor tn_tensor;

/* ---- Shapes ---- */

/** Largest rank of a shape. */
#define TN_MAX_RANK 12

/** A size: a number, or a variable made by tn_dim_var and the arithmetic below. C's own operators
    must not be applied to variables: the result is nearly always 2^44 or more in magnitude, and
    such a tn_dim is TN_ERR_SHAPE wherever one is taken, be it a size, a bound of tn_arange or
    another number (bounds of tn_slice excepted). Numbers must stay below 2^44 in magnitude. A
    variable belongs to the scope in which it was first made and is TN_ERR_SHAPE after its end;
    tensors that outlive the scope keep their sizes. */
typedef int64_t tn_dim;

/** A shape: sizes from the outermost axis to the innermost. Rank 0 is a scalar. */
typedef struct tn_shape {
  int32_t rank;
  tn_dim size[TN_MAX_RANK];
} tn_shape;

/** A list of distinct axes. A negative axis counts from the end, -1 being the last. TN_NO_AXES is
    the empty list; TN_ALL is every axis. */
typedef struct tn_axes {
  int32_t count;
  int32_t axis[TN_MAX_RANK];
} tn_axes;

/** Element type and shape of a tensor. */
typedef struct tn_type {
  tn_dtype dtype;
  tn_shape shape;
} tn_type;

/** An array in host memory, row-major and contiguous. */
typedef struct tn_array {
  void *data;
  tn_type type;
} tn_array;

/* Literals: tn_shape(2, 3) and tn_axes(0, -1) are values in C and C++, but not constant expressions
   in C, so static variables need braces: {2, {2, 3}}. C11 has no empty literal: use TN_SCALAR for
   rank 0 and TN_NO_AXES for the empty list. More than TN_MAX_RANK entries fail to compile in C++;
   in C the compiler warns and every function refuses them. */
#ifdef __cplusplus
} /* templates have C++ linkage, even where this header is included under C's */
extern "C++" {
template <class... Size> constexpr tn_shape tn_shape_literal(Size... size) {
  static_assert(sizeof...(size) <= TN_MAX_RANK, "a shape has at most TN_MAX_RANK sizes");
  return tn_shape{static_cast<int32_t>(sizeof...(size)), {static_cast<tn_dim>(size)...}};
}
template <class... Axis> constexpr tn_axes tn_axes_literal(Axis... axis) {
  static_assert(sizeof...(axis) <= TN_MAX_RANK, "a shape has at most TN_MAX_RANK axes");
  return tn_axes{static_cast<int32_t>(sizeof...(axis)), {static_cast<int32_t>(axis)...}};
}
}
extern "C" {
#define tn_shape(...) tn_shape_literal(__VA_ARGS__)
#define tn_axes(...)  tn_axes_literal(__VA_ARGS__)
#define TN_SCALAR     (tn_shape{0, {0}})
#define TN_NO_AXES    (tn_axes{0, {0}})
#define TN_ALL        (tn_axes{-1, {0}})
#else
#define tn_shape(...) \
  ((tn_shape){(int32_t)(sizeof((tn_dim[]){__VA_ARGS__}) / sizeof(tn_dim)), {__VA_ARGS__}})
#define tn_axes(...) \
  ((tn_axes){(int32_t)(sizeof((int32_t[]){__VA_ARGS__}) / sizeof(int32_t)), {__VA_ARGS__}})
#define TN_SCALAR  ((tn_shape){0, {0}})
#define TN_NO_AXES ((tn_axes){0, {0}})
#define TN_ALL     ((tn_axes){-1, {0}})
#endif

/** Makes a size that is known only at run time, from `min` to `max` inclusive; 0 <= min <= max <=
    2^40. The same name with the same bounds is the same variable; with other bounds it is refused.
    On failure returns a size that every shape refuses, with the cause. */
TN_API tn_dim tn_dim_var(tn_context *context, const char *name, int64_t min, int64_t max);

/** Compute with sizes, numbers and variables in any mix, exactly. tn_dim_div rounds down; its
    divisor must not be able to be 0. TN_ERR_SHAPE where the result is a number of 2^44 or more in
    magnitude, or varies and can leave 64 bits. A result that does not vary is a plain number, on
    which C's operators work. */
TN_API tn_dim tn_dim_add(tn_context *context, tn_dim a, tn_dim b);
TN_API tn_dim tn_dim_sub(tn_context *context, tn_dim a, tn_dim b);
TN_API tn_dim tn_dim_mul(tn_context *context, tn_dim a, tn_dim b);
TN_API tn_dim tn_dim_div(tn_context *context, tn_dim a, tn_dim b);

/** The value of an integer or bool tensor of one element, as a size: it follows from what the
   tensor computes. It must be from min to max, up to 2^40 in magnitude, which is checked when it is
    computed: TN_ERR_SHAPE otherwise, and states keep their contents. max may be a variable, or such
    a size itself. Equal calls on equal tensors give equal sizes.

    A run of a plan goes on with these sizes in the middle; tn_binding_type tells those of outputs
    afterwards. tn_realize and tn_read compute them first, and a tensor that is realised has the
    number as its size from then on. Another tensor still has the size that is computed: operations
    that must know sizes to be equal, as docs/library.md lists ("Sizes that a run computes"), take
    both tensors only if both are realised, or neither is.

    On failure returns a size that every shape refuses, with the cause: TN_ERR_DTYPE for other
    types, TN_ERR_SHAPE for another number of elements, TN_ERR_ARGUMENT for bounds that are not in
    order, or NULL. */
TN_API tn_dim tn_dim_item(tn_tensor *x, int64_t min, tn_dim max);

/** Sets *value to the number that a size is, computed now. On failure *value stays as it is:
    TN_ERR_ARGUMENT if the size depends on variables or inputs of plans; TN_ERR_SHAPE if a number
    that it follows from is outside of its bounds, or for sizes that had to be equal and are not;
    what computing the elements fails with otherwise. */
TN_API tn_status tn_dim_value(tn_context *context, tn_dim dim, int64_t *value);

/* ---- Handles ---- */

/** Moves a tensor one scope out; it is realised when the scope that it leaves ends. Does nothing in
    the outermost scope and for an owned tensor. Returns its argument. */
TN_API tn_tensor *tn_keep(tn_tensor *tensor);

/** Moves a tensor out of all scopes into the caller's reference count, which becomes 1, or rises by
    1 if the tensor is owned already. The tensor is realised when the innermost scope ends, and
    freed when the count is 0 or the context closes. Returns its argument. */
TN_API tn_tensor *tn_own(tn_tensor *tensor);

/** Increments the reference count of an owned tensor. A tensor that is not owned is unchanged, and
    fails its scope with TN_ERR_ARGUMENT. Returns its argument. */
TN_API tn_tensor *tn_retain(tn_tensor *tensor);

/** Decrements the reference count of an owned tensor and frees it at 0; NULL is allowed. A tensor
    that is not owned is unchanged, and fails its scope with TN_ERR_ARGUMENT. Any thread and any
    callback, finalisers included, may call it at any time: it never waits. While the context is in
    use the release is deferred to the end of that call, or to the next call at the latest, and
    misuse is then not reported. */
TN_API void tn_release(tn_tensor *tensor);

/** Returns the type of a tensor; sizes may be variables. NULL and invalid tensors have TN_UNDEFINED
    and rank 0, weak scalars TN_F32 or TN_I64 and rank 0. */
TN_API tn_type tn_type_of(const tn_tensor *tensor);

/* ---- Devices ----

   A tensor is on the device of what it is computed from: data, inputs of plans and models are on
   the context's own device, results of tn_to on the device that it names. Operands on different
   devices are TN_ERR_ARGUMENT. Constants (tn_full, tn_num, tn_arange, random numbers, …) are
   computed on the device of those who read them. */

/** The same elements on a device, named as in tn_open_desc, which is opened if it was not:
    TN_ERR_DEVICE if it cannot be. Where the tensor is there already, nothing is copied. A context
   has at most 32 devices. TN_ERR_UNSUPPORTED in the body of a loop, whose steps run on one device.
 */
TN_API tn_tensor *tn_to(tn_tensor *x, const char *device);

/** The name of the device that a tensor is on, as "CPU:0"; the context's own for constants. NULL
   for NULL and invalid tensors. The name lives as long as the context. */
TN_API const char *tn_device_of(const tn_tensor *x);

/* ---- Creation ----

   Sizes may be variables unless stated otherwise. TN_ERR_SHAPE for a rank above TN_MAX_RANK, a
   negative size, or more elements than memory can ever hold (as for the result of any operation);
   TN_ERR_DTYPE for a type that is not in TN_DTYPE_LIST or not among those the function takes. */

/** Make a tensor filled with `value`, 0 or 1, converted as by tn_cast. As numpy.full, zeros and
    ones. */
TN_API tn_tensor *tn_full(tn_context *context, tn_shape shape, tn_dtype dtype, double value);
TN_API tn_tensor *tn_zeros(tn_context *context, tn_shape shape, tn_dtype dtype);
TN_API tn_tensor *tn_ones(tn_context *context, tn_shape shape, tn_dtype dtype);

/** Make weak scalars: of rank 0, with a type that follows the other operands (ops.h), so that an
    f16 tensor times tn_num(tn, 0.5) is f16, as with Python's numbers. Without other operands tn_num
    is TN_F32 and tn_int TN_I64. A value that changes from step to step, such as a learning rate,
    does not recompile each time: "Scalars that change" in docs/library.md. */
TN_API tn_tensor *tn_num(tn_context *context, double value);
TN_API tn_tensor *tn_int(tn_context *context, int64_t value);

/** Makes the rank-1 tensor start, start + step, … before `stop`. `start` and `stop` may be
    variables; `step` is a number other than 0. Any type but bool. As numpy.arange; use tn_linspace
    for fractions and tn_add for numbers beyond 2^44. */
TN_API tn_tensor *tn_arange(tn_context *context, tn_dim start, tn_dim stop, tn_dim step,
                            tn_dtype dtype);

/** Makes the rank-1 tensor of `count` evenly spaced numbers from `start` to `stop`, both included;
    a count of 1 gives `start`. Floating types. As numpy.linspace. */
TN_API tn_tensor *tn_linspace(tn_context *context, double start, double stop, tn_dim count,
                              tn_dtype dtype);

/** Makes a matrix (rows, columns) with 1 on the main diagonal and 0 elsewhere. As numpy.eye. */
TN_API tn_tensor *tn_eye(tn_context *context, tn_dim rows, tn_dim columns, tn_dtype dtype);

/* ---- Random numbers ----

   A counter-based generator: an element depends only on the seed, the number of random calls since
   it was set, and the element's row-major index, not on device, threads or shape. The bits of
   element i of call n, both from 0, are Threefry-2x32 with 20 rounds (Salmon and others, 2011) of
   counter i under a key that is Threefry-2x32 of counter n under the seed; 64 bits are two words,
   the low one first. A plan keeps the numbers drawn when it was built: every run has the same. The
   key is a scalar that may change between graphs ("Scalars that change" in docs/library.md). */

/** Sets the seed and restarts the count of random calls; a new context has seed 0. */
TN_API void tn_seed(tn_context *context, uint64_t seed);

/** Draws uniformly from [0, 1): all multiples of 2^-p are equally likely, p being the bits of the
    type's significand. Floating types. As torch.rand. */
TN_API tn_tensor *tn_rand(tn_context *context, tn_shape shape, tn_dtype dtype);

/** Draws from the normal distribution with mean 0 and variance 1, by Box and Muller's transform.
    Floating types. As torch.randn. */
TN_API tn_tensor *tn_randn(tn_context *context, tn_shape shape, tn_dtype dtype);

/** Draws uniformly from the integers low <= x < high, all of which the type must hold: x is low
    plus the upper half of the 128-bit product of 64 random bits and high - low, which is uniform to
    within 2^-64. Integer types; TN_ERR_ARGUMENT for an empty interval. As torch.randint. */
TN_API tn_tensor *tn_randint(tn_context *context, tn_shape shape, tn_dtype dtype, int64_t low,
                             int64_t high);

/* ---- Host memory ----

   `dtype` is the element type in host memory, and `bytes` the exact size of all elements: any other
   size is TN_ERR_ARGUMENT, and nothing is copied. Sizes of tensors are numbers here. */

/** Makes a tensor from a copy of host memory, taken during the call. `data` may be NULL where
    `bytes` is 0. */
TN_API tn_tensor *tn_from_host(tn_context *context, tn_shape shape, tn_dtype dtype,
                               const void *data, size_t bytes);

/** Makes a tensor of host memory without a copy. The memory must be aligned to its elements and
    must not change until `destroy` (NULL: none) gets `user`: exactly once, from any thread, when
    nothing needs the memory any more, or when the call fails. Any non-zero byte of a TN_BOOL counts
    as true; results have 1 there, except that tn_map shows the byte itself. */
TN_API tn_tensor *tn_wrap_host(tn_context *context, tn_shape shape, tn_dtype dtype,
                               const void *data, size_t bytes, void (*destroy)(void *user),
                               void *user);

/** Computes a tensor, along with all pending assignments, and copies it to `data`, converted to
    `dtype` as by tn_cast. On failure `data` is unchanged. */
TN_API tn_status tn_read(tn_tensor *tensor, tn_dtype dtype, void *data, size_t bytes);

/** Copies `data` into a state, or a movement of one: as tn_assign of tn_from_host with the state's
    own shape. `data` may be reused on return. */
TN_API tn_status tn_write(tn_tensor *state, tn_dtype dtype, const void *data, size_t bytes);

/** Computes a tensor as tn_read does and returns its elements without a copy. The memory is
    read-only; it is valid until the tensor is freed or, for a state or a movement of one, until
    anything is run or written, or it is mapped again. On failure *array is all zero.
    TN_ERR_UNSUPPORTED where the host cannot access the device's memory. */
TN_API tn_status tn_map(tn_tensor *tensor, tn_array *array);

/** Computes `n` tensors and all pending assignments as one plan, so that common parts are computed
    once. The tensors then hold their values and drop their graphs. Also returns the failure of a
    state whose initial contents could not be computed, now and in later calls. */
TN_API tn_status tn_realize(tn_context *context, tn_tensor *const tensors[], size_t n);

/* ---- State ---- */

/** Makes a state: storage of init's shape and type that starts with init's value and can be
    assigned to. A weak scalar gives TN_F32 or TN_I64. TN_ERR_SHAPE for sizes that are no numbers:
    variables, and those that follow from elements (tn_dim_item) as long as init is not realised. */
TN_API tn_tensor *tn_state(tn_tensor *init);

/** Replaces the contents of `dst`, a state or a movement of one, by `value`, broadcast to its shape
    and converted to its type as by tn_cast. A movement must not repeat elements (tn_expand), add
    any (tn_pad), or be a tn_roll, which is in two pieces. The assignment is pending until something
    is next run; it comes after all readers built before it, and before all built after. Sizes of
    `value` that follow from elements (tn_dim_item) fit once it is realised (tn_realize). The offset
    of a part may change from step to step ("Scalars that change" in docs/library.md). Returns
    `dst`, or an invalid tensor: TN_ERR_ARGUMENT where `dst` is no state, TN_ERR_SHAPE where `value`
    does not fit. The next call that runs or compiles pending assignments, such as tn_read or
    tn_plan_compile, returns that failure too, once. */
TN_API tn_tensor *tn_assign(tn_tensor *dst, tn_tensor *value);

/* ---- Custom operations ---- */

/** A kernel written in the library's IR, made by tn_kernel_make of <tenon/unstable/ir.h>. */
typedef struct tn_kernel tn_kernel;

/** One execution of a custom operation; valid during it. */
typedef struct tn_call tn_call;

/** Return the `i`-th input or output, with all sizes known; all zero past the last. An input is
    read-only unless tn_custom_desc's `writes` includes it; an output must be written in full. */
TN_API tn_array tn_call_in(const tn_call *call, size_t i);
TN_API tn_array tn_call_out(const tn_call *call, size_t i);

/** Sets the message of the failure that `run` is about to return; `text` is copied. */
TN_API void tn_call_fail(tn_call *call, const char *text);

/** Implementation of a custom operation: exactly one of `run` and `kernel` is set. */
typedef struct tn_custom_desc {
  size_t size;      /**< sizeof(tn_custom_desc) */
  const char *name; /**< for messages and profiles; copied; NULL: "custom" */
  /** Computes the outputs on a host thread. Follows the rules of callbacks (context.h), except that
      it may run bindings of plans without states and without such functions, though not free them.
      A status other than TN_OK fails the work that needed the outputs; TN_ERR_DEVICE marks the
      device as lost for the binding that ran it, or, outside of bindings, for the context. */
  tn_status (*run)(void *user, tn_call *call);
  const tn_kernel *kernel; /**< copied; compiled and run like the library's own kernels */
  uint64_t writes;         /**< bit i: in[i] is a state that is changed in place */
  void *user;
  void (*destroy)(void *user); /**< NULL, or gets `user` exactly once: when no graph or plan holds
                                  the operation any more, or when it is refused */
} tn_custom_desc;

#define TN_CUSTOM_DESC_INIT \
  { sizeof(tn_custom_desc), NULL, NULL, NULL, 0, NULL, NULL }

/** Makes an operation of the caller's with `n_in` inputs and `n_out` outputs, each at most 64, of
    the given types, whose sizes may be variables. It runs once where an output is needed, or if it
    writes inputs; docs/library.md, "Custom operations", states when, and what a kernel must look
    like. Every out[i] is set, to an invalid tensor on failure: TN_ERR_ARGUMENT where neither or
    both of `run` and `kernel` are set, a written input is no state, there is neither an output nor
    a write, or a kernel has or writes other params; TN_ERR_DTYPE or TN_ERR_SHAPE where a param has
    another type or shape; TN_ERR_UNSUPPORTED for a `run` in the body of a tn_scan, and for more
    than 64 variables in sizes. */
TN_API void tn_custom(tn_context *context, const tn_custom_desc *desc, tn_tensor *const in[],
                      size_t n_in, const tn_type types[], tn_tensor *out[], size_t n_out);

#ifdef __cplusplus
}
#endif
#endif
