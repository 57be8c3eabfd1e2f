/* Implements the thread pool of parallel loops. A job is a struct on its caller's stack in a list
   of jobs; its tasks are split into at most MOST_UNITS units, which the caller and the workers
   claim one by one with atomic flags. Idle workers spin for SPIN_NS before they sleep. */
#include "device/threads/thread_pool.h"

#include "base/thread.h"
#include "device/threads/spin.h"

#include <cpuinfo.h>
#include <sched.h>
#include <stdatomic.h>
#include <unistd.h>

enum { MOST_UNITS = 256, SPIN_NS = 50000 };

/** A parallel loop, on its caller's stack. Unit u is the tasks u, u + units, …; the thread that
    claims it first runs it. */
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
  struct own_threads *pool;
  size_t number; /* from 1 on: the caller of a job is 0 */
  thread thread;
} worker;

/** Threads that the pool starts, and the jobs that they help with. */
typedef struct own_threads {
  int32_t wanted;     /* the caller of a job being one */
  atomic_int started; /* that were tried to start, the caller being one */
  mutex lock;         /* of the fields below */
  condition work, helpers_left;
  job *jobs;
  atomic_uint posted;       /* jobs so far: workers spin on it */
  size_t sleeping, waiting; /* workers for a job, and callers for their helpers */
  bool stop;
  size_t n_workers; /* running */
  worker worker[THREAD_POOL_MAX];
} own_threads;

/** Workers that the library's caller lends: one call of workers.run at a time. */
typedef struct lent_workers {
  tn_workers workers; /* run == NULL: none */
  mutex lock;         /* of the fields below */
  condition changed;
  bool is_busy, is_long; /* with a job; which is long */
} lent_workers;

struct thread_pool {
  const mem *mem;
  lent_workers lent;
  own_threads own; /* used if no workers are lent */
};

thread_pool *thread_pool_open(const mem *m, int32_t threads, const tn_workers *workers) {
  thread_pool *p = mem_calloc(m, 1, sizeof *p);
  if (!p) return NULL;
  p->mem = m;
  if (workers) p->lent.workers = *workers;
  mutex_init(&p->lent.lock);
  condition_init(&p->lent.changed);
  mutex_init(&p->own.lock);
  condition_init(&p->own.work);
  condition_init(&p->own.helpers_left);
  atomic_init(&p->own.posted, 0);
  atomic_init(&p->own.started, 1);
  p->own.wanted = threads < THREAD_POOL_MAX ? threads : THREAD_POOL_MAX;
  return p;
}

void thread_pool_close(thread_pool *p) {
  if (!p) return;
  own_threads *t = &p->own;
  mutex_lock(&t->lock);
  t->stop = true;
  atomic_fetch_add(&t->posted, 1);
  condition_broadcast(&t->work);
  mutex_unlock(&t->lock);
  for (size_t i = 0; i < t->n_workers; i++) thread_join(t->worker[i].thread);
  condition_free(&t->helpers_left);
  condition_free(&t->work);
  mutex_free(&t->lock);
  condition_free(&p->lent.changed);
  mutex_free(&p->lent.lock);
  mem_free(p->mem, p, sizeof *p);
}

bool thread_pool_is_lent(const thread_pool *p) { return p->lent.workers.run != NULL; }

int32_t thread_pool_size(const thread_pool *p) { return p->own.wanted; }

/* Own threads. */

static bool is_claimed_whole(job *j) {
  return atomic_load_explicit(&j->claims, memory_order_relaxed) >= j->units;
}

/** Claims a unit, preferably number `first`; j->units if all are claimed. */
static size_t claim_unit(job *j, size_t first) {
  for (size_t k = 0; k < j->units && !is_claimed_whole(j); k++) {
    size_t u = (first + k) % j->units;
    if (atomic_exchange_explicit(&j->claimed[u], 1, memory_order_relaxed)) continue;
    atomic_fetch_add_explicit(&j->claims, 1, memory_order_relaxed);
    return u;
  }
  return j->units;
}

static void run_units(job *j, size_t number) {
  for (size_t u; (u = claim_unit(j, number)) < j->units;)
    for (size_t i = u; i < j->n; i += j->units) j->task(j->arg, i);
}

/** The number of jobs that were posted when a worker last looked. */
typedef struct job_count {
  const own_threads *pool;
  unsigned posted;
} job_count;

static bool has_new_job(const void *arg) {
  const job_count *c = arg;
  return atomic_load(&c->pool->posted) != c->posted;
}

/** Waits until a job is posted: spins, then sleeps. Called under the lock. */
static void await_job(own_threads *t) {
  const job_count seen = {t, atomic_load(&t->posted)};
  mutex_unlock(&t->lock);
  spin_until(has_new_job, &seen, SPIN_NS);
  mutex_lock(&t->lock);
  t->sleeping++;
  while (!has_new_job(&seen)) condition_wait(&t->work, &t->lock);
  t->sleeping--;
}

static void *worker_body(void *arg) {
  worker *w = arg;
  own_threads *t = w->pool;
  mutex_lock(&t->lock);
  while (!t->stop) {
    job *j = t->jobs;
    while (j && is_claimed_whole(j)) j = j->next;
    if (!j) {
      await_job(t);
      continue;
    }
    atomic_fetch_add(&j->helpers, 1);
    mutex_unlock(&t->lock);
    run_units(j, w->number);
    mutex_lock(&t->lock);
    /* With the last helper, the job's caller may return, and the job is gone. */
    if (atomic_fetch_sub(&j->helpers, 1) == 1 && t->waiting) condition_broadcast(&t->helpers_left);
  }
  mutex_unlock(&t->lock);
  return NULL;
}

/** Starts the threads that are wanted; jobs run on fewer if some cannot start. */
static void start_workers(own_threads *t) {
  mutex_lock(&t->lock);
  for (int32_t i = atomic_load(&t->started); i < t->wanted; i++) {
    diag d = {0};
    worker *w = &t->worker[t->n_workers];
    *w = (worker){.pool = t, .number = t->n_workers + 1};
    if (thread_start(&w->thread, worker_body, w, &d)) break;
    t->n_workers++;
  }
  atomic_store(&t->started, t->wanted);
  mutex_unlock(&t->lock);
}

static bool has_no_helpers(const void *arg) { return !atomic_load(&((const job *)arg)->helpers); }

static void run_on_own_threads(own_threads *t, void (*task)(void *arg, size_t i), void *arg,
                               size_t n) {
  job j = {.task = task, .arg = arg, .n = n, .units = n < MOST_UNITS ? n : MOST_UNITS};
  if (atomic_load(&t->started) < t->wanted) start_workers(t);
  mutex_lock(&t->lock);
  j.next = t->jobs;
  t->jobs = &j;
  atomic_fetch_add(&t->posted, 1);
  if (t->sleeping) condition_broadcast(&t->work);
  mutex_unlock(&t->lock);

  run_units(&j, 0);

  mutex_lock(&t->lock);
  job **at = &t->jobs;
  while (*at != &j) at = &(*at)->next;
  *at = j.next;
  mutex_unlock(&t->lock);

  if (spin_until(has_no_helpers, &j, SPIN_NS)) return;
  mutex_lock(&t->lock);
  t->waiting++;
  while (!has_no_helpers(&j)) condition_wait(&t->helpers_left, &t->lock);
  t->waiting--;
  mutex_unlock(&t->lock);
}

/* Lent workers. */

/** Waits until the workers are free, unless a short job finds them busy with a long one: it runs
    on its caller's thread. */
static void run_on_lent_workers(lent_workers *l, void (*task)(void *arg, size_t i), void *arg,
                                size_t n, bool is_long) {
  mutex_lock(&l->lock);
  while (l->is_busy && (is_long || !l->is_long)) condition_wait(&l->changed, &l->lock);
  bool is_free = !l->is_busy;
  if (is_free) l->is_long = is_long;
  l->is_busy = true;
  mutex_unlock(&l->lock);
  if (!is_free) {
    for (size_t i = 0; i < n; i++) task(arg, i);
    return;
  }
  l->workers.run(l->workers.user, task, arg, n);
  mutex_lock(&l->lock);
  l->is_busy = false;
  condition_broadcast(&l->changed);
  mutex_unlock(&l->lock);
}

/* Jobs. */

void thread_pool_run(void *pool, void (*task)(void *arg, size_t i), void *arg, size_t n) {
  thread_pool *p = pool;
  if (n > 1 && p->lent.workers.run)
    run_on_lent_workers(&p->lent, task, arg, n, false);
  else if (n > 1 && p->own.wanted > 1)
    run_on_own_threads(&p->own, task, arg, n);
  else
    for (size_t i = 0; i < n; i++) task(arg, i);
}

void thread_pool_run_long(thread_pool *p, void (*task)(void *arg, size_t i), void *arg, size_t n) {
  if (n > 1 && p->lent.workers.run)
    run_on_lent_workers(&p->lent, task, arg, n, true);
  else
    thread_pool_run(p, task, arg, n);
}

/* Cores. */

/** The number of cores that have a processor in a set; 0 if it is not known. */
static int32_t count_cores(const cpu_set_t *allowed) {
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

int32_t thread_pool_physical_cores(void) {
  cpu_set_t allowed;
  int32_t n = 0;
  if (!sched_getaffinity(0, sizeof allowed, &allowed)) {
    n = count_cores(&allowed);
    if (!n) n = CPU_COUNT(&allowed);
  }
  if (!n) n = (int32_t)sysconf(_SC_NPROCESSORS_ONLN);
  return n > 0 ? n : 1;
}
