/* Computes the row-major address of an array's element, and the array's number of elements, as
   index expressions. */
#ifndef TENON_IR_INDEX_ROW_MAJOR_ADDRESS_H
#define TENON_IR_INDEX_ROW_MAJOR_ADDRESS_H

#include "ir/index/index_arithmetic.h"

/** The row-major address of `coords` in an array of `extents`: an index node, or
    WHERE(inside, address, INVALID) unless the coordinates are proved to be inside. */
const node *row_major_address(ir *g, size_t rank, const node *const extents[],
                              const node *const coords[]);

/** The number of elements of an array of `extents`. */
const node *row_major_size(ir *g, size_t rank, const node *const extents[]);

#endif
