/* Finds joins: tensors, such as the results of concat, that select between other tensors by one
   coordinate. The pieces of a join are written side by side into its array, so that no kernel
   copies them and no reader selects between them. */
#ifndef TENON_SCHEDULE_VALUES_JOINS_H
#define TENON_SCHEDULE_VALUES_JOINS_H

#include "schedule/core/fusion_machine.h"
#include "schedule/values/normalise.h"
#include "schedule/values/value.h"

/** The choice of joins among those that are legal. */
typedef struct joins_policy {
  const machine *machine; /* those that save time on it; NULL: any, by the seed */
  uint64_t seed;
} joins_policy;

/** A tensor whose array is written in pieces. */
typedef struct join {
  const node *tensor;
  node_list pieces; /* tensors */
} join;

typedef struct joins {
  map of;          /* tensor → join */
  node_list fresh; /* pieces that are no nodes of the graph: copies and parts of its tensors */
} joins;

/** Chooses joins among the nodes of a graph, sources first, and adds the places of their pieces to
    `places` (array → array_place). */
joins joins_choose(ir *g, const joins_policy *p, const normalised *in, const node_list *order,
                   map *places);

#endif
