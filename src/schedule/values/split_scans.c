/* Divides scans, as those of cumulative sums, into blocks. The elements of a scan follow one
   another, so a long axis of few rows would keep one core and one lane busy. Its blocks are apart
   from each other: their totals are scanned first, then each block, the first element of which is
   combined with the total of the blocks before it. The division follows from the sizes alone, so
   that results do not depend on the cores in use. */
#include "schedule/values/split_scans.h"

#include "ir/core/build.h"
#include "ir/core/likely_value.h"
#include "ir/core/math_mode.h"
#include "ir/index/build_tensor.h"
#include "ir/index/index_arithmetic.h"
#include "ir/transform/copy_graph.h"
#include "schedule/core/axis_views.h"
#include "target/machine.h"

typedef struct dividing {
  ir *g;
  int math;
} dividing;

static bool is_divided(const node *scan, int math) {
  const node *x = scan->src[0];
  size_t axis = (size_t)scan->ints[1];
  double rows = 1;
  if (scan->n_src > 1 || !math_may_reorder_scan(math, (op)scan->ints[0], (dtype)x->dtype))
    return false;
  for (size_t i = 0; i < x->rank; i++)
    if (i != axis) rows *= ix_likely(x->dims[i]);
  return rows < MACHINE_SCAN_ROWS_MOST &&
         x->dims[axis]->lo >= MACHINE_SCAN_BLOCKS_LEAST * MACHINE_SCAN_BLOCK;
}

/** An axis of a size that begins with `low` elements of a value, and ends with more of them. */
static const node *pad_axis(ir *g, const node *x, size_t axis, int64_t low, const node *size,
                            const node *value) {
  const node **lows = arena_alloc(ir_scratch(g), x->rank * sizeof *lows);
  const node **sizes = arena_copy(ir_scratch(g), x->dims, x->rank * sizeof *sizes);
  for (size_t i = 0; i < x->rank; i++) lows[i] = ix_const(g, i == axis ? low : 0);
  sizes[axis] = size;
  return ir_pad(g, x, value, lows, sizes);
}

/** The elements of blocks (…, blocks, block, …), where the first one of each is combined with the
    total before it (…, blocks, …). */
static const node *start_blocks(ir *g, op o, const node *blocks, const node *before, size_t axis) {
  const node *column[] = {before->dims[axis], ix_const(g, 1)};
  before =
      axis_expand(g, axis_reshape(g, before, axis, 2, column), axis + 1, blocks->dims[axis + 1]);
  const node *at = ir_iota(g, DT_I64, blocks->rank, blocks->dims, (int64_t)axis + 1);
  const node *zero = ir_fill(g, ir_const_int(g, DT_I64, 0), blocks->rank, blocks->dims);
  const node *first = ir_op2(g, OP_EQ, at, zero);
  return ir_op3(g, OP_WHERE, first, ir_op2(g, o, before, blocks), blocks);
}

static const node *divide_scan(ir *g, const node *scan, const node *x) {
  op o = (op)scan->ints[0];
  size_t axis = (size_t)scan->ints[1];
  int64_t within = (int64_t)axis + 1;
  uint64_t bits = 0;
  op_identity(o, (dtype)x->dtype, &bits);
  const node *size = x->dims[axis], *neutral = ir_const_bits(g, (dtype)x->dtype, bits);
  const node *count = ix_floordiv(g, ix_add_const(g, size, MACHINE_SCAN_BLOCK - 1),
                                  ix_const(g, MACHINE_SCAN_BLOCK));
  const node *whole = ix_scale(g, count, MACHINE_SCAN_BLOCK);
  const node *cut[] = {count, ix_const(g, MACHINE_SCAN_BLOCK)};
  const node *blocks = axis_reshape(g, pad_axis(g, x, axis, 0, whole, neutral), axis, 2, cut);
  const node *before = ir_scan(g, o, ir_reduce(g, blocks, o, 1, &within), axis);
  before = pad_axis(g, before, axis, 1, ix_add_const(g, count, 1), neutral);
  before = axis_slice(g, before, axis, 0, count, 1);
  const node *all = ir_scan(g, o, start_blocks(g, o, blocks, before, axis), axis + 1);
  const node **flat = arena_copy(ir_scratch(g), x->dims, x->rank * sizeof *flat);
  flat[axis] = whole;
  return axis_slice(g, ir_reshape(g, all, x->rank, flat), axis, 0, size, 1);
}

static const node *rewrite_node(void *user, const node *n, const node *const src[]) {
  dividing *d = user;
  return n->op == OP_SCAN && is_divided(n, d->math) ? divide_scan(d->g, n, src[0]) : NULL;
}

void split_scans(ir *g, int math, normalised *n, size_t n_labels) {
  dividing d = {g, math};
  arena_mark here = arena_save(ir_scratch(g));
  ir_copy(g, ir_scratch(g), n->roots, n->n_roots + n_labels, rewrite_node, &d, n->roots);
  arena_rewind(ir_scratch(g), here);
}
