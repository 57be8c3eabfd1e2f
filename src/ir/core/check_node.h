/* Checks the well-formedness of one node: the numbers and types of its sources, integers, lanes and
   shapes, by the rule of its op. It looks no further than the node's sources; the verifier of whole
   graphs is ir/verify/verify_graph.h. */
#ifndef TENON_IR_CORE_CHECK_NODE_H
#define TENON_IR_CORE_CHECK_NODE_H

#include "ir/core/node.h"

/** NULL if a specification is well-formed, else a static text with the rule that it breaks. Any
    numbers are allowed in `spec`; its sources are well-formed nodes. */
const char *ir_check_spec(const node_spec *spec);

#endif
