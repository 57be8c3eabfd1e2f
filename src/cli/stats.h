/* What a list of times says. */
#ifndef TENON_CLI_STATS_H
#define TENON_CLI_STATS_H

#include <stddef.h>

typedef struct stats {
  double best, mean, sd, p50, p90, p99; /* sd: of a sample; NAN for a single one */
} stats;

/** Of `n` ≥ 1 numbers, which are sorted. Percentiles lie between neighbours, as numpy.percentile's
    do. */
stats stats_of(double *values, size_t n);

#endif
