#include "tensor/gate.h"

void gate_init(gate *g) {
  mutex_init(&g->lock);
  condition_init(&g->left);
}

void gate_free(gate *g) {
  condition_free(&g->left);
  mutex_free(&g->lock);
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
  bool refused = false;
  mutex_lock(&g->lock);
  while (!refused && !is_open(g, as)) {
    refused = as == GATE_CALL && g->user == GATE_CALL;
    if (!refused) wait_for_others(g, as);
  }
  if (!refused) g->user = as;
  mutex_unlock(&g->lock);
  return refused ? TN_ERR_BUSY : TN_OK;
}

void gate_leave(gate *g) {
  mutex_lock(&g->lock);
  g->user = GATE_FREE;
  condition_wake_all(&g->left);
  mutex_unlock(&g->lock);
}
