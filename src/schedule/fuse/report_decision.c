/* Reports each decision of the fusion search, with the costs of its options, to the request's
   observer (for tenon explain). The search keeps no reasons, so the options are computed again. */
#include "schedule/fuse/search_state.h"

#include <math.h>

static double cheapest_cost(const options *o, decision how) {
  double cost = INFINITY;
  for (size_t i = 0; i < o->n; i++)
    if (o->at[i].how == how) cost = fmin(cost, o->at[i].cost);
  return cost;
}

static const char *reason_to_write(const grouping *s, const value *v, const char *refusal) {
  if (v->is_join) return "its pieces are written in place";
  if (!v->body) return "a host function or custom kernel computes it";
  if (v->memory.wish == WISH_FORCED || v->memory.wish == WISH_KEPT)
    return "a contraction or window would compute it again and again";
  if (v->memory.wish == WISH_STORED) return "kernels that read it from memory take less time";
  if (v->memory.is_cut) return "storing its operands instead would cost as much";
  if (map_has(&s->values->places, v->tensor)) return "a piece of a larger array";
  if (v->memory.stores.n) return "a graph output, or the new contents of a state";
  return s->request->policy == FUSION_NONE ? "fusion is disabled" : refusal;
}

void report_decision(grouping *s, const value *v, const use *home, bool must, bool is_written,
                     double written) {
  const char *refusal = NULL;
  size_t n = v->places->uses.n;
  double again = cost_recompute(v, n);
  schedule_decision d = {.tensor = v->tensor,
                         .readers = n,
                         .is_written = is_written,
                         .is_hosted = is_written && home,
                         .inlined = again,
                         .placed = again,
                         .fused = again,
                         .written = written};
  for (size_t i = 0; i < n; i++) {
    options o = fusion_options_of(s, v->places->uses.at[i]);
    double inlined = cheapest_cost(&o, FUSION_INLINED), placed = cheapest_cost(&o, PLACED);
    if (!o.n) refusal = o.refusal;
    d.inlined += inlined;
    d.placed += placed;
    d.fused += fmin(inlined, placed);
  }
  if (must) d.reason = reason_to_write(s, v, refusal);
  if (!is_written && v->memory.wish == WISH_INLINED)
    d.reason = "kernels that compute it themselves take less time";
  s->request->decided(s->request->watcher, &d);
}
