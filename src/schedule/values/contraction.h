/* Recognises contractions among the nodes of a tensor graph: sums of products. */
#ifndef TENON_SCHEDULE_VALUES_CONTRACTION_H
#define TENON_SCHEDULE_VALUES_CONTRACTION_H

#include "ir/core/ir.h"

/** The product that a REDUCE sums, behind views without padding; NULL: the node is no contraction.
 */
const node *contraction_product(const node *reduce);

#endif
