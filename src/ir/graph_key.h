/* The bytes of a graph, for keys: graphs are equal when their bytes are, whatever numbers their
   nodes have. */
#ifndef TENON_IR_GRAPH_KEY_H
#define TENON_IR_GRAPH_KEY_H

#include "base/map.h"
#include "base/str.h"
#include "ir/scalars.h"

/** `to` is where the bytes go, the rest is zero at first; its lists are in the string's arena. With
    `scalars`, the bytes are those of the graph's form: scalars go there instead, in the order of
    scalars_lift. */
typedef struct graph_key {
  str *to;
  scalar_list *scalars; /* or NULL */
  map places;           /* node → place + 1 */
  map ids;              /* id of a RANGE, an ALLOC or a CUSTOM + 1 → number + 1 */
} graph_key;

/** Appends a node whose sources are there: its op, type, argument and the places of its sources.
    Ids count up from the first that is met; a SINK has no name,
    and the schedule that it brings along; of a BUFFER there is `buffer` in
    place of its argument, as all BUFFERs of a graph are other memory. */
void graph_key_add(graph_key *k, const node *n, uint64_t buffer);

/** Appends the place of a root, which is there. */
void graph_key_refer(graph_key *k, const node *n);

#endif
