/* Tails: a vector that SPLIT made may be cut short by the end of its range. A loop of such vectors
   becomes two, of those that are whole, and of what is left, element by element. */
#include "codegen/tails.h"
#include "codegen/loop_parts.h"
#include "ir/binder.h"
#include "ir/index.h"
#include "ir/subst.h"

static bool is_cut_short(const node *end) {
  const node *range = end->op == OP_END ? end->src[0] : NULL;
  return range && range_kind_of(range) == KIND_VECTOR && !node_is_const(range_extent(range));
}

/** Whether a loop has arrays of its own, which parts of it would share. */
static bool has_arrays(ir *g, const node *loop) {
  node_list order = topo_sort(ir_arena(g), &loop, 1, NULL, NULL);
  for (size_t i = 0; i < order.n; i++)
    if (order.at[i]->op == OP_ALLOC && !range_set_within(order.at[i]->free, loop->free))
      return true;
  return false;
}

/** How many iterations of a loop, from the first one on, have vectors of `*lanes` that are whole;
    NULL: they are not those from the first one on. */
static const node *whole_vectors(ir *g, const node *loop, const node *vector, int64_t *lanes) {
  const node *extent = range_extent(vector->src[0]), *r = loop->src[0];
  size_t number = extent->op == OP_MIN && node_is_const(extent->src[0]) ? 0 : 1;
  if (extent->op != OP_MIN || !node_is_const(extent->src[number])) return NULL;
  *lanes = node_int(extent->src[number]);
  const node *left = extent->src[1 - number];
  if (range_kind_of(r) != KIND_LOOP || ix_coefficient(left, r) != -*lanes) return NULL;
  const node *all = ix_add(g, left, ix_scale(g, r, *lanes)); /* elements */
  if (!range_set_within(all->free, loop->free)) return NULL;
  const node *n = ix_max(g, ix_floordiv(g, all, ix_const(g, *lanes)), ix_const(g, 0));
  return ix_min(g, n, range_extent(r));
}

static void know(ir *g, map *known, const node *range, const node *extent, range_kind kind) {
  map_set(ir_arena(g), known, range, (void *)range_with(g, range, extent, kind));
}

/** Adds the vectors just inside of a loop, and inside of copies there. */
static void find_vectors(arena *a, const node *loop, node_list *found) {
  for (uint32_t i = 1; i < loop->n_src; i++) {
    const node *inner = loop->src[i];
    if (is_cut_short(inner)) vec_push(a, found, inner);
    if (inner->op == OP_END && range_is_copies(inner->src[0])) find_vectors(a, inner, found);
  }
}

/** The two loops that one with such vectors becomes. */
static bool split(void *ir_, const node *end, const node *loop, node_list *parts) {
  ir *g = ir_;
  map whole = {0}, left = {0};
  node_list vectors = {0};
  const node *point = NULL;
  (void)end;
  find_vectors(ir_arena(g), loop, &vectors);
  for (size_t i = 0; i < vectors.n; i++) {
    const node *vector = vectors.at[i];
    int64_t lanes;
    const node *n = whole_vectors(g, loop, vector, &lanes);
    if (!n || (point && n != point)) continue;
    point = n;
    know(g, &whole, vector->src[0], ix_const(g, lanes), KIND_VECTOR);
    know(g, &left, vector->src[0], range_extent(vector->src[0]), KIND_LOOP);
  }
  if (!point || has_arrays(g, loop)) return false;
  const node *last = range_extent(loop->src[0]);
  const node *made[] = {loop_part(g, loop, ix_const(g, 0), point, &whole),
                        loop_part(g, loop, point, last, &left)};
  for (size_t i = 0; i < 2; i++)
    if (made[i]) vec_push(ir_arena(g), parts, made[i]);
  return true;
}

const node *tails_apart(ir *g, const node *sink) {
  sink = loop_replace(g, sink, split, g);
  node_list order = topo_sort(ir_arena(g), &sink, 1, NULL, NULL);
  map loops = {0};
  for (size_t i = 0; i < order.n; i++)
    if (is_cut_short(order.at[i]))
      know(g, &loops, order.at[i]->src[0], range_extent(order.at[i]->src[0]), KIND_LOOP);
  return loops.n ? subst(g, sink, &loops) : sink;
}
