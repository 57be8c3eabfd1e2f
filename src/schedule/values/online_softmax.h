/* Rewrites a row maximum and the sums weighted by it (softmax, attention) into one pass over
   blocks: online softmax. */
#ifndef TENON_SCHEDULE_VALUES_ONLINE_SOFTMAX_H
#define TENON_SCHEDULE_VALUES_ONLINE_SOFTMAX_H

#include "schedule/core/fusion_machine.h"
#include "schedule/values/value.h"

/** Replaces m = max s and sums of e^(s − m)·v by one scan over blocks, in which the sums so far are
    rescaled as m grows, where a row needs more than its cache. */
void online_softmax_apply(ir *g, const machine *m, values *v);

#endif
