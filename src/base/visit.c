#include "base/visit.h"

void visits_init(visits *all) {
  mutex_init(&all->lock);
  atomic_init(&all->n, 0);
  all->first = NULL;
}

void visits_free(visits *all) { mutex_free(&all->lock); }

void visit_begin(visit *v, visits *of, visit_kind kind) {
  *v = (visit){.of = of, .thread = pthread_self(), .kind = kind};
  if (!of) return;
  mutex_lock(&of->lock);
  v->next = of->first;
  of->first = v;
  atomic_fetch_add(&of->n, 1);
  mutex_unlock(&of->lock);
}

void visit_end(visit *v) {
  if (!v->of) return;
  mutex_lock(&v->of->lock);
  visit **at = &v->of->first;
  while (*at != v) at = &(*at)->next;
  *at = v->next;
  atomic_fetch_sub(&v->of->n, 1);
  mutex_unlock(&v->of->lock);
}

visit_kind visits_mine(visits *all) {
  visit_kind most = VISIT_NONE;
  if (!atomic_load(&all->n)) return most; /* one that this thread began would be seen */
  mutex_lock(&all->lock);
  for (const visit *v = all->first; v; v = v->next)
    if (pthread_equal(v->thread, pthread_self()) && v->kind > most) most = v->kind;
  mutex_unlock(&all->lock);
  return most;
}
