/* Threads, locks and condition variables over POSIX threads. */
#ifndef TENON_BASE_THREAD_H
#define TENON_BASE_THREAD_H

#include "base/diag.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

typedef pthread_mutex_t mutex;
typedef pthread_cond_t condition; /* waits by the monotonic clock */
typedef pthread_t thread;

void mutex_init(mutex *m);
void mutex_free(mutex *m);
void mutex_lock(mutex *m);
void mutex_unlock(mutex *m);

void condition_init(condition *c);
void condition_free(condition *c);
void condition_wait(condition *c, mutex *m);
void condition_wake_all(condition *c);

/** Waits until woken or until clock_now() reaches `deadline` (nanoseconds; negative: for ever).
    False when the deadline passed. Wake-ups may be spurious. */
bool condition_wait_until(condition *c, mutex *m, int64_t deadline);

/** Starts body(arg) on a thread of its own, to be joined. */
tn_status thread_start(thread *t, void *(*body)(void *arg), void *arg, diag *d);
void thread_join(thread t);

/** Monotonic time in nanoseconds. */
int64_t clock_now(void);

/** One turn of a short spin. */
void thread_pause(void);

#endif
