/* The lock of a context: a mutex and a condition variable around its holder. Runs that wait go
   before calls, so that a stream of calls cannot starve them. */
#include "tensor/context/context_lock.h"

void context_lock_init(context_lock *l) {
  mutex_init(&l->lock);
  condition_init(&l->released);
}

void context_lock_free(context_lock *l) {
  condition_free(&l->released);
  mutex_free(&l->lock);
}

/** True if the lock is free for a holder of this kind. Waiting runs go before later calls. */
static bool may_enter(const context_lock *l, context_lock_holder as) {
  return l->holder == CONTEXT_LOCK_FREE && (as == CONTEXT_LOCK_RUN || !l->n_waiting_runs);
}

bool context_lock_try_acquire(context_lock *l) {
  mutex_lock(&l->lock);
  bool acquired = may_enter(l, CONTEXT_LOCK_CALL);
  if (acquired) l->holder = CONTEXT_LOCK_RUN;
  mutex_unlock(&l->lock);
  return acquired;
}

tn_status context_lock_acquire(context_lock *l, context_lock_holder as) {
  bool is_refused = false;
  mutex_lock(&l->lock);
  l->n_waiting_runs += as == CONTEXT_LOCK_RUN;
  while (!is_refused && !may_enter(l, as)) {
    is_refused = as == CONTEXT_LOCK_CALL && l->holder == CONTEXT_LOCK_CALL;
    if (!is_refused) condition_wait(&l->released, &l->lock);
  }
  l->n_waiting_runs -= as == CONTEXT_LOCK_RUN;
  if (!is_refused) l->holder = as;
  mutex_unlock(&l->lock);
  return is_refused ? TN_ERR_BUSY : TN_OK;
}

void context_lock_release(context_lock *l) {
  mutex_lock(&l->lock);
  l->holder = CONTEXT_LOCK_FREE;
  condition_broadcast(&l->released);
  mutex_unlock(&l->lock);
}
