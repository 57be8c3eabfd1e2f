/* Arenas: memory that is freed all at once. Allocation never returns NULL: it raises TN_ERR_MEMORY
   through the arena's diag, so code over an arena has no failure paths of its own. */
#ifndef TENON_BASE_ARENA_H
#define TENON_BASE_ARENA_H

#include "base/diag.h"
#include "base/mem.h"

#include <stddef.h>

typedef struct arena_block arena_block;

typedef struct arena {
  const mem *mem;
  diag *diag; /* where allocation failures are raised; the arena is used under its diag_catch */
  arena_block *block;
  char *next, *end;
  arena_block
      *spare; /* one that arena_reset gave back: kept, or marks at a block's end would thrash */
} arena;

/** A point to go back to. */
typedef struct arena_mark {
  arena_block *block;
  char *next, *end;
} arena_mark;

/** An empty arena; allocates nothing yet. `mem` and `diag` must outlive it. */
void arena_init(arena *a, const mem *mem, diag *diag);

/** Frees everything; the arena is empty and usable again. */
void arena_free(arena *a);

/** `bytes` bytes aligned for any object, not cleared. Raises when there is no memory. */
void *arena_alloc(arena *a, size_t bytes);

/** The same, cleared, for `n` objects of `size` bytes. */
void *arena_calloc(arena *a, size_t n, size_t size);

/** A copy of `bytes` bytes. */
void *arena_copy(arena *a, const void *from, size_t bytes);

/** Text made as by printf. */
char *arena_printf(arena *a, const char *format, ...) BASE_PRINTF(2, 3);

arena_mark arena_here(const arena *a);

/** Frees all that was allocated since the mark was taken, but for one block of at most 1 MiB. A
   mark of zeros is the beginning. */
void arena_reset(arena *a, arena_mark to);

#endif
