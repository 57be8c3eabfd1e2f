/* Implements HOIST, array expansion: builds a STAGE (array builder) that depends on a loop around
   it before the loop, for all of its indices, as loop-invariant code motion of a whole array:

     for r { A = STAGE over i (v(r, i)); … A[e] … }
       →   A = STAGE over r′, i (v(r′, i));  for r { … A[r, e] … }

   Only INDEX may read A, the extent of r is constant, and A depends on no range inside r. */
#include "laws/law_support.h"

#include "ir/core/topo_sort.h"
#include "ir/transform/substitute.h"

typedef struct hoist {
  ir *g;
  const node *stage;
  const node *outer; /* the range to move out of */
  const node *own;   /* its copy, bound by the new STAGE */
} hoist;

const char *law_hoist_objection(const node *stage, const node *outer) {
  const node *s = stage, *e = range_extent(outer);
  if (!node_is_free_in(outer, s)) return "the STAGE does not depend on the range";
  if (range_kind_of(outer) != KIND_LOOP) return "the range is not a loop";
  if (!node_is_const(e) || node_int(e) < 1) return "the extent of the range is not a number";
  binder_layout p = binder_layout_of(OP_STAGE, s->ints);
  for (size_t i = p.extents; i < p.ranges; i++)
    if (node_is_free_in(outer, s->src[i])) return "a size of the STAGE depends on the range";
  for (size_t i = p.pins; i < p.end; i++)
    if (node_is_free_in(outer, s->src[i])) return "the STAGE is pinned inside the range";
  return NULL;
}

/** The STAGE over `own` and its own ranges, with `own` as the first dimension of its arrays. */
static const node *expand_stage(hoist *h) {
  arena *a = ir_arena(h->g);
  const node *s = h->stage;
  size_t n = stage_n_ranges(s), values = stage_n_values(s);
  const node **bound = arena_alloc(a, (n + 1) * sizeof *bound);
  map with = {0};
  bound[0] = h->outer;
  for (size_t i = 0; i < n; i++) bound[i + 1] = stage_range(s)[i];
  map_set(a, &with, h->outer, (void *)h->own);
  const node **ranges = law_copy_ranges(h->g, bound, n + 1, &with);
  const node *body = subst_fresh_ranges(h->g, binder_with_ranges(h->g, s, s->src, 0, NULL), &with);
  size_t *ranks = arena_alloc(a, values * sizeof *ranks), all = 0;
  for (size_t i = 0; i < values; i++) all += ranks[i] = stage_rank(s, i) + 1;
  const node **coords = arena_alloc(a, all * sizeof *coords);
  const node **extents = arena_alloc(a, all * sizeof *extents);
  for (size_t i = 0, at = 0; i < values; at += ranks[i++]) {
    coords[at] = h->own;
    extents[at] = range_extent(h->own);
    for (size_t k = 1; k < ranks[i]; k++) {
      coords[at + k] = stage_coords(body, i)[k - 1];
      extents[at + k] = stage_extents(body, i)[k - 1];
    }
  }
  return stage_make(h->g, &(stage_spec){.n_values = values,
                                        .n_ranges = n + 1,
                                        .n_pins = stage_n_pins(body),
                                        .values = body->src,
                                        .ranks = ranks,
                                        .coords = coords,
                                        .extents = extents,
                                        .ranges = ranges,
                                        .pins = body->src + body->n_src - stage_n_pins(body),
                                        .cut = stage_is_cut(s)});
}

const node *law_hoist_over(ir *g, const node *root, const node *stage, const node *outer,
                           const node **own) {
  hoist h = {
      .g = g, .stage = stage, .outer = outer, .own = range_clone(g, outer, range_extent(outer))};
  *own = h.own;
  return law_add_axes(g, root, stage, expand_stage(&h), 1, &outer);
}

const node *law_hoist(laws *l, const node *sink, const node *stage, const node *outer,
                      const node **own) {
  if (stage->op != OP_STAGE) return law_refuse(l, "no STAGE is hoisted");
  node_list order = law_index_of(l, sink).nodes;
  const char *why = law_hoist_objection(stage, outer);
  if (!why) why = law_readers_objection(&order, stage);
  if (!why) why = law_move_out_objection(l, sink, stage, &outer, 1);
  if (why) return law_refuse(l, why);
  const node *made = law_hoist_over(l->g, sink, stage, outer, own);
  law_args args = {.subject = stage, .other = outer};
  return law_record(l, sink, made, LAW_HOIST, &args, own);
}
