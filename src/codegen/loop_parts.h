/* Loops of lowered graphs in parts. */
#ifndef TENON_CODEGEN_LOOP_PARTS_H
#define TENON_CODEGEN_LOOP_PARTS_H

#include "base/map.h"
#include "ir/topo.h"

/** The part of a loop, an END, from one index to another, in which some nodes are known to be
    others; NULL: it has no index. */
const node *loop_part(ir *g, const node *end, const node *from, const node *to, const map *known);

/** Puts parts (END → node_list *) where loops were. */
const node *loop_replace(ir *g, const node *sink, const map *parts);

#endif
