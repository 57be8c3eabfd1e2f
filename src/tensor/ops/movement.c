/* Movement of elements: reshape, expand, squeeze, flatten, permute, slice, split, flip, roll, tile
   and repeat, with the meanings of NumPy and PyTorch. All are views: index transformations that
   copy nothing. Sizes may vary, so that checks are proofs about index expressions. */
#include "ir/index/build_tensor.h"
#include "ir/index/index_arithmetic.h"
#include "ir/index/index_proof.h"
#include "tensor/context/symbolic_dims.h"
#include "tensor/ops/axes_and_broadcasting.h"
#include "tensor/ops/computed_sizes.h"
#include "tensor/ops/expressions.h"

/* ---- Shapes ---- */

/** Reshapes where only a run knows that the numbers of elements agree, if it computes sizes. The
    size at `wild`, or the first one that varies, is one that the run checks. */
static const node *reshape_checked(builder *b, const node *x, sizes s, size_t wild) {
  ir *g = b->ir;
  const node *whole = ir_element_count(g, x), *rest = ix_const(g, 1);
  bool any = size_is_computed(b, whole);
  for (size_t i = 0; i < s.rank; i++) any |= s.at[i] && size_is_computed(b, s.at[i]);
  if (!any || !s.rank) return NULL;
  size_t at = wild < s.rank ? wild : 0;
  while (wild == s.rank && at + 1 < s.rank && node_is_const(s.at[at])) at++;
  for (size_t i = 0; i < s.rank && !s.at[at]; i++)
    if (i != at) rest = ix_mul(g, rest, s.at[i]);
  if (!s.at[at]) s.at[at] = ix_floordiv(g, whole, ix_max(g, rest, ix_const(g, 1)));
  s.at[at] = size_if_fits(b, s.at[at], &s, x);
  return shape_reshape(b, x, &s);
}

/** Infers the one size that is NULL from the number of elements; NULL: it is unknown. */
static const node *find_wild_size(builder *b, const node *x, const sizes *to) {
  const node *total = ir_element_count(b->ir, x), *rest = ix_const(b->ir, 1);
  for (size_t i = 0; i < to->rank; i++)
    if (to->at[i]) rest = ix_mul(b->ir, rest, to->at[i]);
  const node *inferred = rest->lo > 0 ? ix_floordiv(b->ir, total, rest) : NULL;
  return inferred && ix_mul(b->ir, inferred, rest) == total ? inferred : NULL;
}

static _Noreturn void refuse_wild_size(builder *b, const node *x, const sizes *to) {
  const node *total = ir_element_count(b->ir, x), *rest = ix_const(b->ir, 1);
  sizes from = sizes_of(x);
  for (size_t i = 0; i < to->rank; i++)
    if (to->at[i]) rest = ix_mul(b->ir, rest, to->at[i]);
  if (node_is_const(total) && node_is_const(rest) && node_int(rest) > 0)
    diag_raise(
        b->diag, TN_ERR_SHAPE,
        "no size can stand for -1 in %s: x has shape %s and %lld elements, no multiple of %lld",
        sizes_text(b, to), sizes_text(b, &from), (long long)node_int(total),
        (long long)node_int(rest));
  diag_raise(b->diag, TN_ERR_SHAPE,
             "the size that -1 stands for in %s cannot be derived from shape %s; give it",
             sizes_text(b, to), sizes_text(b, &from));
}

value build_reshape(builder *b, value x, const sizes *to) {
  const node *n = value_typed(b, x).node;
  sizes from = sizes_of(n), s = *to;
  size_t wild = s.rank;
  rank_check(b, s.rank);
  for (size_t i = 0; i < s.rank; i++) {
    if (s.at[i]) continue;
    if (wild < s.rank)
      diag_raise(b->diag, TN_ERR_SHAPE,
                 "the shape has -1 more than once; one size can be inferred");
    wild = i;
  }
  const node *inferred = wild < s.rank ? find_wild_size(b, n, to) : NULL;
  if (inferred) s.at[wild] = inferred, wild = s.rank;
  const node *size = ix_const(b->ir, 1), *own = ir_element_count(b->ir, n);
  for (size_t i = 0; i < s.rank && wild == s.rank; i++) size = ix_mul(b->ir, size, s.at[i]);
  const node *checked = size != own || wild < s.rank ? reshape_checked(b, n, s, wild) : NULL;
  if (checked) return value_of(checked);
  if (wild < s.rank) refuse_wild_size(b, n, to);
  if (size != own)
    diag_raise(b->diag, TN_ERR_SHAPE, "shape %s has %s elements, and the new shape %s has %s",
               sizes_text(b, &from), size_text(b, own), sizes_text(b, &s), size_text(b, size));
  return value_of(shape_reshape(b, n, &s));
}

value build_flatten(builder *b, value x, int64_t first, int64_t last) {
  const node *n = value_typed(b, x).node;
  sizes s = sizes_of(n);
  if (!s.rank && (first == 0 || first == -1) && (last == 0 || last == -1))
    return value_of(shape_unsqueeze(b, n, 0));
  size_t from = axis_of(b, first, s.rank), to = axis_of(b, last, s.rank);
  if (from > to)
    diag_raise(b->diag, TN_ERR_SHAPE, "the first axis, %lld, comes after the last, %lld",
               (long long)first, (long long)last);
  for (; to > from; to--) {
    s.at[from] = ix_mul(b->ir, s.at[from], s.at[from + 1]);
    s = sizes_remove(s, from + 1);
  }
  return value_of(shape_reshape(b, n, &s));
}

value build_expand(builder *b, value x, const sizes *to) {
  const node *n = value_typed(b, x).node;
  sizes s = *to, own = sizes_of(n);
  size_t axes = 0; /* that have their sizes */
  rank_check(b, s.rank);
  for (size_t i = 0; i < s.rank; i++) {
    size_t new_axes = s.rank - own.rank;
    const node *d = s.rank >= own.rank && i >= new_axes ? own.at[i - new_axes] : NULL;
    if (!s.at[i] && d) s.at[i] = d;
    if (!s.at[i])
      diag_raise(b->diag, TN_ERR_SHAPE, "axis %zu is new, so that -1 keeps no size: give it", i);
    const node *agreed = d && !size_equals(d, 1) ? size_agreed(b, d, s.at[i]) : s.at[i];
    if (!agreed) break;
    s.at[i] = agreed;
    axes++;
  }
  if (s.rank < own.rank || axes < s.rank)
    diag_raise(
        b->diag, TN_ERR_SHAPE,
        "shape %s does not expand to %s; only axes of size 1 expand, aligned at the last axis",
        sizes_text(b, &own), sizes_text(b, to));
  return value_of(shape_broadcast(b, n, &s));
}

value build_squeeze(builder *b, value x, tn_axes axes) {
  const node *n = value_typed(b, x).node;
  axis_list l = axes_of(b, axes, n->rank);
  sizes s = sizes_of(n);
  for (size_t i = n->rank; i-- > 0;) {
    if (!axis_is_in(&l, i)) continue;
    if (size_equals(n->dims[i], 1))
      s = sizes_remove(s, i);
    else if (axes.count != -1)
      diag_raise(b->diag, TN_ERR_SHAPE, "axis %zu has size %s, not 1, and cannot be squeezed", i,
                 size_text(b, n->dims[i]));
  }
  return value_of(shape_reshape(b, n, &s));
}

value build_unsqueeze(builder *b, value x, tn_axes axes) {
  const node *n = value_typed(b, x).node;
  if (axes.count == -1)
    diag_raise(b->diag, TN_ERR_SHAPE, "TN_ALL names no axes to insert: list them");
  size_t more = axes.count > 0 ? (size_t)axes.count : 0;
  rank_check(b, n->rank + more);
  axis_list l = axes_of(b, axes, n->rank + more);
  sizes s = {.rank = n->rank + l.n};
  for (size_t i = 0, k = 0; i < s.rank; i++)
    s.at[i] = axis_is_in(&l, i) ? ix_const(b->ir, 1) : n->dims[k++];
  return value_of(shape_reshape(b, n, &s));
}

/* ---- Permutation ---- */

value build_permute(builder *b, value x, tn_axes axes) {
  const node *n = value_typed(b, x).node;
  axis_list l = axes_of(b, axes, n->rank);
  if (l.n != n->rank)
    diag_raise(b->diag, TN_ERR_SHAPE, "the list has %zu axes; it must name each of %u once", l.n,
               (unsigned)n->rank);
  return value_of(shape_permute(b, n, l.at));
}

value build_transpose(builder *b, value x) {
  const node *n = value_typed(b, x).node;
  int64_t axes[SIZES_MAX_RANK];
  for (size_t i = 0; i < n->rank; i++) axes[i] = n->rank - 1 - (int64_t)i;
  return value_of(shape_permute(b, n, axes));
}

value build_swapaxes(builder *b, value x, int64_t one, int64_t other) {
  const node *n = value_typed(b, x).node;
  size_t i = axis_of(b, one, n->rank), k = axis_of(b, other, n->rank);
  axis_list l = axes_from(0, n->rank);
  l.at[i] = (int64_t)k;
  l.at[k] = (int64_t)i;
  return value_of(shape_permute(b, n, l.at));
}

/* ---- Slices ---- */

value build_flip(builder *b, value x, tn_axes axes) {
  const node *n = value_typed(b, x).node;
  axis_list l = axes_of(b, axes, n->rank);
  for (size_t i = 0; i < l.n; i++) {
    const node *size = n->dims[l.at[i]];
    n = shape_slice(b, n, (size_t)l.at[i], ix_add_const(b->ir, size, -1), size, -1);
  }
  return value_of(n);
}

/** A bound of a slice: a negative one counts from the end of the axis; then clamped between `least`
    and `most`. */
static const node *slice_position(ir *g, const node *bound, const node *size, const node *least,
                                  const node *most) {
  const int64_t far = INT64_C(1) << 60; /* beyond any axis, and sums with sizes do not overflow */
  const node *zero = ix_const(g, 0), *one = ix_const(g, 1);
  bound = ix_clamp_const(g, bound, far);
  const node *is_negative = ix_min(g, one, ix_max(g, zero, ix_scale(g, bound, -1)));
  bound = ix_add(g, bound, ix_mul(g, size, is_negative));
  return ix_min(g, ix_max(g, bound, least), most);
}

/** A step up to the size of the axis: a longer one takes one element, as that does. */
static int64_t clamp_step(int64_t step, const node *size) {
  int64_t most = size->hi < 1 ? 1 : size->hi;
  return step > most ? most : step < -most ? -most : step;
}

/** `least`: of the start. */
static value slice_from(builder *b, value x, int64_t axis, const node *start, const node *stop,
                        int64_t step, int64_t least) {
  ir *g = b->ir;
  const node *n = value_typed(b, x).node;
  size_t at = axis_of(b, axis, n->rank);
  const node *size = n->dims[at], *first = ix_const(g, 0), *end = size;
  if (!step) diag_raise(b->diag, TN_ERR_ARGUMENT, "step is 0; it must be positive or negative");
  step = clamp_step(step, size);
  if (step < 0) { /* from size − 1 down to 0: stops before −1 */
    first = ix_const(g, -1);
    end = ix_add_const(g, size, -1);
  }
  start = slice_position(g, start, size, ix_const(g, least), end);
  if (stop)
    stop = slice_position(g, stop, size, first, end);
  else
    stop = step > 0 ? end : first;
  const node *distance = step > 0 ? ix_sub(g, stop, start) : ix_sub(g, start, stop);
  const node *by = ix_const(g, step > 0 ? step : -step);
  /* ceil(distance / by) without a sum that overflows */
  const node *count = ix_add_const(g, ix_floordiv(g, ix_add_const(g, distance, -1), by), 1);
  count = ix_max(g, count, ix_const(g, 0));
  if (size_equals(count, 0)) start = ix_const(g, 0);
  return value_of(shape_slice(b, n, at, start, count, size_equals(count, 1) ? 1 : step));
}

value build_slice(builder *b, value x, int64_t axis, const node *start, const node *stop,
                  int64_t step) {
  return slice_from(b, x, axis, start, stop, step, step < 0 ? -1 : 0);
}

value build_slice_inside(builder *b, value x, int64_t axis, const node *start, const node *stop,
                         int64_t step) {
  return slice_from(b, x, axis, start, stop, step, 0);
}

/** A part that a run checks: that no part is negative, and that the parts add up to the axis. Then
    the sum of the parts and that of those which are positive are both its size. */
static const node *part_if_fits(builder *b, const node *part, const node *sum, const node *positive,
                                const node *size) {
  if (sum != size) part = size_if_equal(b, part, sum, size);
  return positive == sum ? part : size_if_equal(b, part, positive, size);
}

/** Where a run computes sizes, it checks what is not proved: each part's size does, so that no part
    is read without the check. */
void build_split(builder *b, value x, int64_t axis, const node *const parts[], value out[],
                 size_t n) {
  ir *g = b->ir;
  const node *whole = value_typed(b, x).node, *start = ix_const(g, 0);
  size_t at = axis_of(b, axis, whole->rank);
  const node *size = whole->dims[at], *sum = start, *positive = start;
  const node *each = n ? ix_floordiv(g, size, ix_const(g, (int64_t)n)) : NULL;
  if (each && !parts && ix_scale(g, each, (int64_t)n) != size)
    diag_raise(b->diag, TN_ERR_SHAPE,
               node_is_const(size) ? "axis %zu of size %s is not divisible by %zu"
                                   : "axis %zu of size %s is not always divisible by %zu",
               at, size_text(b, size), n);
  for (size_t i = 0; i < n; i++) {
    const node *part = parts ? parts[i] : each;
    sum = ix_add(g, sum, part);
    positive = ix_add(g, positive, ix_max(g, part, ix_const(g, 0)));
  }
  bool fits = sum == size && positive == size;
  bool is_checked = !fits && (size_is_computed(b, positive) || size_is_computed(b, size));
  for (size_t i = 0; i < n; i++) {
    const node *part = parts ? parts[i] : each, *end = ix_add(g, start, part);
    if (is_checked && part->hi >= 0)
      part = part_if_fits(b, part, sum, positive, size);
    else if (!fits && (!ix_prove_nonnegative(g, part) || !ix_prove_le(g, end, size)))
      diag_raise(b->diag, TN_ERR_SHAPE, "part %zu, of size %s, %s axis %zu, of size %s", i,
                 size_text(b, part), ix_sub(g, size, end)->hi < 0 ? "exceeds" : "may exceed", at,
                 size_text(b, size));
    out[i] = value_of(shape_slice(b, whole, at, start, part, 1));
    start = end;
  }
  if (sum != size && !(is_checked && n))
    diag_raise(b->diag, TN_ERR_SHAPE, "the %zu parts add up to %s; axis %zu has size %s", n,
               size_text(b, sum), at, size_text(b, size));
}

/* ---- Repetition ---- */

/** Repeats an axis: expands a new axis before it (tiles the whole axis) or after it (repeats each
    element), and merges the two. */
static const node *repeat_axis(builder *b, const node *x, size_t axis, const node *repeats,
                               bool tiles) {
  sizes s = sizes_of(x);
  if (size_equals(repeats, 1)) return x;
  const node *y = shape_unsqueeze(b, x, tiles ? axis : axis + 1);
  sizes wide = sizes_insert(b, s, tiles ? axis : axis + 1, repeats);
  s.at[axis] = ix_mul(b->ir, s.at[axis], repeats);
  return shape_reshape(b, shape_expand(b, y, &wide), &s);
}

static void check_repeats(builder *b, const node *repeats) {
  if (!ix_prove_nonnegative(b->ir, repeats))
    diag_raise(b->diag, TN_ERR_SHAPE, "the number of repeats, %s, %s negative",
               size_text(b, repeats), repeats->hi < 0 ? "is" : "may be");
}

value build_tile(builder *b, value x, const sizes *repeats) {
  const node *n = value_typed(b, x).node;
  rank_check(b, repeats->rank);
  while (n->rank < repeats->rank) n = shape_unsqueeze(b, n, 0);
  size_t first = n->rank - repeats->rank;
  for (size_t i = 0; i < repeats->rank; i++) {
    check_repeats(b, repeats->at[i]);
    n = repeat_axis(b, n, first + i, repeats->at[i], true);
  }
  return value_of(n);
}

value build_repeat(builder *b, value x, int64_t axis, const node *repeats) {
  const node *n = value_typed(b, x).node;
  check_repeats(b, repeats);
  return value_of(repeat_axis(b, n, axis_of(b, axis, n->rank), repeats, false));
}

/** Rolls an axis: slices two consecutive copies of it. */
value build_roll(builder *b, value x, int64_t axis, const node *shift) {
  ir *g = b->ir;
  const node *n = value_typed(b, x).node;
  size_t at = axis_of(b, axis, n->rank);
  const node *size = n->dims[at];
  if (size->hi <= 1) return value_of(n);
  const node *by = ix_max(g, size, ix_const(g, 1));
  const node *start = ix_mod(g, ix_scale(g, shift, -1), by);
  return value_of(shape_slice(b, repeat_axis(b, n, at, ix_const(g, 2), true), at, start, size, 1));
}

/* ---- Public functions ---- */

static value call_reshape(builder *b, const value in[], size_t n, const void *options) {
  sizes s = sizes_from(b, *(const tn_shape *)options, true);
  (void)n;
  return build_reshape(b, in[0], &s);
}

static value call_expand(builder *b, const value in[], size_t n, const void *options) {
  sizes s = sizes_from(b, *(const tn_shape *)options, true);
  (void)n;
  return build_expand(b, in[0], &s);
}

static value call_tile(builder *b, const value in[], size_t n, const void *options) {
  sizes s = sizes_from(b, *(const tn_shape *)options, false);
  (void)n;
  return build_tile(b, in[0], &s);
}

tn_tensor *tn_reshape(tn_tensor *x, tn_shape shape) {
  return op_call_movement("reshape", x, call_reshape, &shape);
}

tn_tensor *tn_expand(tn_tensor *x, tn_shape shape) {
  return op_call_movement("expand", x, call_expand, &shape);
}

tn_tensor *tn_tile(tn_tensor *x, tn_shape repeats) {
  return op_call_movement("tile", x, call_tile, &repeats);
}

typedef struct axes_call {
  value (*build)(builder *b, value x, tn_axes axes);
  tn_axes axes;
} axes_call;

static value call_axes(builder *b, const value in[], size_t n, const void *options) {
  const axes_call *c = options;
  (void)n;
  return c->build(b, in[0], c->axes);
}

tn_tensor *tn_permute(tn_tensor *x, tn_axes axes) {
  return op_call_movement("permute", x, call_axes, &(axes_call){build_permute, axes});
}

tn_tensor *tn_flip(tn_tensor *x, tn_axes axes) {
  return op_call_movement("flip", x, call_axes, &(axes_call){build_flip, axes});
}

tn_tensor *tn_squeeze(tn_tensor *x, tn_axes axes) {
  return op_call_movement("squeeze", x, call_axes, &(axes_call){build_squeeze, axes});
}

tn_tensor *tn_unsqueeze(tn_tensor *x, tn_axes axes) {
  return op_call_movement("unsqueeze", x, call_axes, &(axes_call){build_unsqueeze, axes});
}

typedef struct two_axes_call {
  value (*build)(builder *b, value x, int64_t one, int64_t other);
  int one, other;
} two_axes_call;

static value call_two_axes(builder *b, const value in[], size_t n, const void *options) {
  const two_axes_call *c = options;
  (void)n;
  return c->build(b, in[0], c->one, c->other);
}

tn_tensor *tn_flatten(tn_tensor *x, int first, int last) {
  return op_call_movement("flatten", x, call_two_axes,
                          &(two_axes_call){build_flatten, first, last});
}

tn_tensor *tn_swapaxes(tn_tensor *x, int a, int b) {
  return op_call_movement("swapaxes", x, call_two_axes, &(two_axes_call){build_swapaxes, a, b});
}

static value call_transpose(builder *b, const value in[], size_t n, const void *options) {
  (void)n;
  (void)options;
  return build_transpose(b, in[0]);
}

tn_tensor *tn_transpose(tn_tensor *x) {
  return op_call_movement("transpose", x, call_transpose, NULL);
}

typedef struct slice_call {
  int axis;
  tn_dim start, stop, step;
} slice_call;

static value call_slice(builder *b, const value in[], size_t n, const void *options) {
  const slice_call *c = options;
  const node *start = dim_to_bound(b, c->start);
  const node *stop = c->stop == TN_END ? NULL : dim_to_bound(b, c->stop);
  const node *step = dim_to_node(b, c->step);
  (void)n;
  if (step->op != OP_CONST)
    diag_raise(b->diag, TN_ERR_ARGUMENT, "step varies; it must be a number");
  return build_slice(b, in[0], c->axis, start, stop, node_int(step));
}

tn_tensor *tn_slice(tn_tensor *x, int axis, tn_dim start, tn_dim stop, tn_dim step) {
  return op_call_movement("slice", x, call_slice, &(slice_call){axis, start, stop, step});
}

typedef struct split_call {
  int axis;
  const tn_dim *parts;
} split_call;

static void call_split(builder *b, const value in[], size_t n, const void *options, value out[],
                       size_t n_out) {
  const split_call *c = options;
  const node **parts = c->parts ? arena_alloc(b->arena, n_out * sizeof *parts) : NULL;
  (void)n;
  for (size_t i = 0; parts && i < n_out; i++) parts[i] = dim_to_node(b, c->parts[i]);
  build_split(b, in[0], c->axis, parts, out, n_out);
}

void tn_split(tn_tensor *x, int axis, const tn_dim parts[], tn_tensor *out[], size_t n) {
  op_call_movement_many("split", x, call_split, &(split_call){axis, parts}, out, n);
}

typedef struct dim_call {
  value (*build)(builder *b, value x, int64_t axis, const node *by);
  int axis;
  tn_dim by;
} dim_call;

static value call_dim(builder *b, const value in[], size_t n, const void *options) {
  const dim_call *c = options;
  (void)n;
  return c->build(b, in[0], c->axis, dim_to_node(b, c->by));
}

tn_tensor *tn_repeat(tn_tensor *x, int axis, tn_dim repeats) {
  return op_call_movement("repeat", x, call_dim, &(dim_call){build_repeat, axis, repeats});
}

tn_tensor *tn_roll(tn_tensor *x, int axis, tn_dim shift) {
  return op_call_movement("roll", x, call_dim, &(dim_call){build_roll, axis, shift});
}
