/* Computes the mean, deviation and percentiles of a sample, the latter by linear interpolation. */
#include "cli/measure/statistics.h"

#include <math.h>
#include <stdlib.h>

static int compare_doubles(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static double percentile(const double *sorted, size_t n, double fraction) {
  double position = fraction * (double)(n - 1);
  size_t below = (size_t)position, above = below + 1 < n ? below + 1 : below;
  return sorted[below] + (position - (double)below) * (sorted[above] - sorted[below]);
}

statistics statistics_of(double *values, size_t n) {
  qsort(values, n, sizeof *values, compare_doubles);
  double sum = 0, squares = 0;
  for (size_t i = 0; i < n; i++) sum += values[i];
  double mean = sum / (double)n;
  for (size_t i = 0; i < n; i++) squares += (values[i] - mean) * (values[i] - mean);
  return (statistics){values[0],
                      mean,
                      n > 1 ? sqrt(squares / (double)(n - 1)) : NAN,
                      percentile(values, n, 0.5),
                      percentile(values, n, 0.9),
                      percentile(values, n, 0.99)};
}
