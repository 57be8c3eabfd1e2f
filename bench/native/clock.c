/* Timing loop for benchmarks (clock.h). */
#include "clock.h"

#include <time.h>

int64_t bench_now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

bool bench_note(bench_times *t, int64_t start) {
  int64_t ns = bench_now() - start;
  t->at[t->n++] = ns;
  t->sum += ns;
  int64_t enough = t->n < t->least ? 10 * t->enough : t->enough;
  return t->sum < enough && t->n < t->most;
}

int bench_run_times(int (*run)(void *self), void *self, bench_times *t) {
  for (;;) {
    int64_t start = bench_now();
    int status = run(self);
    if (status) return status;
    if (!bench_note(t, start)) return 0;
  }
}
