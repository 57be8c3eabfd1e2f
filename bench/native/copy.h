/* Copying memory, as fast as a processor can: what work that only moves bytes is held against. */
#ifndef BENCH_COPY_H
#define BENCH_COPY_H

#include "clock.h"

typedef enum bench_copy_kind { BENCH_MEMCPY, BENCH_STREAM } bench_copy_kind;

/** One of the copies and what it is to do. Both arrays begin at multiples of 64. */
typedef struct bench_copy {
  bench_copy_kind kind;
  int32_t threads; /* 1 … 1024; each copies a part */
  int64_t bytes;
  const char *from;
  char *to;
} bench_copy;

/** Whether this processor has stores that go past its caches. */
bool bench_copy_has(bench_copy_kind kind);

/** Times copies. The threads live as long as the call and spin between runs, so that waking them is
    no part of a run. Nonzero where they cannot be started. */
int bench_copy_times(const bench_copy *c, bench_times *t);

#endif
