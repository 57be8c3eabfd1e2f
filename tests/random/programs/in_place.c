/* Counts the states that a plan updates in place, which the public interface does not tell. */
#include "tensor/plan/plan_variant.h"

size_t states_in_place(const tn_plan *p);

size_t states_in_place(const tn_plan *p) {
  size_t n = 0;
  for (size_t i = 0; i < p->n_states; i++) n += p->variant->states[i].is_in_place;
  return n;
}
