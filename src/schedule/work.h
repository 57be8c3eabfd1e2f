/* How much a kernel does when it runs: operations on elements, and bytes of its arrays. Sizes stay
   expressions over variables; products of them are only made of their values, and as floats, which
   do not overflow. */
#ifndef TENON_SCHEDULE_WORK_H
#define TENON_SCHEDULE_WORK_H

#include "ir/topo.h"

typedef enum work_kind {
  WORK_OPERATIONS,
  WORK_ARRAY, /* all bytes of an array, of which the items after it are */
  WORK_PART   /* bytes that are read, or written */
} work_kind;

/** `each` times the product of the next `n_sizes` sizes. */
typedef struct work_item {
  work_kind kind;
  size_t n_sizes;
  double each;
} work_item;

typedef struct work {
  VEC(work_item) items;
  node_list sizes; /* of all items, one after another */
} work;

typedef struct work_amount {
  double operations; /* arithmetic and comparisons on elements, a multiply-add as two */
  double bytes;      /* of its arrays, each byte that is read and each that is written once */
} work_amount;

/** The work of a kernel (stage K). Each place that reads an array counts as if it read elements of
    its own, until that is the whole array. A loop whose number of turns depends on another one's
    counts with the most that it can have. */
work work_of(arena *a, const node *sink);

/** What it amounts to with these values of its sizes. */
work_amount work_amount_of(const work_item items[], size_t n, const int64_t sizes[]);

#endif
