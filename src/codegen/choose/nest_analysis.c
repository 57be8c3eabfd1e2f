/* Analyses a loop nest for the steps of the automatic scheduler: its nodes, its unit-stride reads,
   its vector range, and dependence on the ranges of its reductions. */
#include "codegen/choose/nest_analysis.h"

#include "ir/index/write_once.h"

#include "target/kernel_estimates.h"

node_list nest_nodes(arena *a, const node *binder) {
  binder_layout p = binder_layout_of((op)binder->op, binder->ints);
  return topo_sort(a, binder->src, p.coords, NULL, NULL);
}

bool nest_is_array_read(const node *n) {
  return n->op == OP_INDEX && (n->src[0]->op == OP_PARAM || n->src[0]->op == OP_STAGE);
}

bool nest_has_fold(const node_list *nodes) {
  for (size_t i = 0; i < nodes->n; i++)
    if (nodes->at[i]->op == OP_FOLD) return true;
  return false;
}

bool nest_varies_in_fold(const node_list *nest, const node *what) {
  for (size_t i = 0; i < nest->n; i++) {
    const node *f = nest->at[i];
    for (size_t k = 0; f->op == OP_FOLD && k < fold_n_ranges(f); k++)
      if (node_is_free_in(fold_range(f)[k], what)) return true;
  }
  return false;
}

bool nest_has_consecutive_read(ir *g, const node_list *nest, const node *range) {
  for (size_t i = 0; i < nest->n; i++) {
    const node *n = nest->at[i], *address = NULL;
    if (node_is_free_in(range, n)) address = estimate_read_address(g, n);
    if (address && estimate_vector_accesses(g, range, address)) return true;
  }
  return false;
}

const node *nest_lane_range(ir *g, const node *fold, const node_list *nest) {
  const node *copies = NULL;
  for (uint32_t i = 0; i < fold->free->n; i++) {
    const node *r = fold->free->at[i];
    if (range_kind_of(r) == KIND_VECTOR) return r;
    if (range_is_unrolled(r) && nest_has_consecutive_read(g, nest, r)) copies = r;
  }
  return copies;
}

const node *nest_vector_range(const node *stage) {
  for (size_t i = 0; i < stage_n_ranges(stage); i++)
    if (range_kind_of(stage_range(stage)[i]) == KIND_VECTOR) return stage_range(stage)[i];
  return NULL;
}

bool nest_loads_vectors(ir *g, const node *fold, const node *range, bool varies) {
  node_list nest = nest_nodes(ir_arena(g), fold);
  const node *lanes = nest_lane_range(g, fold, &nest);
  for (size_t i = 0; i < nest.n && lanes; i++)
    if (nest_is_array_read(nest.at[i]) && node_is_free_in(lanes, nest.at[i]) &&
        node_is_free_in(range, nest.at[i]) == varies)
      return true;
  return false;
}

bool nest_is_unrolled(const node *stage) {
  for (size_t i = 0; i < stage_n_ranges(stage); i++)
    if (range_is_unrolled(stage_range(stage)[i])) return true;
  return false;
}

size_t nest_count_loops(const node *stage) {
  size_t n = 0;
  while (n < stage_n_ranges(stage) && range_kind_of(stage_range(stage)[n]) == KIND_LOOP) n++;
  return n;
}

bool nest_copies_along(const node *stage, const node *range) {
  for (size_t i = 0; stage->op == OP_STAGE && i < stage_n_values(stage); i++) {
    const node *v = stage_value(stage, i), *fold = stage_placed_fold(stage, i);
    if (fold && !node_is_free_in(range, fold) && node_is_free_in(range, v)) return true;
  }
  return false;
}
