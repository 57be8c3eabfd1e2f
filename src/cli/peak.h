/* The most that this machine does: the roofs that times are measured by. */
#ifndef TENON_CLI_PEAK_H
#define TENON_CLI_PEAK_H

#include "base/arena.h"

#include <stdint.h>

/** Billions of f32 operations a second (a multiply-add is two): the best of ten runs each of loops
    that stay in registers, on so many threads at once, with vectors of up to so many bytes, which
    the processor must have. `a` raises. */
double peak_measure(int32_t threads, uint32_t vector_bytes, arena *a);

/** Billions of bytes a second that are read and written, together: the best of ten copies each, as
    the C library copies and past the caches, between arrays that are as large as the last caches,
    of 64 to 512 MiB, by so many threads at once. NAN without the memory. */
double peak_bandwidth(int32_t threads, double caches, arena *a);

#endif
