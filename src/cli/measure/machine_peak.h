/* Measures this machine's peak compute rate and memory bandwidth, to which the rates of kernels are
   compared. */
#ifndef TENON_CLI_MEASURE_MACHINE_PEAK_H
#define TENON_CLI_MEASURE_MACHINE_PEAK_H

#include "base/arena.h"

#include <stdint.h>

/** Peak compute in billions of f32 operations a second, a multiply-add being two, on so many
   threads with vectors of at most so many bytes, which the processor must have. `a` raises. */
double machine_peak_gflops(int32_t threads, uint32_t vector_bytes, arena *a);

/** Peak bandwidth in billions of bytes a second, read and written together: the better of memcpy
   and of non-temporal stores, on so many threads, between arrays as large as the last caches
   (`caches` bytes), but of 64 to 512 MiB. NAN without the memory. */
double machine_peak_bandwidth(int32_t threads, double caches, arena *a);

#endif
