/* Sorting (sort, argsort) along an axis, as integer keys that keep the order (order_keys.h).

   Along a short axis each element is compared with each, which counts the elements before it. Along
   others keys are sorted by their digits, the lowest first. A digit is a pass over groups of
   elements: each group counts its digits (a SCATTER of ones), and a cumulative sum of the counts,
   by digit and then by group, tells where those of each group begin. A running count of the
   elements of the same digit (a SCAN by classes) tells how far behind an element goes, and a
   SCATTER writes it there. The passes are a LOOP, so that their kernels are compiled once. */
#include "tensor/ops/sort.h"

#include "ir/index/build_tensor.h"
#include "ir/index/index_arithmetic.h"
#include "tensor/ops/axes_and_broadcasting.h"
#include "tensor/ops/expressions.h"
#include "tensor/ops/gather.h"
#include "tensor/ops/order_keys.h"
#include "tensor/ops/reduction.h"

/* Elements of a group; elements of a row up to which digits have 4 bits, and not 8, so that the
   counts of a row take no more memory than its keys. */
enum { GROUP = 4096, SHORT_DIGITS_MOST = 256 };

const node *node_all_indices(builder *b, const node *n) {
  sizes s = {1, {n}};
  return ex_iota(b, DT_I64, &s, 0);
}

static const node *broadcast_unsqueezed(builder *b, const node *x, size_t axis, const sizes *s) {
  return shape_broadcast(b, shape_unsqueeze(b, x, axis), s);
}

/** The sum of bools along the last axis. */
static const node *count_true(builder *b, const node *x, dtype t) {
  axis_list last = axes_from(x->rank - 1u, x->rank);
  return node_reduce(b, OP_ADD, ex_cast(b, x, t), &last, false);
}

const node *node_ranks(builder *b, const node *key, const node *index) {
  size_t rank = key->rank, last = index->rank;
  sizes s = sizes_insert(b, sizes_of(key), rank, key->dims[rank - 1]);
  const node *own = broadcast_unsqueezed(b, key, rank, &s),
             *other = broadcast_unsqueezed(b, key, rank - 1, &s);
  const node *own_index = broadcast_unsqueezed(b, index, last, &s),
             *other_index = broadcast_unsqueezed(b, index, last - 1, &s);
  const node *is_earlier = ex_binary(b, OP_AND, ex_binary(b, OP_EQ, other, own),
                                     ex_binary(b, OP_LT, other_index, own_index));
  return count_true(b, ex_binary(b, OP_OR, ex_binary(b, OP_LT, other, own), is_earlier), DT_I64);
}

/** Writes elements (rows, n) at places (i64) within their rows, each of which is written once. */
static const node *write_at(builder *b, const node *x, const node *place) {
  sizes s = sizes_of(x);
  const node *none = ex_fill(b, ir_const_int(b->ir, (dtype)x->dtype, 0), &s);
  const node *at[] = {ex_iota(b, DT_I64, &s, 0), place};
  return ir_scatter_distinct(b->ir, none, x, at, -1);
}

/* A sort by digits: keys, unsigned and in groups, and the indices of where they came from, which
   may be NULL; (rows, groups * group). */
typedef struct radix {
  const node *keys, *index;
  const node *rows, *groups, *group;
  int digit_bits;
  dtype counts; /* type of positions in a row */
} radix;

static sizes grouped(const radix *r) { return (sizes){3, {r->rows, r->groups, r->group}}; }

/** Digits (rows, groups, group), i64. */
static const node *digits_at(builder *b, const radix *r, const node *pass) {
  sizes s = grouped(r);
  const node *shift = ex_size(b, ix_scale(b->ir, pass, r->digit_bits), (dtype)r->keys->dtype);
  value digit = build_right_shift(b, value_of(r->keys), value_of(shift));
  digit = build_bitwise_and(b, digit, build_int(b, (INT64_C(1) << r->digit_bits) - 1));
  return shape_reshape(b, ex_cast(b, digit.node, DT_I64), &s);
}

static const node *ones(builder *b, const radix *r) {
  sizes s = grouped(r);
  return ex_fill(b, ir_const_int(b->ir, r->counts, 1), &s);
}

/** The positions (rows, digits, groups) where elements of a digit and a group begin. */
static const node *group_starts(builder *b, const radix *r, const node *digit) {
  ir *g = b->ir;
  const node *digits = ix_const(g, INT64_C(1) << r->digit_bits);
  sizes by_group = {3, {r->rows, r->groups, digits}}, by_digit = {3, {r->rows, digits, r->groups}};
  sizes flat = {2, {r->rows, ix_mul(g, digits, r->groups)}}, s = grouped(r);
  const node *none = ex_fill(b, ir_const_int(g, r->counts, 0), &by_group);
  const node *at[] = {ex_iota(b, DT_I64, &s, 0), ex_iota(b, DT_I64, &s, 1), digit};
  const node *counts = ir_scatter(g, none, ones(b, r), at, OP_ADD);
  counts = shape_reshape(b, shape_permute(b, counts, (const int64_t[]){0, 2, 1}), &flat);
  const node *before = ex_binary(b, OP_SUB, ir_scan(b->ir, OP_ADD, counts, 1), counts);
  return shape_reshape(b, before, &by_digit);
}

/** Sorts by the digit of a pass. */
static void sort_digit(builder *b, radix *r, const node *pass) {
  ir *g = b->ir;
  const node *digit = digits_at(b, r, pass), *starts = group_starts(b, r, digit);
  sizes s = grouped(r), flat = sizes_of(r->keys);
  const node *rank = ir_scan_classes(g, OP_ADD, ones(b, r), 2, digit, INT64_C(1) << r->digit_bits);
  const node *at[] = {ex_iota(b, DT_I64, &s, 0), digit, ex_iota(b, DT_I64, &s, 1)};
  const node *place = ex_binary(b, OP_ADD, ir_gather(g, starts, at), rank);
  place = ex_binary(b, OP_SUB, place, ex_int(b, place, 1));
  place = ex_cast(b, shape_reshape(b, place, &flat), DT_I64);
  r->keys = write_at(b, r->keys, place);
  if (r->index) r->index = write_at(b, r->index, place);
}

/** Keys (rows, n) as unsigned integers in whole groups, filled up with greatest ones. */
static const node *group_keys(builder *b, const node *key, const radix *r) {
  static const dtype of_bytes[] = {[1] = DT_U8, [2] = DT_U16, [4] = DT_U32, [8] = DT_U64};
  dtype t = (dtype)key->dtype;
  size_t bytes = dtype_bytes(t);
  key = ex_binary(b, OP_XOR, key, ex_int(b, key, INT64_MIN >> (64 - 8 * bytes)));
  key = build_bitcast(b, value_of(key), of_bytes[bytes]).node;
  const node *fill = ir_const_bits(b->ir, of_bytes[bytes], UINT64_MAX >> (64 - 8 * bytes));
  const node *rest = ix_sub(b->ir, ix_mul(b->ir, r->groups, r->group), key->dims[1]);
  return shape_pad(b, key, 1, ix_const(b->ir, 0), rest, fill);
}

/** Sorts by all digits: a loop of passes, the kernels of which are alike. */
static void sort_all_digits(builder *b, radix *r, int passes) {
  const node *range = build_loop_range(b, ix_const(b->ir, passes));
  value inits[] = {value_of(r->keys), value_of(r->index)}, steps[2], out[2] = {{0}};
  size_t n = r->index ? 2 : 1;
  radix step = *r;
  step.keys = build_loop_state(b, range, 0, inits[0]).node;
  if (r->index) step.index = build_loop_state(b, range, 1, inits[1]).node;
  sort_digit(b, &step, build_loop_index(b, range, false));
  steps[0] = value_of(step.keys), steps[1] = value_of(step.index);
  build_loop(b, range, inits, steps, n, NULL, NULL, 0, out);
  r->keys = out[0].node, r->index = out[1].node;
}

/** How keys (rows, n) are sorted: a short row is one group. */
static radix radix_of(builder *b, const node *key) {
  const node *n = key->dims[1], *one = ix_const(b->ir, 1), *group = ix_const(b->ir, GROUP);
  bool is_short = n->hi <= GROUP;
  radix r = {.rows = key->dims[0], .group = is_short ? n : group, .digit_bits = 8};
  if (n->hi <= SHORT_DIGITS_MOST) r.digit_bits = 4;
  r.groups = is_short ? one : ix_floordiv(b->ir, ix_add_const(b->ir, n, GROUP - 1), group);
  r.counts = n->hi < INT32_MAX - GROUP ? DT_I32 : DT_I64;
  return r;
}

/** Sorts keys (rows, n): their indices (i64), or the keys themselves. */
static const node *sort_digits(builder *b, const node *key, bool wants_index) {
  const node *n = key->dims[1], *zero = ix_const(b->ir, 0);
  int bits = (int)(8 * dtype_bytes((dtype)key->dtype));
  radix r = radix_of(b, key);
  r.keys = group_keys(b, key, &r);
  sizes s = sizes_of(r.keys);
  if (wants_index) r.index = ex_iota(b, r.counts, &s, 1);
  sort_all_digits(b, &r, bits / r.digit_bits);
  if (wants_index) return ex_cast(b, shape_slice(b, r.index, 1, zero, n, 1), DT_I64);
  const node *sorted = build_bitcast(b, value_of(r.keys), (dtype)key->dtype).node;
  sorted = ex_binary(b, OP_XOR, sorted, ex_int(b, sorted, INT64_MIN >> (64 - bits)));
  return shape_slice(b, sorted, 1, zero, n, 1);
}

/** Keys (…, n) as (rows, n). */
static const node *as_rows(builder *b, const node *x) {
  sizes s = {2, {ix_const(b->ir, 1), x->dims[x->rank - 1]}};
  for (size_t i = 0; i + 1 < x->rank; i++) s.at[0] = ix_mul(b->ir, s.at[0], x->dims[i]);
  return shape_reshape(b, x, &s);
}

/** Sorts rows (rows, n) by the number of elements before each. */
static const node *sort_by_ranks(builder *b, const node *rows, bool wants_index) {
  sizes s = sizes_of(rows);
  const node *places = node_ranks(b, rows, node_all_indices(b, rows->dims[1]));
  return write_at(b, wants_index ? ex_iota(b, DT_I64, &s, 1) : rows, places);
}

const node *node_pick_by_size(builder *b, const node *n, int64_t most, const node *of_few,
                              const node *of_many) {
  ir *g = b->ir;
  const node *is_many = ix_min(g, ix_floordiv(g, n, ix_const(g, most + 1)), ix_const(g, 1));
  return ir_pick(g, ix_sub(g, ix_const(g, 1), is_many), of_few, of_many);
}

/** Sorts the rows of keys (…, n). The result is used only where n is at least `least`. */
static const node *sort_rows(builder *b, const node *key, bool wants_index, int64_t least) {
  sizes s = sizes_of(key);
  const node *rows = as_rows(b, key), *n = rows->dims[1], *few = NULL, *many = NULL;
  if (n->lo <= SORT_COUNTED_MOST && least <= SORT_COUNTED_MOST)
    few = sort_by_ranks(b, rows, wants_index);
  if (n->hi > SORT_COUNTED_MOST || !few) many = sort_digits(b, rows, wants_index);
  const node *sorted = !few    ? many
                       : !many ? few
                               : node_pick_by_size(b, n, SORT_COUNTED_MOST, few, many);
  return shape_reshape(b, sorted, &s);
}

const node *node_argsort(builder *b, const node *key) { return sort_rows(b, key, true, 0); }

const node *node_argsort_long(builder *b, const node *key, int64_t least) {
  return sort_rows(b, key, true, least);
}

value build_swap_with_last(builder *b, value x, size_t axis) {
  return axis + 1 == x.node->rank ? x : build_swapaxes(b, x, (int64_t)axis, -1);
}

value build_sort(builder *b, value x, int64_t axis, bool descending) {
  x = value_typed(b, x);
  size_t at = axis_of(b, axis, x.node->rank);
  const node *key = node_order_keys(b, build_swap_with_last(b, x, at).node, descending, true);
  const node *sorted = sort_rows(b, key, false, 0);
  sorted = node_of_order_keys(b, sorted, descending, (dtype)x.node->dtype);
  return build_swap_with_last(b, value_of(sorted), at);
}

value build_argsort(builder *b, value x, int64_t axis, bool descending) {
  x = value_typed(b, x);
  size_t at = axis_of(b, axis, x.node->rank);
  const node *key = node_order_keys(b, build_swap_with_last(b, x, at).node, descending, false);
  return build_swap_with_last(b, value_of(node_argsort(b, key)), at);
}

/* ---- Public functions ---- */

typedef struct sort_call {
  value (*build)(builder *b, value x, int64_t axis, bool descending);
  int axis;
  bool descending;
} sort_call;

static value call_sort(builder *b, const value in[], size_t n, const void *options) {
  const sort_call *c = options;
  (void)n;
  return c->build(b, in[0], c->axis, c->descending);
}

tn_tensor *tn_sort(tn_tensor *x, int axis, bool descending) {
  return op_call("sort", &x, 1, 0, call_sort, &(sort_call){build_sort, axis, descending});
}

tn_tensor *tn_argsort(tn_tensor *x, int axis, bool descending) {
  return op_call("argsort", &x, 1, 0, call_sort, &(sort_call){build_argsort, axis, descending});
}
