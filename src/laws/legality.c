/* Checks the legality conditions that several laws (schedule primitives) share: who reads a
   binder's arrays, which states and extents tie a binder to the ranges around it, where vector
   ranges nest, and whether a buffer that changes in place allows its loops to be reordered or
   split. An objection is a static text that says why a rewrite would change what the kernel
   computes, or NULL. */
#include "ir/index/write_once.h"
#include "ir/transform/rewrite.h"
#include "laws/law_support.h"

#include "ir/core/topo_sort.h"

const node *law_refuse(laws *l, const char *why) {
  l->refusal = why;
  return NULL;
}

const char *law_plain_array_objection(const node *s) {
  if (s->op != OP_STAGE || stage_n_values(s) != 1 || stage_is_cut(s))
    return "the STAGE is not one array";
  if (!stage_is_bijection(s, 0)) return "the coordinates of the array are not its ranges";
  for (size_t i = 0; i < stage_rank(s, 0); i++)
    if (stage_coords(s, 0)[i]->op == OP_AFFINE)
      return "the coordinates of the array are not its ranges";
  for (size_t i = 0; i < stage_n_ranges(s); i++)
    if (range_kind_of(stage_range(s)[i]) != KIND_LOOP) return "a range of the array has a kind";
  return NULL;
}

bool law_computes_from_buffers(arena *a, const node *stage) {
  node_list order = topo_sort(a, stage->src, stage->n_src, NULL, NULL);
  for (size_t i = 0; i < order.n; i++)
    if (order.at[i]->op == OP_STAGE || order.at[i]->op == OP_FOLD || order.at[i]->op == OP_STATE)
      return false;
  return true;
}

const char *law_readers_objection(const node_list *order, const node *binder) {
  for (size_t i = 0; i < order->n; i++)
    for (uint32_t k = 0; k < order->at[i]->n_src; k++)
      if (order->at[i]->src[k] == binder && order->at[i]->op != OP_INDEX)
        return "the array is used as a whole, not by elements";
  return NULL;
}

/** Map from each range to its binder. */
static map binders_of(const laws *l, const node *sink) {
  node_list all = law_index_of(l, sink).binders;
  map binders = {0};
  for (size_t i = 0; i < all.n; i++) {
    const node *const *ranges;
    size_t n = binder_ranges(all.at[i], &ranges);
    for (size_t k = 0; k < n; k++) map_set(ir_arena(l->g), &binders, ranges[k], (void *)all.at[i]);
  }
  return binders;
}

/** True if the FOLD of a STATE binds one of these ranges. */
static bool steps_along(const map *binders, const node *state, const node *const ranges[],
                        size_t n) {
  const node *const *bound, *fold = map_get(binders, state->src[0]);
  for (size_t i = fold ? binder_ranges(fold, &bound) : 0; i-- > 0;)
    if (nodes_contain(ranges, n, bound[i])) return true;
  return false;
}

const char *law_carried_state_objection(laws *l, const node *sink, const node *expression,
                                        const node *const ranges[], size_t n) {
  node_list order = topo_sort(ir_arena(l->g), &expression, 1, NULL, NULL);
  map binders = {0};
  for (size_t i = 0; i < order.n; i++) {
    if (order.at[i]->op != OP_STATE) continue;
    if (!binders.n) binders = binders_of(l, sink);
    if (steps_along(&binders, order.at[i], ranges, n))
      return "a state of a FOLD over one of the ranges is read";
  }
  return NULL;
}

bool law_extent_depends(const node *const ranges[], size_t n, const node *expression) {
  const range_set *open = expression->free;
  for (uint32_t i = 0; i < open->n; i++)
    if (!nodes_contain(ranges, n, open->at[i]) &&
        law_depends_on_any(ranges, n, range_extent(open->at[i])))
      return true;
  return false;
}

const char *law_move_out_objection(laws *l, const node *sink, const node *binder,
                                   const node *const outer[], size_t n) {
  map binders = binders_of(l, sink);
  const range_set *open = binder->free;
  const char *why = law_carried_state_objection(l, sink, binder, outer, n);
  if (why) return why;
  for (uint32_t i = 0; i < open->n; i++) {
    if (nodes_contain(outer, n, open->at[i])) continue;
    const node *b = map_get(&binders, open->at[i]);
    if (b && law_depends_on_any(outer, n, b))
      return "a binder around the FOLD or STAGE is inside the ranges";
  }
  if (law_extent_depends(outer, n, binder))
    return "the extent of a range around the FOLD or STAGE depends on one of the ranges";
  return NULL;
}

bool law_has_nested_vectors(laws *l, const node *sink, const node *range) {
  map inside = {0};
  return law_collect_vectorised(l, sink, range, &inside);
}

void law_add_fold_arrays(arena *a, const node *fold, map *inside) {
  for (size_t k = 0; k < fold_n_states(fold); k++) {
    map_set(a, inside, fold_init(fold, k), (void *)fold);
    map_set(a, inside, fold_step(fold, k), (void *)fold);
  }
}

bool law_collect_vectorised(const laws *l, const node *sink, const node *range, map *inside) {
  arena *a = ir_arena(l->g);
  node_list binders = law_index_of(l, sink).binders;
  for (size_t i = binders.n; i-- > 0;) { /* outer binders first */
    const node *b = binders.at[i], *const * ranges;
    bool is_inside = map_has(inside, b);
    for (uint32_t k = 0; k < b->free->n; k++) is_inside |= map_has(inside, b->free->at[k]) != 0;
    if (is_inside && b->op == OP_FOLD) law_add_fold_arrays(a, b, inside);
    for (size_t k = 0, n = binder_ranges(b, &ranges); k < n; k++) {
      bool vector = ranges[k] == range || range_kind_of(ranges[k]) == KIND_VECTOR;
      if (is_inside && vector) return true;
      is_inside |= vector;
      if (is_inside) map_set(a, inside, ranges[k], (void *)ranges[k]);
    }
  }
  return false;
}

/* Buffers that the kernel updates in place. */

static bool is_written(const node *sink, const node *param) {
  for (uint32_t i = 0; i < sink->n_src; i++)
    for (uint32_t k = 0; sink->src[i]->op == OP_OUT && k + 1 < sink->src[i]->n_src; k++)
      if (sink->src[i]->src[k] == param) return true;
  return false;
}

bool law_reads_output(laws *l, const node *sink, const node *expression) {
  node_list order = topo_sort(ir_arena(l->g), &expression, 1, NULL, NULL);
  for (size_t i = 0; i < order.n; i++)
    if (order.at[i]->op == OP_INDEX && is_written(sink, order.at[i]->src[0])) return true;
  return false;
}

/** True if n of a STAGE's ranges, from `first` on, follow from the coordinates that a read of the
    buffer (INDEX) and the write of `value` to it have in common. */
static bool is_own_element(const node *stage, size_t value, const node *index, size_t first,
                           size_t n) {
  const node *shared[IR_MAX_RANK], *const *coords = stage_coords(stage, value);
  size_t count = 0;
  for (uint32_t i = 1; i < index->n_src && i <= stage_rank(stage, value); i++)
    if (index->src[i] == coords[i - 1]) shared[count++] = coords[i - 1];
  for (size_t i = first; i < first + n; i++)
    if (!stage_range_is_determined(stage, stage_range(stage)[i], count, shared)) return false;
  return true;
}

const char *law_in_place_objection(laws *l, const node *sink, const node *stage, size_t first,
                                   size_t n, bool partitioned) {
  const node *out = law_find_out(sink, stage);
  node_list order = topo_sort(ir_arena(l->g), &stage, out != NULL, NULL, NULL);
  for (size_t v = 0; out && v < stage_n_values(stage); v++) {
    if (!partitioned && stage_loop_depth(stage, v) <= first)
      continue; /* stored outside these ranges */
    for (size_t i = 0; i < order.n; i++)
      if (order.at[i]->op == OP_INDEX && order.at[i]->src[0] == out->src[v] &&
          !is_own_element(stage, v, order.at[i], first, n))
        return "the kernel updates a buffer in place that other indices read";
  }
  return NULL;
}

bool law_fold_is_reorderable(const node *f, int math) {
  if (fold_n_emits(f)) return false;
  for (size_t i = 0; i < fold_n_states(f); i++) {
    if (fold_op(f, i) < 0 || fold_component(f, i) >= 0) return false;
    if (!math_may_reorder(math, (dtype)fold_init(f, i)->dtype)) return false;
  }
  return true;
}
