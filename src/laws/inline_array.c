/* Implements INLINE, Halide's compute_inline: an element of an array is computed where it is read.

     S = STAGE over r (v(r) at r);  … S[e] …   →   … where(0 ≤ e < n, v(e), 0) …

   The condition is left out where e is proved to be inside the array. The coordinates of S are its
   ranges, so that each element has indices of its own. */
#include "laws/law_support.h"

#include "ir/core/build.h"
#include "ir/core/topo_sort.h"
#include "ir/index/index_arithmetic.h"
#include "ir/index/index_proof.h"
#include "ir/index/write_once.h"
#include "ir/transform/substitute.h"

static const char *array_objection(const node *s) {
  const char *why = law_plain_array_objection(s);
  if (why) return why;
  return stage_slots(s) == 1 ? NULL : "the array has slots";
}

/** The element at some coordinates; outside of the array it is 0. */
static const node *element_at(ir *g, const node *s, const node *const at[]) {
  map with = {0};
  size_t rank = stage_rank(s, 0);
  const node *const *coords = stage_coords(s, 0);
  for (size_t i = 0; i < rank; i++)
    if (coords[i]->op == OP_RANGE) map_set(ir_arena(g), &with, coords[i], (void *)at[i]);
  const node *value = subst_ranges(g, stage_value(s, 0), &with);
  const node *inside = ix_in_bounds(g, rank, at, stage_extents(s, 0));
  if (node_is_bits(inside, 1)) return value;
  return ir_op3(g, OP_WHERE, inside, value, ir_const_bits(g, (dtype)value->dtype, 0));
}

const node *law_inline(laws *l, const node *sink, const node *stage) {
  arena *a = ir_arena(l->g);
  node_list order = law_index_of(l, sink).nodes;
  const char *why = array_objection(stage);
  if (!why && !law_computes_from_buffers(a, stage)) /* loops inside would run for each read */
    why = "an element is not computed from elements of buffers alone";
  if (!why) why = law_readers_objection(&order, stage);
  if (!why && law_reads_output(l, sink, stage)) why = "the kernel writes to the buffer";
  if (why) return law_refuse(l, why);
  map with = {0};
  for (size_t i = 0; i < order.n; i++) {
    const node *n = order.at[i], *at[IR_MAX_RANK];
    if (n->op != OP_INDEX || n->src[0] != stage) continue;
    for (size_t k = 0; k + 1 < n->n_src; k++)
      at[k] = law_replace_coordinate(l->g, n->src[1 + k], &with);
    map_set(a, &with, n, (void *)element_at(l->g, stage, at));
  }
  const node *made = subst(l->g, sink, &with);
  return law_record(l, sink, made, LAW_INLINE, &(law_args){.subject = stage}, NULL);
}
