/* The one allocation hook. Everything the library allocates, it allocates here, so that a user can
   bring an allocator and a test can make the N-th allocation fail. */
#ifndef TENON_BASE_MEM_H
#define TENON_BASE_MEM_H

#include <stddef.h>
#include <stdint.h>

/** An allocator. `alloc` returns `bytes` bytes at a multiple of `align` (a power of two), or NULL;
    `release` gets the size that was asked for. Both are called from any thread. */
typedef struct mem {
  void *(*alloc)(void *user, size_t bytes, size_t align);
  void (*release)(void *user, void *at, size_t bytes);
  void *user;
} mem;

/** The C library's allocator. */
extern const mem mem_system;

/** `bytes` bytes aligned for any object, not cleared; NULL when there are none. */
void *mem_alloc(const mem *m, size_t bytes);

/** The same, cleared, for `n` objects of `size` bytes; NULL on overflow too. */
void *mem_calloc(const mem *m, size_t n, size_t size);

/** `bytes` bytes aligned to `align`. */
void *mem_alloc_aligned(const mem *m, size_t bytes, size_t align);

/** Grows or shrinks a block; on failure returns NULL and leaves the block as it was. */
void *mem_resize(const mem *m, void *at, size_t old_bytes, size_t new_bytes);

/** Gives a block back; `bytes` is the size asked for. NULL is allowed. */
void mem_free(const mem *m, void *at, size_t bytes);

/** A copy of a string, to be freed with its length + 1; NULL without memory. */
char *mem_strdup(const mem *m, const char *text);
void mem_strfree(const mem *m, char *text);

/** A number of bytes in words, "256 GiB"; and "out of memory (256 GiB)", as messages say it. */
enum { MEM_TEXT = 48 };
const char *mem_amount(uint64_t bytes, char text[MEM_TEXT]);
const char *mem_none(uint64_t bytes, char text[MEM_TEXT]);

#endif
