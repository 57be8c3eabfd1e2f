/* Conversion of arrays between types. */
#ifndef TENON_DEVICE_CONVERT_H
#define TENON_DEVICE_CONVERT_H

#include "ir/dtype.h"

/** Converts `count` elements as scalar_cast does; a bool that is not 0 counts as 1. Arrays need no
    alignment and do not overlap, but to == from is fine where the types are of one size. */
void convert(dtype to_type, void *to, dtype from_type, const void *from, size_t count);

#endif
