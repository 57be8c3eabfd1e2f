/* How large a kernel becomes where UNROLL and VECTOR ranges are copies and lanes. */
#include "ir/weigh.h"
#include "laws/laws.h"

typedef struct counting {
  arena *a;
  bool all;   /* ranges */
  map copies; /* range, array of a FOLD → how often what is in it is there */
} counting;

/** How often a node is there: as often as what is in the innermost of the ranges around it. */
static double copies_of(const counting *c, const node *n) {
  const double *own = map_get(&c->copies, n);
  double most = own ? *own : 1;
  for (uint32_t i = 0; i < n->free->n; i++) {
    const double *outer = map_get(&c->copies, n->free->at[i]);
    if (outer && *outer > most) most = *outer;
  }
  return most;
}

static void note(counting *c, const node *n, double copies) {
  map_set(c->a, &c->copies, n, arena_copy(c->a, &copies, sizeof copies));
}

static bool is_copied(const node *range) {
  return range_is_copies(range) || range_kind_of(range) == KIND_VECTOR;
}

static void note_binder(counting *c, const node *b) {
  const node *const *ranges;
  double copies = copies_of(c, b);
  for (size_t k = 0, n = binder_ranges(b, &ranges); k < n; k++) {
    if (is_copied(ranges[k]))
      copies *= (double)range_extent(ranges[k])->hi; /* also of a vector that is cut short */
    else if (c->all)
      copies *= weigh_indices(ranges[k]);
    note(c, ranges[k], copies);
  }
  for (size_t i = 0; b->op == OP_FOLD && i < fold_states(b); i++)
    if (fold_component(b, i) >= 0) note(c, fold_step(b, i), copies);
}

double law_expanded_nodes(arena *a, const node *sink, bool all) {
  counting c = {.a = a, .all = all};
  double sum = 0;
  node_list order = topo_sort(a, &sink, 1, NULL, NULL);
  for (size_t i = order.n; i-- > 0;) /* outer binders first */
    if (node_is_binder(order.at[i])) note_binder(&c, order.at[i]);
  for (size_t i = 0; i < order.n; i++) sum += copies_of(&c, order.at[i]);
  return sum;
}
