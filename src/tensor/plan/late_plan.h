/* Late plans: elements of inputs decide on the graph, as the shape that a Reshape takes from one,
   or their sizes do, where no graph is for all sizes, or their ranks. A late plan has ports and no
   graph; the plan of a run is made for the ranks of inputs and the values of those that are needed,
   and kept with them; where that fails, for the sizes of all inputs as well. Plans used least
   recently go first. */
#ifndef TENON_TENSOR_PLAN_LATE_PLAN_H
#define TENON_TENSOR_PLAN_LATE_PLAN_H

#include "tensor/plan/plan.h"

/** Makes a plan late; what is in `late` passes to it, whatever the outcome. */
tn_status late_plan_open(tn_plan *p, const plan_late *late, diag *d);

void late_plan_close(tn_plan *p);

/** Reads the sizes of an input, or also its elements, to memory of the context. */
typedef tn_status (*plan_value_reader)(void *user, size_t input, bool sizes_alone, plan_value *out);

/** Finds the plan for the values of a run's inputs, or makes it; if `is_exact`, none that serves
    several values. *out has a reference for the caller. */
tn_status late_plan_find(tn_plan *p, bool is_exact, plan_value_reader read, void *user, diag *d,
                         tn_plan **out);

/** Makes and uses shared plans no more: one failed, as `why` says, where the plan for the values of
    its run did not. */
void late_plan_refuse_shared(tn_plan *late, const char *why);

/** Adds the values that a plan was made for to the message of a failure of its run. */
void late_plan_explain(tn_plan *late, const tn_plan *made, diag *d);

#endif
