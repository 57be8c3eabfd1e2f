/* A device's memory in blocks. Blocks that are given back are kept for reuse, least recently used
   first to go, as long as they fit in a budget. Any thread. */
#ifndef TENON_DEVICE_BLOCKS_H
#define TENON_DEVICE_BLOCKS_H

#include "base/mem.h"
#include "base/thread.h"

#include <tenon/unstable/backend.h>

/** Blocks come in so many sizes: of 64 bytes to 2^62, in eighths of a power of two. */
enum { BLOCK_SIZES = 8 * (62 - 10) + 16 + 1 };

/** The lists that a kept block is in: of all, and of those of its size. */
enum { BLOCKS_ALL, BLOCKS_ALIKE, BLOCKS_LISTS };

/** A block of memory. `bytes` is at least what was asked for. */
typedef struct block {
  void *memory;
  uint64_t bytes;
  size_t size; /* its number among the sizes */
  struct block *newer[BLOCKS_LISTS], *older[BLOCKS_LISTS];
} block;

typedef struct block_list {
  block *newest, *oldest;
} block_list;

typedef struct blocks {
  const mem *mem;
  const tn_backend *backend;
  void *device;
  mutex lock;
  block_list all, alike[BLOCK_SIZES];
  uint64_t kept, budget; /* bytes */
} blocks;

void blocks_init(blocks *b, const mem *m, const tn_backend *backend, void *device);

/** Frees all that is kept. No block may be out. */
void blocks_free(blocks *b);

/** A block of at least `bytes` bytes, one that was kept if one fits. What it holds is not defined.
    Where memory runs out, all that is kept is freed before it fails. */
tn_status blocks_take(blocks *b, uint64_t bytes, block **out, diag *d);

/** Gives a block back. NULL is allowed. */
void blocks_give(blocks *b, block *k);

/** How many bytes of blocks may be kept; at once. To begin with 1 GiB. */
void blocks_set_budget(blocks *b, uint64_t bytes);

/** Frees kept blocks until at most `bytes` bytes are kept. */
void blocks_trim(blocks *b, uint64_t bytes);

/** Bytes kept. */
uint64_t blocks_kept(blocks *b);

#endif
