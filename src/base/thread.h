/* Threads, locks, condition variables and the monotonic clock, as a thin layer over POSIX. */
#ifndef TENON_BASE_THREAD_H
#define TENON_BASE_THREAD_H

#include "base/diag.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

typedef pthread_mutex_t mutex;
typedef pthread_cond_t condition; /* timed waits go by CLOCK_MONOTONIC */
typedef pthread_t thread;

void mutex_init(mutex *m);
void mutex_free(mutex *m);
void mutex_lock(mutex *m);
void mutex_unlock(mutex *m);

void condition_init(condition *c);
void condition_free(condition *c);
void condition_wait(condition *c, mutex *m);
void condition_broadcast(condition *c);

/** Waits until woken or until clock_now_ns() reaches `deadline` (nanoseconds; negative: none).
    False when the deadline passed. Wake-ups may be spurious. */
bool condition_wait_until(condition *c, mutex *m, int64_t deadline);

/** Starts body(arg) on a new thread, to be joined; TN_ERR_DEVICE where the system refuses. The
    thread blocks signals except those of faults and profiling. */
tn_status thread_start(thread *t, void *(*body)(void *arg), void *arg, diag *d);
void thread_join(thread t);

/** The system's number of the calling thread, which no other thread has. That of one that ended is
    given again only after all others, unlike a pthread_t. */
uint64_t thread_number(void);

/** Returns CLOCK_MONOTONIC in nanoseconds. */
int64_t clock_now_ns(void);

/** Returns the same clock at its last tick, some milliseconds ago, in a third of the time. */
int64_t clock_last_tick_ns(void);

/** Pauses in each turn of a loop that asks for something until a deadline (clock_now_ns()): at
   first 1 µs (*pause_ns 0), then twice as long each time up to a quarter of a millisecond. False
   without a pause once the deadline is over. */
bool thread_poll(int64_t *pause_ns, int64_t deadline);

/** Tells the processor, in each turn of a spin loop, that the thread waits. */
void thread_spin_hint(void);

#endif
