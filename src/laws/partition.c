#include "laws/laws.h"

#include "ir/subst.h"

#include "base/vec.h"

/** The stage of one part: a copy in which `range` counts from `from` in a range of that extent. The
    extents of inner ranges may depend on outer ones, so all are remade from the outermost in. What
    they are used in is copied as one, so that a binder which two values read is copied once. */
static const node *part_of(laws *l, const node *stage, const node *range, const node *from,
                           const node *extent, const node **part) {
  const node *const *ranges;
  size_t n = binder_ranges(stage, &ranges);
  const node **fresh = arena_alloc(ir_arena(l->g), n * sizeof *fresh);
  map with = {0};
  for (size_t i = 0; i < n; i++) {
    const node *e = ranges[i] == range ? extent : range_extent(ranges[i]);
    const node *index = fresh[i] = range_copy(l->g, ranges[i], subst_ranges(l->g, e, &with));
    if (ranges[i] == range) {
      *part = fresh[i];
      index = ix_add(l->g, subst_ranges(l->g, from, &with), index);
    }
    map_set(ir_arena(l->g), &with, ranges[i], (void *)index);
  }
  const node *body = binder_with_ranges(l->g, stage, stage->src, 0, NULL);
  body = subst_copy(l->g, body, &with);
  return binder_with_ranges(l->g, body, body->src, n, fresh);
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
