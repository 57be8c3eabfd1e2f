/* A caching allocator for a device's memory. Released blocks are cached by size class and reused,
   the most recently used first; beyond a budget of bytes the least recently used ones are freed.
   A block may be released while queues still use it: it keeps the points of their timelines at
   which they do not. A limit on the host's memory is one on the memory of devices that have
   their own, too. Any thread may call it. */
#ifndef TENON_DEVICE_MEMORY_CACHING_ALLOCATOR_H
#define TENON_DEVICE_MEMORY_CACHING_ALLOCATOR_H

#include "device/stream/timeline_points.h"

/** Size classes: 64 bytes to 2^62, in eighths of a power of two. */
enum { ALLOCATOR_SIZE_CLASSES = 8 * (62 - 10) + 16 + 1 };

/** The lists that a cached block is in: of all, and of its size class. */
enum { ALLOCATOR_LIST_ALL, ALLOCATOR_LIST_SIZE_CLASS, ALLOCATOR_LISTS };

/** A block of memory. `bytes` is at least the size that was requested. */
typedef struct block {
  void *memory;
  uint64_t bytes;
  uint64_t counted; /* bytes, against the limit of the host's allocator */
  size_t size_class;
  timeline_points uses; /* of a cached block: when it is done */
  struct block *newer[ALLOCATOR_LISTS], *older[ALLOCATOR_LISTS];
} block;

typedef struct block_list {
  block *newest, *oldest;
} block_list;

typedef struct caching_allocator caching_allocator;

struct caching_allocator {
  const mem *mem;
  const tn_backend *backend;
  void *device; /* the backend's */
  mutex lock;
  block_list all, of_size[ALLOCATOR_SIZE_CLASSES]; /* cached blocks */
  uint64_t cached, budget;                         /* bytes */
  _Atomic uint64_t freed;
  atomic_int addressed; /* whether the host addresses the memory; 0: not known */
};

void caching_allocator_init(caching_allocator *b, const mem *m, const tn_backend *backend,
                            void *device);

/** Frees all cached blocks. No block may be in use. */
void caching_allocator_free(caching_allocator *b);

/** A block of at least `bytes` bytes, of undefined contents, for a queue with that timeline (NULL:
    for the host). A cached one of its size class that is done goes first, then one that this queue
    used last, then, for a queue, one that others still use; its `uses` pass to the caller. If
    memory runs out, cached blocks are freed, those in use after a wait of limited time, and it is
    tried once more. */
tn_status caching_allocator_alloc(caching_allocator *b, uint64_t bytes, const tn_signal *timeline,
                                  block **out, diag *d);

/** Caches a block with its uses, and frees the least recently used ones beyond the budget. NULL is
    allowed. */
void caching_allocator_release(caching_allocator *b, block *k);

/** True if the host addresses the device's memory, which a block shows; false without one. */
bool caching_allocator_is_addressed(caching_allocator *b);

/** Blocks given back to the backend so far, whose handles may come again. */
uint64_t caching_allocator_freed(const caching_allocator *b);

/** Sets the most bytes that may be cached, at once. At first 1 GiB. */
void caching_allocator_set_budget(caching_allocator *b, uint64_t bytes);

/** Frees the least recently used blocks until at most `bytes` bytes are cached, except those that
    are still in use. */
void caching_allocator_trim(caching_allocator *b, uint64_t bytes);

/** Bytes of cached blocks. */
uint64_t caching_allocator_cached_bytes(caching_allocator *b);

#endif
