/* Lists the options for a value inside a fusion group that reads it, with their costs by the cost
   model: recomputed at each point where it is read (inlined), or built once as an array in a loop
   nest further out, for each depth. */
#include "schedule/fuse/search_state.h"

#include "ir/core/affine.h"
#include "ir/core/binder.h"
#include "target/machine.h"

static double count_workers(const grouping *s, const group *g, range_mask open) {
  double n = nests_trip_count(&g->nests, open & g->root->own);
  return n < 1 ? 1 : n < s->m->cores ? n : s->m->cores;
}

/** ns for computing a value `times` as often as it has elements, on `workers` cores, where each
   element takes `slow` times as long as in vectors, beyond computing it once on all cores. */
static double compute_cost(const grouping *s, const value *v, double times, double workers,
                           double slow) {
  const value_facts *f = v->facts;
  double repeated = times > 1 ? (times - 1) * f->cost.again * slow : 0;
  return repeated + f->cost.work * (slow / workers - 1 / s->m->cores);
}

/** The slowdown of a contraction computed in the loops `open`. Register tiles over ranges that
   arrays are built over reuse its loads; one element at a time, inside another reduction, it loads
   all of them again. The loop of a scan goes over blocks, as those of arrays do. */
static double inlined_slowdown(const grouping *s, const group *g, const value *v, range_mask open) {
  double slow = 1;
  for (range_mask rest = open & ~g->root->own; rest && value_is_contraction(v); rest &= rest - 1) {
    const nest *n = g->nests.nest_of[__builtin_ctzll(rest)];
    double here = n->kind == NEST_STAGE || n->arrays ? MACHINE_ARRAY_TILE_SLOWDOWN : s->m->tile;
    if (here > slow) slow = here;
  }
  return slow;
}

/** The slowdown of a contraction built as an array without the axes `shared`. A tile has two axes,
   one of which may be a block of a shared axis's indices. */
static double array_slowdown(const grouping *s, const value *v, uint64_t shared) {
  size_t axes = 0, blocks = 0;
  for (size_t k = 0; k < v->rank; k++) {
    bool is_long = ix_likely(v->dims[k]) >= MACHINE_TILE_SIDE_LEAST;
    axes += !(shared >> k & 1) && ix_likely(v->dims[k]) > 1;
    blocks += shared >> k & 1 && is_long;
  }
  return !value_is_contraction(v)    ? 1
         : axes && axes + blocks > 1 ? MACHINE_ARRAY_TILE_SLOWDOWN
                                     : s->m->tile / MACHINE_ONE_AXIS_TILE_GAIN;
}

/** The numbers of the ranges `open`, from inner to outer. Returns how many. */
static size_t list_open_ranges(const nests *s, range_mask open, size_t path[MOST_RANGES]) {
  size_t n = 0;
  while (open) {
    const nest *deepest = nests_deepest(s, open);
    for (size_t i = deepest->n_order; i-- > 0;) {
      range_mask inner = deepest->chain[i] & ~(i ? deepest->chain[i - 1] : 0);
      for (range_mask rest = inner & open; rest; rest &= rest - 1)
        path[n++] = (size_t)__builtin_ctzll(rest);
    }
    open &= ~deepest->own;
  }
  return n;
}

/** ns of reading operands of reductions again: an operand that does not depend on a loop and does
   not stay in cache inside of it is read once an iteration, or once a block of iterations that
   share it. */
static double reread_cost(const grouping *s, const group *g, const value *v,
                          const node *const coords[], range_mask open, double scratch) {
  const operands *o = &v->facts->operands.behind;
  size_t path[MOST_RANGES], n = o->n ? list_open_ranges(&g->nests, open, path) : 0;
  double cost = 0, blocks = s->m->cache[1] / (scratch > 1 ? scratch : 1);
  for (size_t i = 0; i < o->n; i++) {
    range_mask needs = group_ranges_of_coords(g, v, coords, o->at[i].coords) & open;
    double inside = o->at[i].bytes / nests_trip_count(&g->nests, needs), again = 1, block = blocks;
    for (size_t k = 0; k < n; k++) {
      double size = g->nests.size[path[k]];
      if (needs >> path[k] & 1) {
        inside *= size;
      } else if (inside > s->m->cache[1]) {
        double shared = block < 1 ? 1 : block < size ? block : size;
        again *= size / shared;
        block /= shared;
      }
    }
    cost += o->at[i].bytes * cost_per_shared_byte(s->m, o->at[i].bytes) * (again - 1);
  }
  return cost;
}

static void add_option(options *o, decision how, uint64_t shared, double cost) {
  if (o->n < FUSION_MOST_OPTIONS) o->at[o->n++] = (option){cost, how, shared};
}

/** The resources for computing a value at all its points instead of loading it there. */
static demand inlined_demand(const grouping *s, const use *u) {
  const value *v = u->v;
  demand d = {.nests = value_is_reduction(v) ? u->points.n : 0, .points = u->points.n};
  d.ranges = d.nests * v->reduction.n;
  for (size_t i = 0; i < u->points.n; i++) {
    const point *p = &u->points.at[i];
    code now = code_add(v->facts->code.own, v->facts->code.reads[p->code.each > 0]);
    d.code = code_add(d.code, code_subtract(now, p->code));
    d.code.once += inline_tile_code(s, u->g, v, p);
    d.whole = code_add(d.whole, code_subtract(v->facts->code.whole, p->code));
  }
  return d;
}

/** Number of elements computed at a point; along an axis that the point's range exceeds, at most
   the axis's size. */
static double count_elements_at(const group *g, const value *v, const point *p) {
  double times = nests_trip_count(&g->nests, nests_enclosing(&g->nests, p->free));
  for (size_t k = 0; k < v->rank; k++) {
    const node *x = p->index->src[1 + k];
    const node *range = ix_terms(x) == 1 ? ix_atom(x, 0) : NULL;
    if (!range || range->op != OP_RANGE || !map_has(&g->nests.number, range)) continue;
    double all = ix_likely(range_extent(range)), own = ix_likely(v->dims[k]);
    if (own < all) times *= own / all;
  }
  return times;
}

static void add_inlined_option(grouping *s, const use *u, options *o) {
  const value *v = u->v;
  demand more = inlined_demand(s, u);
  double times = 0, fewest = s->m->cores, slowest = 1, cost = 0;
  if (!group_has_room(s, u->g, v, &more)) {
    o->refusal = "the kernel of a reader would be too large";
    return;
  }
  if (!group_may_read_all(s, u)) {
    o->refusal = "an operand is overwritten before a reader runs";
    return;
  }
  for (size_t i = 0; i < u->points.n; i++) {
    const point *p = &u->points.at[i];
    range_mask open = nests_enclosing(&u->g->nests, p->free);
    double parallel = count_workers(s, u->g, open);
    times += count_elements_at(u->g, v, p);
    double slow = inlined_slowdown(s, u->g, v, open);
    if (parallel < fewest) fewest = parallel;
    if (slow > slowest) slowest = slow;
    cost += reread_cost(s, u->g, v, p->index->src + 1, open, 1);
  }
  times /= v->facts->size.points > 1 ? v->facts->size.points : 1;
  cost += compute_cost(s, v, times, fewest, slowest);
  add_option(o, FUSION_INLINED, 0, cost);
}

/** The axes along which all points have the same index. */
static uint64_t shared_axes(const use *u) {
  uint64_t shared = 0;
  for (size_t k = 0; k < u->v->rank; k++) {
    bool same = true;
    for (size_t i = 1; i < u->points.n && same; i++)
      same = u->points.at[i].index->src[1 + k] == u->points.at[0].index->src[1 + k];
    if (same) shared |= UINT64_C(1) << k;
  }
  return shared;
}

/** Loop depth at which an index varies: by the depth of its nest, then by the trip count there. */
typedef struct innerness {
  unsigned depth; /* 0: the index does not vary */
  double open;
} innerness;

static innerness innerness_of(const group *g, const node *index) {
  range_mask free = nests_free_ranges(&g->nests, index);
  if (!free) return (innerness){0};
  return (innerness){nests_deepest(&g->nests, free)->depth,
                     nests_trip_count(&g->nests, nests_enclosing(&g->nests, free))};
}

static bool is_further_in(innerness a, innerness b) {
  return a.depth != b.depth ? a.depth > b.depth : a.open > b.open;
}

/** Removes the axes whose indices vary innermost; false: no index varies. */
static bool drop_innermost(const use *u, uint64_t *shared) {
  const node *const *coords = u->points.at[0].index->src + 1;
  innerness most = {0};
  uint64_t dropped = 0;
  for (size_t k = 0; k < u->v->rank; k++) {
    innerness at = innerness_of(u->g, coords[k]);
    if (!(*shared >> k & 1) || !at.depth || is_further_in(most, at)) continue;
    if (is_further_in(at, most)) dropped = 0;
    dropped |= UINT64_C(1) << k;
    most = at;
  }
  *shared &= ~dropped;
  return dropped != 0;
}

double fusion_stage_bytes(const value *v, uint64_t shared) {
  double bytes = (double)dtype_bytes((dtype)v->tensor->dtype);
  for (size_t k = 0; k < v->rank; k++) {
    if (shared >> k & 1) continue;
    if (!node_is_const(v->dims[k])) return 0;
    bytes *= (double)node_int(v->dims[k]);
  }
  return bytes;
}

static void add_placed_option(grouping *s, const use *u, uint64_t shared, options *o) {
  const value *v = u->v;
  const node *const *coords = u->points.at[0].index->src + 1;
  range_mask open = nests_enclosing(&u->g->nests, group_ranges_of_coords(u->g, v, coords, shared));
  double times = nests_trip_count(&u->g->nests, open), parallel = count_workers(s, u->g, open);
  double bytes = fusion_stage_bytes(v, shared),
         elements = bytes / (double)dtype_bytes((dtype)v->tensor->dtype);
  bool all = shared == (UINT64_C(1) << v->rank) - 1;
  if ((all && !v->local.is_array) || !bytes) return;
  if (bytes + u->g->used.scratch + u->g->used.reserved.scratch > s->m->scratch) return;
  double share = times * elements / (v->facts->size.points > 1 ? v->facts->size.points : 1);
  double cost = compute_cost(s, v, share, parallel, array_slowdown(s, v, shared));
  cost += bytes * (double)(1 + u->points.n) * times * cost_per_private_byte(s->m, bytes) / parallel;
  cost += reread_cost(s, u->g, v, coords, open, bytes);
  if (all && o->n && o->at[0].how == FUSION_INLINED)
    cost = o->at[0].cost - 1; /* the same cost as where it is read: as an array, preferred */
  add_option(o, PLACED, shared, cost);
}

static void add_placed_options(grouping *s, const use *u, options *o) {
  const value *v = u->v;
  demand more = {
      .nests = 1u + value_is_reduction(v),
      .ranges = v->rank + v->reduction.n,
      .code = code_add(v->facts->code.own, v->facts->code.reads[u->points.at[0].code.each > 0]),
      .whole = v->facts->code.whole,
      .points = 1};
  more.code.once += v->facts->tiles.own;
  if (v->rank > 63 || !group_has_room(s, u->g, v, &more)) return;
  if (!group_may_read_anywhere(s, u->g, v)) return;
  uint64_t shared = shared_axes(u);
  do add_placed_option(s, u, shared, o);
  while (drop_innermost(u, &shared));
}

/** The options of a scan and of values inside of one: where it is read, or as the array it wants.
 */
static options scan_options(const use *u) {
  options o = {.n = 0};
  const value *v = u->v;
  uint64_t all = (UINT64_C(1) << v->rank) - 1, shared = all & ~v->local.axes;
  bool may_place =
      v->is_in_scan && !(shared & ~shared_axes(u)) && fusion_stage_bytes(v, shared) > 0;
  add_option(&o, FUSION_INLINED, 0, 0);
  if (may_place) add_option(&o, PLACED, shared, v->local.is_array ? -1 : 1);
  return o;
}

options fusion_options_of(grouping *s, const use *u) {
  if (value_is_never_stored(u->v)) return scan_options(u);
  options o = {.n = 0};
  o.refusal = u->is_whole                     ? "a step reads it as a whole array"
              : u->v->memory.is_never_inlined ? "its reader only loads values"
                                              : NULL;
  if (o.refusal) return o;
  add_inlined_option(s, u, &o);
  add_placed_options(s, u, &o);
  return o;
}
