/* Parallelises a kernel: one range of each of its nests is divided among threads, where there is
   enough work to pay for fork and join. The range is the one that leaves the slowest thread least
   to do, as work that does not depend on it is done by every thread. The number of threads is fixed
   when the kernel is launched; here a typical one is assumed. */
#include "codegen/choose/choice.h"
#include "codegen/choose/nest_analysis.h"
#include "ir/index/write_once.h"
#include "target/kernel_estimates.h"

#include <math.h>

enum { MOST_RANGES = 64 }; /* of a nest that are tried: a bound of the search */

static const node *stage_of(const node *out) { return out->src[out->n_src - 1]; }

/** Lanes in which a binder computes its elements; 1: scalars. */
static double lanes_of(const node *n) {
  const node *stage = n->op == OP_STAGE ? n : fold_component(n, 0) >= 0 ? fold_step(n, 0) : NULL;
  const node *lanes = stage ? nest_vector_range(stage) : NULL;
  return lanes ? range_likely_trips(lanes) : 1;
}

/** Operations of a node, one for all lanes of a vector; a STAGE counts its stores. */
static double node_operations(const node *n) {
  double all = estimate_node_operations(n) * op_instruction_cost((op)n->op);
  if (n->op == OP_STAGE) all = (double)stage_n_values(n) * estimate_stage_stores(n);
  if (n->op == OP_STAGE || n->op == OP_FOLD) all /= lanes_of(n);
  for (uint32_t i = 0; i < n->free->n; i++)
    if (range_kind_of(n->free->at[i]) == KIND_VECTOR) all /= range_likely_trips(n->free->at[i]);
  return all;
}

/** Share of a STAGE's stores inside of the k-th of its ranges. */
static double stores_inside(const node *stage, size_t k) {
  size_t n = 0;
  for (size_t i = 0; i < stage_n_values(stage); i++) n += stage_loop_depth(stage, i) > k;
  return (double)n / (double)stage_n_values(stage);
}

/** The nodes of an output's nest, with the STAGE itself for its stores. */
static node_list nest_with_stores(choice *c, const node *stage) {
  arena *a = ir_arena(c->laws.g);
  node_list nest = nest_nodes(a, stage);
  vec_push(a, &nest, stage);
  return nest;
}

/** Operations of a nest inside of the k-th of the STAGE's ranges. */
static double operations_inside(const node_list *nest, const node *stage, size_t k) {
  double sum = node_operations(stage) * stores_inside(stage, k);
  for (size_t i = 0; i < nest->n; i++)
    if (node_is_free_in(stage_range(stage)[k], nest->at[i])) sum += node_operations(nest->at[i]);
  return sum;
}

/** Largest size of some ranges in units of their estimates. */
static double size_over_estimate(size_t n, const node *const ranges[]) {
  double times = 1;
  for (size_t i = 0; i < n; i++)
    times *= (double)range_extent(ranges[i])->hi / range_likely_trips(ranges[i]);
  return times;
}

/** Upper bound of a node's operations. */
static double most_operations(const node *n) {
  double all = node_operations(n) * size_over_estimate(n->free->n, n->free->at);
  return n->op == OP_STAGE ? all * size_over_estimate(stage_n_ranges(n), stage_range(n)) : all;
}

/** Upper bound of the kernel's operations. */
static double most_kernel_operations(choice *c) {
  double sum = 0;
  for (uint32_t i = 0; i < c->sink->n_src; i++) {
    node_list nest = nest_with_stores(c, stage_of(c->sink->src[i]));
    for (size_t k = 0; k < nest.n; k++) sum += most_operations(nest.at[k]);
  }
  return sum;
}

/** The sizes that a choice is made for where they vary. */
typedef enum size_case { SIZES_AT_LEAST, SIZES_LIKELY, SIZES_AT_MOST } size_case;

/** Indices of a range that threads can share. */
static double estimate_units(const node *range, size_case sizes) {
  const node *extent = range_extent(range);
  if (sizes == SIZES_LIKELY || node_is_const(extent)) return ix_likely(extent);
  int64_t n = sizes == SIZES_AT_MOST ? extent->hi : extent->lo;
  return n > 1 ? (double)n : 1;
}

/** Operations of the slowest thread when a nest of `all` operations is divided along the k-th of
   its ranges: operations that do not depend on it are done by every thread. */
static double slowest_thread(const choice *c, const node_list *nest, double all, const node *stage,
                             size_t k, size_case sizes) {
  const node *range = stage_range(stage)[k];
  double along = operations_inside(nest, stage, k);
  double n = estimate_units(range, sizes);
  if (range_kind_of(range) != KIND_LOOP || nest_copies_along(stage, range) ||
      choice_scanned_range(c, stage) == range)
    return INFINITY;
  double units =
      n < MACHINE_PARALLEL_UNITS ? n : MACHINE_PARALLEL_UNITS; /* fewer suit fewer threads */
  return all - along +
         along *
             (ceil(n / MACHINE_PARALLEL_THREADS) / n + 1 / (MACHINE_PARALLEL_UNIT_GAIN * units));
}

/** The range of a nest along which the slowest thread has least to do, among those not tried; its
    position, or the number of ranges if none leaves a thread less than `most` operations. */
static size_t best_range(const choice *c, const node_list *nest, double all, const node *stage,
                         const bool tried[], size_case sizes, double most) {
  size_t n = stage_n_ranges(stage) < MOST_RANGES ? stage_n_ranges(stage) : MOST_RANGES;
  size_t best = stage_n_ranges(stage);
  for (size_t i = 0; i < n; i++) {
    double here = tried[i] ? INFINITY : slowest_thread(c, nest, all, stage, i, sizes);
    if (here < most) best = i, most = here;
  }
  return best;
}

/** Moves FOLDs whose arrays a nest copies into its unit range, so that one thread runs them and the
    arrays may lie in the output. */
static const node *sink_placed_folds(choice *c, const node *sink, uint32_t out, const node *unit) {
  for (size_t i = 0; i < stage_n_values(stage_of(sink->src[out])); i++) {
    const node *fold = stage_placed_fold(stage_of(sink->src[out]), i);
    if (!fold || node_is_free_in(unit, fold)) continue;
    const node *made = law_sink(&c->laws, sink, fold, unit);
    if (made) sink = made;
  }
  return sink;
}

/** The kernel with an output's nest divided along the best legal range; where none is, along a unit
    range, so that one thread does all of it. The range is one that divides half of the work
   whatever the sizes are, else one that divides it at the likely sizes, else one that may divide
   it. NULL: laws refuse. */
static const node *divide_nest(choice *c, const node *sink, uint32_t out) {
  const node *stage = stage_of(sink->src[out]);
  bool tried[MOST_RANGES] = {false};
  const node *made, *changed, *unit;
  node_list nest = nest_with_stores(c, stage);
  size_t n = stage_n_ranges(stage);
  double all = 0; /* operations */
  for (size_t i = 0; i < nest.n; i++) all += node_operations(nest.at[i]);
  for (size_t tries = n < MOST_RANGES ? n : MOST_RANGES; tries > 0; tries--) {
    size_t best =
        best_range(c, &nest, all, stage, tried, SIZES_AT_LEAST, MACHINE_PARALLEL_WORK_SHARE * all);
    if (best == n) best = best_range(c, &nest, all, stage, tried, SIZES_LIKELY, all);
    if (best == n) best = best_range(c, &nest, all, stage, tried, SIZES_AT_MOST, all);
    if (best == n) break;
    tried[best] = true;
    made = law_kind(&c->laws, sink, stage_range(stage)[best], KIND_THREAD, &changed);
    if (made) return made;
  }
  for (size_t i = 0; i < stage_n_ranges(stage); i++) {
    bool is_unit = node_is_bits(range_extent(stage_range(stage)[i]), 1);
    made = is_unit ? law_kind(&c->laws, sink, stage_range(stage)[i], KIND_THREAD, &changed) : NULL;
    if (made) return made;
  }
  made = law_unit(&c->laws, sink, stage, &unit);
  if (made) made = sink_placed_folds(c, made, out, unit);
  return made ? law_kind(&c->laws, made, unit, KIND_THREAD, &changed) : NULL;
}

static bool is_divided(const node *stage) {
  for (size_t i = 0; i < stage_n_ranges(stage); i++)
    if (range_kind_of(stage_range(stage)[i]) == KIND_THREAD &&
        !node_is_bits(range_extent(stage_range(stage)[i]), 1))
      return true;
  return false;
}

/** Divides all nests or none: every thread would do all of a nest that is not divided. Half of the
   work has to take longer than fork and join; where the size varies, the launch decides
    (lower/parallel_loops.c). */
void choose_parallelise(choice *c) {
  bool divides = false;
  if (!c->target->threads ||
      MACHINE_PARALLEL_WORK_SHARE * most_kernel_operations(c) < MACHINE_FORK_JOIN_OPERATIONS)
    return;
  const node *sink = c->sink;
  for (uint32_t i = 0; sink && i < sink->n_src; i++) sink = divide_nest(c, sink, i);
  for (uint32_t i = 0; sink && i < sink->n_src; i++) divides |= is_divided(stage_of(sink->src[i]));
  if (divides) c->sink = sink;
}
