/* Builds the values of a normalised graph, the units about which fusion decides, in an order that
   respects every dependence. */
#ifndef TENON_SCHEDULE_VALUES_BUILD_VALUES_H
#define TENON_SCHEDULE_VALUES_BUILD_VALUES_H

#include "schedule/core/fusion_machine.h"
#include "schedule/values/joins.h"
#include "schedule/values/normalise.h"
#include "schedule/values/value.h"

/** Builds the values of a graph and orders them. A SET whose old contents are needed after it gets
   a copy of them made first: `in` is changed then. `math`: a math_mode; `m`: the machine for which
    sums are factored and softmax is made online, or NULL: neither is done; `p`: the joins that are
    made, or NULL: none. */
void values_build(ir *g, int math, const machine *m, const joins_policy *p, normalised *in,
                  values *out);

#endif
