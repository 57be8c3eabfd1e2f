/* Computes convolutions of 3×3 windows with fewer products, under the math mode "fast": Winograd's
   algorithm F(2×2, 3×3) (Lavin and Gray, "Fast algorithms for convolutional neural networks",
   2016), which needs 16 products for 4 results where the sum has 36. */
#ifndef TENON_SCHEDULE_VALUES_WINOGRAD_H
#define TENON_SCHEDULE_VALUES_WINOGRAD_H

#include "ir/core/topo_sort.h"

typedef struct winograd_request {
  const node **roots; /* changed */
  size_t n_roots;
  bool (*is_constant)(void *user, const node *weights);
  void *user;
  double cache; /* bytes of the last-level cache */
} winograd_request;

/** Rewrites the sums of f32 over windows of unit stride and constant weights for which that pays.
    Returns the transformed weights: unless they are computed once, nothing is gained. */
node_list winograd_rewrite(ir *g, const winograd_request *r);

#endif
