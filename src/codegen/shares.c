/* Work shared out: one range of each of a kernel's nests goes over threads, where there is enough
   to do. */
#include "codegen/choice.h"
#include "ir/weigh.h"

#include <math.h>

enum {
  WORKERS = 4, /* what is chosen for so many is good for fewer, too */
  UNITS_WANTED = 16,
  UNITS_HOPED = 8, /* of a size that varies */
  MANY = 4,        /* times that of a unit more is worth */
  MOST_RANGES = 64 /* of a nest that are looked at */
};

static const node *stage_of(const node *out) { return out->src[out->n_src - 1]; }

/** The lanes of the vectors that a binder's elements are made in. */
static double own_lanes(const node *n) {
  const node *stage = n->op == OP_STAGE ? n : fold_component(n, 0) >= 0 ? fold_step(n, 0) : NULL;
  const node *lanes = stage ? weigh_vector(stage) : NULL;
  return lanes ? weigh_indices(lanes) : 1;
}

/** The operations of a node: one for all lanes, and one for each element that is stored. */
static double operations_of(const node *n) {
  double all = weigh_node(n) * op_work((op)n->op);
  if (n->op == OP_STAGE) all = (double)stage_values(n) * weigh_writes(n);
  if (n->op == OP_STAGE || n->op == OP_FOLD) all /= own_lanes(n);
  for (uint32_t i = 0; i < n->free->n; i++)
    if (range_kind_of(n->free->at[i]) == KIND_VECTOR) all /= weigh_indices(n->free->at[i]);
  return all;
}

/** Which part of a STAGE's stores is done inside of the k-th of its ranges. */
static double stored_inside(const node *stage, size_t k) {
  size_t n = 0;
  for (size_t i = 0; i < stage_values(stage); i++) n += stage_level(stage, i) > k;
  return (double)n / (double)stage_values(stage);
}

/** What an output's STAGE computes, and the STAGE, which stores it. */
static node_list nest_of(choice *c, const node *stage) {
  arena *a = ir_arena(c->laws.g);
  node_list nest = weigh_nest(a, stage);
  vec_push(a, &nest, stage);
  return nest;
}

static double work_of(const node_list *nest) {
  double sum = 0;
  for (size_t i = 0; i < nest->n; i++) sum += operations_of(nest->at[i]);
  return sum;
}

/** What of it is done inside of the k-th of the STAGE's ranges. */
static double work_along(const node_list *nest, const node *stage, size_t k) {
  double sum = operations_of(stage) * stored_inside(stage, k);
  for (size_t i = 0; i < nest->n; i++)
    if (node_is_free_in(stage_range(stage)[k], nest->at[i])) sum += operations_of(nest->at[i]);
  return sum;
}

/** How many times as often as they are counted the indices of some ranges may be gone through. */
static double growth(size_t n, const node *const ranges[]) {
  double times = 1;
  for (size_t i = 0; i < n; i++)
    times *= (double)range_extent(ranges[i])->hi / weigh_indices(ranges[i]);
  return times;
}

/** The most operations that a node may take. */
static double most_operations(const node *n) {
  double all = operations_of(n) * growth(n->free->n, n->free->at);
  return n->op == OP_STAGE ? all * growth(stage_ranges(n), stage_range(n)) : all;
}

/** The most operations of a kernel. */
static double most_work(choice *c) {
  double sum = 0;
  for (uint32_t i = 0; i < c->sink->n_src; i++) {
    node_list nest = nest_of(c, stage_of(c->sink->src[i]));
    for (size_t k = 0; k < nest.n; k++) sum += most_operations(nest.at[k]);
  }
  return sum;
}

static double units_of(const node *range) {
  const node *extent = range_extent(range);
  double least = extent->lo > 1 ? (double)extent->lo : 1;
  return node_is_const(extent) || least > UNITS_HOPED ? least : UNITS_HOPED;
}

/** What the worker that has most to do does of `all` of a nest that goes over threads along the
   k-th of its ranges: what does not depend on it is done by each. */
static double longest(const node_list *nest, double all, const node *stage, size_t k) {
  const node *range = stage_range(stage)[k];
  double along = work_along(nest, stage, k);
  double n = units_of(range);
  if (range_kind_of(range) != KIND_LOOP) return INFINITY;
  double units = n < UNITS_WANTED ? n : UNITS_WANTED; /* fewer are little for more workers */
  return all - along + along * (ceil(n / WORKERS) / n + 1 / (MANY * units));
}

/** The nest of an output, shared out along the best of its ranges that may be; where none may, it
    is all one worker's. NULL: not even that. */
static const node *shared(choice *c, const node *sink, const node *stage) {
  bool tried[MOST_RANGES] = {false};
  const node *made, *changed, *unit;
  node_list nest = nest_of(c, stage);
  size_t n = stage_ranges(stage) < MOST_RANGES ? stage_ranges(stage) : MOST_RANGES;
  double all = work_of(&nest);
  for (size_t left = n; left > 0; left--) {
    size_t best = n;
    double least = INFINITY;
    for (size_t i = 0; i < n; i++) {
      double here = tried[i] ? INFINITY : longest(&nest, all, stage, i);
      if (here < least) best = i, least = here;
    }
    if (best == n || least >= all) break;
    tried[best] = true;
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

/** All nests or none: one that is not shared out would be done by every worker. Half of the work
    has to take longer than to hand it over; where it may, the launch decides (threads.c). */
void choose_shares(choice *c) {
  bool any = false;
  if (!c->target->threads || most_work(c) / 2 < TARGET_HAND_OVER) return;
  const node *sink = c->sink;
  for (uint32_t i = 0; sink && i < sink->n_src; i++) sink = shared(c, sink, stage_of(sink->src[i]));
  for (uint32_t i = 0; sink && i < sink->n_src; i++) any |= is_shared(stage_of(sink->src[i]));
  if (any) c->sink = sink;
}
