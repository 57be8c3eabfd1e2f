/* Wraps POSIX threads, locks and condition variables. A thread of the library blocks signals sent
   to the process, so that the host's own threads handle them. */
#include "base/thread.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

void mutex_init(mutex *m) { pthread_mutex_init(m, NULL); }
void mutex_free(mutex *m) { pthread_mutex_destroy(m); }
void mutex_lock(mutex *m) { pthread_mutex_lock(m); }
void mutex_unlock(mutex *m) { pthread_mutex_unlock(m); }

void condition_init(condition *c) {
  pthread_condattr_t attributes;
  pthread_condattr_init(&attributes);
  pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
  pthread_cond_init(c, &attributes);
  pthread_condattr_destroy(&attributes);
}

void condition_free(condition *c) { pthread_cond_destroy(c); }
void condition_wait(condition *c, mutex *m) { pthread_cond_wait(c, m); }
void condition_broadcast(condition *c) { pthread_cond_broadcast(c); }

bool condition_wait_until(condition *c, mutex *m, int64_t deadline) {
  if (deadline < 0) {
    pthread_cond_wait(c, m);
    return true;
  }
  struct timespec t = {(time_t)(deadline / 1000000000), (long)(deadline % 1000000000)};
  return pthread_cond_timedwait(c, m, &t) != ETIMEDOUT;
}

/** Blocks all signals but those that a thread raises by its own instructions, and SIGPROF. */
static void block_signals(sigset_t *before) {
  static const int open[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGPROF};
  sigset_t blocked;
  sigfillset(&blocked);
  for (size_t i = 0; i < sizeof open / sizeof *open; i++) sigdelset(&blocked, open[i]);
  pthread_sigmask(SIG_SETMASK, &blocked, before);
}

tn_status thread_start(thread *t, void *(*body)(void *arg), void *arg, diag *d) {
  sigset_t before;
  block_signals(&before);
  int error = pthread_create(t, NULL, body, arg);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  if (!error) return TN_OK;
  return diag_set(d, TN_ERR_DEVICE, "cannot start a thread: %s", strerror(error));
}

void thread_join(thread t) { pthread_join(t, NULL); }

uint64_t thread_number(void) { return (uint64_t)gettid(); }

static int64_t read_clock(clockid_t clock) {
  struct timespec t;
  clock_gettime(clock, &t);
  return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

int64_t clock_now_ns(void) { return read_clock(CLOCK_MONOTONIC); }

#ifdef CLOCK_MONOTONIC_COARSE
int64_t clock_last_tick_ns(void) { return read_clock(CLOCK_MONOTONIC_COARSE); }
#else
int64_t clock_last_tick_ns(void) { return clock_now_ns(); }
#endif

bool thread_poll(int64_t *pause_ns, int64_t deadline) {
  enum { LEAST_NS = 1000, MOST_NS = 256 * LEAST_NS };
  if (clock_now_ns() >= deadline) return false;
  int64_t longer = 2 * *pause_ns;
  *pause_ns = !longer ? LEAST_NS : longer < MOST_NS ? longer : MOST_NS;
  nanosleep(&(struct timespec){0, (long)*pause_ns}, NULL);
  return true;
}

void thread_spin_hint(void) {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#else
  sched_yield();
#endif
}
