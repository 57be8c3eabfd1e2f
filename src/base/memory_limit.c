/* Implements limits on memory: counts the bytes of requests that fit. */
#include "base/memory_limit.h"

static void *limited_alloc(void *user, size_t bytes, size_t align) {
  memory_limit *l = user;
  uint64_t used = atomic_load(&l->used);
  do /* a request that is refused is never counted: others would fail meanwhile */
    if (used > l->most || bytes > l->most - used) return NULL;
  while (!atomic_compare_exchange_weak(&l->used, &used, used + bytes));
  void *at = l->inner.alloc(l->inner.user, bytes, align);
  if (!at) atomic_fetch_sub(&l->used, bytes);
  return at;
}

static void limited_release(void *user, void *at, size_t bytes) {
  memory_limit *l = user;
  const mem inner = l->inner; /* `at` may hold the limit */
  atomic_fetch_sub(&l->used, bytes);
  inner.release(inner.user, at, bytes);
}

mem memory_limit_begin(memory_limit *l, mem inner, uint64_t most, uint64_t used) {
  *l = (memory_limit){.inner = inner, .most = most};
  atomic_init(&l->used, used);
  return (mem){limited_alloc, limited_release, l};
}
