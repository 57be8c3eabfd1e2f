/* Distinct slices (unique). Slices are rows of integer keys (order_keys.h), sorted by their last
   column first, each time stably: a LOOP, so that its kernels are compiled once. A row that differs
   from the one before begins a run of equal rows. The running sum of the beginnings numbers the
   runs, the places of the beginnings (selected_positions) give their lengths, and as sorting is
   stable, each run begins with the slice of the least index. */
#include "ir/index/build_tensor.h"
#include "ir/index/index_arithmetic.h"
#include "tensor/context/call.h"
#include "tensor/ops/axes_and_broadcasting.h"
#include "tensor/ops/expressions.h"
#include "tensor/ops/gather.h"
#include "tensor/ops/order_keys.h"
#include "tensor/ops/reduction.h"
#include "tensor/ops/selection.h"
#include "tensor/ops/sort.h"

static const node *axis_to_front(builder *b, const node *x, size_t axis) {
  int64_t axes[SIZES_MAX_RANK] = {(int64_t)axis};
  for (size_t i = 0, n = 1; i < x->rank; i++)
    if (i != axis) axes[n++] = (int64_t)i;
  return shape_permute(b, x, axes);
}

/** Keys (n, m) of the slices of x along an axis. */
static const node *slice_keys(builder *b, value x, size_t axis) {
  ir *g = b->ir;
  const node *key = node_order_keys(b, x.node, false, false), *m = ix_const(g, 1);
  if (axis) key = axis_to_front(b, key, axis);
  for (size_t i = 1; i < key->rank; i++) m = ix_mul(g, m, key->dims[i]);
  sizes s = {.rank = 2, .at = {key->dims[0], m}};
  return shape_reshape(b, key, &s);
}

/** Column `at` of keys, whose rows are in an order. */
static const node *ordered_column(builder *b, const node *key, const node *at, const node *order) {
  value column = build_loop_entry(b, build_transpose(b, value_of(key)), at);
  return node_gather(b, column.node, 0, order);
}

/** The indices (n) of rows of keys (n, m) in a stable order, the first column deciding first. */
static const node *sort_rows_of_keys(builder *b, const node *key) {
  value order = value_of(node_all_indices(b, key->dims[0]));
  if (node_is_bits(key->dims[1], 1)) {
    sizes s = {.rank = 1, .at = {key->dims[0]}};
    return node_argsort(b, shape_reshape(b, key, &s));
  }
  const node *range = build_loop_range(b, key->dims[1]);
  const node *before = build_loop_state(b, range, 0, order).node;
  const node *column = ordered_column(b, key, build_loop_index(b, range, true), before);
  value step = value_of(node_gather(b, before, 0, node_argsort(b, column))), out;
  build_loop(b, range, &order, &step, 1, NULL, NULL, 0, &out);
  return out.node;
}

/** True where a row of sorted keys (n, m) differs from the one before, and for the first. */
static const node *begins_run(builder *b, const node *sorted) {
  ir *g = b->ir;
  sizes rows = {.rank = 1, .at = {sorted->dims[0]}};
  const node *none = ir_const_int(g, (dtype)sorted->dtype, 0);
  const node *before = shape_pad(b, sorted, 0, ix_const(g, 1), ix_const(g, -1), none);
  axis_list columns = axes_from(1, 2);
  const node *differs = ex_binary(b, OP_NE, sorted, before);
  differs = node_reduce(b, OP_OR, differs, &columns, false);
  const node *at = ex_iota(b, DT_I64, &rows, 0);
  return ex_binary(b, OP_OR, differs, ex_binary(b, OP_EQ, at, ex_int(b, at, 0)));
}

/** How many elements lie from each place to the next one, or to the end of n. */
static const node *lengths(builder *b, const node *places, const node *n) {
  const node *end = ex_size(b, n, DT_I64);
  const node *next = shape_pad(b, places, 0, ix_const(b->ir, -1), ix_const(b->ir, 1), end);
  return ex_binary(b, OP_SUB, next, places);
}

/** Writes updates at places, none of them twice. */
static const node *scatter_vector(builder *b, const node *x, const node *updates,
                                  const node *place) {
  return ir_scatter_distinct(b->ir, x, updates, &place, -1);
}

static const node *filled_vector(builder *b, dtype t, const node *size) {
  sizes s = {.rank = 1, .at = {size}};
  return ex_fill(b, ir_const_int(b->ir, t, 0), &s);
}

/** The number of each element's run: how many begin before or at it, less one. */
static const node *run_numbers(builder *b, const node *begins) {
  const node *sums = ir_scan(b->ir, OP_ADD, ex_cast(b, begins, DT_I64), 0);
  return ex_binary(b, OP_SUB, sums, ex_int(b, sums, 1));
}

void build_unique(builder *b, value x, int64_t axis, bool sorted, value out[4]) {
  x = value_typed(b, x);
  size_t at = axis_of(b, axis, x.node->rank);
  const node *n = x.node->dims[at], *key = slice_keys(b, x, at), *order = sort_rows_of_keys(b, key);
  sizes s = sizes_of(key);
  const node *rows = shape_broadcast(b, shape_unsqueeze(b, order, 1), &s);
  const node *begins = begins_run(b, node_gather(b, key, 0, rows));
  const node *run = run_numbers(b, begins), *places = node_selected_positions(b, begins);
  const node *first = node_gather(b, order, 0, places), *counts = lengths(b, places, n);
  if (!sorted) {
    const node *is_first = scatter_vector(b, filled_vector(b, DT_BOOL, n), begins, order);
    const node *number = node_gather(b, run_numbers(b, is_first), 0, first);
    counts = scatter_vector(b, filled_vector(b, DT_I64, places->dims[0]), counts, number);
    run = node_gather(b, number, 0, run);
    first = scatter_vector(b, filled_vector(b, DT_I64, places->dims[0]), first, number);
  }
  out[0] = build_take(b, x, value_of(first), (int64_t)at);
  out[1] = value_of(first);
  out[2] = value_of(scatter_vector(b, filled_vector(b, DT_I64, n), run, order));
  out[3] = value_of(counts);
}

/* ---- Public functions ---- */

typedef struct unique_call {
  int axis;
  bool sorted;
} unique_call;

static void call_unique(builder *b, const value in[], size_t n, const void *options, value out[],
                        size_t n_out) {
  const unique_call *c = options;
  (void)n, (void)n_out;
  build_unique(b, in[0], c->axis, c->sorted, out);
}

void tn_unique(tn_tensor *x, int axis, bool sorted, tn_tensor *out[4]) {
  op_call_many(call_context(&x, 1), "unique", &x, 1, 0, call_unique, &(unique_call){axis, sorted},
               out, 4);
}
