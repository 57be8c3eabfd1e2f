#include "laws/laws.h"

#include "ir/subst.h"
#include "ir/topo.h"

typedef struct hoist {
  ir *g;
  const node *stage, *outer, *own;
} hoist;

static const char *array_objection(const hoist *h) {
  const node *s = h->stage, *e = range_extent(h->outer);
  if (!node_is_free_in(h->outer, s)) return "the STAGE does not depend on the range";
  if (range_kind_of(h->outer) != KIND_LOOP) return "the range is no loop";
  if (!node_is_const(e) || node_int(e) < 1) return "the extent of the range is not a number";
  binder_parts p = binder_parts_of(OP_STAGE, s->ints);
  for (size_t i = p.extents; i < p.ranges; i++)
    if (node_is_free_in(h->outer, s->src[i])) return "a size of the STAGE depends on the range";
  for (size_t i = p.pins; i < p.end; i++)
    if (node_is_free_in(h->outer, s->src[i])) return "the STAGE is pinned inside the range";
  return NULL;
}

/** The stage in which `own` stands for the range, with everything it depends on along. */
static const node *hoisted(hoist *h) {
  arena *a = ir_arena(h->g);
  const node *s = h->stage;
  size_t n = stage_ranges(s), values = stage_values(s);
  const node **ranges = arena_alloc(a, (n + 1) * sizeof *ranges);
  map with = {0};
  ranges[0] = h->own;
  map_set(a, &with, h->outer, (void *)h->own);
  for (size_t i = 0; i < n; i++) {
    const node *r = stage_range(s)[i];
    ranges[i + 1] = range_copy(h->g, r, subst_ranges(h->g, range_extent(r), &with));
    map_set(a, &with, r, (void *)ranges[i + 1]);
  }
  const node *body = subst_copy(h->g, binder_with_ranges(h->g, s, s->src, 0, NULL), &with);
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
                                        .n_pins = stage_pins(body),
                                        .values = body->src,
                                        .ranks = ranks,
                                        .coords = coords,
                                        .extents = extents,
                                        .ranges = ranges,
                                        .pins = body->src + body->n_src - stage_pins(body),
                                        .cut = stage_is_cut(s)});
}

const char *hoist_objection(const node *stage, const node *outer) {
  return array_objection(&(hoist){.stage = stage, .outer = outer});
}

const node *hoist_over(ir *g, const node *root, const node *stage, const node *outer,
                       const node **own) {
  hoist h = {
      .g = g, .stage = stage, .outer = outer, .own = range_copy(g, outer, range_extent(outer))};
  *own = h.own;
  return law_with_axes(g, root, stage, hoisted(&h), 1, &outer);
}

const node *law_hoist(laws *l, const node *sink, const node *stage, const node *outer,
                      const node **own) {
  if (stage->op != OP_STAGE) return law_refuse(l, "no STAGE is hoisted");
  node_list order = topo_sort(ir_arena(l->g), &sink, 1, NULL, NULL);
  const char *why = hoist_objection(stage, outer);
  if (!why) why = law_reader_objection(&order, stage);
  if (!why) why = law_place_objection(l, sink, stage, &outer, 1);
  if (why) return law_refuse(l, why);
  const node *made = hoist_over(l->g, sink, stage, outer, own);
  law_args args = {.subject = stage, .other = outer};
  return law_made(l, sink, made, LAW_HOIST, &args, own);
}
