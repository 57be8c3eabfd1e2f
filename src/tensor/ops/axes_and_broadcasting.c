/* Axes and shapes of operators: normalised axes (negative ones count from the end) and broadcasting
   as in NumPy, comparison of sizes that may vary, and movement nodes (reshape, permute, expand,
   slice, pad) that vanish where they change nothing. */
#include "tensor/ops/axes_and_broadcasting.h"

#include "base/str.h"
#include "ir/core/affine.h"
#include "ir/core/interval.h"
#include "ir/core/var_names.h"
#include "ir/index/build_tensor.h"
#include "ir/index/index_arithmetic.h"
#include "ir/index/index_proof.h"
#include "tensor/context/symbolic_dims.h"
#include "tensor/ops/computed_sizes.h"

/* ---- Sizes ---- */

void rank_check(builder *b, size_t rank) {
  if (rank > TN_MAX_RANK)
    diag_raise(b->diag, TN_ERR_SHAPE, "a tensor of %zu axes is needed; at most %d are supported",
               rank, TN_MAX_RANK);
}

sizes sizes_from(builder *b, tn_shape shape, bool wild) {
  sizes s = {0};
  if (shape.rank < 0)
    diag_raise(b->diag, TN_ERR_SHAPE, "the shape has rank %d, which is negative", (int)shape.rank);
  rank_check(b, (size_t)shape.rank);
  for (; s.rank < (size_t)shape.rank; s.rank++) {
    if (wild && shape.size[s.rank] == -1) continue;
    const node *n = s.at[s.rank] = dim_to_node(b, shape.size[s.rank]);
    if (n->lo < 0 && !ix_prove_nonnegative(b->ir, n))
      diag_raise(b->diag, TN_ERR_SHAPE, "size %zu of the shape, %s, %s negative", s.rank,
                 size_text(b, n), n->hi < 0 ? "is" : "can be");
  }
  return s;
}

bool size_equals(const node *n, int64_t value) { return n->op == OP_CONST && node_int(n) == value; }

const node *size_lower_bound_var(const node *size, int64_t *least) {
  *least = 0;
  while (size->op != OP_VAR) {
    bool is_quotient = size->op == OP_FLOORDIV && size->src[1]->op == OP_CONST;
    if (is_quotient) {
      if (__builtin_mul_overflow(*least, node_int(size->src[1]), least)) return NULL;
      size = size->src[0];
      continue;
    }
    if (size->op != OP_AFFINE || ix_terms(size) != 1 || ix_coefficient_at(size, 0) < 1) return NULL;
    if (__builtin_sub_overflow(ix_offset(size), *least, least)) return NULL;
    *least = -floor_div(*least, ix_coefficient_at(size, 0));
    size = ix_atom(size, 0);
  }
  return size;
}

const node *size_upper_bound_var(const node *size, int64_t *most) {
  if (size->op != OP_AFFINE || ix_terms(size) != 1 || ix_coefficient_at(size, 0) != -1) return NULL;
  *most = ix_offset(size);
  return ix_atom(size, 0)->op == OP_VAR ? ix_atom(size, 0) : NULL;
}

bool sizes_equal(const sizes *a, const sizes *b) {
  if (a->rank != b->rank) return false;
  for (size_t i = 0; i < a->rank; i++)
    if (a->at[i] != b->at[i]) return false;
  return true;
}

sizes sizes_with(sizes s, size_t axis, const node *size) {
  s.at[axis] = size;
  return s;
}

sizes sizes_insert(builder *b, sizes s, size_t axis, const node *size) {
  if (s.rank >= SIZES_MAX_RANK)
    diag_raise(b->diag, TN_ERR_SHAPE,
               "an intermediate tensor of %zu axes is needed; at most %d are supported", s.rank + 1,
               SIZES_MAX_RANK);
  for (size_t i = s.rank++; i > axis; i--) s.at[i] = s.at[i - 1];
  s.at[axis] = size;
  return s;
}

sizes sizes_remove(sizes s, size_t axis) {
  s.rank--;
  for (size_t i = axis; i < s.rank; i++) s.at[i] = s.at[i + 1];
  return s;
}

/* ---- Broadcasting ---- */

/** The size that has to be at least 0 so that x and min(x, other) are equal; NULL: neither of two
    sizes is such a minimum. An exporter writes it where it slices a table of positions, and a
   longer text does not fit in any other way: neither size is 1 then. */
static const node *excess_of_minimum(builder *b, const node *x, const node *minimum) {
  for (size_t i = 0; minimum->op == OP_MIN && i < 2; i++)
    if (minimum->src[i] == x && minimum->src[1 - i]->lo > 1)
      return ix_sub(b->ir, minimum->src[1 - i], x);
  return NULL;
}

void sizes_refuse_mismatch(builder *b, const sizes s[], size_t n, const node *one,
                           const node *other) {
  str text = str_new(b->arena);
  b->needed = excess_of_minimum(b, one, other);
  if (!b->needed) b->needed = excess_of_minimum(b, other, one);
  for (size_t i = 0; i < n; i++)
    str_addf(&text, "%s%s", i == 0 ? "" : i + 1 == n ? " and " : ", ", sizes_text(b, &s[i]));
  if (n > 1)
    diag_raise(b->diag, TN_ERR_SHAPE, "shapes %s do not broadcast: %s is not %s", str_text(&text),
               size_text(b, one), size_text(b, other));
  diag_raise(b->diag, TN_ERR_SHAPE, "two sizes of shape %s must be equal: %s is not %s",
             str_text(&text), size_text(b, one), size_text(b, other));
}

sizes sizes_broadcast(builder *b, const sizes s[], size_t n) {
  sizes all = {0};
  for (size_t i = 0; i < n; i++)
    if (s[i].rank > all.rank) all.rank = s[i].rank;
  for (size_t k = 0; k < all.rank; k++) { /* from the last axis on */
    const node **at = &all.at[all.rank - 1 - k];
    *at = ix_const(b->ir, 1);
    for (size_t i = 0; i < n; i++) {
      const node *d = k < s[i].rank ? s[i].at[s[i].rank - 1 - k] : NULL;
      if (!d || d == *at || size_equals(d, 1)) continue;
      const node *agreed = size_equals(*at, 1) ? d : size_agreed(b, *at, d);
      if (!agreed) sizes_refuse_mismatch(b, s, n, *at, d);
      *at = agreed;
    }
  }
  return all;
}

/* ---- Axes ---- */

size_t axis_of(builder *b, int64_t axis, size_t rank) {
  int64_t at = axis < 0 ? axis + (int64_t)rank : axis;
  if (at < 0 || at >= (int64_t)rank)
    diag_raise(b->diag, TN_ERR_SHAPE, "axis %lld is out of range: the tensor has %zu %s",
               (long long)axis, rank, rank == 1 ? "axis" : "axes");
  return (size_t)at;
}

axis_list axes_from(size_t first, size_t last) {
  axis_list l = {0};
  for (size_t i = first; i < last; i++) {
    l.at[l.n++] = (int64_t)i;
    l.set |= UINT32_C(1) << i;
  }
  return l;
}

axis_list axes_of(builder *b, tn_axes axes, size_t rank) {
  axis_list l = {0};
  if (axes.count == -1) return axes_from(0, rank);
  if (axes.count < 0 || axes.count > TN_MAX_RANK)
    diag_raise(b->diag, TN_ERR_SHAPE, "the list has %d axes; it may have 0 to %d", (int)axes.count,
               TN_MAX_RANK);
  for (int32_t i = 0; i < axes.count; i++) {
    size_t axis = axis_of(b, axes.axis[i], rank);
    if (axis_is_in(&l, axis))
      diag_raise(b->diag, TN_ERR_SHAPE, "axis %d is listed twice", (int)axes.axis[i]);
    l.at[l.n++] = (int64_t)axis;
    l.set |= UINT32_C(1) << axis;
  }
  return l;
}

bool axis_is_in(const axis_list *l, size_t axis) { return l->set >> axis & 1; }

/* ---- Movement ---- */

static bool has_shape(const node *x, const sizes *s) {
  sizes own = sizes_of(x);
  return sizes_equal(&own, s);
}

const node *shape_reshape(builder *b, const node *x, const sizes *to) {
  return has_shape(x, to) ? x : ir_reshape(b->ir, x, to->rank, to->at);
}

const node *shape_expand(builder *b, const node *x, const sizes *to) {
  return has_shape(x, to) ? x : ir_expand(b->ir, x, to->at);
}

const node *shape_agreed(builder *b, const node *x, size_t axis, const node *size) {
  return shape_slice(b, x, axis, ix_const(b->ir, 0), size, 1);
}

const node *shape_broadcast(builder *b, const node *x, const sizes *to) {
  sizes s = sizes_of(x);
  while (s.rank < to->rank) s = sizes_insert(b, s, 0, ix_const(b->ir, 1));
  x = shape_reshape(b, x, &s);
  for (size_t i = 0; i < s.rank; i++)
    if (s.at[i] != to->at[i] && !size_equals(s.at[i], 1)) x = shape_agreed(b, x, i, to->at[i]);
  return shape_expand(b, x, to);
}

const node *shape_unsqueeze(builder *b, const node *x, size_t axis) {
  sizes s = sizes_insert(b, sizes_of(x), axis, ix_const(b->ir, 1));
  return shape_reshape(b, x, &s);
}

const node *shape_permute(builder *b, const node *x, const int64_t axes[]) {
  bool moves = false;
  for (size_t i = 0; i < x->rank; i++) moves |= axes[i] != (int64_t)i;
  return moves ? ir_permute(b->ir, x, axes) : x;
}

const node *shape_slice(builder *b, const node *x, size_t axis, const node *start, const node *size,
                        int64_t step) {
  sizes starts = {.rank = x->rank}, to = sizes_with(sizes_of(x), axis, size);
  int64_t steps[SIZES_MAX_RANK];
  if (size_equals(start, 0) && step == 1 && size == x->dims[axis]) return x;
  for (size_t i = 0; i < x->rank; i++) {
    starts.at[i] = ix_const(b->ir, 0);
    steps[i] = 1;
  }
  starts.at[axis] = start;
  steps[axis] = step;
  return ir_slice(b->ir, x, starts.at, to.at, steps);
}

const node *shape_pad(builder *b, const node *x, size_t axis, const node *low, const node *high,
                      const node *fill) {
  ir *g = b->ir;
  const node *zero = ix_const(g, 0), *cropped = ix_max(g, zero, ix_scale(g, low, -1));
  const node *size = ix_add(g, x->dims[axis], ix_add(g, low, high));
  low = ix_max(g, low, zero);
  high = ix_max(g, high, zero);
  if (!size_equals(low, 0) || !size_equals(high, 0)) {
    sizes lows = {.rank = x->rank}, to = sizes_of(x);
    for (size_t i = 0; i < x->rank; i++) lows.at[i] = zero;
    lows.at[axis] = low;
    to.at[axis] = ix_add(g, to.at[axis], ix_add(g, low, high));
    x = ir_pad(g, x, fill, lows.at, to.at);
  }
  return shape_slice(b, x, axis, cropped, size, 1);
}
