#include "tensor/gate.h"

void gate_init(gate *g) {
  mutex_init(&g->lock);
  condition_init(&g->left);
  atomic_init(&g->n_visits, 0);
}

void gate_free(gate *g) {
  condition_free(&g->left);
  mutex_free(&g->lock);
}

/* Visits. Under the lock. */

static void begin(gate *g, gate_visit *v) {
  *v = (gate_visit){g->visits, pthread_self()};
  g->visits = v;
  atomic_fetch_add(&g->n_visits, 1);
}

static void end(gate *g, gate_visit *v) {
  gate_visit **at = &g->visits;
  while (*at != v) at = &(*at)->next;
  *at = v->next;
  atomic_fetch_sub(&g->n_visits, 1);
}

static bool has_me(const gate *g) {
  for (const gate_visit *v = g->visits; v; v = v->next)
    if (pthread_equal(v->thread, pthread_self())) return true;
  return false;
}

/** A run that waits goes before calls that come later. */
static bool is_open(const gate *g, gate_user as) {
  return g->user == GATE_FREE && (as == GATE_RUN || !g->waiting_runs);
}

static void wait_for_others(gate *g, gate_user as) {
  g->waiting_runs += as == GATE_RUN;
  condition_wait(&g->left, &g->lock);
  g->waiting_runs -= as == GATE_RUN;
}

tn_status gate_enter(gate *g, gate_user as) {
  mutex_lock(&g->lock);
  bool refused = has_me(g);
  while (!refused && !is_open(g, as)) {
    refused = as == GATE_CALL && g->user == GATE_CALL;
    if (!refused) wait_for_others(g, as);
  }
  if (!refused) {
    g->user = as;
    begin(g, &g->inside);
  }
  mutex_unlock(&g->lock);
  return refused ? TN_ERR_BUSY : TN_OK;
}

void gate_leave(gate *g) {
  mutex_lock(&g->lock);
  end(g, &g->inside);
  g->user = GATE_FREE;
  condition_wake_all(&g->left);
  mutex_unlock(&g->lock);
}

void gate_begin_callback(gate *g, gate_visit *v) {
  mutex_lock(&g->lock);
  begin(g, v);
  mutex_unlock(&g->lock);
}

void gate_end_callback(gate *g, gate_visit *v) {
  mutex_lock(&g->lock);
  end(g, v);
  mutex_unlock(&g->lock);
}

bool gate_has_me(gate *g) {
  if (!atomic_load(&g->n_visits)) return false;
  mutex_lock(&g->lock);
  bool found = has_me(g);
  mutex_unlock(&g->lock);
  return found;
}
