#include "laws/laws.h"

#include "ir/subst.h"
#include "ir/topo.h"

const node *law_refuse(laws *l, const char *why) {
  l->refusal = why;
  return NULL;
}

const node *law_binder(laws *l, const node *sink, const node *range) {
  node_list order = topo_sort(ir_arena(l->g), &sink, 1, NULL, NULL);
  for (size_t i = 0; i < order.n; i++) {
    const node *const *ranges;
    if (!node_is_binder(order.at[i])) continue;
    size_t n = binder_ranges(order.at[i], &ranges);
    for (size_t k = 0; k < n; k++)
      if (ranges[k] == range) return order.at[i];
  }
  return NULL;
}

node_list law_scalars(laws *l, const node *sink) {
  arena *a = ir_arena(l->g);
  node_list order = topo_sort(a, &sink, 1, NULL, NULL), found = {0};
  for (size_t i = order.n; i-- > 0;)
    if (order.at[i]->op == OP_STAGE && !stage_ranges(order.at[i])) vec_push(a, &found, order.at[i]);
  return found;
}

const node *law_out(const node *sink, const node *stage) {
  for (uint32_t i = 0; i < sink->n_src; i++) {
    const node *out = sink->src[i];
    if (out->op == OP_OUT && out->src[out->n_src - 1] == stage) return out;
  }
  return NULL;
}

static bool is_element_of(const node *n, const node *of) {
  if (n->op != OP_INDEX) return false;
  return n->src[0] == of || (n->src[0]->op == OP_STATE && n->src[0]->src[0] == of);
}

const node *law_coordinate(ir *g, const node *x, const map *with) {
  node_list order = topo_sort(ir_arena(g), &x, 1, NULL, NULL);
  for (size_t i = 0; i < order.n; i++)
    if (map_has(with, order.at[i])) return subst(g, x, with);
  return x;
}

const node *law_with_axes(ir *g, const node *root, const node *of, const node *made, size_t n,
                          const node *const first[]) {
  arena *a = ir_arena(g);
  node_list order = topo_sort(a, &root, 1, NULL, NULL);
  map with = {0};
  for (size_t i = 0; i < order.n; i++) {
    const node *x = order.at[i];
    if (!is_element_of(x, of)) continue;
    size_t rank = n + x->n_src - 1;
    const node **coords = arena_alloc(a, rank * sizeof *coords);
    for (size_t k = 0; k < rank; k++)
      coords[k] = k < n ? first[k] : law_coordinate(g, x->src[1 + k - n], &with);
    const node *array = made ? made : x->src[0];
    map_set(a, &with, x, (void *)index_make(g, (dtype)x->dtype, array, x->ints[0], rank, coords));
  }
  return subst(g, root, &with);
}

const char *law_reader_objection(const node_list *order, const node *binder) {
  for (size_t i = 0; i < order->n; i++)
    for (uint32_t k = 0; k < order->at[i]->n_src; k++)
      if (order->at[i]->src[k] == binder && order->at[i]->op != OP_INDEX)
        return "it is not only read by its elements";
  return NULL;
}

const node *law_replace(laws *l, const node *sink, const node *what, const node *with) {
  map m = {0};
  map_set(ir_arena(l->g), &m, what, (void *)with);
  return subst(l->g, sink, &m);
}

const node *state_renamed(ir *g, const node *n, const node *from, const node *to) {
  node_list order = topo_sort(ir_arena(g), &n, 1, NULL, NULL);
  map m = {0};
  for (size_t i = 0; i < order.n; i++) {
    const node *s = order.at[i];
    if (s->op == OP_STATE && s->src[0] == from)
      map_set(ir_arena(g), &m, s, (void *)state_make(g, (dtype)s->dtype, to, s->ints[0]));
  }
  return subst(g, n, &m);
}

bool law_is_one_of(const node *const nodes[], size_t n, const node *what) {
  for (size_t i = 0; i < n; i++)
    if (nodes[i] == what) return true;
  return false;
}

bool law_depends(const node *const ranges[], size_t n, const node *what) {
  for (size_t i = 0; i < n; i++)
    if (node_is_free_in(ranges[i], what)) return true;
  return false;
}

/** Range → what binds it. */
static map binders_of(arena *a, const node *sink) {
  node_list order = topo_sort(a, &sink, 1, NULL, NULL);
  map binders = {0};
  for (size_t i = 0; i < order.n; i++) {
    const node *const *ranges;
    size_t n = node_is_binder(order.at[i]) ? binder_ranges(order.at[i], &ranges) : 0;
    for (size_t k = 0; k < n; k++) map_set(a, &binders, ranges[k], (void *)order.at[i]);
  }
  return binders;
}

static bool steps_along(const map *binders, const node *state, const node *const along[],
                        size_t n) {
  const node *const *ranges, *fold = map_get(binders, state->src[0]);
  for (size_t i = fold ? binder_ranges(fold, &ranges) : 0; i-- > 0;)
    if (law_is_one_of(along, n, ranges[i])) return true;
  return false;
}

const char *law_state_objection(laws *l, const node *sink, const node *what,
                                const node *const along[], size_t n) {
  node_list order = topo_sort(ir_arena(l->g), &what, 1, NULL, NULL);
  map binders = {0};
  for (size_t i = 0; i < order.n; i++) {
    if (order.at[i]->op != OP_STATE) continue;
    if (!binders.n) binders = binders_of(ir_arena(l->g), sink);
    if (steps_along(&binders, order.at[i], along, n))
      return "it reads a state that steps along one of the ranges";
  }
  return NULL;
}

bool law_length_depends(const node *const ranges[], size_t n, const node *what) {
  for (uint32_t i = 0; i < what->free->n; i++)
    if (!law_is_one_of(ranges, n, what->free->at[i]) &&
        law_depends(ranges, n, range_extent(what->free->at[i])))
      return true;
  return false;
}

const char *law_place_objection(laws *l, const node *sink, const node *binder,
                                const node *const outer[], size_t n) {
  map binders = binders_of(ir_arena(l->g), sink);
  const range_set *open = binder->free;
  const char *why = law_state_objection(l, sink, binder, outer, n);
  if (why) return why;
  for (uint32_t i = 0; i < open->n; i++) {
    if (law_is_one_of(outer, n, open->at[i])) continue;
    const node *b = map_get(&binders, open->at[i]);
    if (b && law_depends(outer, n, b)) return "it is inside a binder that is inside the ranges";
  }
  if (law_length_depends(outer, n, binder))
    return "it is inside a range whose extent depends on one of the ranges";
  return NULL;
}

bool law_nests_vectors(laws *l, const node *sink, const node *range) {
  map inside = {0};
  return law_inside_vectors(l->g, sink, range, &inside);
}

void law_fold_arrays(arena *a, const node *fold, map *inside) {
  for (size_t k = 0; k < fold_states(fold); k++) {
    map_set(a, inside, fold_init(fold, k), (void *)fold);
    map_set(a, inside, fold_step(fold, k), (void *)fold);
  }
}

bool law_inside_vectors(ir *g, const node *sink, const node *range, map *inside) {
  arena *a = ir_arena(g);
  node_list order = topo_sort(a, &sink, 1, NULL, NULL);
  for (size_t i = order.n; i-- > 0;) { /* outer binders first */
    const node *b = order.at[i], *const * ranges;
    bool is_inside = map_has(inside, b);
    if (!node_is_binder(b)) continue;
    for (uint32_t k = 0; k < b->free->n; k++) is_inside |= map_has(inside, b->free->at[k]) != 0;
    if (is_inside && b->op == OP_FOLD) law_fold_arrays(a, b, inside);
    for (size_t k = 0, n = binder_ranges(b, &ranges); k < n; k++) {
      bool vector = ranges[k] == range || range_kind_of(ranges[k]) == KIND_VECTOR;
      if (is_inside && vector) return true;
      is_inside |= vector;
      if (is_inside) map_set(a, inside, ranges[k], (void *)ranges[k]);
    }
  }
  return false;
}

/* Buffers that change in place. */

static bool is_written(const node *sink, const node *param) {
  for (uint32_t i = 0; i < sink->n_src; i++)
    for (uint32_t k = 0; sink->src[i]->op == OP_OUT && k + 1 < sink->src[i]->n_src; k++)
      if (sink->src[i]->src[k] == param) return true;
  return false;
}

bool law_reads_written(laws *l, const node *sink, const node *what) {
  node_list order = topo_sort(ir_arena(l->g), &what, 1, NULL, NULL);
  for (size_t i = 0; i < order.n; i++)
    if (order.at[i]->op == OP_INDEX && is_written(sink, order.at[i]->src[0])) return true;
  return false;
}

/** Whether ranges of a STAGE follow from the coordinates that an element of the buffer which a
    value goes to is read and written at. */
static bool is_own_element(const node *stage, size_t value, const node *index, size_t first,
                           size_t n) {
  const node *shared[IR_MOST_RANK], *const *coords = stage_coords(stage, value);
  size_t count = 0;
  for (uint32_t i = 1; i < index->n_src && i <= stage_rank(stage, value); i++)
    if (index->src[i] == coords[i - 1]) shared[count++] = coords[i - 1];
  for (size_t i = first; i < first + n; i++)
    if (!stage_range_follows(stage, stage_range(stage)[i], count, shared)) return false;
  return true;
}

const char *law_in_place_objection(laws *l, const node *sink, const node *stage, size_t first,
                                   size_t n, bool parted) {
  const node *out = law_out(sink, stage);
  node_list order = topo_sort(ir_arena(l->g), &stage, out != NULL, NULL, NULL);
  for (size_t v = 0; out && v < stage_values(stage); v++) {
    if (!parted && stage_level(stage, v) <= first) continue; /* it is written outside of them */
    for (size_t i = 0; i < order.n; i++)
      if (order.at[i]->op == OP_INDEX && order.at[i]->src[0] == out->src[v] &&
          !is_own_element(stage, v, order.at[i], first, n))
        return "the kernel changes a buffer in place that other indices read";
  }
  return NULL;
}
