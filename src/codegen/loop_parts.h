/* Loops of lowered graphs in parts. */
#ifndef TENON_CODEGEN_LOOP_PARTS_H
#define TENON_CODEGEN_LOOP_PARTS_H

#include "base/map.h"
#include "ir/topo.h"

/** The part of a loop, an END, from one index to another, in which some nodes are known to be
    others; NULL: it has no index. */
const node *loop_part(ir *g, const node *end, const node *from, const node *to, const map *known);

/** Tells what stands for a loop, an END: false: it stays one. `now` is it with what became of the
    loops inside of it and before it. */
typedef bool (*loop_split)(void *user, const node *end, const node *now, node_list *parts);

/** The graph with parts in the place of loops. */
const node *loop_replace(ir *g, const node *sink, loop_split split, void *user);

#endif
