/* Engines that carry collectives between processes: a table of functions each. An engine knows
   pieces of plain memory and one collective at a time; order, time limits, comparison and types
   are the group's (group.c). */
#ifndef TENON_TENSOR_GROUP_GROUP_ENGINE_H
#define TENON_TENSOR_GROUP_GROUP_ENGINE_H

#include "base/diag.h"
#include "base/mem.h"
#include "ir/core/dtype.h"

#include <tenon/ops.h>

typedef enum collective_kind {
  COLLECTIVE_ALL_REDUCE,     /* count → count */
  COLLECTIVE_ALL_GATHER,     /* count → size · count */
  COLLECTIVE_REDUCE_SCATTER, /* size · count → count */
  COLLECTIVE_BROADCAST       /* count → count; the root's */
} collective_kind;

/** One collective on a piece of memory, which stays valid until it is done. */
typedef struct collective_piece {
  collective_kind kind;
  tn_reduction reduction; /* of the reductions */
  dtype dtype;
  int64_t root; /* of a broadcast, which is in place: to */
  size_t count; /* elements */
  const void *from;
  void *to;
} collective_piece;

typedef struct group_engine {
  const char *name;
  tn_status (*open)(const mem *m, void **state, int64_t *rank, int64_t *size, diag *d);
  void (*close)(const mem *m, void *state, bool is_stuck); /* as tn_group's */
  /** Starts a collective; `is_done` tells without waiting whether it is done. */
  tn_status (*start)(void *state, const collective_piece *p, diag *d);
  tn_status (*is_done)(void *state, bool *done, diag *d);
} group_engine;

extern const group_engine mpi_engine;

#endif
