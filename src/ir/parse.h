/* Reading the text form (print.h). */
#ifndef TENON_IR_PARSE_H
#define TENON_IR_PARSE_H

#include "ir/topo.h"

/** Makes the graph of a text in `g`, counted or scratch, and returns its roots, listed in `a`,
    whose diag is the ir's (a counted graph's nodes are held until ir_collect). The text may come
   from anywhere: every node is checked by ir_check. Names after `%` are letters, digits, `_` and
   `.`. Raises TN_ERR_FORMAT with line, column and what was expected, through the ir's diag. */
node_list parse_graph(ir *g, arena *a, const char *text, size_t bytes);

#endif
