/* Finds the distance of the elements that an address takes along a range. */
#ifndef TENON_IR_INDEX_ADDRESS_STRIDE_H
#define TENON_IR_INDEX_ADDRESS_STRIDE_H

#include "ir/core/node.h"

/** The stride of an address along a range, in elements; 0: none, or not constant. Of the minimum
    that an overlapping last block makes of the range's term, the other side is ignored. */
int64_t address_stride(const node *address, const node *range);

/** The same for costs: factors that are no constants, as the size of an open axis, count as their
    likely values. Saturates at ±2⁵⁶, so that a stride in bytes is an int64_t too. */
int64_t address_likely_stride(const node *address, const node *range);

#endif
