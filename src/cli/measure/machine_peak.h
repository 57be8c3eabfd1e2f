/* Measures this machine's peak compute rate and memory bandwidth, to which the rates of kernels are
   compared. */
#ifndef TENON_CLI_MEASURE_MACHINE_PEAK_H
#define TENON_CLI_MEASURE_MACHINE_PEAK_H

#include "cli/core/command.h"

#include <stdint.h>

/** Why rates are not compared with this machine's peaks: they are another device's, or those of a
    library (NULL: none) that heeds no TENON_CPU, by which the vectors of the peak are limited. In
    the command's arena; NULL: they are. */
const char *machine_peak_why_none(command *c, const tn_context_info *used, const char *library);

/** The peak compute rate in GFLOP/s of f32, a multiply-add counting as two, on a number of threads
   with vectors of at most `vector_bytes`, which the processor must support. `a` raises. */
double machine_peak_gflops(int32_t threads, uint32_t vector_bytes, arena *a);

/** The peak memory bandwidth in GB/s, reads and writes together: the better of memcpy and of
    non-temporal stores, between arrays of `caches` bytes, the size of the last-level caches,
   clamped to 64 to 512 MiB. NAN if out of memory. */
double machine_peak_bandwidth(int32_t threads, double caches, arena *a);

#endif
