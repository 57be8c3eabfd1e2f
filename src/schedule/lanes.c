/* Arrays in blocks of vectors. What lies as [c/16] … [c%16] is read at addresses that follow from
   the range of c as two; it becomes two, of which the inner one may go in lanes. */
#include "ir/sink.h"
#include "laws/laws.h"
#include "schedule/passes.h"

/** The blocks of whole vectors in which an element goes along one of its axes by a range; 0: it
   does not. */
static int64_t block_along(ir *g, const schedule_request *r, const node *element, const node *x,
                           const node **range) {
  if (x->op != OP_MOD || x->src[0]->op != OP_RANGE || !node_is_const(x->src[1])) return 0;
  *range = x->src[0];
  int64_t block = node_int(x->src[1]), bytes = (int64_t)dtype_bytes((dtype)element->dtype);
  bool whole = node_is_bits(ix_mod(g, range_extent(*range), x->src[1]), 0);
  return whole && block * bytes % (int64_t)r->vector == 0 ? block : 0;
}

/** A kernel with one more of such ranges as two; NULL: there is none. */
static const node *cut_one(laws *l, const schedule_request *r, const node *sink) {
  node_list order = topo_sort(ir_arena(l->g), &sink, 1, NULL, NULL);
  for (size_t i = 0; i < order.n; i++)
    for (uint32_t k = 1; k < order.at[i]->n_src && order.at[i]->op == OP_INDEX; k++) {
      const node *range, *outer, *inner;
      int64_t block = block_along(l->g, r, order.at[i], order.at[i]->src[k], &range);
      const node *made = block ? law_split(l, sink, range, block, &outer, &inner) : NULL;
      if (made) return made;
    }
  return NULL;
}

void schedule_lanes(ir *g, const schedule_request *r, schedule *s) {
  laws l = {.g = g};
  if (!r->vector) return;
  for (size_t i = 0; i < s->steps.n; i++) {
    schedule_step *step = &s->steps.at[i];
    size_t bytes;
    if (!step->kernel || sink_schedule(step->kernel, &bytes)) continue;
    for (const node *made; (made = cut_one(&l, r, step->kernel));) step->kernel = made;
  }
}
