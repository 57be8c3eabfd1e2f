/* An arena (bump or region allocator): an allocation advances a pointer in a large block, and all
   allocations are freed together. An allocation never returns NULL: without memory it raises
   TN_ERR_MEMORY through the arena's diag, so code over an arena needs no failure paths. One thread
   uses an arena at a time. */
#ifndef TENON_BASE_ARENA_H
#define TENON_BASE_ARENA_H

#include "base/diag.h"
#include "base/mem.h"

#include <stdbool.h>
#include <stddef.h>

typedef struct arena_block arena_block;

typedef struct arena {
  const mem *mem;
  diag *diag; /* raises allocation failures: the arena is used under a diag_catch of it */
  arena_block *block;
  char *next, *end;   /* the free part of `block` */
  arena_block *spare; /* a block that arena_rewind freed and the next one needed reuses: a mark at
                         the end of a block would otherwise allocate and free it each time */
} arena;

/** The state of an arena, to be rewound to. */
typedef struct arena_mark {
  arena_block *block;
  char *next, *end;
} arena_mark;

/** An empty arena; allocates nothing yet. `mem` and `diag` must outlive it. */
void arena_init(arena *a, const mem *mem, diag *diag);

/** Frees everything; the arena is empty and usable again. */
void arena_free(arena *a);

/** Allocates `bytes` bytes, aligned for any object, not cleared. Raises TN_ERR_MEMORY. */
void *arena_alloc(arena *a, size_t bytes);

/** Allocates `n` objects of `size` bytes each, all zero. */
void *arena_calloc(arena *a, size_t n, size_t size);

/** Makes the last allocation of an arena larger in place; false: it is not the last one, or its
   block has no room. */
bool arena_extend(arena *a, void *at, size_t old_bytes, size_t new_bytes);

/** Copies `bytes` bytes into the arena. */
void *arena_copy(arena *a, const void *from, size_t bytes);

/** Formats a string into the arena, as sprintf does. */
char *arena_printf(arena *a, const char *format, ...) BASE_PRINTF(2, 3);

arena_mark arena_save(const arena *a);

/** Frees everything allocated since the mark, except one spare block of at most 1 MiB. A mark of
   zeros frees everything. */
void arena_rewind(arena *a, arena_mark to);

/** Rewinds an arena, but keeps an array that was allocated since the mark, whose new place is
    returned. Raises TN_ERR_MEMORY with the arena as it was. */
void *arena_rewind_keeping(arena *a, arena_mark to, const void *at, size_t bytes);

#endif
