/* Implements the comparison of results. The tolerances are those of whole networks: relaxed enough
   for sums in another order, and far below what a wrong index gives. */
#include "tune/same_results.h"

#include <math.h>

static double tolerance(dtype t) {
  if (!dtype_is_float(t)) return 0;
  return dtype_bytes(t) == 2 ? 1e-2 : dtype_bytes(t) == 4 ? 1e-3 : 1e-9;
}

/** The standard deviation of the finite elements. */
static double deviation(const double x[], size_t n) {
  double sum = 0, squares = 0, count = 0;
  for (size_t i = 0; i < n; i++)
    if (isfinite(x[i])) sum += x[i], count++;
  double mean = count ? sum / count : 0;
  for (size_t i = 0; i < n; i++)
    if (isfinite(x[i])) squares += (x[i] - mean) * (x[i] - mean);
  return count ? sqrt(squares / count) : 0;
}

bool same_results(dtype t, const double got[], const double expected[], size_t n) {
  double relative = tolerance(t), slack = relative ? relative * deviation(expected, n) : 0;
  for (size_t i = 0; i < n; i++) {
    bool same = got[i] == expected[i] || (isnan(got[i]) && isnan(expected[i]));
    bool is_near =
        isfinite(expected[i]) && fabs(got[i] - expected[i]) <= relative * fabs(expected[i]) + slack;
    if (!same && !is_near) return false;
  }
  return true;
}
