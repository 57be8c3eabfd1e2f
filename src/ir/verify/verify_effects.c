/* Verifies lowered kernels: each effect (a STORE or a loop of them) belongs to exactly one END,
   GROUP or SINK, so that linearising puts it into one loop. */
#include "ir/verify/verifier.h"

/** True for a store to an array without elements and for loops of such stores. */
static bool does_nothing(const node *effect) {
  if (effect->op == OP_STORE) return effect->src[1]->op == OP_INVALID;
  bool nothing = effect->op == OP_END;
  for (uint32_t i = 1; nothing && i < effect->n_src; i++) nothing = does_nothing(effect->src[i]);
  return nothing;
}

void verify_effects(verifier *v) {
  map owner = {0};
  for (size_t i = 0; i < v->order.n; i++) {
    const node *n = v->order.at[i];
    if (n->op != OP_END && n->op != OP_GROUP && n->op != OP_SINK) continue;
    for (uint32_t k = n->op == OP_END; k < n->n_src; k++) {
      const node *other = map_get(&owner, n->src[k]);
      bool in_loops = other && other != n && (other->op == OP_END || n->op == OP_END);
      if (in_loops && !does_nothing(n->src[k]))
        verify_fail(v, n->src[k], n, "an effect belongs to more than one loop");
      map_set(&v->work, &owner, n->src[k], (void *)n);
    }
  }
}
