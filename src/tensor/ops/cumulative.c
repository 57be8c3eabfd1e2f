/* Cumulative sums and products (cumsum, cumprod) as in NumPy, by blocked scans.

   A short axis is one masked reduction: y[i] = Σ x[j] over j ≤ i, quadratic in its size. A long
   axis is divided into blocks: each block is scanned so, then the totals of the blocks, and each
   block adds the total of the blocks before it. The cost is SCAN_BLOCK operations an element, in
   few kernels. f16 and bf16 are accumulated in f32. */
#include "ir/index/index_arithmetic.h"
#include "tensor/ops/axes_and_broadcasting.h"
#include "tensor/ops/expressions.h"
#include "tensor/ops/reduction.h"
#include "tensor/ops/type_promotion.h"

/* Elements of a block; and of an axis that is scanned as one. */
enum { SCAN_BLOCK = 32, SCAN_WHOLE = 64 };

typedef struct scan {
  op o;                /* OP_ADD or OP_MUL */
  const node *neutral; /* its neutral element */
} scan;

/** Scans an axis by one masked reduction. */
static const node *scan_masked(builder *b, const scan *c, const node *x, size_t axis) {
  const node *size = x->dims[axis];
  sizes s = sizes_insert(b, sizes_of(x), axis, size); /* …, i, j, … */
  x = shape_expand(b, shape_unsqueeze(b, x, axis), &s);
  const node *i = ex_iota(b, DT_I64, &s, axis), *j = ex_iota(b, DT_I64, &s, axis + 1);
  axis_list over = axes_from(axis + 1, axis + 2);
  const node *masked = ex_where(b, ex_binary(b, OP_LE, j, i), x, ex_fill(b, c->neutral, &s));
  return node_reduce(b, c->o, masked, &over, false);
}

/** Splits an axis into blocks: (…, blocks, SCAN_BLOCK, …). */
static const node *split_blocks(builder *b, const scan *c, const node *x, size_t axis) {
  ir *g = b->ir;
  const node *size = x->dims[axis], *block = ix_const(g, SCAN_BLOCK);
  const node *count = ix_floordiv(g, ix_add_const(g, size, SCAN_BLOCK - 1), block);
  const node *padding = ix_sub(g, ix_scale(g, count, SCAN_BLOCK), size);
  x = shape_pad(b, x, axis, ix_const(g, 0), padding, c->neutral);
  sizes s = sizes_insert(b, sizes_with(sizes_of(x), axis, block), axis, count);
  return shape_reshape(b, x, &s);
}

/** Scans an axis of any size. Recurses once for each division of the size by SCAN_BLOCK: fewer than
    13 times. */
static const node *scan_axis(builder *b, const scan *c, const node *x, size_t axis) {
  ir *g = b->ir;
  const node *size = x->dims[axis], *zero = ix_const(g, 0), *one = ix_const(g, 1);
  if (size->hi <= SCAN_WHOLE) return scan_masked(b, c, x, axis);
  const node *inner = scan_masked(b, c, split_blocks(b, c, x, axis), axis + 1);
  sizes s = sizes_of(inner), totals = sizes_remove(s, axis + 1);
  const node *last = shape_slice(b, inner, axis + 1, ix_const(g, SCAN_BLOCK - 1), one, 1);
  const node *before = scan_axis(b, c, shape_reshape(b, last, &totals), axis);
  before = shape_pad(b, before, axis, one, ix_const(g, -1), c->neutral);
  before = shape_expand(b, shape_unsqueeze(b, before, axis + 1), &s);
  const node *all = ex_binary(b, c->o, before, inner);
  sizes flat = sizes_remove(s, axis + 1);
  flat.at[axis] = ix_scale(g, s.at[axis], SCAN_BLOCK);
  return shape_slice(b, shape_reshape(b, all, &flat), axis, zero, size, 1);
}

static value scan_value(builder *b, op o, value x, int64_t axis) {
  const node *n = value_typed(b, x).node;
  dtype t = sum_type((dtype)n->dtype);
  size_t at = axis_of(b, axis, n->rank);
  n = ex_cast(b, n, accumulation_type(t));
  scan c = {.o = o, .neutral = ir_const_int(b->ir, (dtype)n->dtype, o == OP_MUL)};
  return value_of(ex_cast(b, scan_axis(b, &c, n, at), t));
}

value build_cumsum(builder *b, value x, int64_t axis) { return scan_value(b, OP_ADD, x, axis); }
value build_cumprod(builder *b, value x, int64_t axis) { return scan_value(b, OP_MUL, x, axis); }

/* ---- Public functions ---- */

typedef struct axis_call {
  value (*build)(builder *b, value x, int64_t axis);
  int axis;
} axis_call;

static value call_axis(builder *b, const value in[], size_t n, const void *options) {
  const axis_call *c = options;
  (void)n;
  return c->build(b, in[0], c->axis);
}

tn_tensor *tn_cumsum(tn_tensor *x, int axis) {
  return op_call("cumsum", &x, 1, 0, call_axis, &(axis_call){build_cumsum, axis});
}

tn_tensor *tn_cumprod(tn_tensor *x, int axis) {
  return op_call("cumprod", &x, 1, 0, call_axis, &(axis_call){build_cumprod, axis});
}
