/* Constants that variants of a plan share: packed weights and the like, by the graph that computes
   them. The plan finds a constant as long as a variant has it. */
#ifndef TENON_TENSOR_PLAN_SHARED_CONSTANTS_H
#define TENON_TENSOR_PLAN_SHARED_CONSTANTS_H

#include "base/str.h"
#include "base/thread.h"
#include "tensor/plan/plan.h"

typedef struct shared_constant {
  size_t count; /* variants that have it */
  unsigned char *key;
  size_t key_bytes;
  tn_buffer *memory;
  struct shared_constant *next, **link;
} shared_constant;

struct shared_constants {
  mutex lock; /* of the list, and of its counts */
  shared_constant *first;
};

/** The key of a constant's value, a graph over the plan's BUFFERs, in the arena. */
str shared_constant_key(const tn_plan *p, arena *a, const node *value);

/** The constant of a key, with a reference for the caller; NULL: there is none. Any thread. */
shared_constant *shared_constants_find(tn_plan *p, str key);

/** Adds a constant, with a reference for the caller; NULL without memory: then nobody shares it. */
shared_constant *shared_constants_add(tn_plan *p, str key, tn_buffer *memory);

void shared_constant_release(tn_plan *p, shared_constant *k);

/** NULL without memory. */
shared_constants *shared_constants_open(tn_plan *p);
void shared_constants_close(tn_plan *p);

#endif
