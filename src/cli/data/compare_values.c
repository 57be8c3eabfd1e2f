/* Compares arrays element by element. The typical magnitude is found by quickselect (Hoare 1961) on
   a copy of the expected magnitudes. */
#include "cli/data/compare_values.h"

#include <float.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

double value_tolerance(tn_dtype t) {
  if (tn_dtype_kind_of(t) != TN_KIND_FLOAT) return 0;
  switch (t) {
  case TN_F64: return 1e-9;
  case TN_F32: return 1e-3;
  case TN_F16: return 2e-2;
  case TN_BF16: return 0.1;
  default: return 0.5;
  }
}

/** Differences below this are none: four times the least normal number of the type. */
static double least_difference(tn_dtype t) {
  switch (t) {
  case TN_F64: return 4 * DBL_MIN;
  case TN_F32:
  case TN_BF16: return 4.0 * FLT_MIN;
  case TN_F16: return 4 * 0x1p-14;
  default: return 0;
  }
}

/** The k-th smallest of n numbers, which are reordered. */
static double select_smallest(double *at, size_t n, size_t k) {
  size_t low = 0, high = n - 1;
  while (low < high) {
    double pivot = at[low + (high - low) / 2];
    size_t i = low, j = high;
    for (;; i++, j--) {
      while (at[i] < pivot) i++;
      while (at[j] > pivot) j--;
      if (i >= j) break;
      double kept = at[i];
      at[i] = at[j];
      at[j] = kept;
    }
    if (k <= j)
      high = j;
    else
      low = j + 1;
  }
  return at[k];
}

/** The lower quartile of the magnitudes of elements that are finite and not 0; 0: there are none.
 */
static double typical_magnitude(arena *a, tn_dtype t, const void *values, size_t n) {
  arena_mark here = arena_save(a);
  double *at = arena_alloc(a, (n + 1) * sizeof *at);
  size_t size = tn_dtype_size(t), count = 0;
  for (size_t i = 0; i < n; i++) {
    double x = fabs(tn_element_get(t, (const char *)values + i * size));
    if (isfinite(x) && x > 0) at[count++] = x;
  }
  double typical = count ? select_smallest(at, count, count / 4) : 0;
  arena_rewind(a, here);
  return typical;
}

/** Compares two floats that are not the same bits; true if they are within the tolerance. */
static bool compare_floats(value_difference *r, double x, double e, double typical, double least) {
  if (isnan(x) || isnan(e)) return isnan(x) && isnan(e);
  if (isinf(x) || isinf(e)) return x == e;
  double difference = fabs(x - e), magnitude = fabs(e) + typical;
  if (difference == 0 || difference < least) return true;
  double relative = magnitude > 0 ? difference / magnitude : INFINITY;
  if (difference > r->largest) r->largest = difference;
  if (relative > r->relative) r->relative = relative;
  return relative <= r->tolerance;
}

/** Notes the difference of two integers or bools. */
static void note_integers(value_difference *r, double x, double e) {
  double difference = fabs(x - e), relative = difference / (fabs(e) > 1 ? fabs(e) : 1);
  if (difference > r->largest) r->largest = difference;
  if (relative > r->relative) r->relative = relative;
}

value_difference compare_values(arena *a, tn_dtype t, const void *computed, const void *expected,
                                size_t n, double tolerance) {
  value_difference r = {.elements = n, .first = SIZE_MAX, .tolerance = tolerance};
  bool is_float = tn_dtype_kind_of(t) == TN_KIND_FLOAT;
  double typical = is_float ? typical_magnitude(a, t, expected, n) : 0, least = least_difference(t);
  size_t size = tn_dtype_size(t);
  for (size_t i = 0; i < n; i++) {
    const char *at = (const char *)computed + i * size, *by = (const char *)expected + i * size;
    double x = tn_element_get(t, at), e = tn_element_get(t, by);
    r.nans += isnan(x) != 0;
    r.expected_nans += isnan(e) != 0;
    r.infinities += isinf(x) != 0;
    r.expected_infinities += isinf(e) != 0;
    if (!memcmp(at, by, size)) continue;
    if (is_float && compare_floats(&r, x, e, typical, least)) continue;
    if (!is_float) note_integers(&r, x, e);
    if (!r.beyond++) r.first = i;
  }
  return r;
}
