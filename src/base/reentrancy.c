/* Implements reentrancy detection by a linked list of entries, one for each thread inside a call,
   under a lock; while the list is empty, a query does not take the lock. */
#include "base/reentrancy.h"

void reentrancy_init(reentrancy_list *all) {
  mutex_init(&all->lock);
  atomic_init(&all->n, 0);
  all->first = NULL;
}

void reentrancy_free(reentrancy_list *all) { mutex_free(&all->lock); }

void reentrancy_enter(reentrancy_entry *v, reentrancy_list *of, reentrancy_kind kind) {
  *v = (reentrancy_entry){.of = of, .thread = pthread_self(), .kind = kind};
  if (!of) return;
  mutex_lock(&of->lock);
  v->next = of->first;
  of->first = v;
  atomic_fetch_add(&of->n, 1);
  mutex_unlock(&of->lock);
}

void reentrancy_leave(reentrancy_entry *v) {
  if (!v->of) return;
  mutex_lock(&v->of->lock);
  reentrancy_entry **at = &v->of->first;
  while (*at != v) at = &(*at)->next;
  *at = v->next;
  atomic_fetch_sub(&v->of->n, 1);
  mutex_unlock(&v->of->lock);
}

reentrancy_kind reentrancy_of_thread(reentrancy_list *all) {
  reentrancy_kind most = REENTRANCY_NONE;
  if (!atomic_load(&all->n)) return most; /* this thread would see an entry of its own */
  mutex_lock(&all->lock);
  for (const reentrancy_entry *v = all->first; v; v = v->next)
    if (pthread_equal(v->thread, pthread_self()) && v->kind > most) most = v->kind;
  mutex_unlock(&all->lock);
  return most;
}
