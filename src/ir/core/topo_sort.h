/* Sorts the nodes of a graph in topological order, by a depth-first walk without recursion. */
#ifndef TENON_IR_CORE_TOPO_SORT_H
#define TENON_IR_CORE_TOPO_SORT_H

#include "base/vec.h"
#include "ir/core/ir.h"

typedef VEC(const node *) node_list;

/** True if a node is one of `n` others. */
static inline bool nodes_contain(const node *const nodes[], size_t n, const node *wanted) {
  for (size_t i = 0; i < n; i++)
    if (nodes[i] == wanted) return true;
  return false;
}

/** Lists all nodes that `roots` reach, each once, sources before users. Nodes for which `enter`
    returns false are listed without their sources (NULL: all are entered); it is called once a
    node, and allocates nothing in `a`. The order depends on the graph alone. Nodes are only read,
   so threads may walk one graph at once. */
node_list topo_sort(arena *a, const node *const roots[], size_t n,
                    bool (*enter)(const node *n, void *user), void *user);

#endif
