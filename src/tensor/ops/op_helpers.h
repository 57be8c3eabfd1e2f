/* Functions that operator builders share: type promotion, axes and shapes, movement along one axis,
   and constructors of expressions, grouped by the file that implements them. */
#ifndef TENON_TENSOR_OPS_OP_HELPERS_H
#define TENON_TENSOR_OPS_OP_HELPERS_H

#include "tensor/ops/operators.h"

/* ---- Types (type_promotion.c) ---- */

/** Type rule of an operation: operand types it accepts and the type of its result (ops.h). */
typedef enum rule {
  RULE_ANY,
  RULE_NUMBER,
  RULE_FLOAT,
  RULE_TEST,
  RULE_BITS,
  RULE_SHIFT,
  RULE_SUM
} rule;

/** The promoted type of several values; `weak` if all of them are weak scalars. */
typedef struct promoted_type {
  dtype dtype;
  weakness weak;
} promoted_type;
promoted_type promote_operands(const value v[], size_t n);

/** Raises TN_ERR_DTYPE unless a rule accepts a type. */
void check_operand_type(builder *b, rule r, dtype t);

/** The result type of a function of floats: `p` if that is a float, else f32, or f64 if weak. */
promoted_type float_result_type(promoted_type p);

/** bool < integer < float: the kinds of types. */
int type_kind(dtype t);

/** The type to compute in: f32 for f16 and bf16, else itself. */
dtype accumulation_type(dtype t);

/** The type of sums and products: 64 bits for integers and bools, else itself. */
dtype sum_type(dtype t);

/** A constant of rank 0 in another type. */
const node *constant_convert(builder *b, const node *n, dtype to);

/** A value in another type. A weak integer that the type cannot hold is TN_ERR_DTYPE. */
const node *type_convert(builder *b, value v, dtype to);

/** Operands of an elementwise operation: converted to the promoted type and broadcast. */
enum { MOST_OPERANDS = 3 };
typedef struct operands {
  promoted_type result;          /* type of the result */
  const node *at[MOST_OPERANDS]; /* in the type to compute in, of equal shapes */
} operands;
operands operands_promote(builder *b, rule r, const value v[], size_t n);

/** The result of an elementwise operation: cast to its type; folded to a constant if it is weak. */
value operands_result(builder *b, const operands *o, const node *n);

/** The operand of a function of floats that is not elementwise, made typed if weak. */
typedef struct float_operand {
  const node *x; /* in the type to compute in */
  dtype result;  /* type of the result */
} float_operand;
float_operand float_operand_of(builder *b, value x);

/* ---- Axes and shapes (shapes.c) ---- */

/** Normalises an axis to 0 … rank − 1; TN_ERR_SHAPE if there is none. */
size_t axis_of(builder *b, int64_t axis, size_t rank);

/** Axes in the order listed, and as a bit set. */
typedef struct axis_list {
  size_t n;
  int64_t at[SIZES_MAX_RANK];
  uint32_t set;
} axis_list;
axis_list axes_of(builder *b, tn_axes axes, size_t rank);
axis_list axes_from(size_t first, size_t last); /* first … last − 1 */
bool axis_is_in(const axis_list *l, size_t axis);

/** Raises TN_ERR_SHAPE if tensors cannot have this many axes. */
void rank_check(builder *b, size_t rank);

/** True if a size is this number. */
bool size_equals(const node *n, int64_t value);

/** The shape to which several broadcast, as in NumPy; TN_ERR_SHAPE if they do not. */
sizes sizes_broadcast(builder *b, const sizes s[], size_t n);

/** True if shapes are provably equal. */
bool sizes_equal(const sizes *a, const sizes *b);

/** Raises TN_ERR_SHAPE: names shapes that do not broadcast, or one of which two sizes must be
    equal, and the unequal sizes. */
_Noreturn void sizes_refuse_mismatch(builder *b, const sizes s[], size_t n, const node *one,
                                     const node *other);

/** A shape with one size replaced, inserted before an axis (TN_ERR_SHAPE beyond SIZES_MAX_RANK), or
    removed. */
sizes sizes_with(sizes s, size_t axis, const node *size);
sizes sizes_insert(builder *b, sizes s, size_t axis, const node *size);
sizes sizes_remove(sizes s, size_t axis);

/** Movement nodes; no node is made if nothing changes. */
const node *shape_reshape(builder *b, const node *x, const sizes *to);
const node *shape_expand(builder *b, const node *x, const sizes *to); /* equal ranks */
const node *shape_broadcast(builder *b, const node *x, const sizes *to);
const node *shape_unsqueeze(builder *b, const node *x, size_t axis); /* an axis of size 1 */
const node *shape_permute(builder *b, const node *x, const int64_t axes[]);
/** Elements start, start + step, …, `size` of them, along one axis. */
const node *shape_slice(builder *b, const node *x, size_t axis, const node *start, const node *size,
                        int64_t step);
/** Pads one axis by `low` elements before and `high` after it; negative numbers crop. */
const node *shape_pad(builder *b, const node *x, size_t axis, const node *low, const node *high,
                      const node *fill);

/* ---- Expressions (expressions.c) ---- */

const node *ex_unary(builder *b, op o, const node *x);
const node *ex_binary(builder *b, op o, const node *x, const node *y);
const node *ex_where(builder *b, const node *c, const node *x, const node *y);

/** A number with the type and shape of `like`. */
const node *ex_num(builder *b, const node *like, double v);
const node *ex_int(builder *b, const node *like, int64_t v);
/** An operation with a number. */
const node *ex_binary_num(builder *b, op o, const node *x, double v);
/** The coordinate along an axis of a shape. */
const node *ex_iota(builder *b, dtype t, const sizes *shape, size_t axis);
/** An index as a scalar of a type; and a scalar repeated to a shape. */
const node *ex_size(builder *b, const node *size, dtype t);
const node *ex_fill(builder *b, const node *scalar, const sizes *shape);

/** Reduction over axes, which become 1 with `keepdims`. Sums and products of f16 and bf16 are
    accumulated in f32. */
const node *ex_reduce(builder *b, op o, const node *x, const axis_list *axes, bool keepdims);

/* ---- Operations inside others: over nodes in the type to compute in ---- */

/** elementwise_unary.c, reduction.c */
const node *node_relu6(builder *b, const node *x);
const node *node_mean(builder *b, const node *x, const axis_list *axes, bool keepdims);
const node *node_variance(builder *b, const node *x, const node *mean, const axis_list *axes);

/** reduction.c: TN_ERR_SHAPE if one of these axes can be empty, so that it has no maximum. */
void axes_check_not_empty(builder *b, const node *x, const axis_list *axes);

/** elementwise_binary.c: remainders of floats, in f64. */
const node *node_fmod(builder *b, const node *x, const node *y);

/** gather.c: x at `index` (i64, of the result's shape, no negative ones) along an axis, and at
    the result's own coordinates elsewhere. */
const node *node_gather(builder *b, const node *x, size_t axis, const node *index);

/** gather.c: indices as i64, negative ones counted from the end of an axis of `size`. */
const node *node_wrap_index(builder *b, value index, const node *size);
/** gather.c: coordinate `k` of the positions in the last axis of an index, wrapped likewise, for a
    result of shape s whose first axes the index has. */
const node *node_index_coordinate(builder *b, const node *index, size_t k, const node *size,
                                  const sizes *s);

/* ---- Sliding windows (sliding_windows.c) ---- */

/** Spatial axes of convolution and pooling at most. */
enum { MAX_SPATIAL_AXES = 3 };

/** Raises TN_ERR_ARGUMENT if an option of a spatial axis is out of range. */
void window_check(builder *b, const char *option, size_t axis, int64_t v, int64_t least,
                  int64_t most);

/** Raises TN_ERR_SHAPE unless `rest`, an axis's size minus the window's, is 0 or more. */
void window_check_fits(builder *b, int64_t window, const node *size, const node *rest);

/** The windows of the last `n` axes: x (…, D…) gives (…, O…, K…), of sizes `output` and `kernel`.
    Element k of window o is x at o·stride + k·dilation. The windows lie within D. */
const node *node_windows(builder *b, const node *x, size_t n, const int64_t kernel[],
                         const int64_t stride[], const int64_t dilation[],
                         const node *const output[]);

#endif
