/* Copies a graph from one IR to another in topological order; a callback may replace nodes on the
   way. */
#ifndef TENON_IR_TRANSFORM_COPY_GRAPH_H
#define TENON_IR_TRANSFORM_COPY_GRAPH_H

#include "base/map.h"
#include "ir/core/topo_sort.h"

/** The replacement of a node in the copy, given the copies of its sources; NULL: a copy of the
    node. */
typedef const node *(*ir_copy_replace_fn)(void *user, const node *n, const node *const src[]);

/** Copies all nodes that `roots` reach into `to` and writes the copies of the roots to `copies`.
    Index arithmetic becomes canonical for the new ir. Works in `a`. */
void ir_copy(ir *to, arena *a, const node *const roots[], size_t n, ir_copy_replace_fn leaf,
             void *user, const node *copies[]);

/** The same for a graph in the `order` of topo_sort. Nodes are only read, so threads may copy one
    graph at once. */
void ir_copy_sorted(ir *to, arena *a, const node_list *order, const node *const roots[], size_t n,
                    ir_copy_replace_fn leaf, void *user, const node *copies[]);

#endif
