/* Finds scans that are computed in vectors along their axis: a STAGE of the values that a FOLD of
   one associative state emits, read and stored at consecutive addresses along the FOLD's range,
   upwards or downwards. Bounds checks may limit the indices from below and from above; beyond, the
   steps are scalar. */
#include "target/scan_axis.h"

#include "ir/core/math_mode.h"
#include "ir/index/comparison_bound.h"
#include "ir/index/index_arithmetic.h"
#include "ir/index/row_major_address.h"
#include "target/kernel_estimates.h"

scan_span scan_span_of(ir *g, const node *range) {
  return (scan_span){.low = ix_const(g, 0), .high = range_extent(range)};
}

/** Limits a span to where a comparison holds. */
static bool limit_by(ir *g, const node *range, const node *compare, scan_span *s) {
  bool is_upper;
  if (!node_is_free_in(range, compare)) return true;
  const node *bound = comparison_bound(g, compare, range, &is_upper);
  if (!bound) return false;
  if (nodes_contain(s->checks.at, s->checks.n, compare)) return true;
  vec_push(ir_arena(g), &s->checks, compare);
  if (is_upper)
    s->high = ix_max(g, s->low, ix_min(g, s->high, bound));
  else
    s->low = ix_min(g, s->high, ix_max(g, s->low, bound));
  return true;
}

bool scan_span_limit(ir *g, const node *range, const node *address, bool is_store, scan_span *s) {
  const node *mask = address->op == OP_WHERE ? address->src[0] : NULL;
  int64_t stride;
  if (!address_has_stride(g, range, mask ? address->src[1] : address, &stride)) return false;
  if (stride != 1 && stride != -1 && (stride || is_store)) return false;
  for (; mask && mask->op == OP_AND; mask = mask->src[0])
    if (!limit_by(g, range, mask->src[1], s)) return false;
  return !mask || limit_by(g, range, mask, s);
}

int64_t scan_axis_lanes(const target *t, size_t widest, const node *range) {
  int64_t lanes = target_lanes(t, t->vector_bytes, widest);
  if (lanes > MACHINE_SCAN_LANES) lanes = MACHINE_SCAN_LANES;
  double least = (double)(MACHINE_SCAN_VECTORS_LEAST * lanes);
  return lanes > 1 && range_likely_trips(range) >= least ? lanes : 0;
}

/** The FOLD of a scan whose emitted values a STAGE alone reads, at one of its ranges, `*along`;
    NULL: there is none. */
static const node *emitting_fold(const node_list *nest, const node *stage, const node **along) {
  const node *read = NULL;
  for (size_t i = 0; i < nest->n; i++) {
    const node *n = nest->at[i];
    if (n->op != OP_INDEX || n->src[0]->op != OP_FOLD) continue;
    if (read || !fold_n_emits(n->src[0]) || n->n_src != 2) return NULL;
    read = n;
  }
  for (size_t i = 0; read && i < stage_n_ranges(stage); i++)
    if (stage_range(stage)[i] == read->src[1]) {
      *along = read->src[1];
      return read->src[0];
    }
  return NULL;
}

/** True if a FOLD steps one scalar by an associative op, and emits it at its only range. */
static bool is_associative_scan(const node *fold, int math) {
  if (fold_n_ranges(fold) != 1 || fold_n_states(fold) != 1 || fold_n_emits(fold) != 1) return false;
  dtype t = (dtype)fold_init(fold, 0)->dtype;
  uint64_t neutral;
  return fold_op(fold, 0) >= 0 && fold_component(fold, 0) < 0 &&
         op_is_commutative((op)fold_op(fold, 0)) &&
         op_identity((op)fold_op(fold, 0), t, &neutral) &&
         math_may_reorder_scan(math, (op)fold_op(fold, 0), t) &&
         fold_coords(fold, 0)[0] == fold_range(fold)[0];
}

/** True if the arrays that are read in vectors along a range allow it, and no binder is inside. */
static bool limit_by_reads(ir *g, const node_list *nest, const node *range, scan_span *span) {
  for (size_t i = 0; i < nest->n; i++) {
    const node *n = nest->at[i];
    if (!node_is_free_in(range, n)) continue;
    if (node_is_binder(n)) return false;
    const node *address = estimate_read_address(g, n);
    if (address && !scan_span_limit(g, range, address, false, span)) return false;
  }
  return true;
}

/** The nodes that a binder's values read. */
static node_list nest_of(ir *g, const node *binder) {
  binder_layout p = binder_layout_of((op)binder->op, binder->ints);
  return topo_sort(ir_arena(g), binder->src, p.coords, NULL, NULL);
}

bool scan_axis_match(ir *g, const node *stage, const target *t, int math, scan_axis *found) {
  const node *along;
  if (stage->op != OP_STAGE || stage_n_values(stage) != 1 || !t->vector_bytes || t->team_workers)
    return false;
  node_list nest = nest_of(g, stage);
  const node *fold = emitting_fold(&nest, stage, &along);
  if (!fold || !is_associative_scan(fold, math)) return false;
  const node *r = fold_range(fold)[0];
  if (range_kind_of(r) != KIND_LOOP || range_extent(r) != range_extent(along)) return false;
  node_list steps = nest_of(g, fold);
  scan_span inside = scan_span_of(g, r), stored = scan_span_of(g, along);
  const node *to =
      row_major_address(g, stage_rank(stage, 0), stage_extents(stage, 0), stage_coords(stage, 0));
  *found = (scan_axis){fold, along, scan_axis_lanes(t, estimate_widest_element(&steps, r), r)};
  return found->lanes && scan_span_limit(g, along, to, true, &stored) &&
         limit_by_reads(g, &nest, along, &stored) && limit_by_reads(g, &steps, r, &inside);
}
