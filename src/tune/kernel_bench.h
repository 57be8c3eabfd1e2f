/* Measures two schedules of a kernel beside each other (kernel_trial.h). */
#ifndef TENON_TUNE_KERNEL_BENCH_H
#define TENON_TUNE_KERNEL_BENCH_H

#include "tune/kernel_trial.h"

typedef enum bench_verdict { BENCH_FASTER, BENCH_SLOWER, BENCH_WRONG, BENCH_FAILED } bench_verdict;

typedef struct bench_result {
  bench_verdict verdict;
  double incumbent_ns, candidate_ns; /* of a call; 0: not measured */
} bench_result;

/** Compares a program of the kernel with another one: the candidate is faster if it takes at most
    0.98 of the time in 8 of 10 rounds, and has the results of the trial's first incumbent. Ends as
    soon as the verdict is known. BENCH_FAILED is a candidate that cannot be run where the incumbent
    can; where that fails too, or memory is exhausted, the failure is the device's, and returned.
    `d` is the trial's. */
tn_status kernel_bench_compare(kernel_trial *k, tn_program *incumbent, tn_program *candidate,
                               bench_result *r, diag *d);

#endif
