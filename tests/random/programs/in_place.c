/* Counts the states that a plan's first variant updates in place, which the public interface does
   not tell. */
#include "tensor/plan/variant_table.h"

size_t states_in_place(const tn_plan *p);

size_t states_in_place(const tn_plan *p) {
  size_t n = 0;
  for (size_t i = 0; p->variants->n && i < p->n_states; i++)
    n += p->variants->at[0]->states[i].is_in_place;
  return n;
}
