/* Compares results of two schedules, which may round sums differently. */
#ifndef TENON_TUNE_SAME_RESULTS_H
#define TENON_TUNE_SAME_RESULTS_H

#include "ir/core/dtype.h"

#include <stdbool.h>
#include <stddef.h>

/** True if `n` elements of a type, here as f64, agree with the expected ones: integers and booleans
    exactly; floats to within a tolerance of the type, relative to the element's size and to the
    standard deviation of all. NaN and infinities agree with their like. */
bool same_results(dtype t, const double got[], const double expected[], size_t n);

#endif
