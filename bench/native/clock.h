/* Timing of what is called again and again, without the cost of calling it from Python. */
#ifndef BENCH_CLOCK_H
#define BENCH_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

/** Times of runs in nanoseconds: `most` places at `at`, of which `n` are taken. Runs go on until
    they are `least` and have taken `enough` together; they end before that where they have taken
    ten times as much, or all places are taken. There is always one. */
typedef struct bench_times {
  int64_t enough, least, most, n, sum;
  int64_t *at;
} bench_times;

int64_t bench_now(void);

/** Notes a run that began at `start` and has ended; true while there is to be another one. */
bool bench_note(bench_times *t, int64_t start);

/** Runs and times run(self), which returns 0 where all is well. What else it returned ends the
    runs, and is returned. */
int bench_run_times(int (*run)(void *self), void *self, bench_times *t);

#endif
