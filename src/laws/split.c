#include "laws/laws.h"

#include "ir/subst.h"

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

static const node *inner_extent(ir *g, const node *extent, const node *base, const node *factor) {
  if (node_is_bits(ix_mod(g, extent, factor), 0)) return factor;
  return ix_min(g, factor, ix_sub(g, extent, base));
}

const node *law_split(laws *l, const node *sink, const node *range, int64_t factor,
                      const node **outer, const node **inner) {
  ir *g = l->g;
  const node *b = law_binder(l, sink, range);
  if (!b || b->op == OP_END) return law_refuse(l, "no STAGE or FOLD binds the range");
  if (factor < 1) return law_refuse(l, "the factor is not positive");
  if (range_kind_of(range) != KIND_LOOP) return law_refuse(l, "the range has a kind already");
  const node *extent = range_extent(range), *f = ix_const(g, factor);
  const node *blocks = ix_floordiv(g, ix_add_const(g, extent, factor - 1), f),
             *base = ix_const(g, 0);
  *outer = node_is_bits(blocks, 1) ? NULL : range_make(g, blocks, KIND_LOOP);
  if (*outer) base = ix_scale(g, *outer, factor);
  *inner = range_make(g, inner_extent(g, extent, base, f), KIND_LOOP);
  map with = {0};
  map_set(ir_arena(g), &with, range, (void *)ix_add(g, base, *inner));
  const node **src = arena_alloc(ir_arena(g), b->n_src * sizeof *src);
  for (uint32_t i = 0; i < b->n_src; i++) {
    /* A state goes by its fold's innermost range, whatever the index of the step becomes. */
    src[i] = b->op == OP_FOLD ? state_renamed(g, b->src[i], range, *inner) : b->src[i];
    src[i] = subst(g, src[i], &with);
  }
  return law_replace(l, sink, b, with_two(l, b, src, range, *outer, *inner));
}
