/* Internal header of software prefetching: the kernel, its loops, and the prefetches that are found
   by rows (prefetch_rows.c) and by blocks (prefetch_blocks.c) before prefetch.c inserts them. */
#ifndef TENON_CODEGEN_LOWER_PREFETCH_H
#define TENON_CODEGEN_LOWER_PREFETCH_H

#include "codegen/lower/loop_tree.h"
#include "target/hardware.h"

/** A line to fetch in each iteration of a loop. */
typedef struct prefetch {
  const loop *in;
  const node *param, *address; /* in elements; may be outside of the buffer */
} prefetch;

typedef struct prefetching {
  ir *g;
  arena *a;
  tn_hardware hardware;
  node_list order; /* the kernel's nodes, sources first */
  loop_tree tree;
  VEC(prefetch) found;
} prefetching;

/** prefetch_rows.c: the next row of those that several loops read. */
void prefetch_find_rows(prefetching *p);

/** prefetch_blocks.c: the next block of operands that a loop reads again and again. */
void prefetch_find_blocks(prefetching *p);

#endif
