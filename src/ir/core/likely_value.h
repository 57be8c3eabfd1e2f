/* Likely values of index expressions: what costs are estimated for where a size is known only when
   a plan runs. Bounds decide what is legal, likely values only what pays. */
#ifndef TENON_IR_CORE_LIKELY_VALUE_H
#define TENON_IR_CORE_LIKELY_VALUE_H

#include "ir/core/interval.h"
#include "ir/core/node.h"

/** The value of an index node's specification where its variables have their likely values and its
   ranges are at their middle index, within the node's bounds. For ir_make. */
int64_t infer_likely(const node_spec *s, interval bounds);

/** The likely value of an index expression, the value of a constant. A size that varies counts as 1
    at least, as costs are products of sizes. */
static inline double ix_likely(const node *n) {
  int64_t likely = node_likely(n);
  return n->lo == n->hi || likely > 1 ? (double)likely : 1;
}

#endif
