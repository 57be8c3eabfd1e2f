/* Maps the coordinates of an element of a reshaped tensor to those in the original shape, as index
   expressions. */
#ifndef TENON_IR_INDEX_RESHAPE_COORDINATES_H
#define TENON_IR_INDEX_RESHAPE_COORDINATES_H

#include "ir/index/index_arithmetic.h"

/** Writes to `to` the coordinates in shape `from_dims` of the element that has coordinates `e` in
    shape `dims`. The shapes are row-major and have equally many elements. Dimensions that
    correspond one to one keep their coordinate. */
void reshape_coordinates(ir *g, size_t rank, const node *const dims[], const node *const e[],
                         size_t from_rank, const node *const from_dims[], const node *to[]);

#endif
