#include "laws/laws.h"

#include "ir/address.h"
#include "ir/subst.h"
#include "ir/topo.h"

enum { MOST_LANES = 64, MOST_COPIES = 1024 };

/** Whether the extent of a range or array inside varies along `range`. */
static bool varies_inside(laws *l, const node *sink, const node *range) {
  node_list order = topo_sort(ir_arena(l->g), &sink, 1, NULL, NULL);
  for (size_t i = 0; i < order.n; i++) {
    const node *n = order.at[i];
    if (n->op == OP_RANGE && n != range && node_is_free_in(range, n)) return true;
    if (n->op != OP_STAGE && n->op != OP_FOLD) continue;
    binder_parts p = binder_parts_of((op)n->op, n->ints);
    for (size_t k = p.extents; k < p.ranges; k++)
      if (node_is_free_in(range, n->src[k])) return true;
  }
  return false;
}

static bool is_read(laws *l, const node *sink, const node *stage) {
  node_list order = topo_sort(ir_arena(l->g), &sink, 1, NULL, NULL);
  for (size_t i = 0; i < order.n; i++)
    for (uint32_t k = 0; order.at[i]->op != OP_OUT && k < order.at[i]->n_src; k++)
      if (order.at[i]->src[k] == stage) return true;
  return false;
}

/** A coordinate as it were if blocks of OVERLAP went on beyond the end: what two of them have in
    common is written alike. */
static const node *without_overlap(ir *g, const node *stage, const node *x) {
  node_list order = topo_sort(ir_arena(g), &x, 1, NULL, NULL);
  map with = {0};
  for (size_t i = 0; i < order.n; i++)
    for (uint32_t k = 0; k < 2 && order.at[i]->op == OP_MIN; k++)
      if (!law_depends(stage_range(stage), stage_ranges(stage), order.at[i]->src[k]))
        map_set(ir_arena(g), &with, order.at[i], (void *)subst(g, order.at[i]->src[1 - k], &with));
  return subst(g, x, &with);
}

/** Whether each index of a range has elements of every value to itself: the range follows from
    where an element is, but for such as OVERLAP writes twice alike. */
static bool shares_out(ir *g, const node *stage, const node *range) {
  for (size_t i = 0; i < stage_values(stage); i++) {
    const node *at[IR_MOST_RANK + 1], *address;
    size_t rank = stage_rank(stage, i);
    for (size_t k = 0; k < rank; k++) at[k] = without_overlap(g, stage, stage_coords(stage, i)[k]);
    address = address_of(g, rank, stage_extents(stage, i), at);
    at[rank] = address->op == OP_WHERE ? address->src[1] : address;
    if (!stage_range_follows(stage, range, rank + 1, at)) return false;
  }
  return true;
}

/** Whether an extent is a number of lanes, or at most one, as that of the blocks of a SPLIT. */
static bool is_lanes(const node *extent) {
  for (uint32_t i = 0; i < 2 && extent->op == OP_MIN; i++)
    if (node_is_const(extent->src[i])) extent = extent->src[i];
  int64_t n = node_is_const(extent) ? node_int(extent) : 0;
  return n >= 2 && n <= MOST_LANES && !(n & (n - 1));
}

static const char *vector_objection(laws *l, const node *sink, const node *b, const node *range) {
  if (b->op != OP_STAGE) return "the range is not a STAGE's";
  if (!is_lanes(range_extent(range)))
    return "the extent is no number of lanes: a power of two, up to 64";
  if (law_nests_vectors(l, sink, range)) return "a vector would run inside a vector";
  if (varies_inside(l, sink, range))
    return "the size of a loop or array inside varies along the range";
  size_t at = range_place(stage_range(b), range);
  bool is_innermost = at + 1 == stage_ranges(b);
  return is_innermost ? NULL : law_in_place_objection(l, sink, b, at, 1, true);
}

static const char *thread_objection(laws *l, const node *sink, const node *b, const node *range) {
  if (b->op != OP_STAGE || !law_out(sink, b)) return "the range is not of the kernel's output";
  for (size_t i = 0; i < stage_ranges(b); i++)
    if (stage_range(b)[i] != range && range_kind_of(stage_range(b)[i]) == KIND_THREAD)
      return "another range of the nest is shared out";
  if (!shares_out(l->g, b, range)) return "two workers would write one element";
  if (is_read(l, sink, b)) return "the kernel reads its output";
  return law_in_place_objection(l, sink, b, range_place(stage_range(b), range), 1, true);
}

static const char *objection(laws *l, const node *sink, const node *b, const node *range,
                             range_kind kind) {
  const node *extent = range_extent(range);
  switch (kind) {
  case KIND_LOOP: return NULL;
  case KIND_VECTOR: return vector_objection(l, sink, b, range);
  case KIND_UNROLL:
    if (!node_is_const(extent) || node_int(extent) < 1 || node_int(extent) > MOST_COPIES)
      return "the extent is not a small constant";
    return NULL;
  case KIND_THREAD: return thread_objection(l, sink, b, range);
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
  law_args args = {.subject = range, .number = kind};
  return law_made(l, sink, law_replace(l, sink, range, *changed), LAW_KIND, &args, NULL);
}

static bool goes_over_threads(const node *out) {
  const node *stage = out->src[out->n_src - 1];
  for (size_t i = 0; i < stage_ranges(stage); i++)
    if (range_kind_of(stage_range(stage)[i]) == KIND_THREAD) return true;
  return false;
}

void law_check_threads(diag *d, const node *sink) {
  for (uint32_t i = 1; i < sink->n_src; i++)
    if (goes_over_threads(sink->src[i]) != goes_over_threads(sink->src[0]))
      diag_raise(
          d, TN_ERR_ARGUMENT,
          "the schedule gives threads a range of one nest of the kernel and none of another, "
          "which every thread would do (UNIT makes a range of one index)");
}
