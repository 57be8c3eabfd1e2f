/* Multithreaded copies by memcpy or non-temporal stores (copy.h): spinning threads each copy a
   part. */
#include "copy.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

enum { LINE = 64, THREADS_MOST = 1024, SPINS = 20000 };

/** State shared by the threads of a call. */
typedef struct crew {
  const bench_copy *copy;
  atomic_int run;  /* number of the run that may begin; negative: end */
  atomic_int done; /* parts copied, over all runs */
} crew;

typedef struct member {
  crew *crew;
  int32_t index;
  pthread_t thread;
} member;

#if defined(__SSE2__)
static void stream(char *to, const char *from, size_t bytes) {
  size_t i = 0;
  for (; i + LINE <= bytes; i += LINE)
    for (size_t k = i; k < i + LINE; k += sizeof(__m128i))
      _mm_stream_si128((__m128i *)(void *)(to + k),
                       _mm_load_si128((const __m128i *)(const void *)(from + k)));
  _mm_sfence();
  memcpy(to + i, from + i, bytes - i);
}
static void relax(void) { _mm_pause(); }
#else
static void stream(char *to, const char *from, size_t bytes) { memcpy(to, from, bytes); }
static void relax(void) {}
#endif

/** Pauses between two polls, the n-th of a wait; yields now and then, where cores are short. */
static void pause_briefly(int *n) {
  relax();
  if (++*n < SPINS) return;
  sched_yield();
  *n = 0;
}

bool bench_copy_has(bench_copy_kind kind) {
#if defined(__SSE2__)
  return kind == BENCH_MEMCPY || kind == BENCH_STREAM;
#else
  return kind == BENCH_MEMCPY;
#endif
}

/** Returns the start of a part, at a cache line. */
static size_t part(const bench_copy *c, int32_t i) {
  size_t lines = (size_t)c->bytes / LINE;
  return i == c->threads ? (size_t)c->bytes : lines * (size_t)i / (size_t)c->threads * LINE;
}

static void copy_part(const bench_copy *c, int32_t i) {
  size_t from = part(c, i), bytes = part(c, i + 1) - from;
  if (c->kind == BENCH_STREAM)
    stream(c->to + from, c->from + from, bytes);
  else
    memcpy(c->to + from, c->from + from, bytes);
}

static void *work(void *arg) {
  const member *m = arg;
  crew *all = m->crew;
  for (int run = 1;; run++) {
    int now, n = 0;
    while ((now = atomic_load_explicit(&all->run, memory_order_acquire)) >= 0 && now < run)
      pause_briefly(&n);
    if (now < 0) return NULL;
    copy_part(all->copy, m->index);
    atomic_fetch_add_explicit(&all->done, 1, memory_order_release);
  }
}

static void run_all(crew *all, int run) {
  const bench_copy *c = all->copy;
  atomic_store_explicit(&all->done, 0, memory_order_relaxed);
  atomic_store_explicit(&all->run, run, memory_order_release);
  copy_part(c, 0);
  int n = 0;
  while (atomic_load_explicit(&all->done, memory_order_acquire) < c->threads - 1) pause_briefly(&n);
}

static void time_runs(crew *all, bench_times *t) {
  int64_t start;
  int run = 0;
  run_all(all, ++run); /* the first run waits until all threads have started */
  do {
    start = bench_now();
    run_all(all, ++run);
  } while (bench_note(t, start));
}

int bench_copy_times(const bench_copy *c, bench_times *t) {
  crew all = {.copy = c};
  int failed = c->threads < 1 || c->threads > THREADS_MOST || !bench_copy_has(c->kind);
  if (failed) return failed;
  member *members = calloc((size_t)c->threads, sizeof *members);
  int32_t started = 1;
  if (!members) return 1;
  for (; started < c->threads && !failed; started += !failed) {
    members[started] = (member){.crew = &all, .index = started};
    failed = pthread_create(&members[started].thread, NULL, work, &members[started]);
  }
  if (!failed) time_runs(&all, t);
  atomic_store(&all.run, -1);
  for (int32_t i = 1; i < started; i++) pthread_join(members[i].thread, NULL);
  free(members);
  return failed;
}
