/* Drawings of graphs, for Graphviz. */
#ifndef TENON_IR_DOT_H
#define TENON_IR_DOT_H

#include "base/str.h"
#include "ir/node.h"

/** Appends a graph in the DOT language to `out`; works in its arena. A box is a node with the
    number of its printed line (print.h), coloured by the class of its op, a range by its kind;
    edges go from sources to users, roots have a thick frame. Raises TN_ERR_MEMORY. */
void dot_graph(str *out, const node *const roots[], size_t n);

#endif
