/* Groups of processes (tn_group) and the run of a collective on host memory: pieces through the
   group's own memory, which an engine may still use when a collective was given up. */
#ifndef TENON_TENSOR_GROUP_GROUP_H
#define TENON_TENSOR_GROUP_GROUP_H

#include "tensor/context/context.h"
#include "tensor/group/group_engine.h"

#include <tenon/group.h>

struct tn_group {
  attachment attachment; /* to the context, for the caller's reference */
  atomic_size_t count;   /* the caller's, and one for each collective */
  tn_context *context;
  const group_engine *engine;
  void *state; /* the engine's */
  int64_t rank, size;
  int64_t timeout_ns;
  mutex lock;      /* held during a collective */
  uint64_t n_run;  /* collectives so far */
  tn_failure lost; /* why no other can run; TN_OK: they can */
  bool is_stuck;   /* a piece failed: it may be under way, and others may not come any more */
  char *pieces[2]; /* memory that engines read and write */
  size_t bytes;    /* of each */
};

/** A collective on whole arrays: `from` has `count` elements, or `size` times as many for a
    reduce-scatter, and `to` likewise for an all-gather. */
typedef struct collective {
  collective_kind kind;
  tn_reduction reduction;
  int64_t root;
} collective;

tn_group *group_retain(tn_group *g);
void group_release(tn_group *g);

/** Runs a collective on host memory, an array of type `in`, when all processes come to it; `text`
    names it. */
tn_status group_run(tn_group *g, const collective *c, const tn_type *in, uint64_t count,
                    const void *from, void *to, const char *text, diag *d);

#endif
