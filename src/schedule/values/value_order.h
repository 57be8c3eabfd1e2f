/* Orders values topologically by their dependences, including those of stores over old contents. */
#ifndef TENON_SCHEDULE_VALUES_VALUE_ORDER_H
#define TENON_SCHEDULE_VALUES_VALUE_ORDER_H

#include "schedule/values/normalise.h"
#include "schedule/values/value.h"

/** Puts the values of a graph into an order that respects every dependence, and sets their
    positions. SETs for which there is none, because their old contents are needed after them, are
    added to `conflicts`. */
void values_order(ir *g, const normalised *n, values *v, node_list *conflicts);

#endif
