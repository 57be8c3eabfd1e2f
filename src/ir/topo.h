/* Walks over graphs, without recursion. */
#ifndef TENON_IR_TOPO_H
#define TENON_IR_TOPO_H

#include "base/vec.h"
#include "ir/ir.h"

typedef VEC(const node *) node_list;

/** All nodes that `roots` reach, each once, sources before the nodes that use them. Nodes for which
    `enter` is false are listed, their sources are not followed (NULL: all are followed). The order
    depends on the graph alone. */
node_list topo_sort(arena *a, const node *const roots[], size_t n,
                    bool (*enter)(const node *n, void *user), void *user);

#endif
