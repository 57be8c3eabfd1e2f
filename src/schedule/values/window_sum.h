/* Finds sums over windows of 3×3 elements in a tensor graph: convolutions of unit stride, however
   they are spelt. */
#ifndef TENON_SCHEDULE_VALUES_WINDOW_SUM_H
#define TENON_SCHEDULE_VALUES_WINDOW_SUM_H

#include "ir/core/topo_sort.h"

/** y[batch…, i, j, outputs…] = Σ x[batch…, i + k, j + l, channels…] · w[k, l, outputs…, channels…]
    over k and l below 3 and the channels. Axes of size 1 are left out. */
typedef struct window_sum {
  const node *x, *w;                  /* views with these axes, in this order */
  const node *leaf;                   /* the tensor of which w is a view */
  const node *place[2];               /* the RANGEs i and j, */
  const node *window[2];              /* k and l */
  node_list batch, outputs, channels; /* and of the other axes */
  node_list result;                   /* the RANGEs of y in the order of the sum's axes */
} window_sum;

/** Fills in the operands of a REDUCE; false: it is no such sum. */
bool window_sum_match(ir *g, const node *reduce, window_sum *to);

#endif
