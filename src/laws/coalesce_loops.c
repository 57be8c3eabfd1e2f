/* Implements FLATTEN: coalesces (fuse in Halide and TVM) two adjacent ranges of a STAGE (array
   builder) or FOLD (reduction and scan), y outside and x inside, of constant extent X:

     for y < Y, x < X   →   for p < Y·X    y = p div X,  x = p mod X

   Both are LOOPs; a STAGE that updates a buffer in place must not depend on their order. */
#include "laws/law_support.h"

#include "ir/index/index_arithmetic.h"
#include "ir/transform/substitute.h"

const node *law_flatten(laws *l, const node *sink, const node *range, const node **fused) {
  ir *g = l->g;
  const node *b = law_find_binder(l, sink, range), *const * ranges;
  if (!b || b->op == OP_END) return law_refuse(l, "no STAGE or FOLD binds the range");
  size_t n = binder_ranges(b, &ranges), at = range_position(ranges, range);
  if (at + 1 == n) return law_refuse(l, "the range is the binder's innermost");
  const node *inner = ranges[at + 1], *size = range_extent(inner);
  if (range_kind_of(range) != KIND_LOOP || range_kind_of(inner) != KIND_LOOP)
    return law_refuse(l, "one of the ranges already has a kind");
  if (!node_is_const(size) || node_int(size) < 1)
    return law_refuse(l, "the extent of the inner range is not a number");
  const char *why = b->op == OP_STAGE ? law_in_place_objection(l, sink, b, at, 2, false) : NULL;
  if (why) return law_refuse(l, why);
  *fused = range_make(g, ix_mul(g, range_extent(range), size), KIND_LOOP);
  map with = {0};
  map_set(ir_arena(g), &with, range, (void *)ix_floordiv(g, *fused, size));
  map_set(ir_arena(g), &with, inner, (void *)ix_mod(g, *fused, size));
  const node **src = arena_alloc(ir_arena(g), b->n_src * sizeof *src);
  for (uint32_t i = 0; i < b->n_src; i++) {
    /* STATEs are named by the innermost range: here the fused one. */
    bool renamed = b->op == OP_FOLD && at + 2 == n;
    src[i] = renamed ? law_rename_state(g, b->src[i], inner, *fused) : b->src[i];
    src[i] = subst(g, src[i], &with);
  }
  const node **all = arena_alloc(ir_arena(g), n * sizeof *all);
  size_t count = 0;
  for (size_t i = 0; i < n; i++)
    if (i != at + 1) all[count++] = i == at ? *fused : src[&ranges[i] - b->src];
  const node *made = law_replace(l, sink, b, binder_with_ranges(g, b, src, count, all));
  return law_record(l, sink, made, LAW_FLATTEN, &(law_args){.subject = range}, fused);
}
