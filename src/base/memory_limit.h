/* A limit on the memory that an allocator gives in all: a request beyond it fails before it
   reaches the allocator, which might promise memory that the machine does not have. */
#ifndef TENON_BASE_MEMORY_LIMIT_H
#define TENON_BASE_MEMORY_LIMIT_H

#include "base/mem.h"

#include <stdatomic.h>
#include <stdbool.h>

typedef struct memory_limit {
  mem inner;
  uint64_t most; /* bytes */
  _Atomic uint64_t used;
} memory_limit;

/** The allocator `inner` with a limit; `used` bytes of it are in use already. `l` must outlive all
    requests, but it may be part of the last block that is released. */
mem memory_limit_begin(memory_limit *l, mem inner, uint64_t most, uint64_t used);

/** True if an allocator has a limit. */
bool memory_limit_is_set(const mem *m);

/** Counts bytes that something else gives against the limit of an allocator, if it has one, until
    memory_limit_uncount; false, and nothing is counted, if they exceed it. */
bool memory_limit_count(const mem *m, uint64_t bytes);
void memory_limit_uncount(const mem *m, uint64_t bytes);

/** The message of a request that an allocator failed: "out of memory (256 KiB)", and how much of
   its limit is in use if the request exceeds what is left. Returns `text`. */
enum { MEMORY_LIMIT_TEXT_BYTES = 128 };
const char *memory_limit_exhausted_text(const mem *m, uint64_t bytes,
                                        char text[MEMORY_LIMIT_TEXT_BYTES]);

#endif
