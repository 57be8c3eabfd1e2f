#include "device/pool.h"

#include "base/thread.h"

#include <cpuinfo.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

enum { MOST_UNITS = 256, SPIN_NS = 50000, PAUSES = 32 };

/** A piece of work, on its caller's stack. Unit u is the tasks u, u + units, …; whoever claims it
    first runs it. */
typedef struct job {
  void (*task)(void *arg, size_t i);
  void *arg;
  size_t n, units;
  struct job *next;
  atomic_size_t claims;  /* units that are claimed */
  atomic_size_t helpers; /* threads of the pool inside; grows under the lock, while it is linked */
  atomic_uchar claimed[MOST_UNITS];
} job;

typedef struct worker {
  pool *pool;
  size_t number;
  thread thread;
} worker;

struct pool {
  const mem *mem;
  tn_workers workers;
  mutex lock; /* of what follows */
  condition work, left;
  bool calling,
      is_long; /* workers.run is being called, one call at a time; for work that is long */
  job *jobs;
  atomic_uint posted; /* jobs so far: workers spin on it */
  size_t sleeping, waiting;
  bool stop;
  int32_t threads;    /* the caller being one */
  atomic_int started; /* tried to start, the caller being one */
  size_t n_workers;   /* running */
  worker worker[POOL_MOST];
};

pool *pool_open(const mem *m, int32_t threads, const tn_workers *workers) {
  pool *p = mem_calloc(m, 1, sizeof *p);
  if (!p) return NULL;
  p->mem = m;
  if (workers) p->workers = *workers;
  mutex_init(&p->lock);
  condition_init(&p->work);
  condition_init(&p->left);
  atomic_init(&p->posted, 0);
  atomic_init(&p->started, 1);
  p->threads = threads < POOL_MOST ? threads : POOL_MOST;
  return p;
}

void pool_close(pool *p) {
  if (!p) return;
  mutex_lock(&p->lock);
  p->stop = true;
  atomic_fetch_add(&p->posted, 1);
  condition_wake_all(&p->work);
  mutex_unlock(&p->lock);
  for (size_t i = 0; i < p->n_workers; i++) thread_join(p->worker[i].thread);
  condition_free(&p->left);
  condition_free(&p->work);
  mutex_free(&p->lock);
  mem_free(p->mem, p, sizeof *p);
}

int32_t pool_threads(const pool *p) { return p->threads; }

/** A unit that nobody has claimed, preferably number `first`; j->units if there is none. */
static size_t claim(job *j, size_t first) {
  for (size_t k = 0; k < j->units; k++) {
    if (atomic_load_explicit(&j->claims, memory_order_relaxed) >= j->units) break;
    size_t u = (first + k) % j->units;
    if (atomic_exchange_explicit(&j->claimed[u], 1, memory_order_relaxed)) continue;
    atomic_fetch_add_explicit(&j->claims, 1, memory_order_relaxed);
    return u;
  }
  return j->units;
}

static void take_part(job *j, size_t number) {
  for (size_t u; (u = claim(j, number)) < j->units;)
    for (size_t i = u; i < j->n; i += j->units) j->task(j->arg, i);
}

/** A job that has units left, entered. Called under the lock. */
static job *enter(pool *p) {
  for (job *j = p->jobs; j; j = j->next)
    if (atomic_load_explicit(&j->claims, memory_order_relaxed) < j->units) {
      atomic_fetch_add(&j->helpers, 1);
      return j;
    }
  return NULL;
}

/** Called under the lock; the job's caller may return at once. */
static void leave(pool *p, job *j) {
  if (atomic_fetch_sub(&j->helpers, 1) == 1 && p->waiting) condition_wake_all(&p->left);
}

/** Waits for another job than the `posted`-th: spins, then sleeps. Called under the lock. */
static void await_job(pool *p) {
  unsigned posted = atomic_load(&p->posted);
  mutex_unlock(&p->lock);
  int64_t end = clock_now() + SPIN_NS;
  while (atomic_load(&p->posted) == posted && clock_now() < end)
    for (int i = 0; i < PAUSES && atomic_load(&p->posted) == posted; i++) thread_pause();
  mutex_lock(&p->lock);
  p->sleeping++;
  while (atomic_load(&p->posted) == posted) condition_wait(&p->work, &p->lock);
  p->sleeping--;
}

static void *worker_body(void *arg) {
  worker *w = arg;
  pool *p = w->pool;
  mutex_lock(&p->lock);
  while (!p->stop) {
    job *j = enter(p);
    if (!j) {
      await_job(p);
      continue;
    }
    mutex_unlock(&p->lock);
    take_part(j, w->number);
    mutex_lock(&p->lock);
    leave(p, j);
  }
  mutex_unlock(&p->lock);
  return NULL;
}

/** Starts threads that are wanted and not there yet; fewer will do. */
static void start_workers(pool *p) {
  mutex_lock(&p->lock);
  for (int32_t i = atomic_load(&p->started); i < p->threads; i++) {
    diag d = {0};
    worker *w = &p->worker[p->n_workers];
    *w = (worker){.pool = p, .number = p->n_workers + 1};
    if (thread_start(&w->thread, worker_body, w, &d)) break;
    p->n_workers++;
  }
  atomic_store(&p->started, p->threads);
  mutex_unlock(&p->lock);
}

static void post(pool *p, job *j) {
  mutex_lock(&p->lock);
  j->next = p->jobs;
  p->jobs = j;
  atomic_fetch_add(&p->posted, 1);
  if (p->sleeping) condition_wake_all(&p->work);
  mutex_unlock(&p->lock);
}

static void withdraw(pool *p, job *j) {
  mutex_lock(&p->lock);
  job **at = &p->jobs;
  while (*at != j) at = &(*at)->next;
  *at = j->next;
  mutex_unlock(&p->lock);
}

/** Waits until the job's helpers have left: spins, then sleeps. */
static void await_helpers(pool *p, job *j) {
  int64_t end = clock_now() + SPIN_NS;
  while (atomic_load(&j->helpers) && clock_now() < end)
    for (int i = 0; i < PAUSES && atomic_load(&j->helpers); i++) thread_pause();
  if (!atomic_load(&j->helpers)) return;
  mutex_lock(&p->lock);
  p->waiting++;
  while (atomic_load(&j->helpers)) condition_wait(&p->left, &p->lock);
  p->waiting--;
  mutex_unlock(&p->lock);
}

static void run_threads(pool *p, void (*task)(void *arg, size_t i), void *arg, size_t n) {
  job j = {.task = task, .arg = arg, .n = n, .units = n < MOST_UNITS ? n : MOST_UNITS};
  if (atomic_load(&p->started) < p->threads) start_workers(p);
  post(p, &j);
  take_part(&j, 0);
  withdraw(p, &j);
  await_helpers(p, &j);
}

static void run_alone(void (*task)(void *arg, size_t i), void *arg, size_t n) {
  for (size_t i = 0; i < n; i++) task(arg, i);
}

/** Waits until the caller's workers are free, but not for work that is long: then false. */
static bool take_workers(pool *p, bool is_long) {
  mutex_lock(&p->lock);
  while (p->calling && (is_long || !p->is_long)) condition_wait(&p->left, &p->lock);
  bool is_free = !p->calling;
  if (is_free) p->is_long = is_long;
  p->calling = true;
  mutex_unlock(&p->lock);
  return is_free;
}

static void give_workers(pool *p) {
  mutex_lock(&p->lock);
  p->calling = false;
  condition_wake_all(&p->left);
  mutex_unlock(&p->lock);
}

static void run_workers(pool *p, void (*task)(void *arg, size_t i), void *arg, size_t n,
                        bool is_long) {
  if (!take_workers(p, is_long)) {
    run_alone(task, arg, n);
    return;
  }
  p->workers.run(p->workers.user, task, arg, n);
  give_workers(p);
}

static void run(pool *p, void (*task)(void *arg, size_t i), void *arg, size_t n, bool is_long) {
  if (n > 1 && p->workers.run)
    run_workers(p, task, arg, n, is_long);
  else if (n > 1 && p->threads > 1)
    run_threads(p, task, arg, n);
  else
    run_alone(task, arg, n);
}

void pool_run(pool *p, void (*task)(void *arg, size_t i), void *arg, size_t n) {
  run(p, task, arg, n, false);
}

void pool_run_long(pool *p, void (*task)(void *arg, size_t i), void *arg, size_t n) {
  run(p, task, arg, n, true);
}

/** Counts the cores of the processors in a set; 0 where they are not known. */
static int32_t cores_of(const cpu_set_t *allowed) {
  if (!cpuinfo_initialize()) return 0;
  int32_t n = 0;
  for (uint32_t c = 0; c < cpuinfo_get_cores_count(); c++) {
    const struct cpuinfo_core *core = cpuinfo_get_core(c);
    for (uint32_t i = 0; i < core->processor_count; i++) {
      const struct cpuinfo_processor *q = cpuinfo_get_processor(core->processor_start + i);
      if (q->linux_id < 0 || q->linux_id >= CPU_SETSIZE || !CPU_ISSET(q->linux_id, allowed))
        continue;
      n++;
      break;
    }
  }
  return n;
}

int32_t pool_cores(void) {
  cpu_set_t allowed;
  int32_t n = 0;
  if (!sched_getaffinity(0, sizeof allowed, &allowed)) {
    n = cores_of(&allowed);
    if (!n) n = CPU_COUNT(&allowed);
  }
  if (!n) n = (int32_t)sysconf(_SC_NPROCESSORS_ONLN);
  return n > 0 ? n : 1;
}
