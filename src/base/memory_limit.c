/* Implements limits on memory: counts the bytes of requests that fit. */
#include "base/memory_limit.h"

#include <stdio.h>

/** False, and nothing is counted, beyond the limit. */
static bool count_bytes(memory_limit *l, uint64_t bytes) {
  uint64_t used = atomic_load(&l->used);
  do /* a request that is refused is never counted: others would fail meanwhile */
    if (used > l->most || bytes > l->most - used) return false;
  while (!atomic_compare_exchange_weak(&l->used, &used, used + bytes));
  return true;
}

static void *limited_alloc(void *user, size_t bytes, size_t align) {
  memory_limit *l = user;
  if (!count_bytes(l, bytes)) return NULL;
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

bool memory_limit_is_set(const mem *m) { return m->alloc == limited_alloc; }

bool memory_limit_count(const mem *m, uint64_t bytes) {
  return !memory_limit_is_set(m) || count_bytes(m->user, bytes);
}

void memory_limit_uncount(const mem *m, uint64_t bytes) {
  memory_limit *l = m->user;
  if (memory_limit_is_set(m)) atomic_fetch_sub(&l->used, bytes);
}

const char *memory_limit_exhausted_text(const mem *m, uint64_t bytes,
                                        char text[MEMORY_LIMIT_TEXT_BYTES]) {
  char wanted[MEM_TEXT_BYTES], in_use[MEM_TEXT_BYTES], most[MEM_TEXT_BYTES];
  mem_exhausted_text(bytes, wanted);
  snprintf(text, MEMORY_LIMIT_TEXT_BYTES, "%s", wanted);
  if (!memory_limit_is_set(m)) return text;
  const memory_limit *l = m->user;
  uint64_t used = atomic_load(&l->used);
  if (used <= l->most && bytes <= l->most - used) return text;
  snprintf(text, MEMORY_LIMIT_TEXT_BYTES, "%s: %s of the limit of %s are in use", wanted,
           mem_format_bytes(used, in_use), mem_format_bytes(l->most, most));
  return text;
}
