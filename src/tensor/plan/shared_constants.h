/* Constants that variants of a plan share, and the plans of a late plan: packed weights and the
   like, by the graph that computes them. A plan finds a constant as long as a variant has it. */
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
  atomic_size_t count; /* plans that have it, and what makes such plans */
  const mem *mem;
  mutex lock; /* of the list, and of its counts */
  shared_constant *first;
};

/** The key of a constant's value, a graph over the plan's BUFFERs, in the arena. It is equal in
   other plans that share the table where the value is computed of weights of the file alone. */
str shared_constant_key(const tn_plan *p, arena *a, const node *value);

/** The constant of a key, with a reference for the caller; NULL: there is none. Any thread. */
shared_constant *shared_constants_find(tn_plan *p, str key);

/** Adds a constant, with a reference for the caller; NULL without memory: then nobody shares it. */
shared_constant *shared_constants_add(tn_plan *p, str key, tn_buffer *memory);

void shared_constant_release(tn_plan *p, shared_constant *k);

/** A table; NULL without memory. */
shared_constants *shared_constants_new(const mem *m);
shared_constants *shared_constants_retain(shared_constants *c);
void shared_constants_release(shared_constants *c); /* of NULL: no effect */

#endif
