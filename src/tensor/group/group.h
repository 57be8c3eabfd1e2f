/* Groups of processes (tn_group) and the run of a collective: of arrays on the device of an engine
   as a whole, of others by pieces through the group's own memory, which an engine may still use
   when a collective was given up. */
#ifndef TENON_TENSOR_GROUP_GROUP_H
#define TENON_TENSOR_GROUP_GROUP_H

#include "tensor/context/context.h"
#include "tensor/group/group_engine.h"

#include <tenon/group.h>

/** An engine with its state; `engine` is NULL where there is none. */
typedef struct group_link {
  const group_engine *engine;
  void *state;
} group_link;

struct tn_group {
  attachment attachment; /* to the context, for the caller's reference */
  atomic_size_t count;   /* the caller's, and one for each collective */
  tn_context *context;
  group_link host;   /* Open MPI */
  group_link device; /* of arrays on the context's device, or none */
  int64_t rank, size;
  int64_t timeout_ns;
  mutex lock;                   /* held during a collective */
  uint64_t n_run;               /* collectives so far */
  atomic_uint_fast64_t n_built; /* collectives so far, by any thread */
  tn_failure lost;              /* why no other can run; TN_OK: they can */
  bool is_stuck;   /* a piece failed: it may be under way, and others may not come any more */
  char *pieces[2]; /* memory that engines read and write */
  size_t bytes;    /* of each */
};

/** The memory of an array: the host's, or where `data` is NULL a device's. */
typedef struct collective_array {
  char *data;
  const tn_span *span;
} collective_array;

/** A collective on whole arrays: `from` has `count` elements, or `size` times as many for a
    reduce-scatter, and `to` likewise for an all-gather. */
typedef struct collective {
  collective_kind kind;
  tn_reduction reduction;
  int64_t root;
  uint64_t number; /* in the order in which the process built the group's collectives */
} collective;

tn_group *group_retain(tn_group *g);
void group_release(tn_group *g);

/** Runs a collective on an array of type `in` when all processes come to it; `text` names it. By
    the device's engine where that reaches both arrays in all processes, else by the host's. */
tn_status group_run(tn_group *g, const collective *c, const tn_type *in, uint64_t count,
                    collective_array from, collective_array to, const char *text, diag *d);

/** Opens the engine of the context's device where all processes can, unless `wanted` names another
    one. Else collectives go by the host's engine, which the logger is told with the reason;
    TN_ERR_DEVICE where `wanted` is the device's. */
tn_status group_open_device_link(tn_group *g, const char *wanted, diag *d);
void group_close_link(tn_group *g, group_link *l, bool is_stuck);

/** Runs a collective on a piece of memory by an engine, and waits for it for at most `limits` times
    the group's limit; group_wait waits alone. After a failure the group is stuck. */
tn_status group_run_piece(tn_group *g, const group_link *l, const collective_piece *p,
                          uint64_t limits, diag *d);
tn_status group_wait(tn_group *g, const group_link *l, uint64_t limits, diag *d);

#endif
