/* Vectorises loop nests: one range of each goes in vector lanes, the one that leaves the fewest
   operations by an estimate. An array's nest takes a range along which elements are consecutive;
   vectorise_range.c puts it in vectors. A reduction keeps partial results in the lanes, several
   vectors of them where the latency of additions would show, and combines them at the end. */
#include "codegen/choose/choice.h"
#include "codegen/choose/nest_analysis.h"
#include "ir/core/topo_sort.h"
#include "ir/index/row_major_address.h"
#include "ir/index/write_once.h"
#include "target/hardware.h"
#include "target/kernel_estimates.h"

#include "base/map.h"

/* The range. */

/** Estimates of a nest's operations. */
typedef struct estimate {
  choice *c;
  ir *g;
  map inner_range; /* inner binder with vectors of its own → their range */
  map lanes;       /* such a range → number of lanes */
  map padded;      /* bounds checks and selects that padded tiles will remove */
} estimate;

/** True if an array built for each index of a range is too large for a copy in each lane. */
static bool is_large_in_lanes(ir *g, const node *n, const node *range, int64_t lanes) {
  double bytes = 0;
  if (n->op != OP_STAGE || !node_is_free_in(range, n)) return false;
  for (size_t i = 0; i < stage_n_values(n); i++) {
    const node *size = row_major_size(g, stage_rank(n, i), stage_extents(n, i));
    bytes += (double)size->hi * (double)dtype_bytes((dtype)stage_value(n, i)->dtype);
  }
  return bytes * (double)lanes > MACHINE_LANE_SCRATCH_BYTES;
}

/** Operations of a node when only inner nests are vectorised. */
static double operations_by_inner(estimate *e, const node *n) {
  const node *own = n->op == OP_FOLD ? map_get(&e->inner_range, n) : NULL;
  if (own) return estimate_node_operations(n) / (double)(intptr_t)map_get(&e->lanes, own);
  for (uint32_t i = 0; i < n->free->n; i++) {
    int64_t lanes = (intptr_t)map_get(&e->lanes, n->free->at[i]);
    if (lanes) return estimate_node_vectorised(e->g, n, n->free->at[i], (double)lanes);
  }
  return estimate_node_operations(n);
}

/** True if a STAGE is the start or step of a state that lies in the output of a binder's nest: it
   is no array of its own. */
static bool lies_in_output(const node *binder, const node *stage) {
  for (size_t i = 0; binder->op == OP_STAGE && i < stage_n_values(binder); i++) {
    const node *fold = stage_placed_fold(binder, i);
    size_t component = fold ? (size_t)stage_value(binder, i)->ints[0] : 0;
    if (fold && component < fold_n_states(fold) &&
        (fold_init(fold, component) == stage || fold_step(fold, component) == stage))
      return true;
  }
  return false;
}

/** Operations of a nest in vectors along one of its ranges (NULL: along inner ones only); < 0: an
    array would be too large. */
static double nest_operations(estimate *e, const node *binder, const node_list *nest,
                              const node *range, int64_t lanes) {
  double operations = 0;
  for (size_t i = 0; i < nest->n; i++) {
    const node *n = nest->at[i];
    bool depends = range && node_is_free_in(range, n);
    if (map_has(&e->padded, n)) continue;
    if (depends && lies_in_output(binder, n)) continue;
    if (depends && is_large_in_lanes(e->g, n, range, lanes)) return -1;
    operations += depends ? estimate_node_vectorised(e->g, n, range, (double)lanes)
                          : operations_by_inner(e, n);
  }
  return operations;
}

/** Stores of a stage in vectors along a range (NULL: scalars); scattered ones take one a lane. */
static double store_operations(ir *g, const node *stage, const node *range, int64_t lanes) {
  double operations = 0, each = estimate_stage_stores(stage);
  for (size_t i = 0; i < stage_n_values(stage); i++) {
    const node *to =
        row_major_address(g, stage_rank(stage, i), stage_extents(stage, i), stage_coords(stage, i));
    int accesses = range ? estimate_vector_accesses(g, range, to) : 1;
    double all = accesses > 1 ? each * accesses : each;
    operations += range ? estimate_vectorised(all, accesses, (double)lanes) : each;
  }
  return operations;
}

/** Operations of a binder itself: stores of a STAGE, accumulator steps of a FOLD. */
static double binder_operations(ir *g, const node *binder, const node *range, int64_t lanes) {
  if (binder->op == OP_STAGE) return store_operations(g, binder, range, lanes);
  return range ? estimate_node_operations(binder) / (double)lanes
               : estimate_node_operations(binder);
}

/** True if all arrays of a stage are stored at consecutive addresses along a range. */
static bool stores_are_consecutive(ir *g, const node *stage, const node *range) {
  for (size_t i = 0; i < stage_n_values(stage); i++)
    if (!coordinates_are_unit_stride(g, range, stage_rank(stage, i), stage_extents(stage, i),
                                     stage_coords(stage, i)))
      return false;
  return true;
}

/** Operations that packing saves where the lanes of a stage's nest read an operand at scattered
    addresses: consecutive reads take the place of scattered ones, of which there is one for all
    reads of an element. Scattered stores, which the estimate counts as reads, cost more. */
static double operations_saved_by_packing(estimate *e, const node *stage, const node_list *nest,
                                          const node *range, int64_t lanes) {
  double saved = 0;
  if (stage->op != OP_STAGE) return 0;
  if (!stores_are_consecutive(e->g, stage, range))
    saved -= estimate_stage_stores(stage) * MACHINE_SCATTERED_STORE_OPERATIONS;
  for (size_t i = 0; i < nest->n; i++) {
    const node *n = nest->at[i];
    if (n->op != OP_INDEX || !node_is_free_in(range, n) || read_is_unit_stride(e->g, range, n))
      continue;
    double reuse = choice_reuse_if_packed(e->c, stage, n, lanes);
    if (reuse < 1) continue;
    saved += estimate_node_vectorised(e->g, n, range, (double)lanes) * (1 - 1 / reuse) -
             estimate_vectorised(estimate_node_operations(n), true, (double)lanes);
  }
  return saved;
}

/** True if a range of open size may be shorter than a vector, and a loop that is not, along which
   the stage stores consecutive elements, would do as well. */
static bool is_open_outer_axis(ir *g, const node *stage, const node *range, int64_t lanes) {
  if (node_is_const(range_extent(range)) || range_extent(range)->lo >= lanes) return false;
  for (size_t i = 0; i < stage_n_ranges(stage); i++) {
    const node *other = stage_range(stage)[i];
    if (range_extent(other)->lo >= lanes && range_kind_of(other) == KIND_LOOP &&
        stores_are_consecutive(g, stage, other))
      return true;
  }
  return false;
}

static bool may_be_lanes(estimate *e, const node *binder, const node *range, int64_t lanes) {
  if (range_kind_of(range) != KIND_LOOP || lanes < 2) return false;
  if (nest_copies_along(binder, range)) return false;
  if (binder->op == OP_STAGE)
    return !is_open_outer_axis(e->g, binder, range, lanes) && !choice_scanned_range(e->c, binder);
  return law_fold_is_reorderable(binder, e->c->math) &&
         range_likely_trips(range) >= (double)(MACHINE_VECTORISED_FOLD_LEAST * lanes);
}

/** True if a binder stores a FOLD's array that lies in its output: updates of some elements. */
static bool stores_updates(const node *binder) {
  for (size_t i = 0; binder->op == OP_STAGE && i < stage_n_values(binder); i++)
    if (stage_placed_fold(binder, i)) return true;
  return false;
}

/** Vector bytes of a nest along a range. A memory-bound nest uses half lines: with vectors of whole
    lines, several streams run ahead of the hardware prefetcher at once, which is slower. Updates
   are no streams: each goes to another line, of which half a vector would leave the rest. */
static size_t vector_bytes_of(const choice *c, const node *binder, const node_list *nest,
                              const node *range) {
  size_t most = c->target->vector_bytes;
  if (stores_updates(binder)) return most;
  size_t half = (size_t)(MACHINE_STREAMED_VECTOR_LINE_SHARE *
                         hardware_with_defaults(&c->target->hardware).line_bytes);
  return most > half && choice_is_memory_bound(c, nest, range) ? half : most;
}

static int64_t lanes_of(const choice *c, const node *binder, const node_list *nest,
                        const node *range) {
  size_t widest = estimate_widest_element(nest, range);
  for (size_t i = 0; binder->op == OP_STAGE && i < stage_n_values(binder); i++) {
    node_list value = {(const node **)&binder->src[i], 1, 1};
    size_t bytes = estimate_widest_element(&value, NULL);
    if (bytes > widest) widest = bytes;
  }
  return target_lanes(c->target, vector_bytes_of(c, binder, nest, range), widest);
}

/** A range for a binder's vectors; NULL: there are those of inner nests alone. */
typedef struct lane_range {
  const node *range;
  int64_t lanes;
  double operations, packed; /* as operands lie, and where scattered ones are packed */
} lane_range;

enum { MOST_LANE_RANGES = 8 }; /* alternatives of a nest */

/** Inserts a range into a list in the order of operations, of which the first are kept. */
static size_t insert_range(lane_range list[], size_t n, lane_range r) {
  size_t at = n;
  while (at && r.operations < list[at - 1].operations) at--;
  if (at == MOST_LANE_RANGES) return n;
  if (n < MOST_LANE_RANGES) n++;
  for (size_t i = n - 1; i > at; i--) list[i] = list[i - 1];
  list[at] = r;
  return n;
}

/** Lists the ranges of a binder whose vectors take the fewest operations, and none among them;
    returns their number. */
static size_t best_ranges(estimate *e, const node *binder, lane_range list[MOST_LANE_RANGES]) {
  node_list nest = nest_nodes(ir_arena(e->g), binder);
  const node *const *ranges;
  double inner =
      nest_operations(e, binder, &nest, NULL, 1) + binder_operations(e->g, binder, NULL, 1);
  size_t n = insert_range(list, 0, (lane_range){NULL, 1, inner, inner});
  for (size_t i = binder_ranges(binder, &ranges); i-- > 0;) {
    int64_t lanes = lanes_of(e->c, binder, &nest, ranges[i]);
    if (!node_is_const(range_extent(ranges[i]))) lanes = choice_fit_lanes(ranges[i], lanes);
    if (!may_be_lanes(e, binder, ranges[i], lanes)) continue;
    double operations = nest_operations(e, binder, &nest, ranges[i], lanes);
    if (operations < 0) continue;
    operations += binder_operations(e->g, binder, ranges[i], lanes);
    double saved = operations_saved_by_packing(e, binder, &nest, ranges[i], lanes);
    n = insert_range(list, n, (lane_range){ranges[i], lanes, operations, operations - saved});
  }
  return n;
}

/** The range of a binder whose vectors take the fewest operations, and their lanes; NULL: none
    takes fewer than vectors of inner nests alone. */
static const node *best_range(estimate *e, const node *binder, int64_t *lanes) {
  lane_range list[MOST_LANE_RANGES];
  best_ranges(e, binder, list);
  *lanes = list[0].lanes;
  return list[0].range;
}

/** Finds the vectors that inner nests would have by themselves. */
static void find_inner_vectors(estimate *e, const node *binder) {
  node_list nest = nest_nodes(ir_arena(e->g), binder);
  for (size_t i = 0; i < nest.n; i++) {
    const node *b = nest.at[i];
    int64_t lanes;
    const node *range = b->op == OP_STAGE || b->op == OP_FOLD ? best_range(e, b, &lanes) : NULL;
    if (!range) continue;
    map_set(ir_arena(e->g), &e->inner_range, b, (void *)range);
    map_set(ir_arena(e->g), &e->lanes, range, (void *)(intptr_t)lanes);
  }
}

/* A reduction: FOLD[r] = FOLD[lane] of FOLD[sum] of FOLD[r₀], r = (r₀·sums + sum)·lanes + lane. */

/** Moves the innermost ranges of a FOLD to its front and nests a FOLD of the others in each. */
static const node *nest_ranges(choice *c, const node *sink, const node *const ranges[], size_t n) {
  for (size_t i = n; sink && i-- > 0;)
    if (ranges[i]) sink = law_order(&c->laws, sink, ranges[i], 0);
  for (size_t i = n; sink && i-- > 0;)
    if (ranges[i]) sink = law_nest(&c->laws, sink, ranges[i]);
  return sink;
}

/** Splits a reduction into `sums` vectors of `lanes` partial results. */
static void split_partial_sums(choice *c, const node *range, int64_t lanes, int64_t sums) {
  const node *outer, *inner, *sum = NULL, *lane;
  const node *made = law_split(&c->laws, c->sink, range, lanes * sums, &outer, &inner);
  if (!made || !outer) return;
  lane = inner;
  if (sums > 1) made = law_split(&c->laws, made, inner, lanes, &sum, &lane);
  if (made) made = nest_ranges(c, made, (const node *[]){lane, sum}, 2);
  if (made && sum) made = law_kind(&c->laws, made, sum, KIND_UNROLL, &sum);
  if (made) made = law_kind(&c->laws, made, lane, KIND_UNROLL, &lane);
  choice_take(c, made);
}

/** Vectors of partial results of a reduction: several hide the latency of additions, unless the
    reduction is short or its term takes longer than that. */
static int64_t partial_sums(choice *c, const node *range, int64_t lanes) {
  double cost = 0;
  node_list nest = nest_nodes(ir_arena(c->laws.g), law_find_binder(&c->laws, c->sink, range));
  for (size_t i = 0; i < nest.n; i++)
    if (node_is_free_in(range, nest.at[i])) cost += op_instruction_cost((op)nest.at[i]->op);
  return cost < MACHINE_LATENCY_HIDING_TERM &&
                 range_likely_trips(range) >= (double)(MACHINE_LONG_REDUCTION_VECTORS * lanes)
             ? MACHINE_PARTIAL_SUMS
             : 1;
}

static void vectorise_fold(choice *c, const node *range, int64_t lanes) {
  const node *whole, *rest, *rest_of_rest;
  int64_t sums = partial_sums(c, range, lanes);
  if (!choice_split_remainder(c, range, lanes * sums, &whole, &rest)) return;
  split_partial_sums(c, whole, lanes, sums);
  if (sums == 1 || !rest) return;
  if (range_extent(rest)->hi < MACHINE_VECTORISED_FOLD_LEAST * lanes) return;
  if (choice_split_remainder(c, rest, lanes, &whole, &rest_of_rest))
    split_partial_sums(c, whole, lanes, 1);
}

/* All nests. */

static const node *first_range(const node *binder) {
  const node *const *ranges;
  return binder_ranges(binder, &ranges) ? ranges[0] : NULL;
}

/** True if a binder runs in lanes or copies already, its own or those of a binder around it; adds
   the ranges inside of them to `inside`. */
static bool is_in_lanes(arena *a, map *inside, const node *binder) {
  const node *const *ranges;
  bool in = map_has(inside, binder);
  for (uint32_t k = 0; k < binder->free->n; k++) in |= map_has(inside, binder->free->at[k]);
  if (in && binder->op == OP_FOLD) law_add_fold_arrays(a, binder, inside);
  for (size_t k = 0, n = binder_ranges(binder, &ranges); k < n; k++) {
    range_kind kind = range_kind_of(ranges[k]);
    in |= kind == KIND_VECTOR || kind == KIND_UNROLL;
    if (in) map_set(a, inside, ranges[k], (void *)ranges[k]);
  }
  return in;
}

/** The outermost binder that was not tried and is not in lanes; NULL: none. */
static const node *next_binder(choice *c, const map *tried) {
  map inside = {0};
  node_list binders = choice_binders(c);
  for (size_t i = 0; i < binders.n; i++) {
    const node *b = binders.at[i], *first = first_range(b);
    bool vectorised = is_in_lanes(ir_arena(c->laws.g), &inside, b);
    if (first && !vectorised && !map_has(tried, first)) return b;
  }
  return NULL;
}

/** Decides the range of a STAGE's vectors: where it reduces, other ranges that take not many more
    operations are alternatives, and so are vectors of its reductions. */
static lane_range choose_lanes(estimate *e, const node *stage) {
  node_list nest = nest_nodes(ir_arena(e->g), stage);
  lane_range list[MOST_LANE_RANGES] = {0};
  size_t all = best_ranges(e, stage, list), n = 1;
  bool is_worse = !list[0].range; /* than vectors of the reductions, but for packing */
  for (size_t i = 1; i < all; i++) {
    double operations = is_worse ? list[i].packed : list[i].operations;
    bool is_lane = list[i].range || e->inner_range.n;
    is_worse |= !list[i].range;
    if (is_lane && operations <= MACHINE_ALTERNATIVE_LANES_COST * list[0].operations)
      list[n++] = list[i];
  }
  if (n < 2 || !nest_has_fold(&nest)) return list[0];
  return list[choice_decide(e->c, DECISION_LANES, n)];
}

void choose_vectorise(choice *c) {
  ir *g = c->laws.g;
  map tried = {0};
  if (!c->target->vector_bytes) return;
  for (const node *b; !choice_at_node_limit(c) && (b = next_binder(c, &tried));) {
    estimate e = {.c = c, .g = g};
    if (b->op == OP_STAGE) choice_padded_conditions(c, b, &e.padded);
    find_inner_vectors(&e, b);
    int64_t lanes;
    map_set(ir_arena(g), &tried, first_range(b), (void *)b);
    if (b->op == OP_STAGE) {
      lane_range r = choose_lanes(&e, b);
      if (r.range) choice_vectorise_range(c, r.range, r.lanes);
    } else {
      const node *range = best_range(&e, b, &lanes);
      if (range) vectorise_fold(c, range, lanes);
    }
  }
}
