/* A pool of threads that run the parts of one piece of work side by side. */
#ifndef TENON_DEVICE_POOL_H
#define TENON_DEVICE_POOL_H

#include "base/diag.h"
#include "base/mem.h"

#include <tenon/context.h>

typedef struct pool pool;

/** The most threads that a pool has. */
enum { POOL_MOST = 1024 };

/** A pool for `threads` threads, the caller of pool_run being one; they start with the first work.
    With workers->run, that is called instead and no thread is started. More threads than POOL_MOST
    are POOL_MOST. NULL without memory. */
pool *pool_open(const mem *m, int32_t threads, const tn_workers *workers);

/** Ends the threads. No work may be running. NULL is allowed. */
void pool_close(pool *p);

int32_t pool_threads(const pool *p);

/** Calls task(arg, i) once for each i below `n`, on any threads, and returns when all have
   returned. The caller takes part, so the work is done even where no thread could be started. Any
   thread may call it, tasks too; several pieces of work share the threads. Task i goes to the same
   thread each time if that thread is idle. */
void pool_run(pool *p, void (*task)(void *arg, size_t i), void *arg, size_t n);

/** The same for work that is long. Other work does not wait for the caller's workers while they are
    at it: it is done by who asks for it. */
void pool_run_long(pool *p, void (*task)(void *arg, size_t i), void *arg, size_t n);

/** The number of physical cores that this process may use. */
int32_t pool_cores(void);

#endif
