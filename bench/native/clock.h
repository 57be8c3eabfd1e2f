/* Times a function that is called repeatedly, without the cost of calling it from Python. */
#ifndef BENCH_CLOCK_H
#define BENCH_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

/** Times of runs in nanoseconds: `n` of at most `most` places at `at` are used. Runs are repeated
    until there are `least` of them and they took `enough` in total; at most until they took ten
    times `enough` or all places are used. There is at least one. */
typedef struct bench_times {
  int64_t enough, least, most, n, sum;
  int64_t *at;
} bench_times;

int64_t bench_now(void);

/** Records a run that began at `start` and has just ended; true if another one is needed. */
bool bench_note(bench_times *t, int64_t start);

/** Calls and times run(self). The first non-zero result ends the runs and is returned. */
int bench_run_times(int (*run)(void *self), void *self, bench_times *t);

#endif
