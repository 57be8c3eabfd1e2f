/* Timeline signals: counters that only rise, and that host and queues wait for (unstable/queue.h).
   A signal is a value, the ranges of values that failed, and promises: marks of streams that are
   done when a value is reached. A promise is made only where nothing but the loss of a device can
   break it, so a queue of the same backend may wait for the mark instead of the signal. Any thread
   may call the functions. */
#ifndef TENON_DEVICE_STREAM_SIGNAL_H
#define TENON_DEVICE_STREAM_SIGNAL_H

#include "device/stream/stream_mark.h"

/** Values above one, up to another, that failed. */
typedef struct failed_range {
  uint64_t above, to;
  tn_failure why;
} failed_range;

typedef struct promise {
  uint64_t value; /* reached when the mark is done */
  stream_mark *mark;
} promise;

/** A request to be told when a signal rises or a value is promised. `wake` is called under the
    signal's lock. */
typedef struct signal_watch {
  void (*wake)(void *user);
  void *user;
  struct signal_watch *next;
} signal_watch;

struct tn_signal {
  tn_device *device;
  atomic_size_t count; /* references */
  _Atomic uint64_t value;
  atomic_bool has_failed;
  mutex lock; /* of changes, and of the fields below */
  condition risen;
  size_t sleeping;      /* threads that wait for `risen` */
  failed_range *failed; /* oldest first */
  size_t n_failed, cap_failed;
  failed_range own;  /* where `failed` is without memory for more */
  promise *promises; /* by ascending value, all above the signal's */
  size_t n_promises, cap_promises;
  signal_watch *watches;
};

tn_status signal_open(tn_device *device, uint64_t value, tn_signal **signal, diag *d);
tn_signal *signal_retain(tn_signal *s);
void signal_release(tn_signal *s); /* NULL is allowed */

static inline uint64_t signal_get(const tn_signal *s) {
  return atomic_load_explicit(&s->value, memory_order_acquire);
}
void signal_set(tn_signal *s, uint64_t value);
void signal_fail(tn_signal *s, uint64_t value, tn_status status, const char *text);
tn_status signal_wait(tn_signal *s, uint64_t value, int64_t timeout_ns, diag *d);

/* For queues: */

typedef enum value_state { VALUE_OPEN, VALUE_PROMISED, VALUE_REACHED, VALUE_FAILED } value_state;

/** Tells about a value. PROMISED only to `backend` (NULL: to nobody), with the mark, retained;
    FAILED with the failure. A promise of a larger value is none of this one, which may be about to
    fail. */
value_state signal_look(tn_signal *s, uint64_t value, const tn_backend *backend, stream_mark **mark,
                        tn_failure *failure);

/** Promises that a value is reached when a mark is done. Without memory there is no promise, which
    delays queues that wait for the value, and changes nothing else. */
void signal_promise(tn_signal *s, uint64_t value, stream_mark *mark);

/** Spins a little until a value is reached; true if it was. */
bool signal_spin(tn_signal *s, uint64_t value);

void signal_watch_begin(tn_signal *s, signal_watch *w);
void signal_watch_end(tn_signal *s, signal_watch *w);

#endif
