/* Interface of C libraries that Tenon is compared with: each is a shared object with all of these
   functions. */
#ifndef BENCH_PEER_H
#define BENCH_PEER_H

#include <stdint.h>

/** Returns the library's version. Valid as long as the object is loaded. */
const char *bench_peer_version(void);

/** Prepares work: its kind ("matmul", "conv") and numbers as `tenon bench` writes them, its inputs
    and output, f32 in row-major order, borrowed until the work is freed. NULL if the library does
    not support it. */
void *bench_peer_make(const char *kind, const int64_t numbers[], float *const in[], float *out);

/** Runs the work once; 0 on success. */
int bench_peer_run(void *work);

/** Frees the work. NULL is allowed. */
void bench_peer_free(void *work);

#endif
