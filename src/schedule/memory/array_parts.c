/* Implements the bounds of array accesses from the interval bounds of coordinates. */
#include "schedule/memory/array_parts.h"

#include "ir/core/binder.h"

static void add_access(array_part *p, const node *param, const node *const coords[]) {
  p->is_all |= p->param && p->param != param; /* one buffer with several shapes */
  for (size_t k = 0; k < param->rank; k++) {
    bool first = !p->param;
    if (first || coords[k]->lo < p->low[k]) p->low[k] = coords[k]->lo;
    if (first || coords[k]->hi > p->high[k]) p->high[k] = coords[k]->hi;
  }
  p->param = param;
}

array_accesses array_accesses_of(const node_list *nodes, const node *sink, size_t buffer) {
  array_accesses x = {.read.param = NULL};
  const node *out = sink->src[0], *stage = out->src[out->n_src - 1];
  for (size_t i = 0; i < nodes->n; i++) {
    const node *n = nodes->at[i], *param = n->op == OP_INDEX ? n->src[0] : NULL;
    if (param && param->op == OP_PARAM && (size_t)param->ints[0] == buffer)
      add_access(&x.read, param, n->src + 1);
  }
  for (size_t i = 0; i + 1 < out->n_src; i++)
    if ((size_t)out->src[i]->ints[0] == buffer)
      add_access(&x.written, out->src[i], stage_coords(stage, i));
  return x;
}

bool array_parts_overlap(const array_part *a, const array_part *b) {
  if (!array_part_is_any(a) || !array_part_is_any(b)) return false;
  if (a->is_all || b->is_all || a->param != b->param) return true;
  for (size_t k = 0; k < a->param->rank; k++)
    if (a->high[k] < b->low[k] || b->high[k] < a->low[k]) return false;
  return true;
}
