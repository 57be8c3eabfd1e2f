#include "laws/laws.h"

#include "ir/subst.h"

#include "base/vec.h"

/** The stage of one part: a copy in which `range` counts from `from` in a range of that extent. The
    extents of inner ranges may depend on outer ones, so all are remade from the outermost in. */
static const node *part_of(laws *l, const node *stage, const node *range, const node *from,
                           const node *extent, const node **part) {
  arena *a = ir_arena(l->g);
  const node *const *ranges = stage_range(stage);
  map with = {0};
  for (size_t i = 0; i < stage_ranges(stage); i++) {
    const node *r = ranges[i], *e = r == range ? extent : range_extent(r);
    const node *fresh = range_make(l->g, subst_ranges(l->g, e, &with), range_kind_of(r));
    const node *index = fresh;
    if (r == range) index = ix_add(l->g, subst_ranges(l->g, from, &with), *part = fresh);
    map_set(a, &with, r, (void *)index);
  }
  const node **src = arena_alloc(a, stage->n_src * sizeof *src);
  for (uint32_t i = 0; i < stage->n_src; i++) {
    const node *s = stage->src[i];
    bool bound = &stage->src[i] >= ranges && &stage->src[i] < ranges + stage_ranges(stage);
    if (bound)
      src[i] = s == range ? *part : map_get(&with, s);
    else
      src[i] = subst_copy(l->g, s, &with);
  }
  return ir_with_sources(l->g, stage, src);
}

static const node *out_of(laws *l, const node *out, const node *stage) {
  const node **src = arena_copy(ir_arena(l->g), out->src, out->n_src * sizeof *src);
  src[out->n_src - 1] = stage;
  return ir_with_sources(l->g, out, src);
}

const node *law_partition(laws *l, const node *sink, const node *range, const node *at,
                          const node **low, const node **high) {
  ir *g = l->g;
  const node *stage = law_binder(l, sink, range);
  if (!stage || stage->op != OP_STAGE) return law_refuse(l, "no STAGE binds the range");
  const node *out = law_out(l, sink, stage), *extent = range_extent(range);
  if (!out) return law_refuse(l, "the STAGE is not the kernel's output");
  range_kind kind = range_kind_of(range);
  if (kind == KIND_VECTOR || kind == KIND_UNROLL)
    return law_refuse(l, "the range is one of lanes or copies");
  if (!ix_prove(g, at) || !ix_prove_le(g, at, extent))
    return law_refuse(l, "the point is not shown to lie inside the range");
  if (at->hi <= 0 || ix_sub(g, extent, at)->hi <= 0)
    return law_refuse(l, "one of the parts would have no index");
  VEC(const node *) effects = {0};
  for (uint32_t i = 0; i < sink->n_src; i++) {
    if (sink->src[i] != out) {
      vec_push(ir_arena(g), &effects, sink->src[i]);
      continue;
    }
    const node *first = part_of(l, stage, range, ix_const(g, 0), at, low);
    const node *second = part_of(l, stage, range, at, ix_sub(g, extent, at), high);
    vec_push(ir_arena(g), &effects, out_of(l, out, first));
    vec_push(ir_arena(g), &effects, out_of(l, out, second));
  }
  return ir_make(g, &(node_spec){.op = OP_SINK,
                                 .dtype = DT_VOID,
                                 .src = effects.at,
                                 .n_src = effects.n,
                                 .text = sink->text,
                                 .n_text = sink->n_text});
}
