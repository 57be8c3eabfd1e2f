/* Graphs copied from one ir to another. */
#ifndef TENON_IR_COPY_H
#define TENON_IR_COPY_H

#include "base/map.h"
#include "ir/topo.h"

/** What stands for a node in the copy, given its sources there; NULL: the node itself, remade. */
typedef const node *(*copy_leaf)(void *user, const node *n, const node *const src[]);

/** Copies what `roots` reach into `to`, and fills `copies`. Index arithmetic is put in canonical
    form for the new ir. Lists live in `a`. */
void ir_copy(ir *to, arena *a, const node *const roots[], size_t n, copy_leaf leaf, void *user,
             const node *copies[]);

/** The same of a graph whose `order` topo_sort gave. Writes nothing to its nodes, so that any
   number of threads may copy one graph at once. */
void ir_copy_sorted(ir *to, arena *a, const node_list *order, const node *const roots[], size_t n,
                    copy_leaf leaf, void *user, const node *copies[]);

#endif
