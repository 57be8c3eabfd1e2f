/* Strip-mines ranges over blocked arrays. An array in blocks is read as [c/16] … [c%16];
   with the range of c split into two, the inner one may run in vector lanes. */
#include "schedule/layout/split_blocked_ranges.h"

#include "ir/index/index_arithmetic.h"
#include "ir/text/sink_text.h"
#include "laws/laws.h"

/** The block B of a coordinate x = r % B, of at least a vector of an element's array, that divides
    the extent of r; 0: x is none. */
static int64_t block_of_index(ir *g, const schedule_request *r, const node *element, const node *x,
                              const node **range) {
  if (x->op != OP_MOD || x->src[0]->op != OP_RANGE || !node_is_const(x->src[1])) return 0;
  *range = x->src[0];
  int64_t block = node_int(x->src[1]), bytes = (int64_t)dtype_bytes((dtype)element->dtype);
  bool whole = node_is_bits(ix_mod(g, range_extent(*range), x->src[1]), 0);
  return whole && block * bytes >= (int64_t)r->target.vector ? block : 0;
}

/** A kernel with one more of these ranges split; NULL: none is left. */
static const node *split_one_range(laws *l, const schedule_request *r, const node *sink) {
  arena_mark here = arena_save(ir_scratch(l->g));
  node_list order = topo_sort(ir_scratch(l->g), &sink, 1, NULL, NULL);
  const node *made = NULL;
  for (size_t i = 0; i < order.n && !made; i++)
    for (uint32_t k = 1; k < order.at[i]->n_src && order.at[i]->op == OP_INDEX && !made; k++) {
      const node *range, *outer, *inner;
      int64_t block = block_of_index(l->g, r, order.at[i], order.at[i]->src[k], &range);
      made = block ? law_split(l, sink, range, block, &outer, &inner) : NULL;
    }
  arena_rewind(ir_scratch(l->g), here);
  return made;
}

void layout_split_blocked_ranges(ir *g, const schedule_request *r, schedule *s) {
  laws l = {.g = g};
  if (!r->target.vector) return;
  for (size_t i = 0; i < s->steps.n; i++) {
    schedule_step *step = &s->steps.at[i];
    size_t bytes;
    if (!step->kernel || sink_schedule(step->kernel, &bytes)) continue;
    for (const node *made; (made = split_one_range(&l, r, step->kernel));) step->kernel = made;
  }
}
