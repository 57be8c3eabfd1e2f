/* Finds operands of contractions that a copy in another order of axes may serve better than the
   array as it lies: views whose reduction steps from page to page. */
#ifndef TENON_SCHEDULE_VALUES_MOVED_OPERANDS_H
#define TENON_SCHEDULE_VALUES_MOVED_OPERANDS_H

#include "ir/core/topo_sort.h"
#include "schedule/core/fusion_machine.h"
#include "schedule/values/normalise.h"

/** The movements among `order`, the nodes of a normalised graph, sources first, that show such
   operands of inputs or of values that are read elsewhere too; in the ir's scratch memory. As
   values, the search may store them or not. */
node_list moved_operands_find(ir *g, const machine *m, const normalised *in,
                              const node_list *order);

#endif
