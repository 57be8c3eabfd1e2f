/* Memory copies as fast as the processor allows: the reference of workloads that only move
   bytes. */
#ifndef BENCH_COPY_H
#define BENCH_COPY_H

#include "clock.h"

typedef enum bench_copy_kind { BENCH_MEMCPY, BENCH_STREAM } bench_copy_kind;

/** A copy's kind and arguments. Both arrays begin at multiples of 64. */
typedef struct bench_copy {
  bench_copy_kind kind;
  int32_t threads; /* 1 … 1024; each copies a part */
  int64_t bytes;
  const char *from;
  char *to;
} bench_copy;

/** True if this processor supports a kind of copy. */
bool bench_copy_has(bench_copy_kind kind);

/** Times copies. Threads live during the call and spin between runs, so that waking them is not
    timed. Nonzero if they cannot be started. */
int bench_copy_times(const bench_copy *c, bench_times *t);

#endif
