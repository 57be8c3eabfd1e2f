/* What the files of operations share: types, axes, shapes, and short ways to write expressions. */
#ifndef TENON_TENSOR_OPS_COMMON_H
#define TENON_TENSOR_OPS_COMMON_H

#include "tensor/build.h"

/* ---- Types (ops_common.c) ---- */

/** What an operation takes, and what it makes of it: the rules of ops.h. */
typedef enum rule {
  RULE_ANY,
  RULE_NUMBER,
  RULE_FLOAT,
  RULE_TEST,
  RULE_BITS,
  RULE_SHIFT,
  RULE_SUM
} rule;

/** Types in which values meet; `weak` if all of them are weak scalars. */
typedef struct meeting {
  dtype dtype;
  weakness weak;
} meeting;
meeting type_meet(const value v[], size_t n);

/** Raises TN_ERR_DTYPE if a rule does not take a type. */
void type_check(builder *b, rule r, dtype t);

/** The type of a floating function's result; f32, or f64 for a weak scalar, if `m` is no float. */
meeting type_floating(meeting m);

/** bool < integer < float: the kinds of types. */
int type_kind(dtype t);

/** The type to compute in: f32 for f16 and bf16, else itself. */
dtype type_wide(dtype t);

/** A value in another type. A weak integer that the type cannot hold is TN_ERR_DTYPE. */
const node *type_convert(builder *b, value v, dtype to);

/** Operands of an elementwise operation: converted to where they meet and broadcast. */
enum { MOST_OPERANDS = 3 };
typedef struct operands {
  meeting result;
  const node *at[MOST_OPERANDS];
} operands;
operands operands_meet(builder *b, rule r, const value v[], size_t n);

/** The result of an elementwise operation: in its type; a constant if it is weak. */
value operands_result(builder *b, const operands *o, const node *n);

/** Operands of an operation that is not elementwise, none of them weak after this: x in the type
    that floating functions compute in, and the type of the result. */
typedef struct floating {
  const node *x;
  dtype result;
} floating;
floating floating_operand(builder *b, value x);

/* ---- Axes and shapes (ops_shape.c) ---- */

/** A non-negative axis; TN_ERR_SHAPE if a tensor of this rank has none such. */
size_t axis_of(builder *b, int64_t axis, size_t rank);

/** Axes as they were listed, and as a set of bits. */
typedef struct axis_list {
  size_t n;
  int64_t at[SIZES_RANK];
  uint32_t set;
} axis_list;
axis_list axes_of(builder *b, tn_axes axes, size_t rank);
axis_list axes_from(size_t first, size_t last); /* first … last − 1 */
bool axis_is_in(const axis_list *l, size_t axis);

/** A number of axes that tensors can have, else TN_ERR_SHAPE. */
void rank_check(builder *b, size_t rank);

/** Whether sizes are equal, or shown to be; a size for messages. */
bool size_is(const node *n, int64_t value);
const char *size_text(builder *b, const node *n);

/** The shape to which several broadcast; TN_ERR_SHAPE if they do not fit. */
sizes sizes_broadcast(builder *b, const sizes s[], size_t n);
bool sizes_equal(const sizes *a, const sizes *b);

/** TN_ERR_SHAPE that names shapes and the two sizes in them that are not equal. */
_Noreturn void sizes_do_not_fit(builder *b, const sizes s[], size_t n, const node *one,
                                const node *other);

/** One size replaced, added before an axis (TN_ERR_SHAPE if there is no room), or taken out. */
sizes sizes_with(sizes s, size_t axis, const node *size);
sizes sizes_insert(builder *b, sizes s, size_t axis, const node *size);
sizes sizes_remove(sizes s, size_t axis);

/** Movement, left out where it changes nothing. */
const node *shape_reshape(builder *b, const node *x, const sizes *to);
const node *shape_expand(builder *b, const node *x, const sizes *to); /* equal ranks */
const node *shape_broadcast(builder *b, const node *x, const sizes *to);
const node *shape_insert(builder *b, const node *x, size_t axis); /* an axis of size 1 */
const node *shape_permute(builder *b, const node *x, const int64_t axes[]);
/** Elements start, start + step, …, `size` of them, along one axis. */
const node *shape_slice(builder *b, const node *x, size_t axis, const node *start, const node *size,
                        int64_t step);
/** `low` more elements before and `high` after along one axis; negative ones cut. */
const node *shape_pad(builder *b, const node *x, size_t axis, const node *low, const node *high,
                      const node *fill);

/* ---- Expressions (ops_common.c) ---- */

const node *ex1(builder *b, op o, const node *x);
const node *ex2(builder *b, op o, const node *x, const node *y);
const node *ex_where(builder *b, const node *c, const node *x, const node *y);

/** A number with the type and shape of `like`. */
const node *ex_num(builder *b, const node *like, double v);
const node *ex_int(builder *b, const node *like, int64_t v);
/** An operation with a number. */
const node *ex2_num(builder *b, op o, const node *x, double v);
/** The coordinate along an axis of a shape. */
const node *ex_iota(builder *b, dtype t, const sizes *shape, size_t axis);
/** An index as a scalar of a type, and that repeated to a shape. */
const node *ex_size(builder *b, const node *size, dtype t);
const node *ex_fill(builder *b, const node *scalar, const sizes *shape);

/** Reduction over axes, which become 1 with `keepdims`. Sums and products of f16 and bf16 are of
    f32 inside. */
const node *ex_reduce(builder *b, op o, const node *x, const axis_list *axes, bool keepdims);

/* ---- Shared parts of operations ---- */

/** ops_unary.c, ops_reduce.c: on nodes of the type to compute in. */
const node *node_relu6(builder *b, const node *x);
const node *node_mean(builder *b, const node *x, const axis_list *axes, bool keepdims);
const node *node_variance(builder *b, const node *x, const node *mean, const axis_list *axes);

/** ops_reduce.c: TN_ERR_SHAPE where one of these axes can be empty, so that it has no extreme. */
void axes_check_elements(builder *b, const node *x, const axis_list *axes);

/** ops_binary.c: remainders of floats, in f64. */
const node *node_fmod(builder *b, const node *x, const node *y);

/** ops_gather.c: x at `index` (i64, of the result's shape, no negative ones) along an axis, and at
    the result's own coordinates elsewhere. */
const node *node_gather(builder *b, const node *x, size_t axis, const node *index);

/** ops_gather.c: indices as i64, negative ones counted from the end of an axis of `size`. */
const node *node_wrapped(builder *b, value index, const node *size);
/** ops_gather.c: coordinate `k` of the places that the last axis of an index gives, alike, for a
    result of shape s whose first axes the index has. */
const node *node_coordinate(builder *b, const node *index, size_t k, const node *size,
                            const sizes *s);

/** ops_window.c: the most axes that windows have, and an option of one of these, else
    TN_ERR_ARGUMENT where it is out of range. */
enum { MOST_SPATIAL = 3 };
void window_check(builder *b, const char *option, size_t axis, int64_t v, int64_t least,
                  int64_t most);

/** ops_window.c: TN_ERR_SHAPE unless `rest`, what an axis has beyond a window, is 0 or more. */
void window_fits(builder *b, int64_t window, const node *size, const node *rest);

/** ops_window.c: the windows of the last `n` axes. x (…, D…) gives (…, O…, K…); window k of place o
    is element o·stride + k·dilation. The places fit into D. */
const node *node_windows(builder *b, const node *x, size_t n, const int64_t kernel[],
                         const int64_t stride[], const int64_t dilation[],
                         const node *const places[]);

#endif
