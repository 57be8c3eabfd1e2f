/* Computes statistics of measured times: best, mean, deviation and percentiles. */
#ifndef TENON_CLI_MEASURE_STATISTICS_H
#define TENON_CLI_MEASURE_STATISTICS_H

#include <stddef.h>

typedef struct statistics {
  double best, mean, sd, p50, p90, p99; /* sd: sample standard deviation; NAN for n = 1 */
} statistics;

/** Computes the statistics of `n` ≥ 1 numbers, which it sorts. Interpolates percentiles linearly,
   as numpy.percentile does. */
statistics statistics_of(double *values, size_t n);

#endif
