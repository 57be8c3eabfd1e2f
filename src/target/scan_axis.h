/* Decides which scans are computed in vectors along their own axis. The choice of lanes, the cost
   model and the lowering (codegen/lower/vector_scans.c) ask here, so that they agree. */
#ifndef TENON_TARGET_SCAN_AXIS_H
#define TENON_TARGET_SCAN_AXIS_H

#include "ir/core/binder.h"
#include "ir/core/topo_sort.h"
#include "target/target.h"

/** The indices low ≤ r < high of a scan's loop at which all elements exist that it accesses. */
typedef struct scan_span {
  const node *low, *high; /* free of r, and within its indices */
  node_list checks;       /* comparisons of r, of bounds checks, which hold there */
} scan_span;

/** All indices of a range. */
scan_span scan_span_of(ir *g, const node *range);

/** Limits a span to the indices at which an access exists, and `address` is its address, masked or
    not. False: the elements along the range are not consecutive, forwards or backwards, nor one
    that is loaded, or they exist elsewhere than at indices from one to another. */
bool scan_span_limit(ir *g, const node *range, const node *address, bool is_store, scan_span *s);

/** Lanes of the vectors in which a scan along a range is computed, of elements of `widest` bytes;
   0: it is too short for them. */
int64_t scan_axis_lanes(const target *t, size_t widest, const node *range);

/** A scan in vectors along its axis. */
typedef struct scan_axis {
  const node *fold;  /* of one associative state, which it emits at its range */
  const node *along; /* the range of the STAGE at which the emitted values are read */
  int64_t lanes;
} scan_axis;

/** True if a STAGE stores values of a scan that is computed in vectors along its axis. */
bool scan_axis_match(ir *g, const node *stage, const target *t, int math, scan_axis *found);

#endif
