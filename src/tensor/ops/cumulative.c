/* Cumulative sums, products, maxima and minima (cumsum, cumprod as in NumPy, cummax, cummin), by
   SCANs.

   A long axis of few rows is scanned by blocks, which are apart from each other: the totals of all
   blocks are scanned first, then each block, the first element of which is combined with the total
   of the blocks before it. f16 and bf16 are accumulated in f32. */
#include "tensor/ops/cumulative.h"

#include "ir/core/likely_value.h"
#include "ir/index/build_tensor.h"
#include "ir/index/index_arithmetic.h"
#include "tensor/ops/axes_and_broadcasting.h"
#include "tensor/ops/expressions.h"
#include "tensor/ops/reduction.h"
#include "tensor/ops/type_promotion.h"

/* Elements of a block; blocks from which an axis is divided; rows from which none is. Lanes take a
   block each: blocks of a power of two of bytes would share few sets of a cache. */
enum { SCAN_BLOCK = 2000, SCAN_BLOCKS_LEAST = 8, SCAN_ROWS_MOST = 16 };

typedef struct scan {
  op o;
  const node *neutral; /* its neutral element */
} scan;

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

/** True if blocks of an axis are scanned apart. Products of floats are not: that of a block may be
    infinite where those from the start on are 0. */
static bool is_divided(const scan *c, const node *x, size_t axis) {
  double rows = 1;
  if (c->o == OP_MUL && dtype_is_float((dtype)x->dtype)) return false;
  for (size_t i = 0; i < x->rank; i++)
    if (i != axis) rows *= ix_likely(x->dims[i]);
  return rows < SCAN_ROWS_MOST && x->dims[axis]->lo >= SCAN_BLOCKS_LEAST * SCAN_BLOCK;
}

/** The elements of blocks, where the first one of each is combined with the total before it. */
static const node *start_blocks(builder *b, const scan *c, const node *x, const node *before,
                                size_t axis) {
  sizes s = sizes_of(x);
  before = shape_expand(b, shape_unsqueeze(b, before, axis + 1), &s);
  const node *at = ex_iota(b, DT_I64, &s, axis + 1),
             *first = ex_binary(b, OP_EQ, at, ex_int(b, at, 0));
  return ex_where(b, first, ex_binary(b, c->o, before, x), x);
}

static const node *scan_axis(builder *b, const scan *c, const node *x, size_t axis) {
  ir *g = b->ir;
  const node *size = x->dims[axis], *zero = ix_const(g, 0), *one = ix_const(g, 1);
  if (!is_divided(c, x, axis)) return ir_scan(g, c->o, x, axis);
  const node *blocks = split_blocks(b, c, x, axis);
  axis_list over = axes_from(axis + 1, axis + 2);
  const node *before = ir_scan(g, c->o, node_reduce(b, c->o, blocks, &over, false), axis);
  before = shape_pad(b, before, axis, one, ix_const(g, -1), c->neutral);
  const node *all = ir_scan(g, c->o, start_blocks(b, c, blocks, before, axis), axis + 1);
  sizes flat = sizes_remove(sizes_of(all), axis + 1);
  flat.at[axis] = ix_scale(g, all->dims[axis], SCAN_BLOCK);
  return shape_slice(b, shape_reshape(b, all, &flat), axis, zero, size, 1);
}

const node *node_cumulative(builder *b, op o, const node *x, size_t axis) {
  dtype t = (dtype)x->dtype;
  uint64_t neutral = 0;
  op_identity(o, t, &neutral);
  scan c = {.o = o, .neutral = ir_const_bits(b->ir, t, neutral)};
  return scan_axis(b, &c, x, axis);
}

static value scan_sum(builder *b, op o, value x, int64_t axis) {
  const node *n = value_typed(b, x).node;
  dtype t = sum_type((dtype)n->dtype);
  size_t at = axis_of(b, axis, n->rank);
  n = ex_cast(b, n, accumulation_type(t));
  return value_of(ex_cast(b, node_cumulative(b, o, n, at), t));
}

static value scan_max(builder *b, op o, value x, int64_t axis) {
  const node *n = value_typed(b, x).node;
  dtype t = (dtype)n->dtype;
  check_operand_type(b, RULE_NUMBER, t);
  n = dtype_is_storage(t) ? ex_cast(b, n, accumulation_type(t)) : n;
  return value_of(ex_cast(b, node_cumulative(b, o, n, axis_of(b, axis, n->rank)), t));
}

value build_cumsum(builder *b, value x, int64_t axis) { return scan_sum(b, OP_ADD, x, axis); }
value build_cumprod(builder *b, value x, int64_t axis) { return scan_sum(b, OP_MUL, x, axis); }
value build_cummax(builder *b, value x, int64_t axis) { return scan_max(b, OP_MAX, x, axis); }
value build_cummin(builder *b, value x, int64_t axis) { return scan_max(b, OP_MIN, x, axis); }

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

tn_tensor *tn_cummax(tn_tensor *x, int axis) {
  return op_call("cummax", &x, 1, 0, call_axis, &(axis_call){build_cummax, axis});
}

tn_tensor *tn_cummin(tn_tensor *x, int axis) {
  return op_call("cummin", &x, 1, 0, call_axis, &(axis_call){build_cummin, axis});
}
