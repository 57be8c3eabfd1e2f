/* Positions of true elements, for operators whose sizes follow from elements. */
#ifndef TENON_TENSOR_OPS_SELECTION_H
#define TENON_TENSOR_OPS_SELECTION_H

#include "tensor/ops/operators.h"

/** The positions (i64) of the true elements of a mask of rank 1; how many is an ITEM. */
const node *node_selected_positions(builder *b, const node *mask);

#endif
