/* Decides operator fusion: for each value, whether it is written to memory or computed inside the
   kernels that read it, by a greedy search over the cost model. */
#ifndef TENON_SCHEDULE_FUSE_FUSION_SEARCH_H
#define TENON_SCHEDULE_FUSE_FUSION_SEARCH_H

#include "schedule/core/schedule_types.h"
#include "schedule/fuse/fusion_group.h"

typedef struct fusion_request {
  machine machine;
  size_t arguments; /* most buffers of a kernel */
  fusion_policy policy;
  uint64_t seed;
  void (*decided)(void *watcher, const schedule_decision *d); /* NULL: no observer */
  void *watcher;
} fusion_request;

/** Wishes stores of values whose repeated computation the estimates do not see. */
void fusion_wish_stores(ir *g, const fusion_request *r, values *v);

/** Decides about every value, from outputs to inputs, once. Returns the groups in the order in
   which they run. */
groups fuse_values(ir *g, const fusion_request *r, values *v);

#endif
