/* Draws graphs in the DOT language of Graphviz, for debugging. */
#ifndef TENON_IR_TEXT_GRAPHVIZ_H
#define TENON_IR_TEXT_GRAPHVIZ_H

#include "base/str.h"
#include "ir/core/node.h"

/** Appends a graph to `out`; works in its arena. A node is a box with the number of its printed
    line (print.h), coloured by the class of its op, ranges by their kind. Edges go from sources to
    users; roots have a thick frame. Raises TN_ERR_MEMORY. */
void graphviz_print(str *out, const node *const roots[], size_t n);

#endif
