/* A range of each nest in vectors: of an array's nest one along which elements are consecutive; of
   a reduction one whose partial results are kept in the lanes and combined at the end. What is left
   over is done in narrower vectors, and at last alone. */
#include "codegen/choice.h"
#include "ir/address.h"
#include "ir/topo.h"
#include "ir/weigh.h"
#include "schedule/hardware.h"

#include "base/map.h"

enum {
  MOST_SCRATCH_IN_LANES = 2048, /* bytes that one array may take for all lanes */
  SUMS_AT_ONCE = 4,             /* vectors of partial results of a long reduction */
  LONG = 16,                    /* in vectors */
  LONG_TERM = 128 /* operations of a term that takes longer than what it is added by */
};

/* Which range. */

typedef struct weighing {
  choice *c;
  ir *g;
  map own;   /* binders that go in vectors of their own → their range */
  map lanes; /* these → how many */
  map gone;  /* conditions that boxes leave out */
} weighing;

/** Whether an array that is built for each index of a range would be too large for each lane. */
static bool is_large_in_lanes(ir *g, const node *n, const node *range, int64_t lanes) {
  double bytes = 0;
  if (n->op != OP_STAGE || !node_is_free_in(range, n)) return false;
  for (size_t i = 0; i < stage_values(n); i++) {
    const node *size = address_size(g, stage_rank(n, i), stage_extents(n, i));
    bytes += (double)size->hi * (double)dtype_bytes((dtype)stage_value(n, i)->dtype);
  }
  return bytes * (double)lanes > MOST_SCRATCH_IN_LANES;
}

/** What is left of a node's work by vectors of inner nests. */
static double by_own(weighing *w, const node *n) {
  const node *own = n->op == OP_FOLD ? map_get(&w->own, n) : NULL;
  if (own) return weigh_node(n) / (double)(intptr_t)map_get(&w->lanes, own);
  for (uint32_t i = 0; i < n->free->n; i++) {
    int64_t lanes = (intptr_t)map_get(&w->lanes, n->free->at[i]);
    if (lanes) return weigh_in_lanes(w->g, n, n->free->at[i], (double)lanes);
  }
  return weigh_node(n);
}

/** The work of a nest in vectors along one of its ranges (NULL: along inner ones only); < 0: that
    cannot be. */
static double work_in_lanes(weighing *w, const node_list *nest, const node *range, int64_t lanes) {
  double work = 0;
  for (size_t i = 0; i < nest->n; i++) {
    const node *n = nest->at[i];
    bool depends = range && node_is_free_in(range, n);
    if (map_has(&w->gone, n)) continue;
    if (depends && is_large_in_lanes(w->g, n, range, lanes)) return -1;
    work += depends ? weigh_in_lanes(w->g, n, range, (double)lanes) : by_own(w, n);
  }
  return work;
}

/** What is left of the stores of an array's nest in vectors along a range (NULL: of none): those at
    scattered addresses are done one by one. */
static double stores_in_lanes(ir *g, const node *stage, const node *range, int64_t lanes) {
  double work = 0, each = weigh_writes(stage);
  for (size_t i = 0; i < stage_values(stage); i++) {
    bool streamed = range && weigh_streamed(g, range, stage_rank(stage, i), stage_extents(stage, i),
                                            stage_coords(stage, i));
    work += range ? weigh_left(each, streamed, (double)lanes) : each;
  }
  return work;
}

/** What is left of a binder's own work. */
static double binder_in_lanes(ir *g, const node *binder, const node *range, int64_t lanes) {
  if (binder->op == OP_STAGE) return stores_in_lanes(g, binder, range, lanes);
  return range ? weigh_node(binder) / (double)lanes : weigh_node(binder);
}

static bool may_be_lanes(weighing *w, const node *binder, const node *range, int64_t lanes) {
  if (range_kind_of(range) != KIND_LOOP || lanes < 2) return false;
  if (binder->op == OP_STAGE) return true;
  return weigh_is_free_order(binder, w->c->math) &&
         range_extent(range)->hi >= WEIGH_LANES_WANTED * lanes;
}

/** Bytes of a nest's vectors along a range. Vectors of whole lines make a processor run ahead, in
    several streams at once, of what it fetches from memory by itself: that is slower. */
static size_t bytes_of_vectors(const choice *c, const node_list *nest, const node *range) {
  size_t most = c->target->vector_bytes, half = hardware_known(&c->target->hardware).line_bytes / 2;
  return most > half && choice_waits_for_memory(c, nest, range) ? half : most;
}

static int64_t lanes_of(const choice *c, const node *binder, const node_list *nest,
                        const node *range) {
  size_t widest = weigh_widest(nest, range);
  for (size_t i = 0; binder->op == OP_STAGE && i < stage_values(binder); i++) {
    node_list value = {(const node **)&binder->src[i], 1, 1};
    size_t bytes = weigh_widest(&value, NULL);
    if (bytes > widest) widest = bytes;
  }
  return (int64_t)(bytes_of_vectors(c, nest, range) / widest);
}

/** The range of a binder whose vectors leave least to do, and their lanes; NULL: none leaves less
    than inner ones. */
static const node *best_range(weighing *w, const node *binder, int64_t *lanes) {
  node_list nest = weigh_nest(ir_arena(w->g), binder);
  const node *const *ranges, *best = NULL;
  double least = work_in_lanes(w, &nest, NULL, 1) + binder_in_lanes(w->g, binder, NULL, 1);
  for (size_t i = binder_ranges(binder, &ranges); i-- > 0;) {
    int64_t n = lanes_of(w->c, binder, &nest, ranges[i]);
    if (!may_be_lanes(w, binder, ranges[i], n)) continue;
    double left = work_in_lanes(w, &nest, ranges[i], n);
    if (left < 0) continue;
    left += binder_in_lanes(w->g, binder, ranges[i], n);
    if (left < least) best = ranges[i], least = left, *lanes = n;
  }
  return best;
}

/** What inner nests would do by themselves. */
static void weigh_inner(weighing *w, const node *binder) {
  node_list nest = weigh_nest(ir_arena(w->g), binder);
  for (size_t i = 0; i < nest.n; i++) {
    const node *b = nest.at[i];
    int64_t lanes;
    const node *range = b->op == OP_STAGE || b->op == OP_FOLD ? best_range(w, b, &lanes) : NULL;
    if (!range) continue;
    map_set(ir_arena(w->g), &w->own, b, (void *)range);
    map_set(ir_arena(w->g), &w->lanes, range, (void *)(intptr_t)lanes);
  }
}

/* An array's nest. */

/** Vectors of `lanes` along a range, innermost, where the nest allows it. */
static bool make_vectors(choice *c, const node *range, int64_t lanes) {
  laws *l = &c->laws;
  const node *inner, *vector, *const *ranges;
  const node *made = choice_blocks(c, c->sink, range, lanes, &inner);
  if (made) {
    size_t last = binder_ranges(law_binder(l, made, inner), &ranges) - 1;
    made = law_order(l, made, inner, last);
  }
  if (made) made = law_kind(l, made, inner, KIND_VECTOR, &vector);
  if (made) c->sink = made;
  return made;
}

/** Vectors along a range as far as they go, where they cannot overlap. How much is left over of a
    size that varies is not known: it is not cut further, then or later. */
static void cover_parts(choice *c, const node *range, int64_t lanes) {
  while (range) {
    const node *extent = range_extent(range), *whole, *rest, *before = c->sink;
    while (lanes > 1 && lanes > extent->hi) lanes /= 2;
    if (lanes < 2 || !choice_part(c, range, lanes, &whole, &rest)) return;
    if (!make_vectors(c, whole, lanes)) {
      c->sink = before;
      return;
    }
    if (!node_is_const(extent)) {
      map_set(ir_arena(c->laws.g), &c->left, rest, (void *)whole);
      return;
    }
    range = rest;
  }
}

/** Whether a nest builds something for indices of its other ranges, which two nests in its place
    would both build, and nothing along this one, which vectors that are cut short would not tile.
 */
static bool is_by_row(choice *c, const node *range) {
  const node *stage = law_binder(&c->laws, c->sink, range);
  node_list nest = weigh_nest(ir_arena(c->laws.g), stage);
  bool by_row = false;
  for (size_t i = 0; i < nest.n; i++) {
    if (!node_is_binder(nest.at[i])) continue;
    if (node_is_free_in(range, nest.at[i])) return false;
    by_row |= nest.at[i]->free->n > 0;
  }
  return by_row;
}

void choice_cover(choice *c, const node *range, int64_t lanes) {
  while (lanes > 1 && lanes > range_extent(range)->hi) lanes /= 2;
  if (lanes < 2 || map_has(&c->left, range)) return;
  if (law_may_overlap(&c->laws, c->sink, range, lanes) || is_by_row(c, range))
    make_vectors(c, range, lanes);
  else
    cover_parts(c, range, lanes);
}

/* A reduction: FOLD[r] = FOLD[lane] of FOLD[sum] of FOLD[r₀], r = (r₀·sums + sum)·lanes + lane. */

/** Moves ranges that are the innermost of a FOLD to its front, and makes FOLDs around the others of
    them. */
static const node *nested(choice *c, const node *sink, const node *const ranges[], size_t n) {
  for (size_t i = n; sink && i-- > 0;)
    if (ranges[i]) sink = law_order(&c->laws, sink, ranges[i], 0);
  for (size_t i = n; sink && i-- > 0;)
    if (ranges[i]) sink = law_nest(&c->laws, sink, ranges[i]);
  return sink;
}

static void make_lanes(choice *c, const node *range, int64_t lanes, int64_t sums) {
  const node *outer, *inner, *sum = NULL, *lane;
  const node *made = law_split(&c->laws, c->sink, range, lanes * sums, &outer, &inner);
  if (!made || !outer) return;
  lane = inner;
  if (sums > 1) made = law_split(&c->laws, made, inner, lanes, &sum, &lane);
  if (made) made = nested(c, made, (const node *[]){lane, sum}, 2);
  if (made && sum) made = law_kind(&c->laws, made, sum, KIND_UNROLL, &sum);
  if (made) made = law_kind(&c->laws, made, lane, KIND_UNROLL, &lane);
  if (made) c->sink = made;
}

/** How many vectors of partial results a reduction has: an addition does not wait for the one
   before where sums alternate, or where its term takes longer. */
static int64_t sums_of(choice *c, const node *range, int64_t lanes) {
  double work = 0;
  node_list nest = weigh_nest(ir_arena(c->laws.g), law_binder(&c->laws, c->sink, range));
  for (size_t i = 0; i < nest.n; i++)
    if (node_is_free_in(range, nest.at[i])) work += op_work((op)nest.at[i]->op);
  return work < LONG_TERM && range_extent(range)->hi >= LONG * lanes ? SUMS_AT_ONCE : 1;
}

static void cover_fold(choice *c, const node *range, int64_t lanes) {
  const node *whole, *rest, *rest_of_rest;
  int64_t sums = sums_of(c, range, lanes);
  if (!choice_part(c, range, lanes * sums, &whole, &rest)) return;
  make_lanes(c, whole, lanes, sums);
  if (sums == 1 || !rest) return;
  if (range_extent(rest)->hi < WEIGH_LANES_WANTED * lanes) return;
  if (choice_part(c, rest, lanes, &whole, &rest_of_rest)) make_lanes(c, whole, lanes, 1);
}

/* All nests. */

static const node *first_range(const node *binder) {
  const node *const *ranges;
  return binder_ranges(binder, &ranges) ? ranges[0] : NULL;
}

/** Whether a binder runs in lanes or copies already, its own or those of one around it; the ranges
    inside of them are kept in `inside`. */
static bool is_in_lanes(arena *a, map *inside, const node *binder) {
  const node *const *ranges;
  bool in = map_has(inside, binder);
  for (uint32_t k = 0; k < binder->free->n; k++) in |= map_has(inside, binder->free->at[k]);
  if (in && binder->op == OP_FOLD) law_fold_arrays(a, binder, inside);
  for (size_t k = 0, n = binder_ranges(binder, &ranges); k < n; k++) {
    range_kind kind = range_kind_of(ranges[k]);
    in |= kind == KIND_VECTOR || kind == KIND_UNROLL;
    if (in) map_set(a, inside, ranges[k], (void *)ranges[k]);
  }
  return in;
}

/** The next binder to be looked at: the outermost one that was not yet. */
static const node *next_binder(choice *c, const map *tried) {
  map inside = {0};
  node_list binders = choice_binders(c);
  for (size_t i = 0; i < binders.n; i++) {
    const node *b = binders.at[i], *first = first_range(b);
    bool in = is_in_lanes(ir_arena(c->laws.g), &inside, b);
    if (first && !in && !map_has(tried, first)) return b;
  }
  return NULL;
}

void choose_vectors(choice *c) {
  ir *g = c->laws.g;
  map tried = {0};
  if (!c->target->vector_bytes) return;
  for (const node *b; !choice_is_full(c) && (b = next_binder(c, &tried));) {
    weighing w = {.c = c, .g = g};
    if (b->op == OP_STAGE) choice_boxed(c, b, &w.gone);
    weigh_inner(&w, b);
    int64_t lanes;
    const node *range = best_range(&w, b, &lanes);
    map_set(ir_arena(g), &tried, first_range(b), (void *)b);
    if (range && b->op == OP_STAGE) choice_cover(c, range, lanes);
    if (range && b->op == OP_FOLD) cover_fold(c, range, lanes);
  }
}
