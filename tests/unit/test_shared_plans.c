/* Tests that any number of threads run one plan, compile the same kernels and trim caches at once:
   results are right, and each kernel is compiled once. Meant for the thread sanitizer too. */
#include "support/temporary.h"
#include "support/tensor_check.h"

#include <pthread.h>
#include <tenon/cache.h>
#include <tenon/unstable/queue.h>

enum { THREADS = 8, RUNS = 40, KERNELS = 5, N = 33 };

typedef struct shared {
  tn_kernel_cache *cache;
  tn_plan *plan;
  atomic_int n_waiting;
  atomic_bool is_over;
} shared;

typedef struct worker {
  shared *shared;
  int number;
  const char *fault; /* NULL: none */
} worker;

static tn_context *open_in(tn_kernel_cache *cache) {
  tn_open_desc desc = TN_OPEN_DESC_INIT;
  desc.threads = 2;
  desc.kernel_cache = cache;
  return tn_open(&desc);
}

/** The `i`-th of several expressions, each a kernel of its own. */
static tn_tensor *expression(tn_context *c, tn_tensor *x, int i) {
  tn_tensor *y = tn_mul(x, tn_num(c, 0.5));
  for (int k = 0; k < i; k++) y = tn_mul(y, x);
  return tn_add(y, tn_sum(x, tn_axes(0), true));
}

static float expected(const float *x, int i, int k) {
  float sum = 0;
  for (int n = 0; n < N; n++) sum += x[n];
  float y = x[k] * 0.5f;
  for (int n = 0; n < i; n++) y *= x[k];
  return y + sum;
}

static void fill(float *x, int seed) {
  for (int k = 0; k < N; k++) x[k] = (float)((k * 7 + seed) % 11); /* sums are exact */
}

static bool is_right(const float *x, const float *got, int i) {
  bool right = true;
  for (int k = 0; k < N; k++) right = right && got[k] == expected(x, i, k);
  return right;
}

/** Waits until all threads are here, so that they begin at once. */
static void meet(shared *s) {
  atomic_fetch_add(&s->n_waiting, 1);
  while (atomic_load(&s->n_waiting) % THREADS) sched_yield();
}

static const char *run_plan(worker *w) {
  float x[N], got[N];
  tn_binding *b;
  if (tn_plan_bind(w->shared->plan, &b)) return "bind";
  for (int run = 0; run < RUNS; run++) {
    fill(x, w->number + run);
    tn_binding_input(b, "x", tn_shape(N), TN_F32, x, sizeof x);
    tn_binding_output(b, "0", TN_F32, got, sizeof got);
    if (tn_binding_run(b)) return "run";
    if (!is_right(x, got, 1)) return "the result of a run";
  }
  tn_binding_free(b);
  return NULL;
}

/** Compiles the same kernels as the other threads, in a context of its own. */
static const char *compile_all(worker *w, bool trims) {
  float x[N], got[N];
  tn_device *device;
  tn_context *c = open_in(w->shared->cache);
  if (tn_device_open(c, NULL, &device, NULL)) return "device";
  fill(x, w->number);
  for (int i = 0; i < KERNELS; i++) {
    tn_tensor *out = expression(c, tn_from_host(c, tn_shape(N), TN_F32, x, sizeof x), i);
    if (tn_read(out, TN_F32, got, sizeof got)) return "read";
    if (!is_right(x, got, i)) return "the result of a kernel";
    if (!trims) continue;
    tn_device_trim(device, 0);
    if (tn_kernel_cache_trim(c, (uint64_t)w->number % 3, UINT64_MAX)) return "trim of kernels";
    tn_status s = tn_cache_trim(c, TN_CACHE_LIMIT, NULL);
    if (s && s != TN_ERR_BUSY) return "trim of the folder";
  }
  return tn_close(c) ? "close" : NULL;
}

static void *work(void *arg) {
  worker *w = arg;
  meet(w->shared);
  w->fault = compile_all(w, false);
  if (!w->fault) w->fault = run_plan(w);
  meet(w->shared);
  if (!w->fault) w->fault = compile_all(w, true);
  if (!w->fault) w->fault = run_plan(w);
  return NULL;
}

static tn_kernel_cache_info counts_of(tn_context *c) {
  tn_kernel_cache_info info = TN_KERNEL_CACHE_INFO_INIT;
  check_ok(c, tn_kernel_cache_get(c, &info));
  return info;
}

/** Kernels that one thread compiles for all expressions. */
static uint64_t count_kernels(void) {
  float x[N], got[N];
  tn_kernel_cache *cache;
  assert_int_equal(tn_kernel_cache_open(NULL, &cache), TN_OK);
  tn_context *c = open_in(cache);
  fill(x, 0);
  for (int i = 0; i < KERNELS; i++)
    check_ok(c, tn_read(expression(c, floats(c, N, x), i), TN_F32, got, sizeof got));
  uint64_t n = counts_of(c).compiled;
  tn_close(c);
  tn_kernel_cache_free(cache);
  return n;
}

static void threads_share_plans_and_caches(void **state) {
  (void)state;
  diag d = {0};
  arena a;
  shared s = {0};
  tn_kernel_cache_desc desc = TN_KERNEL_CACHE_DESC_INIT;
  pthread_t threads[THREADS];
  worker workers[THREADS];
  arena_init(&a, &mem_system, &d);
  char *folder = temporary_folder(&a);
  desc.folder = folder;
  assert_int_equal(tn_kernel_cache_open(&desc, &s.cache), TN_OK);
  tn_context *c = open_in(s.cache);
  tn_tensor *out = expression(c, tn_input(c, "x", tn_shape(N), TN_F32), 1);
  check_ok(c, tn_plan_compile(c, &out, 1, NULL, &s.plan));
  for (int i = 0; i < THREADS; i++) {
    workers[i] = (worker){&s, i, NULL};
    assert_int_equal(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
  }
  for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
  for (int i = 0; i < THREADS; i++)
    if (workers[i].fault) fail_msg("thread %d: %s", i, workers[i].fault);
  assert_int_equal(counts_of(c).compiled, count_kernels());
  tn_close(c);
  tn_kernel_cache_free(s.cache);
  temporary_remove(&a, folder);
  arena_free(&a);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(threads_share_plans_and_caches)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
