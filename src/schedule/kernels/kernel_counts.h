/* Counts a kernel's operations on elements and the bytes of arrays that it reads and writes, for
   profiles. Sizes stay expressions over variables; only their values are multiplied, as floats,
   which do not overflow. */
#ifndef TENON_SCHEDULE_KERNELS_KERNEL_COUNTS_H
#define TENON_SCHEDULE_KERNELS_KERNEL_COUNTS_H

#include "ir/core/topo_sort.h"

typedef enum kernel_count_kind {
  COUNT_OPERATIONS,
  COUNT_ARRAY_BYTES,  /* all bytes of an array; the terms after it are parts of them */
  COUNT_TOUCHED_BYTES /* bytes that are read, or written */
} kernel_count_kind;

/** `each` times the product of the next `n_sizes` sizes. */
typedef struct kernel_count_term {
  kernel_count_kind kind;
  size_t n_sizes;
  double each;
} kernel_count_term;

typedef struct kernel_count_terms {
  VEC(kernel_count_term) items;
  node_list sizes; /* of all terms, one after another */
} kernel_count_terms;

typedef struct kernel_counts {
  double operations; /* arithmetic and comparisons on elements, a multiply-add as two */
  double bytes;      /* of its arrays, each byte that is read and each that is written once */
} kernel_counts;

/** The counts of a kernel (stage K). Each INDEX of an array counts as reading elements of its own,
    up to the whole array. A loop whose trip count depends on another loop counts with the largest.
 */
kernel_count_terms kernel_counts_of(arena *a, const node *sink);

/** The counts for these values of the sizes. */
kernel_counts kernel_counts_evaluate(const kernel_count_term items[], size_t n,
                                     const int64_t sizes[]);

#endif
