/* Compares the elements of two arrays of one type and shape: a computed one with an expected one.
 */
#ifndef TENON_CLI_DATA_COMPARE_VALUES_H
#define TENON_CLI_DATA_COMPARE_VALUES_H

#include "base/arena.h"

#include <tenon/dtype.h>

/** The differences of an array from an expected one. An element is beyond the tolerance t if
    |a − e| > t · (|e| + s), where s is the typical magnitude of the array: the lower quartile of
   the magnitudes of its expected elements that are finite and not 0. So a sum of large terms that
    cancel each other is measured by its neighbours. Two NaNs are equal, infinities are equal to
    themselves alone, and integers and bools are beyond it if they differ at all. A difference of
    less than four times the least normal number of the type is none, as exponentials may flush to
    0. */
typedef struct value_difference {
  size_t elements;
  size_t beyond;   /* elements beyond the tolerance */
  size_t first;    /* the first of them; SIZE_MAX: none */
  double largest;  /* greatest |a − e| where both are finite */
  double relative; /* greatest |a − e| / (|e| + s) where both are finite */
  double tolerance;
  size_t nans, expected_nans;
  size_t infinities, expected_infinities;
} value_difference;

/** The tolerance of a type: 1e-9 for f64, 1e-3 for f32, 0.02 for f16, 0.1 for bf16, 0.5 for smaller
    floats, whose neighbours differ as much, and 0 for integers and bools. */
double value_tolerance(tn_dtype dtype);

/** Compares `n` elements. `a` is used for a copy of magnitudes, and rewound. */
value_difference compare_values(arena *a, tn_dtype dtype, const void *computed,
                                const void *expected, size_t n, double tolerance);

#endif
