#include "schedules.h"

#include "ir/topo.h"
#include "laws/laws.h"

typedef struct scheduling {
  ir *g;
  rng *r;
  laws laws;
  const node *sink;
  bool reorders; /* reductions have no order */
  bool gathered; /* once: copies of copies would be made for every element */
  size_t applied;
} scheduling;

static bool take(scheduling *s, const node *changed) {
  if (!changed) return false;
  s->sink = changed;
  s->applied++;
  return true;
}

/** A range without a kind, or NULL. */
static const node *any_range(scheduling *s) {
  arena *a = ir_arena(s->g);
  node_list order = topo_sort(a, &s->sink, 1, NULL, NULL), all = {0};
  for (size_t i = 0; i < order.n; i++)
    if (order.at[i]->op == OP_RANGE && range_kind_of(order.at[i]) == KIND_LOOP)
      vec_push(a, &all, order.at[i]);
  return all.n ? all.at[rng_below(s->r, all.n)] : NULL;
}

static void split(scheduling *s, const node *range) {
  static const int64_t factors[] = {1, 2, 3, 4, 5, 8, 16};
  const node *outer, *inner, *changed;
  int64_t factor = factors[rng_below(s->r, sizeof factors / sizeof *factors)];
  const node *made = NULL;
  if (rng_chance(s->r, 50)) made = law_overlap(&s->laws, s->sink, range, factor, &outer, &inner);
  if (!made) made = law_split(&s->laws, s->sink, range, factor, &outer, &inner);
  if (!take(s, made)) return;
  range_kind kind = rng_chance(s->r, 50) ? KIND_VECTOR : KIND_UNROLL;
  if (rng_chance(s->r, 70)) take(s, law_kind(&s->laws, s->sink, inner, kind, &changed));
}

static bool is_of_fold(scheduling *s, const node *range) {
  const node *b = law_binder(&s->laws, s->sink, range);
  return b && b->op == OP_FOLD;
}

static void partition(scheduling *s, const node *range) {
  if (is_of_fold(s, range) && !s->reorders) return;
  const node *low, *high, *extent = range_extent(range);
  int64_t least = extent->lo > 0 ? extent->lo : 0;
  const node *at = ix_const(s->g, rng_between(s->r, 0, least));
  if (rng_chance(s->r, 50)) at = ix_scale(s->g, ix_floordiv(s->g, extent, ix_const(s->g, 4)), 4);
  take(s, law_partition(&s->laws, s->sink, range, at, &low, &high));
}

static void unroll(scheduling *s, const node *range) {
  const node *changed;
  if (range_extent(range)->hi <= 8)
    take(s, law_kind(&s->laws, s->sink, range, KIND_UNROLL, &changed));
}

/** Moves a range, makes two folds of one, or puts a fold around the ranges that it is in. */
static void reorder(scheduling *s, const node *range) {
  const node *b = law_binder(&s->laws, s->sink, range), *outer[4], *own[4];
  size_t n = 0;
  bool is_fold = b && b->op == OP_FOLD;
  const node *both;
  if (rng_chance(s->r, 30) && take(s, law_flatten(&s->laws, s->sink, range, &both))) return;
  if (!is_fold || s->reorders) take(s, law_order(&s->laws, s->sink, range, rng_below(s->r, 3)));
  if (!is_fold) return;
  if (s->reorders && rng_chance(s->r, 50)) take(s, law_nest(&s->laws, s->sink, range));
  b = law_binder(&s->laws, s->sink, range);
  for (uint32_t i = 0; i < b->free->n && n < 4; i++)
    if (rng_chance(s->r, 70)) outer[n++] = b->free->at[i];
  take(s, law_interchange(&s->laws, s->sink, range, outer, n, own));
}

/** Copies what an element of a buffer that is read along the range is one of, if it is not much. */
static void gather(scheduling *s, const node *range) {
  arena *a = ir_arena(s->g);
  node_list order = topo_sort(a, &s->sink, 1, NULL, NULL);
  for (size_t i = 0; i < order.n; i++) {
    const node *n = order.at[i], *inner[4] = {range}, *element;
    size_t count = 1;
    double size = (double)range_extent(range)->hi;
    if ((n->op != OP_INDEX && n->op != OP_WHERE) || n->dtype == DT_INDEX) continue;
    if (!node_is_free_in(range, n) || rng_chance(s->r, 50)) continue;
    for (uint32_t k = 0; k < n->free->n && count < 4; k++)
      if (n->free->at[k] != range && rng_chance(s->r, 30)) {
        inner[count++] = n->free->at[k];
        size *= (double)range_extent(n->free->at[k])->hi;
      }
    if (size <= 32 && !s->gathered)
      s->gathered = take(s, law_data(&s->laws, s->sink, n, inner, count, range, &element));
    return;
  }
}

/** Builds an array for all indices of a range that it is inside of. */
static void hoist(scheduling *s, const node *range) {
  node_list order = topo_sort(ir_arena(s->g), &s->sink, 1, NULL, NULL);
  const node *own;
  for (size_t i = 0; i < order.n; i++) {
    const node *n = order.at[i];
    double size = (double)range_extent(range)->hi;
    if (n->op != OP_STAGE || !node_is_free_in(range, n) || rng_chance(s->r, 50)) continue;
    for (size_t k = 0; k < stage_ranges(n); k++)
      size *= (double)range_extent(stage_range(n)[k])->hi;
    if (size <= 4096) take(s, law_hoist(&s->laws, s->sink, n, range, &own));
    return;
  }
}

/** One range of each output: a kernel is shared out as a whole. */
static void share_out(scheduling *s) {
  const node *before = s->sink;
  for (uint32_t i = 0; i < s->sink->n_src; i++) {
    const node *out = s->sink->src[i], *stage = out->src[out->n_src - 1], *changed;
    size_t n = stage_ranges(stage);
    const node *range = n ? stage_range(stage)[rng_below(s->r, n)] : NULL;
    if (range && range_kind_of(range) == KIND_LOOP &&
        take(s, law_kind(&s->laws, s->sink, range, KIND_THREAD, &changed)))
      continue;
    s->sink = before;
    return;
  }
}

const node *random_schedule(ir *g, rng *r, const node *sink, bool reorders, size_t *applied) {
  scheduling s = {.g = g, .r = r, .laws = {.g = g}, .sink = sink, .reorders = reorders};
  for (size_t k = 1 + rng_below(r, 4); k > 0; k--) {
    const node *range = any_range(&s);
    if (!range) break;
    unsigned way = (unsigned)rng_below(r, 8);
    if (way < 2)
      split(&s, range);
    else if (way == 2)
      partition(&s, range);
    else if (way == 3)
      gather(&s, range);
    else if (way == 4)
      hoist(&s, range);
    else if (way > 5)
      reorder(&s, range);
    else
      unroll(&s, range);
  }
  if (rng_chance(r, 40)) share_out(&s);
  *applied += s.applied;
  return s.sink;
}
