/* Serialises graphs to bytes that serve as cache keys. Equal graphs have equal bytes; ids,
   kernel names, the identity of buffers and, on request, liftable constants do not count. */
#ifndef TENON_IR_TEXT_GRAPH_KEY_H
#define TENON_IR_TEXT_GRAPH_KEY_H

#include "base/map.h"
#include "base/str.h"
#include "ir/transform/liftable_scalars.h"

/** A key under construction; all but `to` and `scalars` is zero at first, and lists live in the
    string's arena. With `scalars`, values of liftable scalars go there, in the order of
    lift_scalars, and the key is that of the parameterised graph. */
typedef struct graph_key {
  str *to;                       /* the bytes */
  liftable_scalar_list *scalars; /* NULL: scalars stay in the key */
  map places;                    /* node → place + 1 */
  map ids;                       /* id of a RANGE, an ALLOC or a CUSTOM + 1 → number + 1 */
} graph_key;

/** Appends a node after its sources: op, type, argument and places of the sources. Ids are
    renumbered in order of appearance. A SINK has its schedule without the kernel's name; a BUFFER
    has `buffer` instead of its argument, as its memory differs from run to run. */
void graph_key_add(graph_key *k, const node *n, uint64_t buffer);

/** Appends the place of a root, which was appended before. */
void graph_key_add_root(graph_key *k, const node *n);

#endif
