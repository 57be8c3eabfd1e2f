/* Measures the roofs of the roofline model (Williams, Waterman and Patterson, 2009): f32
   multiply-adds in loops of twelve independent chains in registers, and copies of arrays larger
   than the last-level caches. Each is the best of ten runs on all threads at once. */
#include "cli/measure/machine_peak.h"

#include "base/thread.h"
#include "cli/core/text_format.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

/* Twelve chains, which converge to 1, hide the latency at two multiply-adds a cycle. Their start
   values differ, because a compiler would merge equal chains. */
enum { CHAINS = 12, LANES_MOST = 16, ROUNDS = 2000000, RUNS = 10 };

typedef void (*peak_loop)(const float from[CHAINS], float out[CHAINS * LANES_MOST]);

/* Unoptimised code would keep the chains in memory. */
#if defined(__GNUC__) && !defined(__clang__)
#define PEAK_FUNCTION __attribute__((noinline, optimize("O2")))
#else
#define PEAK_FUNCTION __attribute__((noinline))
#endif

/* `target` is an attribute, or nothing. */
#define PEAK_LOOP(name, target, lanes, vector, set, step, store)                                \
  PEAK_FUNCTION target static void name(const float from[CHAINS],                               \
                                        float out[CHAINS * LANES_MOST]) {                       \
    const vector m = set(0.5F);                                                                 \
    vector a = set(from[0]), b = set(from[1]), c = set(from[2]), d = set(from[3]);              \
    vector e = set(from[4]), f = set(from[5]), g = set(from[6]), h = set(from[7]);              \
    vector i = set(from[8]), j = set(from[9]), k = set(from[10]), l = set(from[11]);            \
    for (int round = 0; round < ROUNDS; round++) {                                              \
      a = step(a, m), b = step(b, m), c = step(c, m), d = step(d, m);                           \
      e = step(e, m), f = step(f, m), g = step(g, m), h = step(h, m);                           \
      i = step(i, m), j = step(j, m), k = step(k, m), l = step(l, m);                           \
    }                                                                                           \
    store(out, a), store(out + lanes, b), store(out + 2 * lanes, c), store(out + 3 * lanes, d); \
    store(out + 4 * lanes, e), store(out + 5 * lanes, f), store(out + 6 * lanes, g);            \
    store(out + 7 * lanes, h), store(out + 8 * lanes, i), store(out + 9 * lanes, j);            \
    store(out + 10 * lanes, k), store(out + 11 * lanes, l);                                     \
  }                                                                                             \
  _Static_assert(lanes <= LANES_MOST, "the results have room")

#if defined(__x86_64__)
#define STEP_512(x, m) _mm512_fmadd_ps(x, m, m)
#define STEP_256(x, m) _mm256_fmadd_ps(x, m, m)
#define STEP_128(x, m) _mm_add_ps(_mm_mul_ps(x, m), m)
#define AVX512         __attribute__((target("avx512f")))
#define AVX2           __attribute__((target("avx2,fma")))
PEAK_LOOP(loop_512, AVX512, 16, __m512, _mm512_set1_ps, STEP_512, _mm512_storeu_ps);
PEAK_LOOP(loop_256, AVX2, 8, __m256, _mm256_set1_ps, STEP_256, _mm256_storeu_ps);
PEAK_LOOP(loop_128, , 4, __m128, _mm_set1_ps, STEP_128, _mm_storeu_ps);
#elif defined(__aarch64__)
#define STEP_128(x, m) vfmaq_f32(m, x, m)
PEAK_LOOP(loop_128, , 4, float32x4_t, vdupq_n_f32, STEP_128, vst1q_f32);
#else
#define STEP_ONE(x, m)   ((x) * (m) + (m))
#define SET_ONE(x)       (x)
#define STORE_ONE(to, x) (*(to) = (x))
PEAK_LOOP(loop_one, , 1, float, SET_ONE, STEP_ONE, STORE_ONE);
#endif

typedef void (*peak_copy)(char *to, const char *from, size_t n);

typedef struct peak_kind {
  peak_loop loop;
  uint32_t lanes;
} peak_kind;

static const peak_kind kinds[] = {
#if defined(__x86_64__)
    {loop_128, 4},
    {loop_256, 8},
    {loop_512, 16},
#elif defined(__aarch64__)
    {loop_128, 4},
#else
    {loop_one, 1},
#endif
};

enum { KINDS = sizeof kinds / sizeof *kinds };

/** A thread's part of a run, and its start and end times. */
typedef struct peak_task {
  peak_loop loop; /* NULL: a copy */
  peak_copy copy;
  char *to;
  const char *bytes;
  size_t n;
  thread thread;
  int64_t start, end;
  float from[CHAINS], out[CHAINS * LANES_MOST];
} peak_task;

static void *run_task(void *arg) {
  peak_task *t = arg;
  t->start = clock_now_ns();
  if (t->loop)
    t->loop(t->from, t->out);
  else
    t->copy(t->to, t->bytes, t->n);
  t->end = clock_now_ns();
  return NULL;
}

/** Runs all tasks at once, the first one on the calling thread; returns the nanoseconds from the
    first start to the last end. */
static int64_t run_tasks(peak_task tasks[], int32_t n, int32_t *started, diag *d) {
  *started = 1;
  while (*started < n) {
    peak_task *t = &tasks[*started];
    if (thread_start(&t->thread, run_task, t, d)) break;
    ++*started;
  }
  run_task(&tasks[0]);
  int64_t first = tasks[0].start, last = tasks[0].end;
  for (int32_t i = 1; i < *started; i++) {
    thread_join(tasks[i].thread);
    if (tasks[i].start < first) first = tasks[i].start;
    if (tasks[i].end > last) last = tasks[i].end;
  }
  return last - first;
}

static double measure_kind(peak_kind kind, peak_task tasks[], int32_t n, diag *d) {
  double best = 0;
  for (int32_t i = 0; i < n; i++) tasks[i].loop = kind.loop;
  for (int run = 0; run < RUNS; run++) {
    int32_t started;
    int64_t ns = run_tasks(tasks, n, &started, d);
    double operations = 2.0 * CHAINS * ROUNDS * kind.lanes * started;
    if (ns > 0 && operations / (double)ns > best) best = operations / (double)ns;
  }
  return best;
}

const char *machine_peak_why_none(command *c, const tn_context_info *used, const char *library) {
  if (!command_is_processor(used))
    return arena_printf(&c->arena, "only this process's processor is measured, not %s",
                        used->device);
  tn_processor_info processor = TN_PROCESSOR_INFO_INIT;
  command_check_status(c, tn_processor_get(c->context, &processor));
  if (!library || !processor.limit) return NULL;
  return arena_printf(&c->arena, "%s does not heed TENON_CPU, which limits the measured one",
                      text_escape(&c->arena, library));
}

double machine_peak_gflops(int32_t threads, uint32_t vector_bytes, arena *a) {
  peak_task *tasks = arena_calloc(a, (size_t)threads, sizeof *tasks);
  for (int32_t i = 0; i < threads; i++)
    for (int k = 0; k < CHAINS; k++) tasks[i].from[k] = (float)(k + 1) / CHAINS;
  double best = 0;
  for (size_t i = 0; i < KINDS; i++) {
    if (i && kinds[i].lanes * sizeof(float) > vector_bytes) break;
    double gflops = measure_kind(kinds[i], tasks, threads, a->diag);
    if (gflops > best) best = gflops;
  }
  return best;
}

/* Memory. */

#ifdef __x86_64__
/** Copies with non-temporal stores, which do not load the overwritten lines. */
static void copy_nontemporal(char *to, const char *from, size_t n) {
  size_t k = 0;
  for (; k + sizeof(__m128i) <= n; k += sizeof(__m128i))
    _mm_stream_si128((__m128i *)(void *)(to + k),
                     _mm_loadu_si128((const __m128i *)(const void *)(from + k)));
  memcpy(to + k, from + k, n - k);
  _mm_sfence();
}
#else
static void copy_nontemporal(char *to, const char *from, size_t n) { memcpy(to, from, n); }
#endif

static void copy_cached(char *to, const char *from, size_t n) { memcpy(to, from, n); }

static double measure_copies(peak_copy copy, peak_task tasks[], int32_t n, diag *d) {
  double best = 0;
  for (int32_t i = 0; i < n; i++) tasks[i].copy = copy;
  for (int run = 0; run < RUNS; run++) {
    int32_t started;
    int64_t ns = run_tasks(tasks, n, &started, d);
    double bytes = 2.0 * (double)tasks[0].n * started;
    if (ns > 0 && bytes / (double)ns > best) best = bytes / (double)ns;
  }
  return best;
}

enum { PAGE_BYTES = 2 << 20 };

/** Allocates memory in huge pages if the system has them, as the library does for buffers. */
static char *alloc_huge_pages(size_t bytes) {
  char *at = aligned_alloc(PAGE_BYTES, bytes);
#ifdef MADV_HUGEPAGE
  if (at) (void)madvise(at, bytes, MADV_HUGEPAGE);
#endif
  return at;
}

double machine_peak_bandwidth(int32_t threads, double caches, arena *a) {
  static const double least = 1 << 26, most = 1 << 29;
  peak_task *tasks = arena_calloc(a, (size_t)threads, sizeof *tasks);
  size_t pages = (size_t)(fmin(fmax(caches, least), most) / PAGE_BYTES) / (size_t)threads + 1;
  size_t each = pages * PAGE_BYTES, bytes = each * (size_t)threads;
  char *from = alloc_huge_pages(bytes), *to = alloc_huge_pages(bytes);
  double best = NAN;
  if (from && to) {
    memset(from, 1, bytes); /* untouched pages would all map to the zero page */
    for (int32_t i = 0; i < threads; i++) {
      size_t offset = (size_t)i * each;
      tasks[i].to = to + offset, tasks[i].bytes = from + offset, tasks[i].n = each;
    }
    best = fmax(measure_copies(copy_cached, tasks, threads, a->diag),
                measure_copies(copy_nontemporal, tasks, threads, a->diag));
  }
  free(from);
  free(to);
  return best;
}
