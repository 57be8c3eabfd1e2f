/* Coordinates through a reshape. */
#ifndef TENON_IR_RESHAPE_H
#define TENON_IR_RESHAPE_H

#include "ir/index.h"

/** The coordinates `to` in a shape `from_dims` of the element that has coordinates `e` in `dims`;
    both shapes have the same number of elements, row-major. Dimensions that correspond one to one
    pass their coordinate on; only groups of dimensions are flattened and divided again. */
void reshape_coordinates(ir *g, size_t rank, const node *const dims[], const node *const e[],
                         size_t from_rank, const node *const from_dims[], const node *to[]);

#endif
