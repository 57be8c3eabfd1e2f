/* How a kernel runs on a target: nests in vectors, with what is left over in nests of their own;
   long sums in blocks; tiles in registers; an outer range over threads where there is enough to
   do. */
#include "codegen/choice.h"
#include "codegen/codegen.h"
#include "codegen/weigh.h"

enum {
  WORK_FOR_THREADS = 1 << 15, /* element operations below which one worker is faster */
  UNITS_WANTED = 16           /* a range to be shared out should have as many indices */
};

static const node *stage_of(const node *out) { return out->src[out->n_src - 1]; }

/** The element operations of a nest. */
static double work_of(arena *a, const node *stage) {
  node_list nest = weigh_nest(a, stage);
  double sum = 0;
  for (size_t i = 0; i < nest.n; i++) sum += weigh_node(nest.at[i]);
  return sum;
}

/** The range to share out: the outermost with enough indices for certain, else the one with most.
 */
static const node *shared_range(const node *stage) {
  const node *best = NULL;
  for (size_t i = 0; i < stage_ranges(stage); i++) {
    const node *r = stage_range(stage)[i];
    if (range_kind_of(r) != KIND_LOOP) continue;
    if (range_extent(r)->lo >= UNITS_WANTED) return r;
    if (!best || weigh_indices(r) > weigh_indices(best)) best = r;
  }
  return best;
}

static void share_out(choice *c) {
  arena *a = ir_arena(c->laws.g);
  double work = 0;
  for (uint32_t i = 0; i < c->sink->n_src; i++) work += work_of(a, stage_of(c->sink->src[i]));
  if (!c->target->threads || work < WORK_FOR_THREADS) return;
  const node *before = c->sink;
  for (uint32_t i = 0; i < c->sink->n_src; i++) { /* all nests or none: each is some worker's */
    const node *changed, *range = shared_range(stage_of(c->sink->src[i]));
    const node *with = range ? law_kind(&c->laws, c->sink, range, KIND_THREAD, &changed) : NULL;
    c->sink = with ? with : before;
    if (!with) return;
  }
}

const node *codegen_choose(ir *g, const node *sink, const codegen_options *o) {
  choice c = {.laws = {.g = g}, .target = &o->target, .math = o->math, .sink = sink};
  choose_flat(&c);
  choose_vectors(&c);
  if (o->math & MATH_SUM) c.sink = codegen_sums(g, c.sink);
  choose_tiles(&c);
  share_out(&c);
  return c.sink;
}
