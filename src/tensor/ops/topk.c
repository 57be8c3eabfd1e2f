/* The first k elements of an order along an axis (topk), and their indices.

   The rank of an element is the number of those before it, and entry k of the result is the element
   of rank k; elements are compared as integer keys, the least first (order_keys.h). Of a long axis,
   the first k elements lie in the k blocks whose least keys come first, as each block before
   another one has an element before all of it: those blocks are found alike, and their elements
   alone are ranked. Where k is too large for both, the axis is sorted. An axis of open size has all
   ways that some size asks for, of which a run takes one. */
#include "ir/index/index_arithmetic.h"
#include "ir/index/index_proof.h"
#include "tensor/context/call.h"
#include "tensor/context/symbolic_dims.h"
#include "tensor/ops/axes_and_broadcasting.h"
#include "tensor/ops/computed_sizes.h"
#include "tensor/ops/expressions.h"
#include "tensor/ops/order_keys.h"
#include "tensor/ops/reduction.h"
#include "tensor/ops/sort.h"

/* Elements of a block; blocks for each of k from which an axis is divided, and the most k; elements
   up to which ranks are counted, as sorting more takes less; blocks of an open axis up to which
   their ranks are counted. */
enum {
  TOPK_BLOCK = 16,
  TOPK_BLOCKS_LEAST = 4,
  TOPK_DIVIDED_MOST = 256,
  TOPK_RANKED_MOST = 256,
  TOPK_BLOCKS_MOST = 1024
};

/** The indices of the first k elements by rank, along the last axis. */
static const node *first_by_rank(builder *b, const node *ranks, const node *k) {
  size_t rank = ranks->rank;
  const node *n = ranks->dims[rank - 1];
  sizes s = sizes_insert(b, sizes_of(ranks), rank - 1, k);
  ranks = shape_broadcast(b, shape_unsqueeze(b, ranks, rank - 1), &s);
  const node *is_entry = ex_binary(b, OP_EQ, ranks, ex_iota(b, DT_I64, &s, rank - 1));
  const node *at = shape_broadcast(b, node_all_indices(b, n), &s);
  axis_list last = axes_from(rank, rank + 1);
  return node_reduce(b, OP_ADD, ex_where(b, is_entry, at, ex_int(b, at, 0)), &last, false);
}

/** Keys in blocks along a new last axis; the last block is filled up with greatest ones. */
static const node *block_keys(builder *b, const node *key) {
  size_t last = key->rank - 1u;
  const node *n = key->dims[last], *block = ix_const(b->ir, TOPK_BLOCK);
  const node *blocks = ix_floordiv(b->ir, ix_add_const(b->ir, n, TOPK_BLOCK - 1), block);
  const node *rest = ix_sub(b->ir, ix_scale(b->ir, blocks, TOPK_BLOCK), n);
  int64_t most = INT64_MAX >> (64 - 8 * dtype_bytes((dtype)key->dtype));
  key = shape_pad(b, key, last, ix_const(b->ir, 0), rest,
                  ir_const_int(b->ir, (dtype)key->dtype, most));
  sizes to = sizes_insert(b, sizes_with(sizes_of(key), last, blocks), last + 1, block);
  return shape_reshape(b, key, &to);
}

/** The last two axes as one. */
static value join_last_axes(builder *b, const node *x) {
  return build_flatten(b, value_of(x), -2, -1);
}

static bool is_divided(const node *key, const node *k) {
  return key->rank < SIZES_MAX_RANK - 1 && k->hi >= 1 && k->hi <= TOPK_DIVIDED_MOST &&
         key->dims[key->rank - 1]->lo / TOPK_BLOCK / TOPK_BLOCKS_LEAST >= k->hi;
}

static const node *first_of_ranked(builder *b, const node *key, const node *k) {
  const node *n = key->dims[key->rank - 1];
  return first_by_rank(b, node_ranks(b, key, node_all_indices(b, n)), k);
}

static const node *first_of_sorted(builder *b, const node *key, const node *k) {
  const node *order = node_argsort_long(b, key, TOPK_RANKED_MOST + 1);
  return shape_slice(b, order, key->rank - 1u, ix_const(b->ir, 0), k, 1);
}

/** The indices of the first k keys along the last axis, in order, where all are compared. */
static const node *first_of_all(builder *b, const node *key, const node *k) {
  const node *n = key->dims[key->rank - 1];
  if (n->hi <= TOPK_RANKED_MOST) return first_of_ranked(b, key, k);
  if (n->lo > TOPK_RANKED_MOST) return first_of_sorted(b, key, k);
  return node_pick_by_size(b, n, TOPK_RANKED_MOST, first_of_ranked(b, key, k),
                           first_of_sorted(b, key, k));
}

/** Few different indices along the last axis in ascending order. */
static const node *in_order(builder *b, const node *index) {
  const node *n = index->dims[index->rank - 1];
  const node *first = first_by_rank(b, node_ranks(b, index, node_all_indices(b, n)), n);
  return build_gather_elements(b, value_of(index), value_of(first), -1).node;
}

/** The indices of the first k keys along the last axis, in order, by those of blocks' least keys,
    which `first` finds. The elements of the best blocks are compared in the order of their indices,
    so that the first of equal ones stays the first. */
static const node *first_of_blocks(builder *b, const node *key, const node *k,
                                   const node *(*first)(builder *, const node *, const node *)) {
  const node *blocks = block_keys(b, key);
  axis_list last = axes_from(blocks->rank - 1u, blocks->rank);
  const node *best = first(b, node_reduce(b, OP_MIN, blocks, &last, false), k);
  best = in_order(b, best);
  value index =
      build_mul(b, value_of(shape_unsqueeze(b, best, best->rank)), build_int(b, TOPK_BLOCK));
  index = build_add(b, index, value_of(node_all_indices(b, ix_const(b->ir, TOPK_BLOCK))));
  index = join_last_axes(b, index.node);
  value of = build_gather_elements(b, join_last_axes(b, blocks), index, -1);
  return build_gather_elements(b, index, value_of(first_of_all(b, of.node, k)), -1).node;
}

/** True for an axis of open size of which few keys are asked for. */
static bool is_open(const node *key, const node *k) {
  const node *n = key->dims[key->rank - 1];
  return key->rank < SIZES_MAX_RANK - 1 && k->hi >= 1 &&
         TOPK_BLOCK * TOPK_BLOCKS_LEAST * k->hi <= TOPK_BLOCKS_MOST && n->lo <= TOPK_BLOCKS_MOST &&
         n->hi > TOPK_BLOCK * TOPK_BLOCKS_MOST;
}

/** The same for an axis of open size: by ranks, by ranks of blocks, or by sorting it. */
static const node *first_of_open(builder *b, const node *key, const node *k) {
  const node *n = key->dims[key->rank - 1];
  int64_t few = TOPK_BLOCK * TOPK_BLOCKS_LEAST * k->hi, most = TOPK_BLOCK * TOPK_BLOCKS_MOST;
  const node *of_many = node_pick_by_size(b, n, most, first_of_blocks(b, key, k, first_of_ranked),
                                          first_of_sorted(b, key, k));
  return node_pick_by_size(b, n, few, first_of_ranked(b, key, k), of_many);
}

/** The indices of the first k keys along the last axis, in order. Recurses once for each division
    of the axis by TOPK_BLOCK. */
static const node *first_keys(builder *b, const node *key, const node *k) {
  if (is_divided(key, k)) return first_of_blocks(b, key, k, first_keys);
  return is_open(key, k) ? first_of_open(b, key, k) : first_of_all(b, key, k);
}

/** True if a run checks that a size is from 0 to another one. */
static bool is_checked(const node *k, const node *size) {
  return k->op == OP_ITEM && k->lo >= 0 && k->src[k->n_src - 1] == size;
}

void build_topk(builder *b, value x, const node *k, int64_t axis, bool largest, value out[2]) {
  x = value_typed(b, x);
  size_t at = axis_of(b, axis, x.node->rank);
  const node *size = x.node->dims[at], *rest = ix_sub(b->ir, size, k);
  bool is_size = ix_prove_nonnegative(b->ir, k),
       fits = is_checked(k, size) || (is_size && ix_prove_nonnegative(b->ir, rest));
  if (!fits && is_size && (size_is_computed(b, k) || size_is_computed(b, size))) {
    k = size_at_most(b, k, size);
  } else if (!fits) {
    b->needed = rest;
    diag_raise(b->diag, TN_ERR_SHAPE, "k is %s, not from 0 to %s, the size of axis %zu%s",
               size_text(b, k), size_text(b, size), at,
               node_is_const(rest) ? "" : ", for all values of sizes that vary");
  }
  x = build_swap_with_last(b, x, at);
  value index = value_of(first_keys(b, node_order_keys(b, x.node, largest, false), k));
  out[0] = build_swap_with_last(b, build_gather_elements(b, x, index, -1), at);
  out[1] = build_swap_with_last(b, index, at);
}

/* ---- Public functions ---- */

typedef struct topk_call {
  tn_dim k;
  int axis;
  bool largest;
} topk_call;

static void call_topk(builder *b, const value in[], size_t n, const void *options, value out[],
                      size_t n_out) {
  const topk_call *c = options;
  (void)n, (void)n_out;
  build_topk(b, in[0], dim_to_node(b, c->k), c->axis, c->largest, out);
}

void tn_topk(tn_tensor *x, tn_dim k, int axis, bool largest, tn_tensor *out[2]) {
  op_call_many(call_context(&x, 1), "topk", &x, 1, 0, call_topk, &(topk_call){k, axis, largest},
               out, 2);
}
