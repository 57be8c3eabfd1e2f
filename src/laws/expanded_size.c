/* Estimates the code size of a kernel after unrolling and vectorisation, by which schedules are
   limited: each node counts once for every copy and lane of the ranges around it, multiplied from
   outer to inner binders. */
#include "laws/laws.h"

typedef struct counting {
  arena *a;
  bool all;   /* counts iterations of LOOP and THREAD ranges too */
  map copies; /* range, array of a FOLD → number of copies of the nodes inside */
} counting;

/** Number of copies of a node: that of the innermost range around it. */
static double copies_of(const counting *c, const node *n) {
  const double *known = map_get(&c->copies, n);
  double most = known ? *known : 1;
  for (uint32_t i = 0; i < n->free->n; i++) {
    const double *outer = map_get(&c->copies, n->free->at[i]);
    if (outer && *outer > most) most = *outer;
  }
  return most;
}

static void set_copies(counting *c, const node *n, double copies) {
  map_set(c->a, &c->copies, n, arena_copy(c->a, &copies, sizeof copies));
}

static bool is_expanded(const node *range) {
  return range_is_unrolled(range) || range_kind_of(range) == KIND_VECTOR;
}

static void count_binder(counting *c, const node *b) {
  const node *const *ranges;
  double copies = copies_of(c, b);
  for (size_t k = 0, n = binder_ranges(b, &ranges); k < n; k++) {
    if (is_expanded(ranges[k]))
      copies *= (double)range_extent(ranges[k])->hi; /* an upper bound for a narrower last vector */
    else if (c->all)
      copies *= range_likely_trips(ranges[k]);
    set_copies(c, ranges[k], copies);
  }
  for (size_t i = 0; b->op == OP_FOLD && i < fold_n_states(b); i++)
    if (fold_component(b, i) >= 0) set_copies(c, fold_step(b, i), copies);
}

double law_expanded_nodes(arena *a, const node *sink, bool all) {
  counting c = {.a = a, .all = all};
  double sum = 0;
  node_list order = topo_sort(a, &sink, 1, NULL, NULL);
  for (size_t i = order.n; i-- > 0;) /* outer binders first */
    if (node_is_binder(order.at[i])) count_binder(&c, order.at[i]);
  for (size_t i = 0; i < order.n; i++) sum += copies_of(&c, order.at[i]);
  return sum;
}
