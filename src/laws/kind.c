#include "laws/laws.h"

#include "ir/topo.h"

#include "base/map.h"

enum { MOST_LANES = 64, MOST_COPIES = 1024 };

/** Whether one vector range would run inside another if `range` were one. */
static bool nests_vectors(laws *l, const node *sink, const node *range) {
  arena *a = ir_arena(l->g);
  node_list order = topo_sort(a, &sink, 1, NULL, NULL);
  map inside = {0}; /* vector ranges, and ranges that run inside of one */
  for (size_t i = 0; i < order.n; i++) {
    const node *r = order.at[i];
    if (r == range || (r->op == OP_RANGE && range_kind_of(r) == KIND_VECTOR))
      map_set(a, &inside, r, (void *)r);
  }
  for (size_t i = order.n; i-- > 0;) { /* outer binders first */
    const node *b = order.at[i], *const * ranges;
    bool is_inside = false;
    if (!node_is_binder(b)) continue;
    for (uint32_t k = 0; k < b->free->n; k++) is_inside |= map_has(&inside, b->free->at[k]) != 0;
    for (size_t k = binder_ranges(b, &ranges); is_inside && k-- > 0;) {
      if (map_has(&inside, ranges[k])) return true;
      map_set(a, &inside, ranges[k], (void *)ranges[k]);
    }
  }
  return false;
}

static const char *objection(laws *l, const node *sink, const node *b, const node *range,
                             range_kind kind) {
  const node *extent = range_extent(range), *const * ranges;
  size_t n = binder_ranges(b, &ranges);
  switch (kind) {
  case KIND_LOOP: return NULL;
  case KIND_VECTOR:
    if (b->op != OP_STAGE || ranges[n - 1] != range) return "the range is not a STAGE's innermost";
    if (!node_is_const(extent) || node_int(extent) < 2 || node_int(extent) > MOST_LANES)
      return "the extent is no number of lanes";
    if (nests_vectors(l, sink, range)) return "a vector would run inside a vector";
    return NULL;
  case KIND_UNROLL:
    if (!node_is_const(extent) || node_int(extent) < 1 || node_int(extent) > MOST_COPIES)
      return "the extent is not a small constant";
    return NULL;
  case KIND_THREAD:
    if (b->op != OP_STAGE || !law_out(l, sink, b)) return "the range is not of the kernel's output";
    return NULL;
  default: return "the kind has no meaning on this target";
  }
}

const node *law_kind(laws *l, const node *sink, const node *range, range_kind kind,
                     const node **changed) {
  const node *b = law_binder(l, sink, range);
  if (!b || b->op == OP_END) return law_refuse(l, "no STAGE or FOLD binds the range");
  const char *why = objection(l, sink, b, range, kind);
  if (why) return law_refuse(l, why);
  *changed = range_with(l->g, range, range_extent(range), kind);
  return law_replace(l, sink, range, *changed);
}
