/* From logical coordinates to one address. */
#ifndef TENON_IR_ADDRESS_H
#define TENON_IR_ADDRESS_H

#include "ir/index.h"

/** The row-major address of `coords` in an array of `extents`: an index node, or
    WHERE(inside, address, INVALID) where it cannot be shown to be inside. */
const node *address_of(ir *g, size_t rank, const node *const extents[], const node *const coords[]);

/** The number of elements of an array. */
const node *address_size(ir *g, size_t rank, const node *const extents[]);

#endif
