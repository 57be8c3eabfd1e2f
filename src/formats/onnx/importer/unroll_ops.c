/* Implements the unrolling of REDUCE, SCAN and SCATTER. Shapes have few elements, so each slice of
   an axis, and each update, is a term of its own. */
#include "formats/onnx/importer/unroll_ops.h"

#include "ir/index/index_arithmetic.h"
#include "tensor/ops/axes_and_broadcasting.h"

/* Slices of an axis, and updates: shapes have far fewer. */
enum { MOST_TERMS = 32 };

static bool is_small(const node *size) {
  return node_is_const(size) && node_int(size) > 0 && node_int(size) <= MOST_TERMS;
}

static const node *slice_of(builder *b, const node *x, size_t axis, int64_t i) {
  return shape_slice(b, x, axis, ix_const(b->ir, i), ix_const(b->ir, 1), 1);
}

/* Reductions. */

/** Reduces an axis of constant size to size 1 by combining slices. */
static const node *reduce_axis(builder *b, op o, const node *x, size_t axis) {
  const node *result = slice_of(b, x, axis, 0);
  for (int64_t i = 1; i < node_int(x->dims[axis]); i++)
    result = ex_binary(b, o, result, slice_of(b, x, axis, i));
  return result;
}

static const node *unroll_reduction(builder *b, const node *n, const node *x) {
  sizes s = {0};
  uint32_t reduced = 0;
  for (uint32_t i = 1; i < n->n_int; i++) {
    if (!is_small(x->dims[n->ints[i]])) return NULL;
    reduced |= UINT32_C(1) << n->ints[i];
  }
  for (size_t i = 0; i < x->rank; i++)
    if (!(reduced >> i & 1)) s.at[s.rank++] = x->dims[i];
  for (size_t i = 0; i < x->rank; i++)
    if (reduced >> i & 1) x = reduce_axis(b, (op)n->ints[0], x, i);
  return shape_reshape(b, x, &s);
}

/* Running results. */

/** True where the index along an axis is i. */
static const node *is_at(builder *b, const sizes *s, size_t axis, int64_t i) {
  const node *at = ex_iota(b, DT_I64, s, axis);
  return ex_binary(b, OP_EQ, at, ex_int(b, at, i));
}

static const node *unroll_scan(builder *b, const node *n, const node *x) {
  size_t axis = (size_t)n->ints[1];
  sizes s = sizes_of(x);
  if (n->n_src > 1 || !is_small(x->dims[axis])) return NULL; /* no classes */
  const node *result = x, *last = slice_of(b, x, axis, 0);
  for (int64_t i = 1; i < node_int(x->dims[axis]); i++) {
    last = ex_binary(b, (op)n->ints[0], last, slice_of(b, x, axis, i));
    result = ex_where(b, is_at(b, &s, axis, i), shape_broadcast(b, last, &s), result);
  }
  return result;
}

/* Updates. */

/** The element of a small tensor at a row-major position, for each element of a shape. */
static const node *broadcast_element(builder *b, const node *x, int64_t position, const sizes *to) {
  static const sizes scalar = {0};
  for (size_t i = x->rank; i-- > 0;) {
    int64_t n = node_int(x->dims[i]);
    x = slice_of(b, x, i, position % n);
    position /= n;
  }
  return shape_broadcast(b, shape_reshape(b, x, &scalar), to);
}

/** True where update number k writes. */
static const node *is_written(builder *b, const node *const index[], int64_t k, const sizes *s) {
  const node *all = NULL;
  for (size_t i = 0; i < s->rank; i++) {
    const node *at = ex_iota(b, DT_I64, s, i);
    const node *hit = ex_binary(b, OP_EQ, at, broadcast_element(b, index[i], k, s));
    all = all ? ex_binary(b, OP_AND, all, hit) : hit;
  }
  return all;
}

static const node *unroll_scatter(builder *b, const node *n, const node *const src[]) {
  const node *result = src[0], *updates = src[1];
  sizes s = sizes_of(result);
  int64_t count = 1;
  for (size_t i = 0; i < updates->rank; i++) {
    if (!is_small(updates->dims[i])) return NULL;
    count *= node_int(updates->dims[i]);
    if (count > MOST_TERMS) return NULL;
  }
  for (int64_t k = 0; k < count && s.rank; k++) {
    const node *x = broadcast_element(b, updates, k, &s);
    if (n->ints[0] >= 0) x = ex_binary(b, (op)n->ints[0], result, x);
    result = ex_where(b, is_written(b, src + 2, k, &s), x, result);
  }
  return s.rank ? result : NULL;
}

const node *unroll_op(builder *b, const node *n, const node *const src[]) {
  switch (n->op) {
  case OP_REDUCE: return unroll_reduction(b, n, src[0]);
  case OP_SCAN: return unroll_scan(b, n, src[0]);
  case OP_SCATTER: return unroll_scatter(b, n, src);
  default: return NULL;
  }
}
