/* Converts arrays of elements between data types. */
#ifndef TENON_DEVICE_MEMORY_CONVERT_ELEMENTS_H
#define TENON_DEVICE_MEMORY_CONVERT_ELEMENTS_H

#include "ir/core/dtype.h"

/** Converts `count` elements as scalar_cast does; a bool that is not 0 becomes 1. Arrays need no
    alignment. They may not overlap, but may be the same if the types are of one size. */
void convert(dtype to_type, void *to, dtype from_type, const void *from, size_t count);

#endif
