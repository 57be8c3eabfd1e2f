/* Edges: where loops only copy, and what they copy depends on whether an index has reached a bound,
   the loop becomes three: before the lower bound, between the bounds, and from the upper one on. In
   each of them the answer is known. */
#include "codegen/codegen.h"
#include "codegen/loop_parts.h"
#include "ir/binder.h"
#include "ir/subst.h"
#include "ir/topo.h"

#include "base/map.h"

enum { LEAST = 4, MOST_LOOPS = 256 };

/** The comparisons of a loop's index with bounds: index ≥ low, index < high. */
typedef struct edges {
  const node *is_from_low, *is_below_high; /* NULL: none */
  const node *low, *high;
} edges;

static bool may_be_copied(const node *n) {
  switch (n->op) {
  case OP_LOAD:
  case OP_STORE:
  case OP_END:
  case OP_GROUP:
  case OP_RANGE: return true;
  default: return op_is_elementwise((op)n->op) || n->dtype == DT_INDEX;
  }
}

/** Whether something is the same in all iterations of a loop. */
static bool is_known_outside(const node *n, const node *end) {
  for (uint32_t i = 0; i < n->free->n; i++)
    if (!node_is_free_in(n->free->at[i], end)) return false;
  return true;
}

/** Adds a comparison a < b; false: it is none of an index that takes one step at a time with a
   bound that stays, or there is one like it with another bound. */
static bool add_edge(ir *g, const node *compare, const node *end, edges *e) {
  const node *r = end->src[0];
  const node *gap = ix_gap(g, compare->src[0], compare->src[1]); /* > 0 */
  int64_t step = gap ? ix_coefficient(gap, r) : 0;
  const node *rest = gap ? ix_sub(g, gap, ix_scale(g, r, step)) : NULL;
  if (!rest || !is_known_outside(rest, end) || (step != 1 && step != -1)) return false;
  if (step < 0) {
    if (e->is_below_high && e->is_below_high != compare) return false;
    e->is_below_high = compare;
    e->high = rest;
  } else {
    if (e->is_from_low && e->is_from_low != compare) return false;
    e->is_from_low = compare;
    e->low = ix_sub(g, ix_const(g, 1), rest);
  }
  return true;
}

/** A loop that runs before is not looked into. */
static bool is_inside(const node *n, void *end) {
  return n->op != OP_END || !is_known_outside(n, end);
}

/** Whether a loop with these nodes in it only copies, and has edges. A loop in it that is the same
    in all iterations would be one for all parts. */
static bool find_edges(ir *g, const node *end, const node_list *nodes, edges *e) {
  const node *r = end->src[0];
  *e = (edges){0};
  if (range_kind_of(r) != KIND_LOOP || range_extent(r)->hi < LEAST) return false;
  for (size_t i = 0; i < nodes->n; i++) {
    const node *n = nodes->at[i];
    bool compares = n->op == OP_LT && n->src[0]->dtype == DT_INDEX && node_is_free_in(r, n);
    if (is_known_outside(n, end)) {
      if (n->op == OP_END) return false;
      continue;
    }
    if (!may_be_copied(n) || (compares && !add_edge(g, n, end, e))) return false;
  }
  return e->is_from_low || e->is_below_high;
}

static void know(ir *g, map *known, const node *compare, bool is_true) {
  if (compare) map_set(ir_arena(g), known, compare, (void *)ir_const_bits(g, DT_BOOL, is_true));
}

static void make_parts(ir *g, const node *end, const edges *e, node_list *parts) {
  const node *zero = ix_const(g, 0), *n = range_extent(end->src[0]);
  const node *low = e->low ? ix_min(g, ix_max(g, e->low, zero), n) : zero;
  const node *high = e->high ? ix_min(g, ix_max(g, e->high, low), n) : n;
  map before = {0}, inside = {0}, behind = {0};
  know(g, &before, e->is_from_low, false);
  know(g, &inside, e->is_from_low, true);
  know(g, &inside, e->is_below_high, true);
  know(g, &behind, e->is_from_low, true);
  know(g, &behind, e->is_below_high, false);
  const node *made[] = {loop_part(g, end, zero, low, &before),
                        loop_part(g, end, low, high, &inside), loop_part(g, end, high, n, &behind)};
  for (size_t i = 0; i < sizeof made / sizeof *made; i++)
    if (made[i]) vec_push(ir_arena(g), parts, made[i]);
}

typedef struct parting {
  ir *g;
  map whole; /* loops that stay as they are */
  map parts; /* loops that become parts → edges */
  int left;  /* loops that may still become parts */
} parting;

/** Finds loops that become parts, none of which is inside of another; whether there are any. */
static bool find_parts(parting *p, const node *sink) {
  arena *a = ir_arena(p->g);
  node_list order = topo_sort(a, &sink, 1, NULL, NULL);
  map inside = {0};
  p->parts = (map){0};
  for (size_t i = order.n; i-- > 0 && p->left > 0;) {
    const node *end = order.at[i];
    edges e;
    if (end->op != OP_END || map_has(&p->whole, end) || map_has(&inside, end)) continue;
    node_list nodes = topo_sort(a, end->src + 1, end->n_src - 1, is_inside, (void *)end);
    if (!find_edges(p->g, end, &nodes, &e)) {
      map_set(a, &p->whole, end, NULL);
      continue;
    }
    for (size_t k = 0; k < nodes.n; k++)
      if (nodes.at[k]->op == OP_END) map_set(a, &inside, nodes.at[k], NULL);
    map_set(a, &p->parts, end, arena_copy(a, &e, sizeof e));
    p->left--;
  }
  return p->parts.n > 0;
}

static bool split(void *parting_, const node *end, const node *now, node_list *parts) {
  parting *p = parting_;
  const edges *e = map_get(&p->parts, end);
  if (e) make_parts(p->g, now, e, parts);
  return e;
}

/** Outer loops first: what is known of their indices is left out of the inner ones. */
const node *codegen_edges(ir *g, const node *sink) {
  parting p = {.g = g, .left = MOST_LOOPS};
  while (find_parts(&p, sink)) sink = loop_replace(g, sink, split, &p);
  return sink;
}
