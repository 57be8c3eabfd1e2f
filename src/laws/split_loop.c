/* Implements SPLIT and OVERLAP: strip-mining of one range of a STAGE (array builder) or FOLD
   (reduction and scan).

     SPLIT r by f:    for r < n   →   for r₀ < ⌈n/f⌉, r₁ < min(f, n − r₀·f)    r = r₀·f + r₁
     OVERLAP r by f:  for r < n   →   for r₀ < ⌈n/f⌉, r₁ < f    r = min(r₀·f, n − f) + r₁

   OVERLAP trades the remainder loop for a last full block that computes some elements again.
   Storing these twice is harmless only if both stores write the same value: so no FOLD may start
   from or step to the STAGE, nor update an array that the STAGE copies, the buffer is not read by
   the kernel, and f ≤ n is proved. */
#include "laws/law_support.h"

#include "ir/core/topo_sort.h"
#include "ir/index/index_arithmetic.h"
#include "ir/index/index_proof.h"
#include "ir/index/write_once.h"
#include "ir/transform/substitute.h"

/** A binder with `range` replaced by `outer` (NULL: a single block) and `inner`; its other sources
    come from `src`. */
static const node *replace_range(laws *l, const node *b, const node *const *src, const node *range,
                                 const node *outer, const node *inner) {
  const node *const *ranges;
  size_t n = binder_ranges(b, &ranges), count = 0;
  const node **all = arena_alloc(ir_arena(l->g), (n + 1) * sizeof *all);
  for (size_t i = 0; i < n; i++) {
    bool is_split = ranges[i] == range;
    if (is_split && outer) all[count++] = outer;
    all[count++] = is_split ? inner : src[&ranges[i] - b->src];
  }
  return binder_with_ranges(l->g, b, src, count, all);
}

static bool divides(ir *g, const node *factor, const node *extent) {
  return node_is_bits(ix_mod(g, extent, factor), 0);
}

static const char *split_objection(const node *b, const node *range, int64_t factor) {
  if (!b || b->op == OP_END) return "no STAGE or FOLD binds the range";
  if (factor < 1) return "the factor is not positive";
  return range_kind_of(range) == KIND_LOOP ? NULL : "the range already has a kind";
}

/** A range over the blocks of a range; NULL for a single block. */
static const node *block_range(ir *g, const node *range, int64_t factor) {
  const node *rounded_up = ix_add_const(g, range_extent(range), factor - 1);
  const node *blocks = ix_floordiv(g, rounded_up, ix_const(g, factor));
  return node_is_bits(blocks, 1) ? NULL : range_make(g, blocks, KIND_LOOP);
}

/** The kernel with a range of a binder replaced by base + inner, and the law recorded. */
static const node *split_binder(laws *l, const node *sink, const node *b, const node *range,
                                int64_t factor, const node *base, const node *outer,
                                const node *inner, law which) {
  ir *g = l->g;
  map with = {0};
  map_set(ir_arena(g), &with, range, (void *)ix_add(g, base, inner));
  const node **src = arena_alloc(ir_arena(g), b->n_src * sizeof *src);
  for (uint32_t i = 0; i < b->n_src; i++) {
    /* STATEs are named by the innermost range, which keeps its role in the index. */
    src[i] = b->op == OP_FOLD ? law_rename_state(g, b->src[i], range, inner) : b->src[i];
    src[i] = subst(g, src[i], &with);
  }
  const node *made = law_replace(l, sink, b, replace_range(l, b, src, range, outer, inner));
  law_args args = {.subject = range, .number = factor};
  return law_record(l, sink, made, which, &args, (const node *[]){outer, inner});
}

const node *law_split(laws *l, const node *sink, const node *range, int64_t factor,
                      const node **outer, const node **inner) {
  ir *g = l->g;
  const node *b = law_find_binder(l, sink, range);
  const char *why = split_objection(b, range, factor);
  if (why) return law_refuse(l, why);
  const node *extent = range_extent(range), *f = ix_const(g, factor), *base = ix_const(g, 0);
  *outer = block_range(g, range, factor);
  if (*outer) base = ix_scale(g, *outer, factor);
  if (!divides(g, f, extent)) f = ix_min(g, f, ix_sub(g, extent, base));
  *inner = range_make(g, f, KIND_LOOP);
  return split_binder(l, sink, b, range, factor, base, *outer, *inner, LAW_SPLIT);
}

/* Overlapping blocks. */

/** True if the kernel reads a buffer that an OUT stores to. */
static bool is_read_by_kernel(const node_list *order, const node *out) {
  for (size_t i = 0; i < order->n; i++)
    if (order->at[i]->op == OP_INDEX &&
        nodes_contain(out->src, out->n_src - 1, order->at[i]->src[0]))
      return true;
  return false;
}

/** Objection to storing elements of a STAGE twice. */
static const char *stored_twice_objection(laws *l, const node *sink, const node *b) {
  node_list order = law_index_of(l, sink).nodes;
  if (b->op != OP_STAGE) return "the range is not a STAGE's";
  for (size_t i = 0; i < stage_n_values(b); i++)
    if (stage_placed_fold(b, i)) return "a FOLD may update its array where it is stored";
  for (size_t i = 0; i < order.n; i++)
    for (uint32_t k = 0; k < order.at[i]->n_src; k++) {
      const node *n = order.at[i];
      if (n->src[k] != b) continue;
      if (n->op != OP_INDEX && n->op != OP_OUT) return "the STAGE is a part of a FOLD";
      if (n->op == OP_OUT && is_read_by_kernel(&order, n))
        return "the kernel updates a buffer in place";
    }
  return NULL;
}

static const char *overlap_objection(laws *l, const node *sink, const node *b, const node *range,
                                     int64_t factor) {
  const char *why = split_objection(b, range, factor);
  if (why) return why;
  if (divides(l->g, ix_const(l->g, factor), range_extent(range))) return NULL; /* as SPLIT */
  why = stored_twice_objection(l, sink, b);
  if (why) return why;
  bool is_inside = ix_prove_le(l->g, ix_const(l->g, factor), range_extent(range));
  return is_inside ? NULL : "the block is not proved to fit in the range";
}

bool law_may_overlap(laws *l, const node *sink, const node *range, int64_t factor) {
  return !overlap_objection(l, sink, law_find_binder(l, sink, range), range, factor);
}

const node *law_overlap(laws *l, const node *sink, const node *range, int64_t factor,
                        const node **outer, const node **inner) {
  ir *g = l->g;
  const node *b = law_find_binder(l, sink, range);
  const char *why = overlap_objection(l, sink, b, range, factor);
  if (why) return law_refuse(l, why);
  const node *extent = range_extent(range), *f = ix_const(g, factor), *base = ix_const(g, 0);
  *outer = block_range(g, range, factor);
  if (*outer) base = ix_scale(g, *outer, factor);
  if (!divides(g, f, extent)) base = ix_min(g, base, ix_sub(g, extent, f));
  *inner = range_make(g, f, KIND_LOOP);
  return split_binder(l, sink, b, range, factor, base, *outer, *inner, LAW_OVERLAP);
}
