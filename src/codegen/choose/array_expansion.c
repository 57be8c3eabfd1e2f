/* Implements array expansion, a step of the automatic scheduler: where a nest builds arrays for one
   index of a range after the other, and reductions read operands that all these indices share, the
   range is strip-mined and the arrays are built for a block of indices at once (laws HOIST, BATCH).
   A register tile of the block then loads such an operand once. Arrays inside of other arrays'
   nests follow. The search chooses the block, and the outermost of the loops that arrays are built
   in. */
#include "codegen/choose/choice.h"
#include "codegen/choose/nest_analysis.h"
#include "target/hardware.h"
#include "target/kernel_estimates.h"

#include "base/map.h"
#include "ir/index/index_arithmetic.h"

static bool is_of_known_size(const node *stage) {
  binder_layout p = binder_layout_of(OP_STAGE, stage->ints);
  for (size_t i = p.extents; i < p.ranges; i++)
    if (!node_is_const(stage->src[i])) return false;
  return true;
}

/** Bytes of the arrays in a nest that are built for each index of a range; 0: there are none, or
   one of varying size. */
static double array_bytes_per_index(const node_list *nest, const node *range) {
  double bytes = 0;
  for (size_t i = 0; i < nest->n; i++) {
    const node *n = nest->at[i];
    if (n->op != OP_STAGE || !node_is_free_in(range, n)) continue;
    if (!is_of_known_size(n)) return 0;
    bytes += estimate_stage_bytes(n);
  }
  return bytes;
}

/** True if a reduction that depends on a range reads elements that do not. */
static bool shares_operands(arena *a, const node_list *nest, const node *range) {
  for (size_t i = 0; i < nest->n; i++) {
    const node *f = nest->at[i];
    if (f->op != OP_FOLD || !node_is_free_in(range, f)) continue;
    node_list body = nest_nodes(a, f);
    for (size_t k = 0; k < body.n; k++) {
      const node *n = body.at[k];
      if (n->op == OP_INDEX && !node_is_free_in(range, n) &&
          node_is_free_in(fold_innermost_range(f), n))
        return true;
    }
  }
  return false;
}

/** The largest block of at most `most` indices whose arrays fit in a share of the scratch memory;
    blocks are of about equal size. */
static int64_t block_size(const choice *c, const node *range, double bytes, int64_t most,
                          double share) {
  double free_bytes =
      share * (double)hardware_scratch_bytes(&c->target->hardware, c->target->scratch);
  if ((double)most * bytes > free_bytes) most = (int64_t)(free_bytes / bytes);
  if (most > range_extent(range)->lo) most = range_extent(range)->lo;
  return most > 0 ? ix_block_size(range_extent(range), most) : 0;
}

/** Decides the size of a block: the usual one, a smaller or a larger one. */
static int64_t choose_block_size(choice *c, const node *range, double bytes) {
  double share = MACHINE_EXPANDED_SCRATCH_SHARE;
  int64_t usual = block_size(c, range, bytes, MACHINE_EXPANDED_BLOCK_MOST, share);
  int64_t sizes[3] = {usual};
  size_t n = 1;
  if (usual > 3) sizes[n++] = block_size(c, range, bytes, usual / 2, share);
  int64_t large = block_size(c, range, bytes, 2 * usual, 1);
  if (large > usual) sizes[n++] = large;
  return usual > 1 ? sizes[choice_decide(c, DECISION_EXPANSION, n)] : usual;
}

/** True if a FOLD is a scan: it carries array states, or states without an op. Its loop cannot move
    out of a range, but BATCH can carry the states of all indices. */
static bool is_scan(const node *n) {
  bool carries = false;
  for (size_t i = 0; n->op == OP_FOLD && i < fold_n_states(n); i++)
    carries |= fold_op(n, i) < 0 || fold_component(n, i) >= 0;
  return carries;
}

/** The kernel with one binder built outside of a range; NULL: a law refused. */
static const node *hoist_binder(choice *c, const node *n, const node *range) {
  const node *own;
  if (n->op == OP_STAGE) return law_hoist(&c->laws, c->sink, n, range, &own);
  if (!is_scan(n)) return NULL;
  return law_batch(&c->laws, c->sink, fold_range(n)[0], range);
}

/** Moves all arrays and scans that depend on a range outside of it. */
static void hoist_all(choice *c, const node *range) {
  map refused = {0};
  for (bool changed = true; changed;) {
    changed = false;
    node_list order = law_index_of(&c->laws, c->sink).nodes;
    for (size_t i = 0; i < order.n && !changed; i++) {
      const node *n = order.at[i];
      bool is_binder = n->op == OP_STAGE || n->op == OP_FOLD;
      if (!is_binder || !node_is_free_in(range, n) || map_has(&refused, n)) continue;
      const node *made = hoist_binder(c, n, range);
      if (made)
        c->sink = made;
      else
        map_set(ir_arena(c->laws.g), &refused, n, (void *)n);
      changed = made;
    }
  }
}

/** True if arrays in a nest are built for each index of a range. */
static bool builds_along(const node_list *nest, const node *range) {
  for (size_t i = 0; i < nest->n; i++)
    if (nest->at[i]->op == OP_STAGE && node_is_free_in(range, nest->at[i])) return true;
  return false;
}

/** Moves the range of a block inside of the last loop that arrays are built in. */
static void move_inside_builds(choice *c, const node *range) {
  const node *stage = law_find_binder(&c->laws, c->sink, range);
  node_list nest = nest_nodes(ir_arena(c->laws.g), stage);
  size_t own = range_position(stage_range(stage), range), last = stage_n_ranges(stage) - 1;
  while (last > own && !builds_along(&nest, stage_range(stage)[last])) last--;
  if (last > own) choice_take(c, law_order(&c->laws, c->sink, range, last));
}

/** Builds the arrays of a stage for a block of a range's indices at once; the ranges that take its
    place are added to `seen`. */
static bool expand_arrays(choice *c, const node *stage, const node *range, map *seen) {
  arena *a = ir_arena(c->laws.g);
  node_list nest = nest_nodes(a, stage);
  double bytes = array_bytes_per_index(&nest, range);
  if (range_kind_of(range) != KIND_LOOP || !bytes || !shares_operands(a, &nest, range))
    return false;
  int64_t block = choose_block_size(c, range, bytes);
  const node *outer, *inner;
  const node *made =
      block > 1 ? law_overlap(&c->laws, c->sink, range, block, &outer, &inner) : NULL;
  if (!made) return false;
  c->sink = made;
  map_set(a, seen, outer, NULL);
  map_set(a, seen, inner, NULL);
  hoist_all(c, inner);
  move_inside_builds(c, inner);
  return true;
}

/** Moves one of the loops that arrays are built in outermost: what does not depend on the others is
    then built once for all of their indices. */
static const node *choose_outermost(choice *c, const node *stage) {
  arena *a = ir_arena(c->laws.g);
  node_list nest = nest_nodes(a, stage), candidates = {0};
  for (size_t i = 0; i < stage_n_ranges(stage); i++) {
    const node *r = stage_range(stage)[i];
    if (!i || (range_kind_of(r) == KIND_LOOP && builds_along(&nest, r)))
      vec_push(a, &candidates, r);
  }
  if (candidates.n < 2) return stage;
  size_t taken = choice_decide(c, DECISION_OUTERMOST, candidates.n);
  const node *range = candidates.at[taken];
  if (taken) choice_take(c, law_order(&c->laws, c->sink, range, 0));
  return law_find_binder(&c->laws, c->sink, range);
}

/** True if the loops of a stage were considered before. */
static bool is_seen(const node *stage, const map *seen) {
  for (size_t i = 0; i < stage_n_ranges(stage); i++)
    if (map_has(seen, stage_range(stage)[i])) return true;
  return false;
}

/** The first STAGE, outer ones first, that was not considered; NULL: none. */
static const node *next_stage(const choice *c, const map *seen) {
  node_list binders = choice_binders(c);
  for (size_t i = 0; i < binders.n; i++) {
    const node *b = binders.at[i];
    if (b->op == OP_STAGE && stage_n_ranges(b) && !is_seen(b, seen)) return b;
  }
  return NULL;
}

void choose_array_expansion(choice *c) {
  map seen = {0};
  for (const node *stage; (stage = next_stage(c, &seen));) {
    for (size_t i = 0; i < stage_n_ranges(stage); i++)
      map_set(ir_arena(c->laws.g), &seen, stage_range(stage)[i], NULL);
    stage = choose_outermost(c, stage);
    for (size_t k = stage_n_ranges(stage); k-- > 0;)
      if (expand_arrays(c, stage, stage_range(stage)[k], &seen)) break;
  }
}
