/* A cache of memory blocks between an allocator and short-lived users of it: what one user releases
   the next one gets, without a call of the allocator, which would give large blocks back to the
   system and have each page cleared anew. One thread at a time uses a cache. */
#ifndef TENON_BASE_BLOCK_CACHE_H
#define TENON_BASE_BLOCK_CACHE_H

#include "base/mem.h"

enum { BLOCK_CACHE_CLASSES = 16 };

/** Initialise it with block_cache_init; `mem` is the allocator to use. Must not be moved. */
typedef struct block_cache {
  mem mem;
  const struct mem *from;
  struct cached_block *kept[BLOCK_CACHE_CLASSES]; /* released blocks of each power of two */
} block_cache;

/** An empty cache of blocks of `from`, which must outlive it. */
void block_cache_init(block_cache *c, const mem *from);

/** Releases all kept blocks; those in use must have been released. */
void block_cache_free(block_cache *c);

#endif
