#include "laws/laws.h"

#include "ir/subst.h"
#include "ir/topo.h"

/** The binder with `range` replaced by two (by one, where `outer` has one index only and is NULL);
    everything else of it is in `src` already. */
static const node *with_two(laws *l, const node *b, const node *const *src, const node *range,
                            const node *outer, const node *inner) {
  const node *const *ranges;
  size_t n = binder_ranges(b, &ranges), count = 0;
  const node **all = arena_alloc(ir_arena(l->g), (n + 1) * sizeof *all);
  for (size_t i = 0; i < n; i++) {
    bool here = ranges[i] == range;
    if (here && outer) all[count++] = outer;
    all[count++] = here ? inner : src[&ranges[i] - b->src];
  }
  return binder_with_ranges(l->g, b, src, count, all);
}

static bool divides(ir *g, const node *factor, const node *extent) {
  return node_is_bits(ix_mod(g, extent, factor), 0);
}

static const char *objection(const node *b, const node *range, int64_t factor) {
  if (!b || b->op == OP_END) return "no STAGE or FOLD binds the range";
  if (factor < 1) return "the factor is not positive";
  return range_kind_of(range) == KIND_LOOP ? NULL : "the range has a kind already";
}

/** The range of the blocks of a range; NULL where there is only one. */
static const node *blocks_of(ir *g, const node *range, int64_t factor) {
  const node *more = ix_add_const(g, range_extent(range), factor - 1);
  const node *blocks = ix_floordiv(g, more, ix_const(g, factor));
  return node_is_bits(blocks, 1) ? NULL : range_make(g, blocks, KIND_LOOP);
}

/** The kernel in which base + inner stands for a range of a binder. */
static const node *divided(laws *l, const node *sink, const node *b, const node *range,
                           int64_t factor, const node *base, const node *outer, const node *inner,
                           law which) {
  ir *g = l->g;
  map with = {0};
  map_set(ir_arena(g), &with, range, (void *)ix_add(g, base, inner));
  const node **src = arena_alloc(ir_arena(g), b->n_src * sizeof *src);
  for (uint32_t i = 0; i < b->n_src; i++) {
    /* A state goes by its fold's innermost range, whatever the index of the step becomes. */
    src[i] = b->op == OP_FOLD ? state_renamed(g, b->src[i], range, inner) : b->src[i];
    src[i] = subst(g, src[i], &with);
  }
  const node *made = law_replace(l, sink, b, with_two(l, b, src, range, outer, inner));
  law_args args = {.subject = range, .number = factor};
  return law_made(l, sink, made, which, &args, (const node *[]){outer, inner});
}

const node *law_split(laws *l, const node *sink, const node *range, int64_t factor,
                      const node **outer, const node **inner) {
  ir *g = l->g;
  const node *b = law_binder(l, sink, range);
  const char *why = objection(b, range, factor);
  if (why) return law_refuse(l, why);
  const node *extent = range_extent(range), *f = ix_const(g, factor), *base = ix_const(g, 0);
  *outer = blocks_of(g, range, factor);
  if (*outer) base = ix_scale(g, *outer, factor);
  if (!divides(g, f, extent)) f = ix_min(g, f, ix_sub(g, extent, base));
  *inner = range_make(g, f, KIND_LOOP);
  return divided(l, sink, b, range, factor, base, *outer, *inner, LAW_SPLIT);
}

/* Blocks that overlap. */

/** Whether a buffer that a STAGE is written to is read by the kernel. */
static bool is_in_place(const node_list *order, const node *out) {
  for (size_t i = 0; i < order->n; i++)
    if (order->at[i]->op == OP_INDEX &&
        law_is_one_of(out->src, out->n_src - 1, order->at[i]->src[0]))
      return true;
  return false;
}

/** An element may be written twice, if it is the same both times. */
static const char *twice_objection(laws *l, const node *sink, const node *b) {
  node_list order = topo_sort(ir_arena(l->g), &sink, 1, NULL, NULL);
  if (b->op != OP_STAGE) return "the range is not a STAGE's";
  for (size_t i = 0; i < order.n; i++)
    for (uint32_t k = 0; k < order.at[i]->n_src; k++) {
      const node *n = order.at[i];
      if (n->src[k] != b) continue;
      if (n->op != OP_INDEX && n->op != OP_OUT) return "the STAGE is a part of a FOLD";
      if (n->op == OP_OUT && is_in_place(&order, n)) return "the kernel changes a buffer in place";
    }
  return NULL;
}

static const char *overlap_objection(laws *l, const node *sink, const node *b, const node *range,
                                     int64_t factor) {
  const char *why = objection(b, range, factor);
  if (!why) why = twice_objection(l, sink, b);
  if (why) return why;
  bool is_inside = ix_prove_le(l->g, ix_const(l->g, factor), range_extent(range));
  return is_inside ? NULL : "a block is not shown to be inside";
}

bool law_may_overlap(laws *l, const node *sink, const node *range, int64_t factor) {
  return !overlap_objection(l, sink, law_binder(l, sink, range), range, factor);
}

const node *law_overlap(laws *l, const node *sink, const node *range, int64_t factor,
                        const node **outer, const node **inner) {
  ir *g = l->g;
  const node *b = law_binder(l, sink, range);
  const char *why = overlap_objection(l, sink, b, range, factor);
  if (why) return law_refuse(l, why);
  const node *extent = range_extent(range), *f = ix_const(g, factor), *base = ix_const(g, 0);
  *outer = blocks_of(g, range, factor);
  if (*outer) base = ix_scale(g, *outer, factor);
  if (!divides(g, f, extent)) base = ix_min(g, base, ix_sub(g, extent, f));
  *inner = range_make(g, f, KIND_LOOP);
  return divided(l, sink, b, range, factor, base, *outer, *inner, LAW_OVERLAP);
}
