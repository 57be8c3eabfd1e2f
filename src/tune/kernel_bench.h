/* Measures schedules of one kernel beside each other. The kernel runs alone, with operands of the
   sizes that a step of the network has, filled with random numbers. Calls take turns with several
   copies of all operands, which together exceed the second-level cache, or have as many bytes as
   the network if that is less: what a step reads in the network mostly comes from farther than its
   nearest caches, but not from farther than the network is large. */
#ifndef TENON_TUNE_KERNEL_BENCH_H
#define TENON_TUNE_KERNEL_BENCH_H

#include "runtime/execution.h"

typedef struct kernel_bench kernel_bench;

/** Opens a bench for the kernel of a step that the execution has run. `most`: bytes of all copies
    of the operands, if they exceed those of one. */
tn_status kernel_bench_open(kernel_bench **out, execution *e, size_t step, uint64_t most, diag *d);
void kernel_bench_close(kernel_bench *k); /* NULL is allowed */

typedef enum bench_verdict { BENCH_FASTER, BENCH_SLOWER, BENCH_WRONG, BENCH_FAILED } bench_verdict;

typedef struct bench_result {
  bench_verdict verdict;
  double incumbent_ns, candidate_ns; /* of a call; 0: not measured */
} bench_result;

/** Compares a program of the kernel with another one: the candidate is faster if it takes at most
    0.98 of the time in 8 of 10 rounds, and has the same results. Ends as soon as the verdict is
    known. A candidate that cannot be run is a verdict too; want of memory is not. */
tn_status kernel_bench_compare(kernel_bench *k, tn_program *incumbent, tn_program *candidate,
                               bench_result *r, diag *d);

#endif
