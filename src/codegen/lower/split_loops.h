/* Splits loops of a lowered graph at points of their index range (index-set splitting), as a
   callback decides. */
#ifndef TENON_CODEGEN_LOWER_SPLIT_LOOPS_H
#define TENON_CODEGEN_LOWER_SPLIT_LOOPS_H

#include "base/map.h"
#include "ir/core/topo_sort.h"

/** The part of a loop (an END) for indices from … to − 1, with the nodes in `known` replaced; NULL:
   that is no index. */
const node *split_loops_part(ir *g, const node *end, const node *from, const node *to,
                             const map *known);

/** Adds the parts that replace a loop (an END); false: the loop stays. `now` is the loop with the
    replacements of the loops inside of it and before it. */
typedef bool (*split_loops_callback)(void *user, const node *end, const node *now,
                                     node_list *parts);

/** The graph with each loop replaced as the callback decides. */
const node *split_loops_replace(ir *g, const node *sink, split_loops_callback split, void *user);

#endif
