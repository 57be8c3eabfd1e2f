/* A C library that Tenon is measured beside: one shared object each, all with these functions. */
#ifndef BENCH_PEER_H
#define BENCH_PEER_H

#include <stdint.h>

/** The library's version. Valid as long as the object is loaded. */
const char *bench_peer_version(void);

/** Gets work ready: its kind ("matmul", "conv") and numbers as `tenon bench` writes them, its
   inputs and its output, of f32 in row-major order, which are borrowed until it is freed. NULL
   where the library has no such thing. */
void *bench_peer_make(const char *kind, const int64_t numbers[], float *const in[], float *out);

/** Does it once; 0 where all is well. */
int bench_peer_run(void *work);

/** NULL is allowed. */
void bench_peer_free(void *work);

#endif
