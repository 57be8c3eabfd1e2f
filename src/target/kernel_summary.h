/* Summarises a scheduled kernel for the cost model: its loops as a tree, the vector operations that
   an iteration of each loop executes, and the accesses to memory with their strides. Copies
   (UNROLL) multiply the work of an iteration, lanes (VECTOR) widen it. A node belongs to the
   innermost loop that it depends on, as the lowered program computes it there. Sizes that vary
   count as ix_likely says. */
#ifndef TENON_TARGET_KERNEL_SUMMARY_H
#define TENON_TARGET_KERNEL_SUMMARY_H

#include "base/vec.h"
#include "ir/core/binder.h"
#include "target/target.h"

enum { SUMMARY_MOST_STRIDES = 16 }; /* of an access; further ones are left out */

/** A loop; loop 0 is the kernel's body, which runs once. */
typedef struct summary_loop {
  size_t parent, depth;
  bool is_divided;      /* among threads */
  double trips;         /* iterations of one run */
  double runs;          /* iterations of all runs */
  double operations;    /* vector operations of an iteration, in float additions */
  double loads, stores; /* of an iteration */
  double scalars;       /* conditions and integers of an iteration: no vectors' ports */
  double lanes_moved;   /* elements that an iteration inserts into vectors or extracts */
  double chain;         /* cycles of a reduction's step, which waits for the step before; 0: none */
  double steps;         /* of one run of that reduction */
} summary_loop;

/** Distance of the elements that an access takes along a range. */
typedef struct summary_stride {
  size_t loop; /* 0: copies or lanes */
  double trips, bytes;
  bool is_irregular; /* the distance is a guess */
} summary_stride;

/** Elements of one array that are read or written along some ranges. */
typedef struct summary_access {
  const node *array; /* PARAM or STAGE */
  size_t component;  /* value of a STAGE; 0: of a PARAM */
  size_t loop;       /* the loop whose iterations execute it */
  double element;    /* bytes at consecutive addresses that one copy accesses */
  double size;       /* bytes of the array */
  double offset;     /* bytes to the lowest address at which it begins */
  bool is_store;
  size_t n;
  summary_stride along[SUMMARY_MOST_STRIDES];
} summary_access;

typedef struct kernel_summary {
  VEC(summary_loop) loops; /* each after its parent */
  VEC(summary_access) accesses;
} kernel_summary;

/** The summary of a SINK at stage K, in the ir's scratch memory. `math`: a math_mode. */
kernel_summary kernel_summary_of(ir *g, const node *sink, const target *t, int math);

/** True if a loop is inside another, or the same. */
bool summary_is_inside(const kernel_summary *s, size_t loop, size_t outer);

#endif
