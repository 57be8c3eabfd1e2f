/* Finds nests that code generation vectorises along the axis of a scan (lower/vector_scans.c): an
   array of the values that a FOLD of one associative state emits, read and stored consecutively
   along the FOLD's range. Lanes along other ranges, which would read and store scattered elements,
   stay away from these. */
#include "codegen/choose/choice.h"
#include "codegen/choose/nest_analysis.h"
#include "ir/core/math_mode.h"
#include "target/kernel_estimates.h"

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
static bool is_associative_scan(const choice *c, const node *fold) {
  if (fold_n_ranges(fold) != 1 || fold_n_states(fold) != 1 || fold_n_emits(fold) != 1) return false;
  dtype t = (dtype)fold_init(fold, 0)->dtype;
  uint64_t neutral;
  return fold_op(fold, 0) >= 0 && fold_component(fold, 0) < 0 &&
         op_is_commutative((op)fold_op(fold, 0)) &&
         op_identity((op)fold_op(fold, 0), t, &neutral) &&
         math_may_reorder_scan(c->math, (op)fold_op(fold, 0), t) &&
         fold_coords(fold, 0)[0] == fold_range(fold)[0];
}

/** True if arrays are read consecutively along a range, or do not depend on it. */
static bool reads_consecutively(ir *g, const node_list *nest, const node *range) {
  for (size_t i = 0; i < nest->n; i++) {
    const node *n = nest->at[i];
    if (!node_is_free_in(range, n)) continue;
    if (node_is_binder(n)) return false;
    if (nest_is_array_read(n) && !read_is_unit_stride(g, range, n)) return false;
  }
  return true;
}

bool choice_scans_along_axis(const choice *c, const node *stage) {
  ir *g = c->laws.g;
  const node *along;
  if (stage->op != OP_STAGE || stage_n_values(stage) != 1) return false;
  node_list nest = nest_nodes(ir_arena(g), stage);
  const node *fold = emitting_fold(&nest, stage, &along);
  if (!fold || !is_associative_scan(c, fold)) return false;
  if (!coordinates_are_unit_stride(g, along, stage_rank(stage, 0), stage_extents(stage, 0),
                                   stage_coords(stage, 0)))
    return false;
  const node *r = fold_range(fold)[0];
  node_list steps = nest_nodes(ir_arena(g), fold);
  return range_kind_of(r) == KIND_LOOP && reads_consecutively(g, &steps, r) &&
         estimate_scan_lanes(c->target, estimate_widest_element(&steps, r), r);
}
