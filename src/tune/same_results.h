/* Compares results of two schedules, which may round sums differently. */
#ifndef TENON_TUNE_SAME_RESULTS_H
#define TENON_TUNE_SAME_RESULTS_H

#include "base/arena.h"
#include "device/core/device.h"
#include "ir/core/dtype.h"

/** Reads `n` elements to be compared: floats as f64, those of other types as they are. In the
   arena, which raises. */
void *read_results(arena *a, const tn_span *span, dtype t, size_t n);

/** True if `n` elements of a type, as they are read, agree with the expected ones: integers and
    booleans exactly; floats to within a tolerance of the type, relative to the element's size and
   to the standard deviation of all. NaN and infinities agree with their like. */
bool same_results(dtype t, const void *got, const void *expected, size_t n);

#endif
