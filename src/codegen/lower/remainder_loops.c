/* Splits remainder loops off vectorised ones. A vector that the law SPLIT made may be cut short by
   the end of its range; the loop of such vectors is split into one of whole vectors and a scalar
   one for the remainder. */
#include "codegen/lower/remainder_loops.h"
#include "codegen/lower/split_loops.h"
#include "ir/core/binder.h"
#include "ir/index/index_arithmetic.h"
#include "ir/transform/substitute.h"

static bool is_cut_short(const node *end) {
  const node *range = end->op == OP_END ? end->src[0] : NULL;
  return range && range_kind_of(range) == KIND_VECTOR && !node_is_const(range_extent(range));
}

/** False for loops that run before a loop, whose nodes are not searched. */
static bool is_inside(const node *n, void *loop) {
  return n == loop || n->op != OP_END || !range_set_is_subset(n->free, ((const node *)loop)->free);
}

/** True if a loop has arrays of its own, which both parts would share. */
static bool has_arrays(ir *g, const node *loop) {
  node_list order = topo_sort(ir_arena(g), &loop, 1, is_inside, (void *)loop);
  for (size_t i = 0; i < order.n; i++)
    if (order.at[i]->op == OP_ALLOC && !range_set_is_subset(order.at[i]->free, loop->free))
      return true;
  return false;
}

/** Number of iterations of a loop, from the first one on, whose vector has all `*lanes`; NULL:
 * unknown.
 */
static const node *count_whole_vectors(ir *g, const node *loop, const node *vector,
                                       int64_t *lanes) {
  const node *extent = range_extent(vector->src[0]), *r = loop->src[0];
  size_t number = extent->op == OP_MIN && node_is_const(extent->src[0]) ? 0 : 1;
  if (extent->op != OP_MIN || !node_is_const(extent->src[number])) return NULL;
  *lanes = node_int(extent->src[number]);
  const node *remaining = extent->src[1 - number]; /* elements from the vector on */
  if (range_kind_of(r) != KIND_LOOP || ix_coefficient(remaining, r) != -*lanes) return NULL;
  const node *all = ix_add(g, remaining, ix_scale(g, r, *lanes)); /* elements */
  if (!range_set_is_subset(all->free, loop->free)) return NULL;
  const node *n = ix_max(g, ix_floordiv(g, all, ix_const(g, *lanes)), ix_const(g, 0));
  return ix_min(g, n, range_extent(r));
}

static void set_range(ir *g, map *known, const node *range, const node *extent, range_kind kind) {
  map_set(ir_arena(g), known, range, (void *)range_with(g, range, extent, kind));
}

/** Adds the cut-short vectors directly inside of a loop, and inside of copies there. */
static void find_vectors(arena *a, const node *loop, node_list *found) {
  for (uint32_t i = 1; i < loop->n_src; i++) {
    const node *inner = loop->src[i];
    if (is_cut_short(inner)) vec_push(a, found, inner);
    if (inner->op == OP_END && range_is_unrolled(inner->src[0])) find_vectors(a, inner, found);
  }
}

/** Splits a loop of cut-short vectors in two; false: it stays one. */
static bool split_remainder(void *ir_, const node *end, const node *loop, node_list *parts) {
  ir *g = ir_;
  map whole = {0}, remainder = {0};
  node_list vectors = {0};
  const node *point = NULL;
  (void)end;
  find_vectors(ir_arena(g), loop, &vectors);
  for (size_t i = 0; i < vectors.n; i++) {
    const node *vector = vectors.at[i];
    int64_t lanes;
    const node *n = count_whole_vectors(g, loop, vector, &lanes);
    if (!n || (point && n != point)) continue;
    point = n;
    set_range(g, &whole, vector->src[0], ix_const(g, lanes), KIND_VECTOR);
    set_range(g, &remainder, vector->src[0], range_extent(vector->src[0]), KIND_LOOP);
  }
  if (!point || has_arrays(g, loop)) return false;
  const node *last = range_extent(loop->src[0]);
  const node *made[] = {split_loops_part(g, loop, ix_const(g, 0), point, &whole),
                        split_loops_part(g, loop, point, last, &remainder)};
  for (size_t i = 0; i < 2; i++)
    if (made[i]) vec_push(ir_arena(g), parts, made[i]);
  return true;
}

const node *remainder_loops_separate(ir *g, const node *sink) {
  sink = split_loops_replace(g, sink, split_remainder, g);
  node_list order = topo_sort(ir_arena(g), &sink, 1, NULL, NULL);
  map loops = {0};
  for (size_t i = 0; i < order.n; i++)
    if (is_cut_short(order.at[i]))
      set_range(g, &loops, order.at[i]->src[0], range_extent(order.at[i]->src[0]), KIND_LOOP);
  return loops.n ? subst(g, sink, &loops) : sink;
}
