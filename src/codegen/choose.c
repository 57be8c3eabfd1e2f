/* How a kernel runs on a target: nests in vectors, with what is left over in nests of their own;
   long sums in blocks; tiles in registers; an outer range over threads where there is enough to
   do. */
#include "codegen/choice.h"
#include "codegen/codegen.h"
#include "codegen/weigh.h"

#include <math.h>

enum {
  WORK_FOR_THREADS = 1 << 15, /* element operations below which one worker is faster */
  UNITS_WANTED = 16,          /* a range to be shared out should have as many indices */
  MOST_RANGES = 64            /* of a nest that are looked at */
};

static const node *stage_of(const node *out) { return out->src[out->n_src - 1]; }

/** The element operations of a nest. */
static double work_of(arena *a, const node *stage) {
  node_list nest = weigh_nest(a, stage);
  double sum = 0;
  for (size_t i = 0; i < nest.n; i++) sum += weigh_node(nest.at[i]);
  return sum;
}

/** How much a range is worth sharing out: the outer ones more, where both have enough indices. */
static double units_of(const node *stage, size_t i) {
  const node *r = stage_range(stage)[i];
  if (range_kind_of(r) != KIND_LOOP) return 0;
  if (range_extent(r)->lo >= UNITS_WANTED) return INFINITY;
  return weigh_indices(r);
}

/** The nest of an output, shared out along the best of its ranges that may be; where none may, it
    is all one worker's. NULL: not even that. */
static const node *shared(choice *c, const node *sink, const node *stage) {
  bool tried[MOST_RANGES] = {false};
  const node *made, *changed, *unit;
  size_t n = stage_ranges(stage) < MOST_RANGES ? stage_ranges(stage) : MOST_RANGES;
  for (size_t left = n; left > 0; left--) {
    size_t best = n;
    for (size_t i = 0; i < n; i++)
      if (!tried[i] && (best == n || units_of(stage, i) > units_of(stage, best))) best = i;
    tried[best] = true;
    if (units_of(stage, best) < 2) break;
    made = law_kind(&c->laws, sink, stage_range(stage)[best], KIND_THREAD, &changed);
    if (made) return made;
  }
  made = law_unit(&c->laws, sink, stage, &unit);
  return made ? law_kind(&c->laws, made, unit, KIND_THREAD, &changed) : NULL;
}

static bool is_shared(const node *stage) {
  for (size_t i = 0; i < stage_ranges(stage); i++)
    if (range_kind_of(stage_range(stage)[i]) == KIND_THREAD &&
        !node_is_bits(range_extent(stage_range(stage)[i]), 1))
      return true;
  return false;
}

/** All nests or none: one that is not shared out would be done by every worker. */
static void share_out(choice *c) {
  arena *a = ir_arena(c->laws.g);
  double work = 0;
  bool any = false;
  for (uint32_t i = 0; i < c->sink->n_src; i++) work += work_of(a, stage_of(c->sink->src[i]));
  if (!c->target->threads || work < WORK_FOR_THREADS) return;
  const node *sink = c->sink;
  for (uint32_t i = 0; sink && i < sink->n_src; i++) sink = shared(c, sink, stage_of(sink->src[i]));
  for (uint32_t i = 0; sink && i < sink->n_src; i++) any |= is_shared(stage_of(sink->src[i]));
  if (any) c->sink = sink;
}

const node *codegen_choose(ir *g, const node *sink, const codegen_options *o) {
  choice c = {.laws = {.g = g}, .target = &o->target, .math = o->math, .sink = sink};
  if (o->watch.law) c.laws.log = law_log_new(g);
  choose_flat(&c);
  choose_blocks(&c);
  choose_vectors(&c);
  if (o->math & MATH_SUM) c.sink = codegen_sums(&c.laws, c.sink);
  choose_tiles(&c);
  share_out(&c);
  if (o->watch.law) law_log_tell(c.laws.log, sink, c.sink, o->watch.law, o->watch.user);
  return c.sink;
}
