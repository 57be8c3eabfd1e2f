/* The lock of a context. Calls exclude one another: a second call is refused. A binding's run that
   needs the context waits for calls, and calls wait for runs, so that no call fails because of a
   run. The caller checks beforehand that its thread is not inside already, as it would wait for
   itself. */
#ifndef TENON_TENSOR_CONTEXT_CONTEXT_LOCK_H
#define TENON_TENSOR_CONTEXT_CONTEXT_LOCK_H

#include "base/thread.h"

typedef enum context_lock_holder {
  CONTEXT_LOCK_FREE,
  CONTEXT_LOCK_CALL,
  CONTEXT_LOCK_RUN
} context_lock_holder;

typedef struct context_lock {
  mutex lock;         /* of the fields below */
  condition released; /* signalled when the holder releases the lock */
  context_lock_holder holder;
  size_t n_waiting_runs; /* these go before calls that come later */
} context_lock;

void context_lock_init(context_lock *l);
void context_lock_free(context_lock *l);

/** Acquires the lock. TN_ERR_BUSY for a call while another call holds it. */
tn_status context_lock_acquire(context_lock *l, context_lock_holder as);

/** Acquires the lock as a run, for which calls wait, if it is free and no run waits. Never waits;
    false if it was not acquired. */
bool context_lock_try_acquire(context_lock *l);

void context_lock_release(context_lock *l);

#endif
