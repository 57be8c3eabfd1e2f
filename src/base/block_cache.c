/* Implements a cache of memory blocks: a list of released blocks for each power of two from 1 KiB
   to 32 MiB, to which requests are rounded up. Smaller and larger requests go to the allocator. */
#include "base/block_cache.h"

#include <stdbool.h>

enum { LEAST = 1 << 10 };

typedef struct cached_block {
  struct cached_block *next;
} cached_block;

static size_t class_bytes(int k) { return (size_t)LEAST << k; }

/** The class of blocks for a request; −1: none. */
static int class_of(size_t bytes) {
  int k = 0;
  if (bytes < LEAST || bytes > class_bytes(BLOCK_CACHE_CLASSES - 1)) return -1;
  while (class_bytes(k) < bytes) k++;
  return k;
}

static void *cache_alloc(void *user, size_t bytes, size_t align) {
  block_cache *c = user;
  int k = class_of(bytes);
  bool may_be_kept = k >= 0 && align <= _Alignof(max_align_t);
  if (!may_be_kept || !c->kept[k])
    return mem_alloc_aligned(c->from, k < 0 ? bytes : class_bytes(k), align);
  cached_block *b = c->kept[k];
  c->kept[k] = b->next;
  return b;
}

static void cache_release(void *user, void *at, size_t bytes) {
  block_cache *c = user;
  int k = class_of(bytes);
  if (k < 0) {
    mem_free(c->from, at, bytes);
    return;
  }
  cached_block *b = at;
  b->next = c->kept[k];
  c->kept[k] = b;
}

void block_cache_init(block_cache *c, const mem *from) {
  *c = (block_cache){.mem = {cache_alloc, cache_release, c}, .from = from};
}

void block_cache_free(block_cache *c) {
  for (int k = 0; k < BLOCK_CACHE_CLASSES; k++)
    while (c->kept[k]) {
      cached_block *b = c->kept[k];
      c->kept[k] = b->next;
      mem_free(c->from, b, class_bytes(k));
    }
}
