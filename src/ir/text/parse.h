/* Parses the IR's text form (print.h) into nodes. */
#ifndef TENON_IR_TEXT_PARSE_H
#define TENON_IR_TEXT_PARSE_H

#include "ir/core/topo_sort.h"

/** Makes the graph of a text in `g`, counted or scratch, and returns its roots in `a`, whose diag
    is the ir's. Nodes of a counted ir are held until ir_release_unheld. The text may be untrusted:
    every node is checked by ir_check_spec. Names after `%` consist of letters, digits, `_` and `.`.
    Raises TN_ERR_FORMAT with line, column and the expected text, through the ir's diag. */
node_list parse_graph(ir *g, arena *a, const char *text, size_t bytes);

#endif
