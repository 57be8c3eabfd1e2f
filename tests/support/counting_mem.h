/* An allocator (base/mem.h) that counts calls and bytes, and fails at one call or beyond a limit.
   Tests of exhausted memory fail each allocation in turn and check that no byte is left. */
#ifndef TENON_TESTS_SUPPORT_COUNTING_MEM_H
#define TENON_TESTS_SUPPORT_COUNTING_MEM_H

#include "base/mem.h"

#include <stdatomic.h>

/** All zero: counts, and never fails. */
typedef struct counting_mem {
  atomic_size_t calls; /* allocations so far, failed ones included */
  atomic_size_t bytes; /* allocated now */
  atomic_size_t peak;  /* largest value of `bytes` so far */
  size_t fail_at;      /* number, from 1, of the failing allocation; 0: none */
  size_t limit;        /* largest value of `bytes`; 0: no limit */
} counting_mem;

static inline void *counting_mem_alloc(void *user, size_t bytes, size_t align) {
  counting_mem *c = user;
  if (atomic_fetch_add(&c->calls, 1) + 1 == c->fail_at) return NULL;
  size_t now = atomic_load(&c->bytes);
  do
    if (c->limit && bytes > c->limit - now) return NULL;
  while (!atomic_compare_exchange_weak(&c->bytes, &now, now + bytes));
  size_t peak = atomic_load(&c->peak);
  while (now + bytes > peak && !atomic_compare_exchange_weak(&c->peak, &peak, now + bytes)) {}
  return mem_system.alloc(mem_system.user, bytes, align);
}

static inline void counting_mem_release(void *user, void *at, size_t bytes) {
  if (at) atomic_fetch_sub(&((counting_mem *)user)->bytes, bytes);
  mem_system.release(mem_system.user, at, bytes);
}

static inline mem counting_mem_of(counting_mem *c) {
  return (mem){counting_mem_alloc, counting_mem_release, c};
}

#endif
