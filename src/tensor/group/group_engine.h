/* Engines that carry collectives between processes: a table of functions each. An engine knows
   memory that it can address and one collective at a time; order, time limits, comparison and types
   are the group's (group.c). Open MPI starts the processes and carries what they compare, and all
   arrays in the host's memory; NCCL carries arrays on CUDA's devices. */
#ifndef TENON_TENSOR_GROUP_GROUP_ENGINE_H
#define TENON_TENSOR_GROUP_GROUP_ENGINE_H

#include "base/mem.h"
#include "device/core/device.h"
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
  int64_t root; /* of a broadcast, which in the host's memory is in place: to */
  size_t count; /* elements */
  const void *from;
  void *to;
} collective_piece;

typedef struct group_engine {
  const char *name;
  void (*close)(const mem *m, void *state, bool is_stuck); /* as tn_group's */
  /** Starts a collective; `is_done` tells without waiting whether it is done. */
  tn_status (*start)(void *state, const collective_piece *p, diag *d);
  tn_status (*is_done)(void *state, bool *done, diag *d);
  /** The address of a span's memory for `start`; NULL: it is out of reach. Absent for an engine of
      the host's memory. */
  void *(*address)(void *state, const tn_span *span);
} group_engine;

extern const group_engine mpi_engine, nccl_engine;

/** Starts MPI in this process, and tells its number and those of all. */
tn_status mpi_open(const mem *m, void **state, int64_t *rank, int64_t *size, diag *d);

/** Opens NCCL for a device, joined to nobody. TN_ERR_DEVICE with a sentence where the device is not
    CUDA's, or NCCL is missing. One process then makes an id, with which all join; that is done when
    `is_done` says so. */
enum { NCCL_ENGINE_ID_BYTES = 128 };
tn_status nccl_open_device(const mem *m, tn_device *device, void **state, diag *d);
tn_status nccl_make_id(void *state, char id[NCCL_ENGINE_ID_BYTES], diag *d);
tn_status nccl_join(void *state, const char id[NCCL_ENGINE_ID_BYTES], int64_t rank, int64_t size,
                    diag *d);

#endif
