/* Rewrites kernel graphs for the laws (schedule primitives): finds the OUTs of STAGEs, and
   substitutes nodes, coordinates, states and fresh copies of ranges. Nothing
   here checks whether a rewrite is legal (legality.c does). Graphs are interned and immutable: each
   helper returns a new root. */
#include "laws/law_support.h"

#include "ir/core/topo_sort.h"
#include "ir/transform/substitute.h"

/* Finding. */

const node *law_find_out(const node *sink, const node *stage) {
  for (uint32_t i = 0; i < sink->n_src; i++) {
    const node *out = sink->src[i];
    if (out->op == OP_OUT && out->src[out->n_src - 1] == stage) return out;
  }
  return NULL;
}

node_list law_scalar_stages(laws *l, const node *sink) {
  node_list binders = law_index_of(l, sink).binders, found = {0};
  for (size_t i = binders.n; i-- > 0;)
    if (binders.at[i]->op == OP_STAGE && !stage_n_ranges(binders.at[i]))
      vec_push(ir_arena(l->g), &found, binders.at[i]);
  return found;
}

bool law_depends_on_any(const node *const ranges[], size_t n, const node *expression) {
  for (size_t i = 0; i < n; i++)
    if (node_is_free_in(ranges[i], expression)) return true;
  return false;
}

/* Substituting. */

const node *law_replace(laws *l, const node *sink, const node *from, const node *to) {
  map with = {0};
  map_set(ir_arena(l->g), &with, from, (void *)to);
  return subst(l->g, sink, &with);
}

const node **law_copy_ranges(ir *g, const node *const ranges[], size_t n, map *copies) {
  const node **fresh = arena_alloc(ir_arena(g), (n + 1) * sizeof *fresh);
  for (size_t i = 0; i < n; i++) {
    if (!map_has(copies, ranges[i])) {
      const node *extent = subst_ranges(g, range_extent(ranges[i]), copies);
      map_set(ir_arena(g), copies, ranges[i], (void *)range_clone(g, ranges[i], extent));
    }
    fresh[i] = map_get(copies, ranges[i]);
  }
  return fresh;
}

const node *law_rename_state(ir *g, const node *source, const node *from, const node *to) {
  node_list order = topo_sort(ir_arena(g), &source, 1, NULL, NULL);
  map with = {0};
  for (size_t i = 0; i < order.n; i++) {
    const node *s = order.at[i];
    if (s->op == OP_STATE && s->src[0] == from)
      map_set(ir_arena(g), &with, s, (void *)fold_state_make(g, (dtype)s->dtype, to, s->ints[0]));
  }
  return subst(g, source, &with);
}

/** True for reads of an array, or of a state of the FOLD with that innermost range. */
static bool is_element_of(const node *n, const node *array) {
  if (n->op != OP_INDEX) return false;
  return n->src[0] == array || (n->src[0]->op == OP_STATE && n->src[0]->src[0] == array);
}

const node *law_replace_coordinate(ir *g, const node *x, const map *with) {
  node_list order = topo_sort(ir_arena(g), &x, 1, NULL, NULL);
  for (size_t i = 0; i < order.n; i++)
    if (map_has(with, order.at[i])) return subst(g, x, with);
  return x;
}

const node *law_add_axes(ir *g, const node *root, const node *array, const node *replacement,
                         size_t n, const node *const first[]) {
  arena *a = ir_arena(g);
  node_list order = topo_sort(a, &root, 1, NULL, NULL);
  map with = {0};
  for (size_t i = 0; i < order.n; i++) {
    const node *x = order.at[i];
    if (!is_element_of(x, array)) continue;
    size_t rank = n + x->n_src - 1;
    const node **coords = arena_alloc(a, rank * sizeof *coords);
    for (size_t k = 0; k < rank; k++)
      coords[k] = k < n ? first[k] : law_replace_coordinate(g, x->src[1 + k - n], &with);
    const node *from = replacement ? replacement : x->src[0];
    map_set(a, &with, x, (void *)index_make(g, (dtype)x->dtype, from, x->ints[0], rank, coords));
  }
  return subst(g, root, &with);
}
