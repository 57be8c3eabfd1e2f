/* Implements KIND: annotates a range of a STAGE (array builder) or FOLD (reduction and scan) as
   unrolled, vectorised or parallel:

     for r kind=loop   →   for r kind=unroll | vector | thread | global | local | warp | tile

   UNROLL and VECTOR become copies and lanes when the kernel is expanded. THREAD indices are units
   that are shared out among workers, which run without synchronisation: no two of them may store
   one element. Blocks of OVERLAP store some elements twice; those that two units may share are the
   last two, which one worker runs (codegen/lower/parallel_loops.c). GLOBAL, LOCAL and WARP ranges
   are digits of the numbers of groups and of workers in a group (team_digits.h). TILE ranges are
   the sides of a tile of tensor_rows.def where the nest is one (ir/index/tile_match.h), and loops
   elsewhere. */
#include "ir/index/index_proof.h"
#include "laws/law_support.h"
#include "laws/team_digits.h"

#include "ir/core/topo_sort.h"
#include "ir/index/row_major_address.h"
#include "ir/index/write_once.h"
#include "ir/transform/substitute.h"

enum { MOST_LANES = 64, MOST_COPIES = 1024 };

/** True if the extent of another range, or of an array, depends on `range`. */
static bool varies_inside(laws *l, const node *sink, const node *range) {
  node_list order = law_index_of(l, sink).nodes;
  for (size_t i = 0; i < order.n; i++) {
    const node *n = order.at[i];
    if (n->op == OP_RANGE && n != range && node_is_free_in(range, n)) return true;
    if (n->op != OP_STAGE && n->op != OP_FOLD) continue;
    binder_layout p = binder_layout_of((op)n->op, n->ints);
    for (size_t k = p.extents; k < p.ranges; k++)
      if (node_is_free_in(range, n->src[k])) return true;
  }
  return false;
}

/** True if a node other than an OUT uses a STAGE. */
static bool is_read(laws *l, const node *sink, const node *stage) {
  node_list order = law_index_of(l, sink).nodes;
  for (size_t i = 0; i < order.n; i++)
    for (uint32_t k = 0; order.at[i]->op != OP_OUT && k < order.at[i]->n_src; k++)
      if (order.at[i]->src[k] == stage) return true;
  return false;
}

/** The block index of an overlapping coordinate, min(e, K) with K free of the STAGE's ranges: e;
    NULL for other nodes. */
static const node *block_of(const node *stage, const node *x) {
  for (uint32_t k = 0; k < 2 && x->op == OP_MIN; k++)
    if (!law_depends_on_any(stage_range(stage), stage_n_ranges(stage), x->src[k]))
      return x->src[1 - k];
  return NULL;
}

/** A coordinate whose blocks do not overlap: the last one goes on beyond the end. */
static const node *without_overlap(ir *g, const node *stage, const node *x) {
  node_list order = topo_sort(ir_arena(g), &x, 1, NULL, NULL);
  map with = {0};
  for (size_t i = 0; i < order.n; i++) {
    const node *block = block_of(stage, order.at[i]);
    if (block) map_set(ir_arena(g), &with, order.at[i], (void *)subst(g, block, &with));
  }
  return subst(g, x, &with);
}

/** True if x = c·range + rest with 0 ≤ rest < c. */
static bool is_leading_digit(ir *g, const node *range, const node *x) {
  int64_t c = ix_coefficient(x, range);
  const node *rest = ix_sub(g, x, ix_scale(g, range, c));
  return c > 0 && !node_is_free_in(range, rest) && ix_prove_nonnegative(g, rest) &&
         ix_prove_lt(g, rest, ix_const(g, c));
}

/** True if a range enters a coordinate as the leading digit of overlapping blocks alone: elements
    that two of its indices have in common are those of the last two. */
static bool counts_blocks(ir *g, const node *stage, const node *range, const node *x) {
  node_list order = topo_sort(ir_arena(g), &x, 1, NULL, NULL);
  map without = {0};
  for (size_t i = 0; i < order.n; i++) {
    const node *block = block_of(stage, order.at[i]);
    if (!block || !node_is_free_in(range, order.at[i])) continue;
    if (!is_leading_digit(g, range, without_overlap(g, stage, block))) return false;
    map_set(ir_arena(g), &without, order.at[i], (void *)ix_const(g, 0));
  }
  return !node_is_free_in(range, subst(g, x, &without));
}

/** True if a range follows from a value's coordinates. */
static bool follows(ir *g, const node *stage, size_t value, const node *range,
                    const node *const coords[]) {
  const node *all[IR_MAX_RANK + 1];
  size_t rank = stage_rank(stage, value);
  for (size_t k = 0; k < rank; k++) all[k] = coords[k];
  const node *address = row_major_address(g, rank, stage_extents(stage, value), coords);
  all[rank] = address->op == OP_WHERE ? address->src[1] : address;
  return stage_range_is_determined(stage, range, rank + 1, all);
}

/** True if no two indices of a range write one element of any value. */
static bool parts_elements(ir *g, const node *stage, const node *range) {
  for (size_t i = 0; i < stage_n_values(stage); i++) {
    const node *const *coords = stage_coords(stage, i);
    bool is_apart = false, varies = node_is_free_in(range, stage_value(stage, i));
    for (size_t k = 0; k < stage_rank(stage, i); k++) {
      is_apart |= is_leading_digit(g, range, coords[k]);
      varies |= node_is_free_in(range, coords[k]);
    }
    if (varies && !is_apart && !follows(g, stage, i, range, coords)) return false;
  }
  return true;
}

/** True if no two indices of a range write one element of any value, but for the last two where
    blocks overlap: these are one worker's. */
static bool owns_elements(ir *g, const node *stage, const node *range) {
  for (size_t i = 0; i < stage_n_values(stage); i++) {
    const node *const *coords = stage_coords(stage, i), *apart[IR_MAX_RANK];
    bool is_apart = follows(g, stage, i, range, coords), counts = true;
    for (size_t k = 0; k < stage_rank(stage, i); k++) {
      is_apart |= is_leading_digit(g, range, coords[k]);
      apart[k] = without_overlap(g, stage, coords[k]);
      counts &= apart[k] == coords[k] || counts_blocks(g, stage, range, coords[k]);
    }
    if (!is_apart && !(counts && follows(g, stage, i, range, apart))) return false;
  }
  return true;
}

/** True if all blocks that overlap in a coordinate are groups'. */
static bool only_groups_overlap(ir *g, const node *stage, const node *x) {
  node_list order = topo_sort(ir_arena(g), &x, 1, NULL, NULL);
  for (size_t i = 0; i < order.n; i++) {
    const node *block = block_of(stage, order.at[i]);
    for (uint32_t k = 0; block && k < block->free->n; k++)
      if (range_kind_of(block->free->at[k]) != KIND_GLOBAL) return false;
  }
  return true;
}

/** True if no two indices of a range write one element of any value, but for those that two groups
    have in common, where blocks overlap: both store the same value. */
static bool owns_elements_in_group(ir *g, const node *stage, const node *range) {
  for (size_t i = 0; i < stage_n_values(stage); i++) {
    const node *const *coords = stage_coords(stage, i), *apart[IR_MAX_RANK];
    bool is_apart = false;
    for (size_t k = 0; k < stage_rank(stage, i); k++) {
      if (!only_groups_overlap(g, stage, coords[k])) return false;
      apart[k] = without_overlap(g, stage, coords[k]);
      is_apart |= is_leading_digit(g, range, apart[k]);
    }
    if (!is_apart && !follows(g, stage, i, range, apart)) return false;
  }
  return true;
}

/** True if an extent is a legal number of lanes, or a minimum with one (a block of SPLIT). */
static bool is_lane_count(const node *extent) {
  for (uint32_t i = 0; i < 2 && extent->op == OP_MIN; i++)
    if (node_is_const(extent->src[i])) extent = extent->src[i];
  int64_t n = node_is_const(extent) ? node_int(extent) : 0;
  return n >= 2 && n <= MOST_LANES && !(n & (n - 1));
}

static const char *vector_objection(laws *l, const node *sink, const node *b, const node *range) {
  if (b->op != OP_STAGE) return "the range is not a STAGE's";
  if (!is_lane_count(range_extent(range)))
    return "the extent is not a number of lanes (a power of two up to 64)";
  if (law_has_nested_vectors(l, sink, range)) return "a vector would run inside a vector";
  if (varies_inside(l, sink, range))
    return "the size of a loop or array inside varies along the range";
  size_t at = range_position(stage_range(b), range);
  bool is_innermost = at + 1 == stage_n_ranges(b);
  return is_innermost ? NULL : law_in_place_objection(l, sink, b, at, 1, true);
}

static const char *thread_objection(laws *l, const node *sink, const node *b, const node *range) {
  if (b->op != OP_STAGE || !law_find_out(sink, b)) return "the range is not of the kernel's output";
  for (size_t i = 0; i < stage_n_ranges(b); i++)
    if (stage_range(b)[i] != range && range_kind_of(stage_range(b)[i]) == KIND_THREAD)
      return "another range of the nest has the kind thread";
  if (!owns_elements(l->g, b, range)) return "two workers would write one element";
  if (is_read(l, sink, b)) return "the kernel reads its output";
  return law_in_place_objection(l, sink, b, range_position(stage_range(b), range), 1, true);
}

/** Objection to a digit by itself; team_objection checks the kernel that it makes. */
static const char *digit_objection(laws *l, const node *sink, const node *b, const node *range,
                                   range_kind kind) {
  const node *extent = range_extent(range);
  if (!l->workers || (kind == KIND_WARP && !l->warp))
    return "the kind is not supported on this target";
  if (range_kind_of(range) == KIND_THREAD) return "the range already has a kind";
  if (kind != KIND_GLOBAL && (extent->hi < 1 || extent->hi > l->workers))
    return "a team has not so many workers";
  if (b->op == OP_FOLD) return NULL;
  bool is_apart = parts_elements(l->g, b, range);
  if (!is_apart && law_find_out(sink, b))
    is_apart = kind == KIND_GLOBAL ? owns_elements(l->g, b, range)
                                   : owns_elements_in_group(l->g, b, range);
  if (!is_apart) return "two workers would write one element";
  return law_in_place_objection(l, sink, b, range_position(stage_range(b), range), 1, true);
}

/** Objection to the number of workers of a kernel. */
static const char *workers_objection(const laws *l, const node *sink) {
  node_list nodes = topo_sort(ir_arena(l->g), &sink, 1, NULL, NULL);
  team_digits t = team_digits_of(l->g, &nodes);
  if (t.workers > l->workers) return "a team has not so many workers";
  return t.warp > 1 && t.warp > l->warp ? "a warp has not so many workers" : NULL;
}

static const char *kind_objection(laws *l, const node *sink, const node *b, const node *range,
                                  range_kind kind) {
  const node *extent = range_extent(range);
  /* Overlapping blocks may be groups' alone, which other digits of the nest rely on. */
  if (range_is_digit(range)) return "the range is a digit, which keeps its kind";
  switch (kind) {
  case KIND_LOOP: return NULL;
  case KIND_VECTOR: return vector_objection(l, sink, b, range);
  case KIND_UNROLL:
    if (!node_is_const(extent) || node_int(extent) < 1 || node_int(extent) > MOST_COPIES)
      return "the extent is not a small constant";
    return NULL;
  case KIND_THREAD: return thread_objection(l, sink, b, range);
  case KIND_TILE: return node_is_const(extent) ? NULL : "the extent is not a constant";
  default: return digit_objection(l, sink, b, range, kind);
  }
}

const node *law_kind(laws *l, const node *sink, const node *range, range_kind kind,
                     const node **changed) {
  return law_kind_on_axis(l, sink, range, kind, 0, changed);
}

const node *law_kind_on_axis(laws *l, const node *sink, const node *range, range_kind kind,
                             int64_t axis, const node **changed) {
  const node *b = law_find_binder(l, sink, range);
  if (!b || b->op == OP_END) return law_refuse(l, "no STAGE or FOLD binds the range");
  const char *why = kind_objection(l, sink, b, range, kind);
  if (why) return law_refuse(l, why);
  if (axis < 0 || axis >= LAW_AXES) return law_refuse(l, "there is no such axis");
  *changed = range_on_axis(l->g, range, kind, axis);
  if (axis && !range_is_digit(*changed) && kind != KIND_TILE)
    return law_refuse(l, "the kind has no axes");
  const node *made = law_replace(l, sink, range, *changed);
  if (range_is_digit(*changed) && (why = workers_objection(l, made))) return law_refuse(l, why);
  law_args args = {.subject = range, .number = law_kind_number(kind, axis)};
  return law_record(l, sink, made, LAW_KIND, &args, NULL);
}

void law_check_warps(const laws *l, const node *sink) {
  node_list nodes = topo_sort(ir_arena(l->g), &sink, 1, NULL, NULL);
  team_digits t = team_digits_of(l->g, &nodes);
  if (t.warp > 1 && t.warp != l->warp)
    diag_raise(ir_diag(l->g), TN_ERR_ARGUMENT,
               "the schedule makes warps of %" PRId64 " workers, but the target's have %" PRIu32,
               t.warp, l->warp);
}

static bool has_thread_range(const node *out) {
  const node *stage = out->src[out->n_src - 1];
  for (size_t i = 0; i < stage_n_ranges(stage); i++)
    if (range_kind_of(stage_range(stage)[i]) == KIND_THREAD) return true;
  return false;
}

void law_check_threads(diag *d, const node *sink) {
  for (uint32_t i = 1; i < sink->n_src; i++)
    if (has_thread_range(sink->src[i]) != has_thread_range(sink->src[0]))
      diag_raise(
          d, TN_ERR_ARGUMENT,
          "the schedule parallelises one nest of the kernel but not another, which every thread "
          "would run (UNIT adds a range of one index)");
}
