/* A thread pool for parallel loops: a job is a task with an index, and is split among the caller
   and the pool's threads. The pool has threads of its own, or calls workers that the library's
   caller lends. Any thread may start jobs, which share the threads; so may tasks, unless workers
   are lent: they take one job at a time, and the task's would wait for its own. */
#ifndef TENON_DEVICE_THREADS_THREAD_POOL_H
#define TENON_DEVICE_THREADS_THREAD_POOL_H

#include "base/mem.h"

#include <tenon/context.h>

typedef struct thread_pool thread_pool;

/** The most threads that a pool has. */
enum { THREAD_POOL_MAX = 1024 };

/** A pool for `threads` threads, limited to THREAD_POOL_MAX; the caller of thread_pool_run is one
    of them, the others start with the first job. If `workers` is not NULL, workers->run is called
    instead, for one job at a time, and no thread is started. NULL without memory. */
thread_pool *thread_pool_open(const mem *m, int32_t threads, const tn_workers *workers);

/** Ends the threads. No job may be running. NULL is allowed. */
void thread_pool_close(thread_pool *p);

/** True if workers are lent, which take one long job at a time: a task that waits for another
    thread's could wait forever. */
bool thread_pool_is_lent(const thread_pool *p);

int32_t thread_pool_size(const thread_pool *p);

/** Calls task(arg, i) once for each i below `n`, on any threads, and returns when all calls have
    returned. The caller takes part, so the job ends even where no thread could be started. Task i
    runs on the same thread each time if that thread is idle. `pool` is a thread_pool: the function
    serves as tn_workers.run. */
void thread_pool_run(void *pool, void (*task)(void *arg, size_t i), void *arg, size_t n);

/** Runs a long job. Short jobs that find lent workers busy with it do not wait: their callers run
    them alone. */
void thread_pool_run_long(thread_pool *p, void (*task)(void *arg, size_t i), void *arg, size_t n);

/** The number of physical cores that this process may use. */
int32_t thread_pool_physical_cores(void);

#endif
