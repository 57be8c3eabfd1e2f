/* Splits the index sets of copy loops: a loop that only copies, under comparisons of its index with
   bounds, becomes three: below the lower bound, between the bounds, and from the upper bound on. In
   each the comparisons are constants. Outer loops are split first, so that known indices are
   constants in inner ones. */
#include "codegen/codegen.h"
#include "codegen/lower/split_loops.h"
#include "ir/core/affine.h"
#include "ir/core/binder.h"
#include "ir/core/topo_sort.h"
#include "ir/index/comparison_bound.h"
#include "ir/index/index_arithmetic.h"
#include "ir/transform/substitute.h"
#include "target/machine.h"

#include "base/map.h"

/** The comparisons of a loop's index with bounds: index ≥ low, index < high. */
typedef struct bounds_checks {
  const node *is_from_low, *is_below_high; /* NULL: none */
  const node *low, *high;
} bounds_checks;

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

/** True if a node is invariant in a loop. */
static bool is_invariant(const node *n, const node *end) {
  for (uint32_t i = 0; i < n->free->n; i++)
    if (!node_is_free_in(n->free->at[i], end)) return false;
  return true;
}

/** Adds a comparison a < b of the loop's index, with stride 1, with an invariant bound; false:
   another form, or a second bound of the same side. */
static bool add_check(ir *g, const node *compare, const node *end, bounds_checks *e) {
  bool is_upper;
  const node *bound = comparison_bound(g, compare, end->src[0], &is_upper);
  if (!bound || !is_invariant(bound, end)) return false;
  const node **known = is_upper ? &e->is_below_high : &e->is_from_low;
  if (*known && *known != compare) return false;
  *known = compare;
  *(is_upper ? &e->high : &e->low) = bound;
  return true;
}

/** False for loops that run before, whose nodes are not searched. */
static bool is_inside(const node *n, void *end) { return n->op != OP_END || !is_invariant(n, end); }

/** True if a loop with these nodes only copies and has bounds checks, which are set. An invariant
   inner loop would be one node in all parts, so there may be none. */
static bool find_checks(ir *g, const node *end, const node_list *nodes, bounds_checks *e) {
  const node *r = end->src[0];
  *e = (bounds_checks){0};
  if (range_kind_of(r) != KIND_LOOP || range_likely_trips(r) < MACHINE_SPLIT_COPY_LOOP_LEAST)
    return false;
  for (size_t i = 0; i < nodes->n; i++) {
    const node *n = nodes->at[i];
    bool compares = n->op == OP_LT && n->src[0]->dtype == DT_INDEX && node_is_free_in(r, n);
    if (is_invariant(n, end)) {
      if (n->op == OP_END) return false;
      continue;
    }
    if (!may_be_copied(n) || (compares && !add_check(g, n, end, e))) return false;
  }
  return e->is_from_low || e->is_below_high;
}

static void set_known(ir *g, map *known, const node *compare, bool is_true) {
  if (compare) map_set(ir_arena(g), known, compare, (void *)ir_const_bits(g, DT_BOOL, is_true));
}

/** True if all loops in a part depend on its index. Where the comparisons are known, a store may be
    the same at each index, as one to an empty array is, and a loop around it would be in all parts.
 */
static bool depends_on_index(ir *g, const node *part) {
  node_list nodes = topo_sort(ir_arena(g), part->src + 1, part->n_src - 1, NULL, NULL);
  for (size_t i = 0; i < nodes.n; i++)
    if (nodes.at[i]->op == OP_END && !node_is_free_in(part->src[0], nodes.at[i])) return false;
  return true;
}

/** False, with no parts: the loop stays whole. */
static bool add_parts(ir *g, const node *end, const bounds_checks *e, node_list *parts) {
  const node *zero = ix_const(g, 0), *n = range_extent(end->src[0]);
  const node *low = e->low ? ix_min(g, ix_max(g, e->low, zero), n) : zero;
  const node *high = e->high ? ix_min(g, ix_max(g, e->high, low), n) : n;
  map below = {0}, inside = {0}, above = {0};
  set_known(g, &below, e->is_from_low, false);
  set_known(g, &inside, e->is_from_low, true);
  set_known(g, &inside, e->is_below_high, true);
  set_known(g, &above, e->is_from_low, true);
  set_known(g, &above, e->is_below_high, false);
  const node *made[] = {split_loops_part(g, end, zero, low, &below),
                        split_loops_part(g, end, low, high, &inside),
                        split_loops_part(g, end, high, n, &above)};
  for (size_t i = 0; i < sizeof made / sizeof *made; i++)
    if (made[i] && !depends_on_index(g, made[i])) return false;
  for (size_t i = 0; i < sizeof made / sizeof *made; i++)
    if (made[i]) vec_push(ir_arena(g), parts, made[i]);
  return true;
}

typedef struct splitting {
  ir *g;
  map unsplit; /* loops that stay as they are */
  map checks;  /* loop to split → bounds_checks */
  int budget;  /* loops that may still be split */
} splitting;

/** Finds loops to split, none of which is inside of another; false: there are none. */
static bool find_loops(splitting *p, const node *sink) {
  arena *a = ir_arena(p->g);
  node_list order = topo_sort(a, &sink, 1, NULL, NULL);
  map inside = {0};
  p->checks = (map){0};
  for (size_t i = order.n; i-- > 0 && p->budget > 0;) {
    const node *end = order.at[i];
    bounds_checks e;
    if (end->op != OP_END || map_has(&p->unsplit, end) || map_has(&inside, end)) continue;
    node_list nodes = topo_sort(a, end->src + 1, end->n_src - 1, is_inside, (void *)end);
    if (!find_checks(p->g, end, &nodes, &e)) {
      map_set(a, &p->unsplit, end, NULL);
      continue;
    }
    for (size_t k = 0; k < nodes.n; k++)
      if (nodes.at[k]->op == OP_END) map_set(a, &inside, nodes.at[k], NULL);
    map_set(a, &p->checks, end, arena_copy(a, &e, sizeof e));
    p->budget--;
  }
  return p->checks.n > 0;
}

static bool split_loop(void *user, const node *end, const node *now, node_list *parts) {
  splitting *p = user;
  const bounds_checks *e = map_get(&p->checks, end);
  if (!e) return false;
  bool is_split = add_parts(p->g, now, e, parts);
  if (!is_split) map_set(ir_arena(p->g), &p->unsplit, now, NULL);
  return is_split;
}

const node *codegen_split_copy_loops(ir *g, const node *sink) {
  splitting p = {.g = g, .budget = MACHINE_SPLIT_COPY_LOOPS};
  while (find_loops(&p, sink)) sink = split_loops_replace(g, sink, split_loop, &p);
  return sink;
}
