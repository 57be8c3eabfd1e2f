/* The most multiply-adds that this machine does: the roof that times are measured by. */
#ifndef TENON_CLI_PEAK_H
#define TENON_CLI_PEAK_H

#include "base/arena.h"

#include <stdint.h>

/** Billions of f32 operations a second (a multiply-add is two): the best of ten runs each of loops
    that stay in registers, on so many threads at once, with vectors of up to so many bytes, which
    the processor must have. `a` raises. */
double peak_measure(int32_t threads, uint32_t vector_bytes, arena *a);

#endif
