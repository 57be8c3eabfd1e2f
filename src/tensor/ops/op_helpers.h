/* Helpers for operator builders: type rules and promotion, axes, shapes, movement along one axis,
   and constructors of expressions. */
#ifndef TENON_TENSOR_OPS_OP_HELPERS_H
#define TENON_TENSOR_OPS_OP_HELPERS_H

#include "tensor/ops/operators.h"

/* ---- Types (op_helpers.c, promote_dtypes.c) ---- */

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
typedef struct meeting {
  dtype dtype;
  weakness weak;
} meeting;
meeting promote_operands(const value v[], size_t n);

/** Raises TN_ERR_DTYPE if a rule does not take a type. */
void check_operand_type(builder *b, rule r, dtype t);

/** The type of a floating function's result; f32, or f64 for a weak scalar, if `m` is no float. */
meeting floating_result_type(meeting m);

/** bool < integer < float: the kinds of types. */
int type_kind(dtype t);

/** The type to compute in: f32 for f16 and bf16, else itself. */
dtype accumulation_type(dtype t);

/** A value in another type. A weak integer that the type cannot hold is TN_ERR_DTYPE. */
const node *type_convert(builder *b, value v, dtype to);

/** Operands of an elementwise operation: converted to the promoted type and broadcast. */
enum { MOST_OPERANDS = 3 };
typedef struct operands {
  meeting result;
  const node *at[MOST_OPERANDS];
} operands;
operands operands_promote(builder *b, rule r, const value v[], size_t n);

/** The result of an elementwise operation: cast to its type; folded to a constant if it is weak. */
value operands_result(builder *b, const operands *o, const node *n);

/** Operand of an operation that is not elementwise, made typed if weak: x in the type that floating
    functions compute in, and the type of the result. */
typedef struct floating {
  const node *x;
  dtype result;
} floating;
floating floating_operand(builder *b, value x);

/* ---- Axes and shapes (ops_shape.c) ---- */

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

/** A number of axes that tensors can have, else TN_ERR_SHAPE. */
void rank_check(builder *b, size_t rank);

/** True if sizes are provably equal; the text of a size for messages. */
bool size_equals(const node *n, int64_t value);

/** The shape to which several broadcast; TN_ERR_SHAPE if they do not fit. */
sizes sizes_broadcast(builder *b, const sizes s[], size_t n);
bool sizes_equal(const sizes *a, const sizes *b);

/** Raises TN_ERR_SHAPE that names the shapes and the two unequal sizes. */
_Noreturn void sizes_refuse_mismatch(builder *b, const sizes s[], size_t n, const node *one,
                                     const node *other);

/** One size replaced, added before an axis (TN_ERR_SHAPE if there is no room), or taken out. */
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
/** Pads one axis by `low` elements before and `high` after; negative ones crop. */
const node *shape_pad(builder *b, const node *x, size_t axis, const node *low, const node *high,
                      const node *fill);

/* ---- Expressions (op_helpers.c) ---- */

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
/** An index as a scalar of a type, and that repeated to a shape. */
const node *ex_size(builder *b, const node *size, dtype t);
const node *ex_fill(builder *b, const node *scalar, const sizes *shape);

/** Reduction over axes, which become 1 with `keepdims`. Sums and products of f16 and bf16 are of
    f32 inside. */
const node *ex_reduce(builder *b, op o, const node *x, const axis_list *axes, bool keepdims);

/* ---- Shared parts of operations ---- */

/** elementwise_unary.c, reduction.c: over nodes of the type to compute in. */
const node *node_relu6(builder *b, const node *x);
const node *node_mean(builder *b, const node *x, const axis_list *axes, bool keepdims);
const node *node_variance(builder *b, const node *x, const node *mean, const axis_list *axes);

/** reduction.c: TN_ERR_SHAPE if one of these axes can be empty, so that it has no extreme. */
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

/** sliding_windows.c: the most axes that windows have, and an option of one of these, else
    TN_ERR_ARGUMENT where it is out of range. */
enum { MAX_SPATIAL_AXES = 3 };
void window_check(builder *b, const char *option, size_t axis, int64_t v, int64_t least,
                  int64_t most);

/** sliding_windows.c: TN_ERR_SHAPE unless `rest`, an axis's size minus the window's, is 0 or more.
 */
void window_check_fits(builder *b, int64_t window, const node *size, const node *rest);

/** sliding_windows.c: the windows of the last `n` axes. x (…, D…) gives (…, O…, K…); element k of
   window o is x at o·stride + k·dilation. The windows lie within D. */
const node *node_windows(builder *b, const node *x, size_t n, const int64_t kernel[],
                         const int64_t stride[], const int64_t dilation[],
                         const node *const places[]);

#endif
