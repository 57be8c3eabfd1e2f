/* Tensors: lazy expressions for multidimensional arrays, with functions for their shapes, handles,
   creation, host data, states and host functions.

   A tensor is an expression with a type; nothing is computed until it is read, realised, or its
   scope ends, and results are as if each call had run when made. A tensor is a value, except a
   state (tn_state), which tn_assign changes; movements of a state (ops.h) alias it, as views do in
   NumPy.

   A tn_tensor * is a handle that belongs to the innermost scope open when it was made, and is freed
   with it. tn_keep and tn_own move it elsewhere. Expressions hold nodes, not handles: freeing a
   handle breaks nothing that was built from it. Elements lie in row-major order wherever host
   memory is seen. */
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

typedef struct tn_tensor tn_tensor;

/* ---- Shapes ---- */

/** The most axes a shape can have. */
#define TN_MAX_RANK 12

/** A size: a number, or a variable made by tn_dim_var and the arithmetic below. C's own operators
    must not be used on a variable; what they make of one is refused: it is seldom below 2^44 in
    magnitude, as all numbers must be. From 2^44 on they are TN_ERR_SHAPE wherever a tn_dim is
    taken (bounds of tn_slice apart), be it a size, a bound of tn_arange or another number. A size
    that varies belongs to the scope in which it was first made, as tensors do; what is used after
    its end is refused likewise. Tensors that outlive the scope keep their sizes. */
typedef int64_t tn_dim;

/** A shape: sizes from the outermost axis to the innermost. Rank 0 is a scalar. */
typedef struct tn_shape {
  int32_t rank;
  tn_dim size[TN_MAX_RANK];
} tn_shape;

/** A list of axes. A negative axis counts from the end, -1 being the last; none may come twice.
    TN_NO_AXES is the empty list, no axis at all; TN_ALL is every axis. */
typedef struct tn_axes {
  int32_t count;
  int32_t axis[TN_MAX_RANK];
} tn_axes;

/** Type and shape of a tensor, known without computing it. */
typedef struct tn_type {
  tn_dtype dtype;
  tn_shape shape;
} tn_type;

/** Elements in host memory, row-major and without gaps. */
typedef struct tn_array {
  void *data;
  tn_type type;
} tn_array;

/* tn_shape(2, 3) and tn_axes(0, -1) are values, in C and in C++, not constants in C: a static
   variable is written out, {2, {2, 3}}. C11 has none without entries: TN_SCALAR is the shape of
   rank 0, and TN_NO_AXES the list of no axes. More than TN_MAX_RANK entries do not compile in C++;
   in C a compiler warns of them and every function refuses them. */
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

/** A size that is known only at run time, between `min` and `max` inclusive; 0 <= min <= max <=
    2^40. The same name with the same bounds is the same variable; with others it is refused. On
    failure the result is a size that every shape refuses, with the cause. */
TN_API tn_dim tn_dim_var(tn_context *context, const char *name, int64_t min, int64_t max);

/** Arithmetic on sizes, numbers and variables in any mix: exact, and refused with TN_ERR_SHAPE
    where the result is a number of 2^44 or more in magnitude, or varies and can leave 64 bits.
    tn_dim_div rounds down; its divisor may not be able to be 0. A result that is a number is one,
    and needs no function any more. */
TN_API tn_dim tn_dim_add(tn_context *context, tn_dim a, tn_dim b);
TN_API tn_dim tn_dim_sub(tn_context *context, tn_dim a, tn_dim b);
TN_API tn_dim tn_dim_mul(tn_context *context, tn_dim a, tn_dim b);
TN_API tn_dim tn_dim_div(tn_context *context, tn_dim a, tn_dim b);

/* ---- Handles ---- */

/** Moves a tensor one scope out, where it is realised when the scope it leaves ends. In the
    outermost scope, and for an owned tensor, nothing changes. Returns its argument. */
TN_API tn_tensor *tn_keep(tn_tensor *tensor);

/** Moves a tensor out of all scopes into the caller's count, which is then 1 (one more, if it was
    owned before). It is realised when the innermost scope ends, and freed when the count is 0 or
    the context closes. Returns its argument. */
TN_API tn_tensor *tn_own(tn_tensor *tensor);

/** Adds 1 to the count of an owned tensor. A tensor that is not owned is left as it is and fails
    its scope with TN_ERR_ARGUMENT. Returns its argument. */
TN_API tn_tensor *tn_retain(tn_tensor *tensor);

/** Takes 1 from the count of an owned tensor and frees it at 0. NULL is allowed. A tensor that is
    not owned is left as it is and fails its scope with TN_ERR_ARGUMENT. Any thread, also while
    another one uses the context, and any callback, as a finaliser's: it never waits. Where the
    context is in use, the count changes when that call ends, or with the next call at the latest;
    of a tensor that is not owned nothing is said then. */
TN_API void tn_release(tn_tensor *tensor);

/** The type; sizes may be variables. Of NULL or an invalid tensor: TN_UNDEFINED and rank 0. Of a
    weak scalar: TN_F32 or TN_I64 and rank 0. */
TN_API tn_type tn_type_of(const tn_tensor *tensor);

/* ---- Made from nothing ----

   A size may be a variable unless said otherwise. Errors: TN_ERR_SHAPE for a rank above
   TN_MAX_RANK, a negative size, or more elements than memory can ever hold (as of every operation's
   result), TN_ERR_DTYPE for a type that is not in TN_DTYPE_LIST or not among those named. */

/** `value` everywhere, converted as by tn_cast. As numpy.full. */
TN_API tn_tensor *tn_full(tn_context *context, tn_shape shape, tn_dtype dtype, double value);
TN_API tn_tensor *tn_zeros(tn_context *context, tn_shape shape, tn_dtype dtype);
TN_API tn_tensor *tn_ones(tn_context *context, tn_shape shape, tn_dtype dtype);

/** Weak scalars: of rank 0, and of the type of what they meet (ops.h says how), so that an f16
    tensor times tn_num(tn, 0.5) is f16, as with numbers in Python. Alone tn_num is TN_F32 and
    tn_int TN_I64. A number may change from step to step, as a rate does: see "Scalars that
    change" in docs/library.md. */
TN_API tn_tensor *tn_num(tn_context *context, double value);
TN_API tn_tensor *tn_int(tn_context *context, int64_t value);

/** The numbers start, start + step, … before `stop`: rank 1. `step` is a number and not 0; start
    and stop may be variables. Any type but bool. As numpy.arange; tn_linspace makes fractions, and
    tn_add moves the numbers beyond 2^44. */
TN_API tn_tensor *tn_arange(tn_context *context, tn_dim start, tn_dim stop, tn_dim step,
                            tn_dtype dtype);

/** `count` numbers from `start` to `stop`, both included: rank 1; `count` 1 gives `start`. Floating
    types. As numpy.linspace. */
TN_API tn_tensor *tn_linspace(tn_context *context, double start, double stop, tn_dim count,
                              tn_dtype dtype);

/** 1 on the main diagonal, else 0: (rows, columns). As numpy.eye. */
TN_API tn_tensor *tn_eye(tn_context *context, tn_dim rows, tn_dim columns, tn_dtype dtype);

/* ---- Random numbers ----

   From a counter, so that an element depends on nothing but the seed, the number of random calls
   made since it was set, and the element's row-major index: not on device, threads, shape or what
   else is computed. The bits of element i of call n, both from 0, are Threefry-2x32, 20 rounds
   (Salmon and others, 2011), of the counter i under the key that is Threefry-2x32 of the counter n
   under the seed; 64 bits are two words, the low one first. A plan keeps the numbers drawn when it
   was built: each of its runs has the same. The key is a number of the expression, and so varies as
   all others ("Scalars that change" in docs/library.md). */

/** Starts the numbers anew; a fresh context has seed 0. */
TN_API void tn_seed(tn_context *context, uint64_t seed);

/** Uniform in [0, 1): every multiple of 2^-p is equally likely, p being the bits of the type's
    significand. Floating types. As torch.rand. */
TN_API tn_tensor *tn_rand(tn_context *context, tn_shape shape, tn_dtype dtype);

/** Normal, mean 0 and variance 1, by Box and Muller's transform. Floating types. As torch.randn. */
TN_API tn_tensor *tn_randn(tn_context *context, tn_shape shape, tn_dtype dtype);

/** Uniform among the integers low <= x < high, which the type must hold: x is low plus the upper
    half of the 128-bit product of 64 random bits and high - low, so any run of neighbours is as
    likely as it should be to within 2^-64. Integer types; TN_ERR_ARGUMENT where there is none. As
    torch.randint. */
TN_API tn_tensor *tn_randint(tn_context *context, tn_shape shape, tn_dtype dtype, int64_t low,
                             int64_t high);

/* ---- From the host and to it ----

   `dtype` is always the type of the host's elements, and `bytes` always the exact size of all of
   them: another number is TN_ERR_ARGUMENT, and nothing is copied. Sizes are numbers. */

/** A copy of host memory, made during the call; `data` may be NULL where `bytes` is 0. */
TN_API tn_tensor *tn_from_host(tn_context *context, tn_shape shape, tn_dtype dtype,
                               const void *data, size_t bytes);

/** Host memory itself, not copied: it must be aligned to its elements and not change until
    `destroy` (which may be NULL) gets `user`. That happens exactly once, from any thread, when
    nothing needs the memory any more; also where the call fails. In a TN_BOOL every byte but 0 is
    true: all that is computed and read from it has 1 there, and tn_map shows the byte itself. */
TN_API tn_tensor *tn_wrap_host(tn_context *context, tn_shape shape, tn_dtype dtype,
                               const void *data, size_t bytes, void (*destroy)(void *user),
                               void *user);

/** Computes a tensor, along with all assigns then pending, and copies it out, converted to `dtype`
    as by tn_cast. On failure `data` is untouched. */
TN_API tn_status tn_read(tn_tensor *tensor, tn_dtype dtype, void *data, size_t bytes);

/** Copies `data` into a state or a movement of one: as tn_assign of tn_from_host, with the state's
    own shape. `data` is free for reuse on return. */
TN_API tn_status tn_write(tn_tensor *state, tn_dtype dtype, const void *data, size_t bytes);

/** Computes a tensor as tn_read does, and shows it without a copy. The memory may be read, not
    written, until the tensor is freed or, for a state or a movement of one, until anything is run
    or written, or it is mapped again. On failure *array is all zero; TN_ERR_UNSUPPORTED where the
   host cannot reach the device's memory. */
TN_API tn_status tn_map(tn_tensor *tensor, tn_array *array);

/** Computes `n` tensors and all assigns then pending, as one plan, so that what they share is
    computed once. They then hold their values and have dropped their graphs. A state whose first
    contents could not be made is a failure, now and later. */
TN_API tn_status tn_realize(tn_context *context, tn_tensor *const tensors[], size_t n);

/* ---- State ---- */

/** A new storage that starts as `init` and can be assigned to, of its shape and type. A weak scalar
    gives TN_F32 or TN_I64. Sizes are numbers, else TN_ERR_SHAPE. */
TN_API tn_tensor *tn_state(tn_tensor *init);

/** Replaces what `dst` (a state, or a movement of one that has no element twice, adds none and
    is not tn_roll, which is in two pieces) holds by `value`, which is broadcast to its shape
    and converted to its type as by tn_cast. The assign happens when something is next run,
    after all readers built before it and before all built after. The place of a part may change
    from step to step ("Scalars that change" in docs/library.md). Returns `dst`, or an invalid
   tensor where it is refused: TN_ERR_ARGUMENT where `dst` is no state, TN_ERR_SHAPE where `value`
    does not fit. What next runs or compiles the assigns that are pending, such as tn_read or
    tn_plan_compile, returns this failure too, once. */
TN_API tn_tensor *tn_assign(tn_tensor *dst, tn_tensor *value);

/* ---- Custom operations ---- */

/** A kernel written in the library's IR: tn_kernel_make of <tenon/unstable/ir.h>. */
typedef struct tn_kernel tn_kernel;

/** One run of a custom operation, valid during it. */
typedef struct tn_call tn_call;

/** The `i`-th input or output, with all sizes known. An input may be read, and written where
    tn_custom_desc's `writes` says so; an output is to be written in full. All zero past the last.
 */
TN_API tn_array tn_call_in(const tn_call *call, size_t i);
TN_API tn_array tn_call_out(const tn_call *call, size_t i);

/** Sets the message that goes with the failure that `run` is about to return; `text` is copied. */
TN_API void tn_call_fail(tn_call *call, const char *text);

/** Implementation of a custom operation: either `run` or `kernel` is set. */
typedef struct tn_custom_desc {
  size_t size;      /**< sizeof(tn_custom_desc) */
  const char *name; /**< for messages and profiles; copied; NULL: "custom" */
  /** Computes the outputs on a host thread, as a callback of its context (context.h), except that
      it may use bindings, though not free them: runs of plans that touch no states and call no such
      functions themselves. What it returns other than TN_OK fails the work that needed it;
      TN_ERR_DEVICE says that the device is lost to who ran it: that binding computes nothing more,
      or where it was no binding's run, the context's own calls do not. */
  tn_status (*run)(void *user, tn_call *call);
  const tn_kernel *kernel; /**< copied; compiled and run as those that the library makes */
  uint64_t writes;         /**< bit i: in[i] is a state that is changed in place */
  void *user;
  void (*destroy)(void *user); /**< gets `user` exactly once, when no graph or plan holds the
                                    operation any more, or when it is refused; may be NULL */
} tn_custom_desc;

#define TN_CUSTOM_DESC_INIT \
  { sizeof(tn_custom_desc), NULL, NULL, NULL, 0, NULL, NULL }

/** An operation of the caller's own: `n_in` inputs (at most 64), and `n_out` outputs (at most
    64) of the given types, whose sizes may be variables. It runs once where any output is needed
   and not otherwise; with `writes` it always runs, once, ordered as an assign to those inputs (in
   plans not where all that it writes has no elements). It is never merged with another. A `kernel`
   has no effects but its results, so those that nobody holds may be computed again. Its params are
   the inputs, then the outputs, and it writes the latter and those of `writes`. Of elements that
   several written inputs have in common, those of the last one stay. Every out[i] is set, to an
   invalid tensor on failure: TN_ERR_ARGUMENT where neither or both of `run` and `kernel` are set,
   where a written input is no state, where there is neither an output nor a write, or where a
   kernel has or writes other params; TN_ERR_DTYPE or TN_ERR_SHAPE where one is of another type or
   shape; TN_ERR_UNSUPPORTED for a `run` in the body of a tn_scan, and for more than 64 sizes that
   vary. Two operations are two functions, which may be called at once, also where `run` and `user`
   are the same. */
TN_API void tn_custom(tn_context *context, const tn_custom_desc *desc, tn_tensor *const in[],
                      size_t n_in, const tn_type types[], tn_tensor *out[], size_t n_out);

#ifdef __cplusplus
}
#endif
#endif
