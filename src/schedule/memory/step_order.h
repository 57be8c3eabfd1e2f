/* Chooses the order of a schedule's steps that needs the least memory, within their dependences. */
#ifndef TENON_SCHEDULE_MEMORY_STEP_ORDER_H
#define TENON_SCHEDULE_MEMORY_STEP_ORDER_H

#include "schedule/memory/liveness.h"

/** Reorders the steps where another order is found that needs less memory; with a seed other than
    0, into one of the orders that are tried (for tests). */
void step_order_choose(lives *l, uint64_t seed, schedule *s);

#endif
