/* Spins before sleeping: a thread that expects an event within microseconds polls for it first, as
   a sleep and a wake-up would cost more than that. */
#ifndef TENON_DEVICE_THREADS_SPIN_H
#define TENON_DEVICE_THREADS_SPIN_H

#include "base/thread.h"

/** Polls is_ready(arg) for about `ns` nanoseconds; true as soon as it is. The clock is read once
    in so many polls. */
static inline bool spin_until(bool (*is_ready)(const void *arg), const void *arg, int64_t ns) {
  enum { POLLS = 32 };
  if (is_ready(arg)) return true;
  int64_t end = clock_now_ns() + ns;
  do {
    for (int i = 0; i < POLLS; i++) {
      if (is_ready(arg)) return true;
      thread_spin_hint();
    }
  } while (clock_now_ns() < end);
  return false;
}

#endif
