/* Bounds the part of an array that a kernel reads or writes, for arrays that several kernels write:
   accesses to parts that have no element in common do not depend on each other. */
#ifndef TENON_SCHEDULE_MEMORY_ARRAY_PARTS_H
#define TENON_SCHEDULE_MEMORY_ARRAY_PARTS_H

#include "ir/core/topo_sort.h"

/** A box of elements: all coordinates of accesses to an array are within it. */
typedef struct array_part {
  bool is_all;                                 /* any element of the array may be accessed */
  const node *param;                           /* else the array; NULL: it is not accessed */
  int64_t low[IR_MAX_RANK], high[IR_MAX_RANK]; /* first and last coordinate along each axis */
} array_part;

/** The parts of a buffer that a kernel reads and writes. */
typedef struct array_accesses {
  array_part read, written;
} array_accesses;

/** The parts of a buffer that a kernel accesses; `nodes`: all nodes of the kernel. */
array_accesses array_accesses_of(const node_list *nodes, const node *sink, size_t buffer);

/** True if there are accesses. */
static inline bool array_part_is_any(const array_part *p) { return p->is_all || p->param; }

/** False if two parts are known to have no element in common. */
bool array_parts_overlap(const array_part *a, const array_part *b);

#endif
