/* What is decided about values, for who wants to know: the search itself keeps no reasons. */
#include "schedule/grouping.h"

#include <math.h>

static double cheapest(const options *o, decision how) {
  double price = INFINITY;
  for (size_t i = 0; i < o->n; i++)
    if (o->at[i].how == how) price = fmin(price, o->at[i].price);
  return price;
}

static const char *reason(const grouping *s, const value *v, const char *refusal) {
  if (!v->body) return "a function or kernel of the caller's makes it";
  if (v->is_cut) return "what it is computed from would be, at the same cost";
  if (v->stores.n) return "it is a result, or new contents of a state";
  return s->request->policy == GROUPING_STAGED ? "every value is" : refusal;
}

void tell_decision(grouping *s, const value *v, const use *home, bool must, bool is_written,
                   double written) {
  const char *refusal = NULL;
  size_t n = v->places->uses.n;
  double again = price_computed_in(v, n);
  schedule_decision d = {.tensor = v->tensor,
                         .readers = n,
                         .is_written = is_written,
                         .is_hosted = is_written && home,
                         .inlined = again,
                         .placed = again,
                         .kept = again,
                         .written = written};
  for (size_t i = 0; i < n; i++) {
    options o = options_of(s, v->places->uses.at[i]);
    double inlined = cheapest(&o, INLINED), placed = cheapest(&o, PLACED);
    if (!o.n) refusal = o.refusal;
    d.inlined += inlined;
    d.placed += placed;
    d.kept += fmin(inlined, placed);
  }
  if (must) d.must = reason(s, v, refusal);
  s->request->decided(s->request->watcher, &d);
}
