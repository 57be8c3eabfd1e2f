/* Implements the comparison of results. The tolerances are those of whole networks: relaxed enough
   for sums in another order, and far below what a wrong index gives. */
#include "tune/same_results.h"

#include "device/memory/span.h"

#include <math.h>
#include <string.h>

static double tolerance(dtype t) {
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

static bool same_floats(double relative, const double got[], const double expected[], size_t n) {
  double slack = relative * deviation(expected, n);
  for (size_t i = 0; i < n; i++) {
    bool same = got[i] == expected[i] || (isnan(got[i]) && isnan(expected[i]));
    bool is_near =
        isfinite(expected[i]) && fabs(got[i] - expected[i]) <= relative * fabs(expected[i]) + slack;
    if (!same && !is_near) return false;
  }
  return true;
}

bool same_results(dtype t, const void *got, const void *expected, size_t n) {
  if (dtype_is_float(t)) return same_floats(tolerance(t), got, expected, n);
  return !n || !memcmp(got, expected, n * dtype_bytes(t));
}

void *read_results(arena *a, const tn_span *span, dtype t, size_t n) {
  dtype as = dtype_is_float(t) ? DT_F64 : t;
  void *x = arena_alloc(a, (n + 1) * dtype_bytes(as));
  if (n) diag_require(a->diag, span_read(span, t, as, x, n, a->diag));
  return x;
}
