/* What can be done with a value inside a group, and what it costs. */
#include "schedule/grouping.h"

#include "ir/binder.h"

static const double ARRAY_TILE = 1.05; /* so many times as long as in an output */
enum { BLOCK = 8 };                    /* indices that a tile has at least */

static double workers(const grouping *s, const group *g, range_mask open) {
  double n = nests_times(&g->nests, open & g->root->own);
  return n < 1 ? 1 : n < s->m->cores ? n : s->m->cores;
}

/** Computing a value `times` as often as it has elements, on so many cores at once; each takes so
    many times as long for an element as in vectors. */
static double compute_price(const grouping *s, const value *v, double times, double workers,
                            double slow) {
  const value_facts *f = v->facts;
  double repeated = times > 1 ? (times - 1) * f->again * slow : 0;
  return repeated + f->work * (slow / workers - 1 / s->m->cores);
}

static bool contracts(const value *v) { return value_is_reduction(v) && v->facts->factors.n > 1; }

/** A contraction keeps what it loads in tiles of the ranges that arrays are made over: one element
   at a time, in another reduction, it loads all of it again. A scan's loop is one over blocks. */
static double slowness(const grouping *s, const group *g, const value *v, range_mask open) {
  double slow = 1;
  for (range_mask rest = open & ~g->root->own; rest && contracts(v); rest &= rest - 1) {
    const nest *n = g->nests.nest_of[__builtin_ctzll(rest)];
    double here = n->kind == NEST_STAGE || n->arrays ? ARRAY_TILE : s->m->tile;
    if (here > slow) slow = here;
  }
  return slow;
}

/** The same in an array for some of its axes: tiles have two of them, of which one may be a block
   of a shared one's indices. */
static double slowness_of_array(const grouping *s, const value *v, uint64_t shared) {
  size_t axes = 0, blocks = 0;
  for (size_t k = 0; k < v->rank; k++) {
    bool is_long = price_size(v->dims[k]) >= BLOCK;
    axes += !(shared >> k & 1) && v->dims[k]->hi > 1;
    blocks += shared >> k & 1 && is_long;
  }
  return !contracts(v) ? 1 : axes && axes + blocks > 1 ? ARRAY_TILE : s->m->tile / 3;
}

/** The loops around something, from inner to outer. */
static size_t path_of(const nests *s, range_mask open, size_t path[MOST_RANGES]) {
  size_t n = 0;
  while (open) {
    const nest *deepest = nests_deepest(s, open);
    for (size_t i = deepest->n_chain; i-- > 0;) {
      range_mask inner = deepest->chain[i] & ~(i ? deepest->chain[i - 1] : 0);
      for (range_mask rest = inner & open; rest; rest &= rest - 1)
        path[n++] = (size_t)__builtin_ctzll(rest);
    }
    open &= ~deepest->own;
  }
  return n;
}

/** An operand that does not depend on a loop and does not stay in a cache inside of it is read
    again for each iteration, less what a block of iterations shares. */
static double stream_price(const grouping *s, const group *g, const value *v,
                           const node *const coords[], range_mask open, double scratch) {
  const operands *o = &v->facts->reduced;
  size_t path[MOST_RANGES], n = o->n ? path_of(&g->nests, open, path) : 0;
  double price = 0, blocks = s->m->cache[1] / (scratch > 1 ? scratch : 1);
  for (size_t i = 0; i < o->n; i++) {
    range_mask needs = dependence(g, v, coords, o->at[i].coords) & open;
    double inside = o->at[i].bytes / nests_times(&g->nests, needs), again = 1, block = blocks;
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
    price += o->at[i].bytes * price_shared(s->m, o->at[i].bytes) * (again - 1);
  }
  return price;
}

static void add_option(options *o, decision how, uint64_t shared, double price) {
  if (o->n < MOST_OPTIONS) o->at[o->n++] = (option){price, how, shared};
}

/** What it takes to compute a value at all its points, instead of loading it there. */
static demand inlined_demand(const grouping *s, const use *u) {
  const value *v = u->v;
  demand d = {.nests = value_is_reduction(v) ? u->points.n : 0};
  d.ranges = d.nests * v->n_reduced;
  for (size_t i = 0; i < u->points.n; i++) {
    const point *p = &u->points.at[i];
    code now = code_sum(v->facts->own, v->facts->reads[p->code.each > 0]);
    d.code = code_sum(d.code, code_less(now, p->code));
    d.code.once += tile_code(s, u->g, v, p);
    d.whole = code_sum(d.whole, code_less(v->facts->whole, p->code));
  }
  return d;
}

/** How often v is computed at a point: of an axis that the point goes beyond, no more than it has.
 */
static double times_at(const group *g, const value *v, const point *p) {
  double times = nests_times(&g->nests, nests_open(&g->nests, p->free));
  for (size_t k = 0; k < v->rank; k++) {
    const node *x = p->index->src[1 + k];
    const node *range = ix_terms(x) == 1 ? ix_atom(x, 0) : NULL;
    if (!range || range->op != OP_RANGE || !map_has(&g->nests.number, range)) continue;
    double all = price_size(range_extent(range)), own = price_size(v->dims[k]);
    if (own < all) times *= own / all;
  }
  return times;
}

static void add_inlined(grouping *s, const use *u, options *o) {
  const value *v = u->v;
  demand more = inlined_demand(s, u);
  double times = 0, fewest = s->m->cores, slowest = 1, price = 0;
  if (!has_room(s, u->g, v, &more)) {
    o->refusal = "a kernel that reads it has no room for it";
    return;
  }
  if (!may_read_all(s, u)) {
    o->refusal = "what it reads is stored over before it is read";
    return;
  }
  for (size_t i = 0; i < u->points.n; i++) {
    const point *p = &u->points.at[i];
    range_mask open = nests_open(&u->g->nests, p->free);
    double parallel = workers(s, u->g, open);
    times += times_at(u->g, v, p);
    double slow = slowness(s, u->g, v, open);
    if (parallel < fewest) fewest = parallel;
    if (slow > slowest) slowest = slow;
    price += stream_price(s, u->g, v, p->index->src + 1, open, 1);
  }
  times /= v->facts->points > 1 ? v->facts->points : 1;
  price += compute_price(s, v, times, fewest, slowest);
  add_option(o, INLINED, 0, price);
}

/** The axes of which all points have the same index. */
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

/** How far inside an index is: by the depth of its nest, then by how much is open there. */
typedef struct innerness {
  unsigned depth; /* 0: the index does not vary */
  double open;
} innerness;

static innerness innerness_of(const group *g, const node *index) {
  range_mask free = nests_free(&g->nests, index);
  if (!free) return (innerness){0};
  return (innerness){nests_deepest(&g->nests, free)->depth,
                     nests_times(&g->nests, nests_open(&g->nests, free))};
}

static bool is_inside(innerness a, innerness b) {
  return a.depth != b.depth ? a.depth > b.depth : a.open > b.open;
}

/** Without the axes whose indices are innermost; false if none has an index that varies. */
static bool drop_innermost(const use *u, uint64_t *shared) {
  const node *const *coords = u->points.at[0].index->src + 1;
  innerness most = {0};
  uint64_t dropped = 0;
  for (size_t k = 0; k < u->v->rank; k++) {
    innerness at = innerness_of(u->g, coords[k]);
    if (!(*shared >> k & 1) || !at.depth || is_inside(most, at)) continue;
    if (is_inside(at, most)) dropped = 0;
    dropped |= UINT64_C(1) << k;
    most = at;
  }
  *shared &= ~dropped;
  return dropped != 0;
}

double stage_bytes(const value *v, uint64_t shared) {
  double bytes = (double)dtype_bytes((dtype)v->tensor->dtype);
  for (size_t k = 0; k < v->rank; k++) {
    if (shared >> k & 1) continue;
    if (!node_is_const(v->dims[k])) return 0;
    bytes *= (double)node_int(v->dims[k]);
  }
  return bytes;
}

static void add_placed(grouping *s, const use *u, uint64_t shared, options *o) {
  const value *v = u->v;
  const node *const *coords = u->points.at[0].index->src + 1;
  range_mask open = nests_open(&u->g->nests, dependence(u->g, v, coords, shared));
  double times = nests_times(&u->g->nests, open), parallel = workers(s, u->g, open);
  double bytes = stage_bytes(v, shared),
         elements = bytes / (double)dtype_bytes((dtype)v->tensor->dtype);
  bool all = shared == (UINT64_C(1) << v->rank) - 1;
  if ((all && !v->is_array) || !bytes) return;
  if (bytes + u->g->scratch + u->g->held.scratch > s->m->scratch) return;
  double share = times * elements / (v->facts->points > 1 ? v->facts->points : 1);
  double price = compute_price(s, v, share, parallel, slowness_of_array(s, v, shared));
  price += bytes * (double)(1 + u->points.n) * times * price_private(s->m, bytes) / parallel;
  price += stream_price(s, u->g, v, coords, open, bytes);
  if (all && o->n && o->at[0].how == INLINED)
    price = o->at[0].price - 1; /* the same, with a name */
  add_option(o, PLACED, shared, price);
}

static void add_all_placed(grouping *s, const use *u, options *o) {
  const value *v = u->v;
  demand more = {.nests = 1u + value_is_reduction(v),
                 .ranges = v->rank + v->n_reduced,
                 .code = code_sum(v->facts->own, v->facts->reads[u->points.at[0].code.each > 0]),
                 .whole = v->facts->whole};
  more.code.once += v->facts->tile;
  if (v->rank > 63 || !has_room(s, u->g, v, &more)) return;
  if (!may_read_anywhere(s, u->g, v)) return;
  uint64_t shared = shared_axes(u);
  do add_placed(s, u, shared, o);
  while (drop_innermost(u, &shared));
}

/** What is computed in a scan's loop, and scans: where it is read, or as what is best there. */
static options bound_options(const use *u) {
  options o = {.n = 0};
  const value *v = u->v;
  uint64_t all = (UINT64_C(1) << v->rank) - 1, shared = all & ~v->array;
  bool may_be = v->is_inside && !(shared & ~shared_axes(u)) && stage_bytes(v, shared) > 0;
  add_option(&o, INLINED, 0, 0);
  if (may_be) add_option(&o, PLACED, shared, v->is_array ? -1 : 1);
  return o;
}

options options_of(grouping *s, const use *u) {
  if (value_is_bound(u->v)) return bound_options(u);
  options o = {.n = 0};
  o.refusal = u->is_whole         ? "a step reads it as a whole"
              : u->v->only_loaded ? "what reads it only loads it"
                                  : NULL;
  if (o.refusal) return o;
  add_inlined(s, u, &o);
  add_all_placed(s, u, &o);
  return o;
}
